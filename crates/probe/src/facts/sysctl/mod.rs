//! Kernel settings: the value, this kernel's default and its source, and the origin of the value.

mod formula;
mod fresh;
mod origin;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{
    Bytes, Reading,
    facts::NoAccess,
    host::{Host, kernel_version},
    sysctl::{DefaultFrom, Origin, Sysctl},
    sysctls::{self, KernelDefault, Known, Scope, TABLE, UNSURE},
};
use parse::{kconfig::KernelConfig, sysctl_conf};

use self::{formula::Basis, origin::Setters};
use crate::{ReadError, Root, error::reading};

/// A setting of the table that is among the facts.
struct Entry {
    key: &'static str,
    unit: &'static str,
    known: Known,
}

fn entries() -> impl Iterator<Item = Entry> {
    let entry = |s: &sysctls::Setting| Some(Entry { key: s.key, unit: s.unit, known: s.known? });
    TABLE.iter().filter_map(entry)
}

/// Every setting with a default that Netwright knows, by dotted name. One that this kernel does not show is
/// there as absent.
///
/// **Source**: `/proc/sys`; defaults from a network namespace made for the purpose, else from
/// a table by version, memory and build; origins from the sysctl files, tuned's active profile
/// and the kernel cmdline.
pub fn read(
    root: &Root,
    host: &Host,
    memory: &Reading<Bytes>,
    no_access: &mut Vec<NoAccess>,
) -> BTreeMap<String, Sysctl> {
    let setters = Setters::read(root);
    let config = super::host::build::config(root, host.kernel.known().map(String::as_str));
    let basis = basis(root, host, memory, config.known());
    let fresh = Fresh::read(root);
    if let Err(e @ ReadError::Denied { .. }) = &fresh.values {
        no_access.push(NoAccess {
            what: "defaults from a fresh network namespace".into(),
            why: e.to_string(),
            remedy: "CAP_SYS_ADMIN, or run as root; a table by kernel version stands in".into(),
        });
    }
    let initial = root.exists("/proc/sys/net/core/netdev_budget");
    let files = Files { root, initial };
    entries().map(|e| (e.key.to_owned(), setting(&files, &e, &setters, &basis, &fresh))).collect()
}

/// The settings as a kernel of another version, or on a host of another memory, starts with them: the
/// table's defaults alone. No value is known.
pub fn of_another(
    host: &Host,
    nodes: Option<usize>,
    memory: &Reading<Bytes>,
) -> BTreeMap<String, Sysctl> {
    let release = host.kernel.known().map_or("", String::as_str);
    let basis = Basis {
        version: kernel_version(release),
        backports: carries_changes_back(release),
        memory: memory.known().map(|b| b.0),
        page: host.page_size_bytes.known().map(|b| b.0),
        hz: host.build.hz.get(),
        nodes,
        ..Basis::default()
    };
    let one = |e: Entry| {
        let default = from_table(&e, &basis, "");
        let (default_from, default_source) = match &default {
            Ok(_) => (DefaultFrom::VersionTable, source(&e, &basis)),
            Err(why) => (DefaultFrom::Unknown, why.clone()),
        };
        let sysctl = Sysctl {
            value: Reading::absent("another host"),
            default: default.map_or_else(Reading::absent, Reading::Known),
            default_from,
            default_source,
            origin: Origin::Unknown,
            unit: e.unit.to_owned(),
        };
        (e.key.to_owned(), sysctl)
    };
    entries().map(one).collect()
}

/// Lines of the boot's sysctl files that set what Netwright knows: file, line from 1, dotted
/// name (or pattern), value.
pub fn file_lines(root: &Root) -> Vec<(String, u32, String, String)> {
    let keys: Vec<String> = entries().map(|e| sysctl_conf::path(e.key)).collect();
    let known = |path: &str| {
        let glob = sysctl_conf::is_glob(path);
        keys.iter().any(|k| k == path || glob && sysctl_conf::glob_matches(path, k))
    };
    let lines = origin::lines_of(root, known);
    lines.into_iter().map(|(f, l, path, v)| (f, l, sysctl_conf::dotted(&path), v)).collect()
}

/// What a fresh namespace said.
struct Fresh {
    values: Result<BTreeMap<String, String>, ReadError>,
    /// Whether new namespaces size their own hashes, so that what follows from the hash is not
    /// the host's default.
    own_hash: bool,
}

impl Fresh {
    fn read(root: &Root) -> Self {
        let shown =
            |k: &Known| k.scope == Scope::Namespace && !matches!(k.default, KernelDefault::State);
        let paths =
            entries().filter(|e| shown(&e.known)).map(|e| sysctl_conf::path(e.key)).collect();
        let own_hash = root
            .number::<u64>("/proc/sys/net/ipv4/tcp_child_ehash_entries")
            .known()
            .is_some_and(|&n| n != 0);
        Self { values: fresh::values(root, paths), own_hash }
    }

    /// The default, where the namespace is evidence of it.
    fn default(&self, e: &Entry, path: &str) -> Option<&String> {
        let from_hash = ["net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_max_tw_buckets"];
        if e.known.scope != Scope::Namespace || (self.own_hash && from_hash.contains(&e.key)) {
            return None;
        }
        self.values.as_ref().ok()?.get(path)
    }
}

/// Where the values in force are.
struct Files<'a> {
    root: &'a Root,
    /// Whether this is the initial network namespace, as far as its settings tell.
    initial: bool,
}

fn setting(
    files: &Files<'_>,
    e: &Entry,
    setters: &Setters,
    basis: &Basis<'_>,
    fresh: &Fresh,
) -> Sysctl {
    let path = sysctl_conf::path(e.key);
    let hidden = !files.initial && path.starts_with("net/") && e.known.scope == Scope::Host;
    let value = value(files.root, &path, hidden);
    let absent = value.why_not().filter(|_| matches!(value, Reading::Absent(_)) && !hidden);
    let (default, default_from, default_source) = match absent {
        Some(why) if fresh.default(e, &path).is_none() => {
            let why = Reading::absent(why.to_owned());
            (why, DefaultFrom::Unknown, "this kernel does not show it".into())
        }
        _ => default(e, &path, &value, basis, fresh),
    };
    let origin = match &value {
        Reading::Known(live) => setters.of(&path, live).unwrap_or_else(|| {
            let is_default =
                default.known() == Some(live) || matches!(e.known.default, KernelDefault::State);
            // A file that names another value is not in force: who undid it is not known.
            if is_default && !setters.names(&path) { Origin::Default } else { Origin::Unknown }
        }),
        _ => Origin::Unknown,
    };
    Sysctl { value, default, default_from, default_source, origin, unit: e.unit.to_owned() }
}

/// The value in force, blanks folded. An empty one is a value (no reserved ports). `hidden`: only the
/// initial network namespace shows it, and this is another one.
fn value(root: &Root, path: &str, hidden: bool) -> Reading<String> {
    let file = format!("/proc/sys/{path}");
    let read = reading(root.read(&file).map(|b| sysctl_conf::folded(&String::from_utf8_lossy(&b))));
    match read {
        Reading::Absent(why) if hidden => {
            Reading::Absent(format!("{why}; only the initial network namespace shows it"))
        }
        read => read,
    }
}

/// The default, how it is known, and what it rests on.
fn default(
    e: &Entry,
    path: &str,
    live: &Reading<String>,
    basis: &Basis<'_>,
    fresh: &Fresh,
) -> (Reading<String>, DefaultFrom, String) {
    if let Some(value) = fresh.default(e, path) {
        let from = DefaultFrom::FreshNamespace;
        return (
            Reading::Known(value.clone()),
            from,
            "a network namespace made for the purpose".into(),
        );
    }
    let live = live.known().map_or("", String::as_str);
    match from_table(e, basis, live) {
        Ok(value) => (Reading::Known(value), DefaultFrom::VersionTable, source(e, basis)),
        Err(why) => (Reading::Absent(why.clone()), DefaultFrom::Unknown, why),
    }
}

fn source(e: &Entry, basis: &Basis<'_>) -> String {
    match basis.version {
        Some((major, minor)) => format!("table for kernel {major}.{minor}: {}", e.known.source),
        None => format!("table: {}", e.known.source),
    }
}

/// The table's word, or why it has none.
fn from_table(e: &Entry, basis: &Basis<'_>, live: &str) -> Result<String, String> {
    match e.known.default {
        KernelDefault::State => Err("a state of the kernel, no setting".into()),
        KernelDefault::Since(spans) => since(spans, basis),
        KernelDefault::By(computed) => {
            let all = formula::of(computed)(basis, live)?;
            if let Some(c) = all.iter().find(|c| c.in_force) {
                return Ok(c.text.clone());
            }
            match all.as_slice() {
                [one] => Ok(one.text.clone()),
                many => {
                    let texts: Vec<_> = many.iter().map(|c| c.text.as_str()).collect();
                    Err(format!("this kernel's default is one of: {}", texts.join("; ")))
                }
            }
        }
    }
}

fn since(spans: &[((u32, u32), &str)], basis: &Basis<'_>) -> Result<String, String> {
    let mut found = None;
    for &(version, value) in spans {
        let reached = if version == (0, 0) { Some(true) } else { basis.at_least(version) };
        match reached {
            Some(true) => found = Some(value),
            Some(false) => break,
            None => {
                let what = if basis.version.is_some() {
                    "the vendor may have carried a later change back"
                } else {
                    "the kernel's version is not known"
                };
                return Err(format!(
                    "{what}: {} changed it to {value}",
                    format_args!("{}.{}", version.0, version.1)
                ));
            }
        }
    }
    match found {
        Some(value) if value != UNSURE => Ok(value.to_owned()),
        _ => Err("the default of this version is not established".into()),
    }
}

fn basis<'a>(
    root: &Root,
    host: &Host,
    memory: &Reading<Bytes>,
    config: Option<&'a KernelConfig>,
) -> Basis<'a> {
    let release = host.kernel.known().map_or("", String::as_str);
    let positive = |n: &u64| *n > 0;
    Basis {
        version: kernel_version(release),
        backports: carries_changes_back(release),
        memory: memory.known().map(|b| b.0),
        page: host.page_size_bytes.known().map(|b| b.0),
        hz: host.build.hz.get(),
        ehash: root.number("/proc/sys/net/ipv4/tcp_ehash_entries").into_known().filter(positive),
        nodes: root.list("/sys/devices/system/node/online").known().map(|n| n.len()),
        config,
    }
}

/// Vendors with kernels that have years of later changes under an old number: Red Hat and its
/// rebuilds (`.el8`), SUSE (`-150500.55-default`).
pub fn carries_changes_back(release: &str) -> bool {
    release.contains(".el") || release.ends_with("-default") && release.contains("-1")
}
