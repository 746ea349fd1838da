//! irqbalance: the CPUs and IRQs that it leaves alone, and the file of this host that says so.
//!
//! **Source**: its process, and of its environment only the `IRQBALANCE_*` variables; the files
//! that its unit reads; its socket's answer to `setup` (needs root). See irqbalance(1).

use std::{collections::BTreeMap, io::ErrorKind, time::Duration};

use model::{CpuSet, IrqId, Reading, tuner::Tuner};
use parse::{hexmask, irqbalance_setup, shell_vars};

use super::{
    super::excerpt::excerpt,
    new, running,
    scan::Scan,
    unit::{self, Unit},
};
use crate::{ReadError, Root, error::reading, irqbalance as socket};

/// It is asleep for its whole interval after each change of what is banned: not waited for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Files that distributions give it, where no unit names one: Debian, Red Hat and SUSE, Arch
/// and upstream, Gentoo and Alpine.
const FILES: [&str; 4] = [
    "/etc/default/irqbalance",
    "/etc/sysconfig/irqbalance",
    "/etc/irqbalance.env",
    "/etc/conf.d/irqbalance",
];
const PROGRAMS: [&str; 3] =
    ["/usr/sbin/irqbalance", "/usr/bin/irqbalance", "/usr/local/sbin/irqbalance"];
const MASK: &str = "IRQBALANCE_BANNED_CPUS";
const LIST: &str = "IRQBALANCE_BANNED_CPULIST";

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    let root = scan.root;
    let pid = scan.by_name("irqbalance");
    let program = scan.installed(&PROGRAMS);
    if pid.is_none() && program.is_none() {
        return vec![];
    }
    let mut tuner = new("irqbalance", "irqbalance");
    tuner.owns = vec!["irq affinity".into()];
    running(scan, &mut tuner, pid);
    tuner.evidence.extend(program.map(|p| format!("{p}: installed")));
    let unit = unit::read(root, "irqbalance.service");
    if let Some(unit) = &unit {
        describe(unit, &mut tuner);
    }
    tuner.settings_files = settings_files(root, unit.as_ref());
    let from_files = variables(root, unit.as_ref(), &tuner.settings_files);
    tuner.evidence.extend(from_files.iter().map(|(k, v)| format!("{}: {k}={}", v.at, v.value)));
    match pid {
        Some(pid) => as_it_runs(root, pid, &mut tuner),
        None => as_it_would(root, &from_files, &mut tuner),
    }
    vec![tuner]
}

fn describe(unit: &Unit, tuner: &mut Tuner) {
    let state = match (unit.masked, unit.enabled) {
        (true, _) => "masked",
        (false, true) => "started at boot",
        (false, false) => "not started at boot",
    };
    let file = unit.files.first().map_or("irqbalance.service", String::as_str);
    tuner.evidence.push(format!("{file}: {state}"));
    for (file, at) in &unit.environment_files {
        tuner.evidence.push(format!("{at}: reads {file}"));
    }
}

/// Those that the unit names and that are there or could be; without a unit those of the
/// distributions that are there.
fn settings_files(root: &Root, unit: Option<&Unit>) -> Vec<String> {
    match unit {
        Some(unit) if !unit.environment_files.is_empty() => {
            unit.environment_files.iter().map(|(file, _)| file.clone()).collect()
        }
        _ => FILES.iter().filter(|f| root.exists(f)).map(|f| (*f).to_owned()).collect(),
    }
}

/// A variable and where it stands.
struct Setting {
    value: String,
    at: String,
}

/// `IRQBALANCE_*` of the unit and the files; the last one counts.
fn variables(root: &Root, unit: Option<&Unit>, files: &[String]) -> BTreeMap<String, Setting> {
    let mut all = BTreeMap::new();
    let mut set = |name: &str, value: &str, at: String| {
        if name.starts_with("IRQBALANCE_") {
            all.insert(name.to_owned(), Setting { value: value.to_owned(), at });
        }
    };
    for (word, at) in unit.map(|u| u.environment.as_slice()).unwrap_or_default() {
        if let Some((name, value)) = word.split_once('=') {
            set(name, value, at.clone());
        }
    }
    // The unit's files win over its Environment=.
    for file in files {
        let Ok(bytes) = root.read(file) else { continue };
        for a in shell_vars::parse(&bytes) {
            set(&a.name, &a.value, format!("{file}:{}", a.line));
        }
    }
    all
}

/// What it answers to `setup`, a question that changes nothing. It answers root only, and would
/// log that others asked.
fn setup(root: &Root, pid: u32) -> Result<String, ReadError> {
    root.ask(&format!("irqbalance/{pid}/setup"), || {
        if !rustix::process::geteuid().is_root() {
            return Err(ReadError::Denied { path: socket::path(pid) });
        }
        socket::ask(pid, "setup", PATIENCE).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock => ReadError::Failed {
                path: format!("{} (not asked, for it sleeps)", socket::path(pid)),
                errno: libc::EAGAIN,
            },
            _ => ReadError::from_io(&socket::path(pid), &e),
        })
    })
}

/// The running one: its own environment, command line and socket.
fn as_it_runs(root: &Root, pid: u32, tuner: &mut Tuner) {
    let environment = environment(root, pid);
    if let Reading::Known(variables) = &environment {
        let lines = variables.iter().map(|(k, v)| format!("/proc/{pid}/environ: {k}={v}"));
        tuner.evidence.extend(lines);
    }
    let words = tuner.arguments.get().unwrap_or_default();
    let options = Options::of(words.get(1..).unwrap_or_default());
    tuner.evidence.extend(options.notes.iter().map(|n| format!("/proc/{pid}/cmdline: {n}")));
    let answer = setup(root, pid).and_then(|text| {
        irqbalance_setup::parse(text.as_bytes())
            .map_err(|error| ReadError::Unparsable { path: socket::path(pid), error })
    });
    match answer {
        Ok(setup) => {
            tuner.evidence.push(format!(
                "{}: bans CPUs {}, looks every {} s",
                socket::path(pid),
                if setup.banned_cpus.is_empty() {
                    "none".into()
                } else {
                    setup.banned_cpus.to_string()
                },
                setup.interval_s.map_or_else(|| "?".into(), |s| s.to_string()),
            ));
            tuner.banned_cpus = Reading::Known(setup.banned_cpus);
            let mut irqs = options.banned_irqs;
            irqs.extend(setup.banned_irqs);
            irqs.sort_unstable();
            irqs.dedup();
            tuner.banned_irqs = Reading::Known(irqs);
        }
        Err(e) => {
            tuner.evidence.push(e.to_string());
            tuner.banned_cpus = environment.and_then(|v| banned_cpus(root, |k| v.get(k).cloned()));
            tuner.banned_irqs = tuner.arguments.as_ref().map(|_| options.banned_irqs);
        }
    }
}

/// The one that would be started: what its files say.
fn as_it_would(root: &Root, files: &BTreeMap<String, Setting>, tuner: &mut Tuner) {
    tuner.banned_cpus = banned_cpus(root, |k| files.get(k).map(|s| s.value.clone()));
    let arguments = files.get("IRQBALANCE_ARGS").or_else(|| files.get("OPTIONS"));
    let words: Vec<String> = arguments
        .map(|a| a.value.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    tuner.banned_irqs = Reading::Known(Options::of(&words).banned_irqs);
}

/// Its own variables of the process's environment; the others are dropped where they are read.
fn environment(root: &Root, pid: u32) -> Reading<BTreeMap<String, String>> {
    reading(excerpt(root, &format!("irqbalance/{pid}/environ"), |root| {
        let bytes = root.read(&format!("/proc/{pid}/environ"))?;
        Ok(bytes
            .split(|&b| b == 0)
            .filter(|entry| entry.starts_with(b"IRQBALANCE_"))
            .filter_map(|entry| {
                let text = String::from_utf8_lossy(entry);
                text.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))
            })
            .collect())
    }))
}

/// As irqbalance itself takes them: the mask if it is not empty, else the list, else the
/// isolated and the nohz_full CPUs.
fn banned_cpus(root: &Root, variable: impl Fn(&str) -> Option<String>) -> Reading<CpuSet> {
    let parsed = |name: &str, set: Option<CpuSet>, text: &str| {
        set.map_or_else(
            || Reading::Absent(format!("{name}={text}: cannot be understood")),
            Reading::Known,
        )
    };
    if let Some(mask) = variable(MASK).filter(|m| !m.is_empty()) {
        return parsed(MASK, hexmask::parse(mask.as_bytes()).ok(), &mask);
    }
    if let Some(list) = variable(LIST).filter(|l| !l.is_empty()) {
        return parsed(LIST, list.parse().ok(), &list);
    }
    let cpus = |file: &str| {
        let list = root.list(&format!("/sys/devices/system/cpu/{file}"));
        list.into_known().unwrap_or_default()
    };
    Reading::Known(cpus("isolated").union(&cpus("nohz_full")))
}

/// What the command line says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    banned_irqs: Vec<IrqId>,
    notes: Vec<String>,
}

impl Options {
    fn of(words: &[String]) -> Self {
        let mut options = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let (name, inline) = match word.split_once('=') {
                Some((n, v)) if n.starts_with("--") => (n, Some(v)),
                _ if word.len() > 2 && !word.starts_with("--") && word.is_char_boundary(2) => {
                    let (n, v) = word.split_at(2);
                    (n, Some(v))
                }
                _ => (word, None),
            };
            let mut value = || inline.or_else(|| words.next()).unwrap_or_default();
            match name {
                "--banirq" | "-i" => {
                    options.banned_irqs.extend(value().parse().ok().map(IrqId));
                }
                "--banmod" | "-m" => {
                    options.notes.push(format!("bans the IRQs of module {}", value()));
                }
                "--policyscript" | "-l" => {
                    options.notes.push(format!("asks {} about each IRQ", value()));
                }
                "--oneshot" | "-o" => options.notes.push("places IRQs once and ends".into()),
                _ => {}
            }
        }
        options.banned_irqs.sort_unstable();
        options.banned_irqs.dedup();
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_all_spellings() {
        let of = |s: &str| Options::of(&s.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let o = of("--foreground --banirq=25 -i 3 -i7 --banirq 9 --banmod=mlx5 -l /x.sh --oneshot");
        assert_eq!(o.banned_irqs, [3, 7, 9, 25].map(IrqId));
        assert_eq!(o.notes.len(), 3);
        assert_eq!(of("--banirq"), Options::default());
        assert_eq!(of("--banirq=x"), Options::default());
    }

    #[test]
    fn the_mask_wins_over_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let with = |pairs: &'static [(&str, &str)]| {
            banned_cpus(&root, |k| pairs.iter().find(|p| p.0 == k).map(|p| p.1.to_owned()))
        };
        let set = |s: &str| Reading::Known(s.parse::<CpuSet>().unwrap());
        assert_eq!(with(&[(MASK, "0000ffff,ffffffff"), (LIST, "1")]), set("0-47"));
        assert_eq!(with(&[(MASK, ""), (LIST, "1-2")]), set("1-2"));
        assert_eq!(with(&[]), set(""));
        assert!(!with(&[(LIST, "x")]).is_known());
    }
}
