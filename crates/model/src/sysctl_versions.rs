//! What the kernel versions 4.18 to 6.18 have of each sysctl: type, unit, range, default, scope, and in
//! which versions it exists.
//!
//! **Source**: `data/sysctls.tsv`, which `scripts/sysctl-table` makes of kernel sources
//! (`docs/sysctls.md`). Nothing here is from memory; judgements of values are in
//! [`sysctls`](crate::sysctls).

use std::{collections::BTreeMap, sync::LazyLock};

use crate::host::kernel_version;

/// Major and minor version of a kernel.
pub type Kernel = (u32, u32);

/// One sysctl, or the sysctls of one name below each NIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysctlFacts {
    /// Dotted name; `*` stands for a NIC, `all` and `default`.
    pub name: &'static str,
    /// `boolean`, `integer`, `3 integers`, `string`, `list` or `mask`.
    pub kind: &'static str,
    pub access: Access,
    /// `s`, `ms`, `bytes`, `pages` and so on; `None` for a plain number or where the sources do not say.
    pub unit: Option<&'static str>,
    min: History,
    max: History,
    default: History,
    scope: History,
    since: Option<Boundary>,
    until: Option<Boundary>,
    /// Build options (`CONFIG_…`) without which a kernel does not have it.
    pub needs: Vec<&'static str>,
    /// Other sysctls that its documentation or its limits name.
    pub coupled: Vec<&'static str>,
    /// The page of the kernel's documentation that describes it.
    pub documented: Option<&'static str>,
    /// File and table of the newest kernel that has it.
    pub source: &'static str,
}

/// What the mode of the file lets root do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadWrite,
    ReadOnly,
    /// An action: nothing can be read.
    WriteOnly,
}

/// Whether a kernel has a sysctl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existence {
    Yes,
    No,
    /// The kernel is older or newer than those of the table, or lies between two of them.
    Unknown,
}

/// The default of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultAt {
    /// As `/proc/sys` shows it.
    Value(&'static str),
    /// The kernel computes it: `by memory`, `by build`, `by tick rate: 100=20000 250=8000 1000=2000`.
    Computed(&'static str),
    /// Not established for this version.
    Unknown,
}

/// Whose value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeAt {
    /// One value, which only the initial network namespace shows.
    Host,
    /// One value, which each network namespace shows.
    Shared,
    /// Each network namespace has its own.
    Namespace,
    Unknown,
}

/// The change happened after the first version and in the second at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Boundary {
    after: Kernel,
    by: Kernel,
}

/// A value by version: the first one, and those that followed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct History(Vec<(Option<Boundary>, &'static str)>);

struct Table {
    rows: BTreeMap<&'static str, SysctlFacts>,
    oldest: Kernel,
    newest: Kernel,
    gone: Vec<Gone>,
}

/// A sysctl that kernels before the oldest of the table had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// The name with dots, such as `net.ipv4.tcp_fack`.
    pub name: &'static str,
    /// The file of the oldest kernel that still names it.
    pub source: &'static str,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| table(include_str!("../data/sysctls.tsv")));

/// The facts of a name. The row of `net.ipv4.conf.*.rp_filter` answers for each NIC.
pub fn of(name: &str) -> Option<&'static SysctlFacts> {
    if let Some(row) = TABLE.rows.get(name) {
        return Some(row);
    }
    let parts: Vec<&str> = name.split('.').collect();
    let [net, family, group, _, .., leaf] = parts.as_slice() else { return None };
    TABLE.rows.get(format!("{net}.{family}.{group}.*.{leaf}").as_str())
}

/// Every row, by name.
pub fn all() -> impl Iterator<Item = &'static SysctlFacts> {
    TABLE.rows.values()
}

/// Sysctls that were gone before the oldest kernel of the table.
pub fn gone_before_the_table(name: &str) -> Option<Gone> {
    TABLE.gone.iter().find(|g| g.name == name).copied()
}

/// The oldest and the newest kernel of the table.
pub fn versions() -> (Kernel, Kernel) {
    (TABLE.oldest, TABLE.newest)
}

impl SysctlFacts {
    /// Whether this kernel has it, where it is built with [`needs`](Self::needs). A vendor's kernel can
    /// have it earlier.
    pub fn exists_at(&self, kernel: Kernel) -> Existence {
        if !covered(kernel) {
            return Existence::Unknown;
        }
        let came = self.since.map_or(Some(true), |b| b.passed(kernel));
        let went = self.until.map_or(Some(false), |b| b.passed(kernel));
        match (came, went) {
            (Some(false), _) | (_, Some(true)) => Existence::No,
            (Some(true), Some(false)) => Existence::Yes,
            _ => Existence::Unknown,
        }
    }

    /// The first version of the table that has it; `None` where its oldest does.
    pub fn since(&self) -> Option<Kernel> {
        self.since.map(|b| b.by)
    }

    /// The first version of the table without it.
    pub fn until(&self) -> Option<Kernel> {
        self.until.map(|b| b.by)
    }

    /// The default of this kernel version, where the table has it.
    pub fn default_at(&self, kernel: Kernel) -> DefaultAt {
        match self.default.at(kernel) {
            None | Some("?") => DefaultAt::Unknown,
            Some("\"\"") => DefaultAt::Value(""),
            Some(how) if how.starts_with("by ") || how == "random" || how == "state" => {
                DefaultAt::Computed(how)
            }
            Some(value) => DefaultAt::Value(value),
        }
    }

    /// The smallest and the largest number that this version takes; `None` where only the type limits it.
    pub fn range_at(&self, kernel: Kernel) -> (Option<i128>, Option<i128>) {
        let number = |h: &History| h.at(kernel).and_then(|v| v.parse().ok());
        (number(&self.min), number(&self.max))
    }

    pub fn scope_at(&self, kernel: Kernel) -> ScopeAt {
        match self.scope.at(kernel) {
            Some("host") => ScopeAt::Host,
            Some("shared") => ScopeAt::Shared,
            Some("netns") => ScopeAt::Namespace,
            _ => ScopeAt::Unknown,
        }
    }
}

fn covered(kernel: Kernel) -> bool {
    (TABLE.oldest..=TABLE.newest).contains(&kernel)
}

impl Boundary {
    /// Whether a kernel is beyond the change; `None` where it lies between the two versions.
    fn passed(self, kernel: Kernel) -> Option<bool> {
        // Two trees of one series differ: some of its updates have the change.
        if self.after == self.by && kernel == self.by {
            return None;
        }
        if kernel >= self.by {
            Some(true)
        } else if kernel <= self.after {
            Some(false)
        } else {
            None
        }
    }
}

impl History {
    fn at(&self, kernel: Kernel) -> Option<&'static str> {
        if !covered(kernel) {
            return None;
        }
        let mut value = None;
        for (boundary, next) in &self.0 {
            match boundary.map_or(Some(true), |b| b.passed(kernel)) {
                Some(true) => value = Some(*next),
                Some(false) => break,
                None => return None,
            }
        }
        value
    }
}

fn table(text: &'static str) -> Table {
    let mut table = Table { rows: BTreeMap::new(), oldest: (0, 0), newest: (0, 0), gone: vec![] };
    for line in text.lines() {
        if let Some(read) = line.strip_prefix("# read ") {
            let Some(v) = kernel_version(read.split(' ').next().unwrap_or_default()) else {
                continue;
            };
            if table.oldest == (0, 0) {
                table.oldest = v;
            }
            table.newest = table.newest.max(v);
        } else if let Some(gone) = line.strip_prefix("!gone\t") {
            let Some((name, source)) = gone.split_once('\t') else { continue };
            table.gone.push(Gone { name, source });
        } else if let Some(row) = row(line) {
            table.rows.insert(row.name, row);
        }
    }
    table
}

/// A row; `None` for a comment.
fn row(line: &'static str) -> Option<SysctlFacts> {
    let columns: Vec<&str> = line.split('\t').collect();
    let &[
        name,
        kind,
        access,
        unit,
        min,
        max,
        default,
        scope,
        since,
        until,
        needs,
        coupled,
        documented,
        source,
    ] = columns.as_slice()
    else {
        return None;
    };
    if line.starts_with('#') {
        return None;
    }
    let some = |text: &'static str| (text != "-").then_some(text);
    let list = |text: &'static str, by| some(text).map_or(vec![], |t| t.split(by).collect());
    Some(SysctlFacts {
        name,
        kind,
        access: match access {
            "ro" => Access::ReadOnly,
            "wo" => Access::WriteOnly,
            _ => Access::ReadWrite,
        },
        unit: some(unit),
        min: history(min),
        max: history(max),
        default: history(default),
        scope: history(scope),
        since: boundary(since),
        until: boundary(until),
        needs: list(needs, '+'),
        coupled: list(coupled, ','),
        documented: some(documented),
        source,
    })
}

/// Parses a history such as `128; 5.3<5.4:4096`: the first value, then each change.
fn history(text: &'static str) -> History {
    let parts = text.split("; ").enumerate();
    History(
        parts
            .map(|(i, part)| match part.split_once(':') {
                Some((b, value)) if i > 0 => (boundary(b), value),
                _ => (None, part),
            })
            .collect(),
    )
}

/// `5.3<5.4`; `None` for `-` and for `4.18-`, which is the oldest of the table.
fn boundary(text: &str) -> Option<Boundary> {
    let (after, by) = text.split_once('<')?;
    Some(Boundary { after: kernel_version(after)?, by: kernel_version(by)? })
}

#[cfg(test)]
mod tests;
