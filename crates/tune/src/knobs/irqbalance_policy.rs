//! `irqbalance.policyscript`: the script that a running irqbalance asks about each interrupt.

use std::{os::unix::fs::MetadataExt, path::Path};

use model::knob::Target;
use probe::facts::tuner::unit;

use super::{irq_affinity, irqbalance::settings_files};
use crate::{
    Host, TuneError,
    host::service::{self, Manager},
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, usage},
    need::Need,
    phase::Phase,
};

/// A start argument, so systemd restarts irqbalance with our drop-in next to its unit, valid until
/// the next boot. **Source**: `/proc/PID/cmdline` and the drop-in. An exact value is the running
/// script and the drop-in's script, `none` where there is none; `off` if irqbalance does not run.
pub const KIND: Kind = Kind {
    name: "irqbalance_policy",
    spelling: "irqbalance.policyscript=PATH|none",
    parse: |target| match target {
        Target::Irqbalance("policyscript") => Some(Box::new(IrqbalancePolicy)),
        _ => None,
    },
};

struct IrqbalancePolicy;

const SERVICE: &str = "irqbalance";
const UNIT: &str = "irqbalance.service";
const NONE: &str = "none";
const OFF: &str = "off";
/// The drop-in directory; its file name sorts last, so systemd reads it last.
const FOLDER: &str = "/run/systemd/system/irqbalance.service.d";
const FILE: &str = "/run/systemd/system/irqbalance.service.d/zz-netwright.conf";

/// The script named on a command line.
///
/// **Source**: irqbalance(1): `-l`, `--policyscript`; the last one counts.
fn of_arguments<'w>(words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let (mut script, mut next) = (None, false);
    for word in words {
        if std::mem::replace(&mut next, false) {
            script = Some(word);
        } else if matches!(word, "-l" | "--policyscript") {
            next = true;
        } else if let Some(path) = word.strip_prefix("--policyscript=") {
            script = Some(path);
        } else if let Some(path) = word.strip_prefix("-l") {
            script = Some(path);
        }
    }
    script
}

/// The script that our drop-in sets.
fn ours(host: &Host) -> Result<Option<String>, TuneError> {
    match host.text(FILE) {
        Ok(text) => Ok(of_arguments(text.split_whitespace()).map(str::to_owned)),
        Err(TuneError::Absent(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The script of the running irqbalance; `None` if none runs.
fn running(host: &Host) -> Result<Option<String>, TuneError> {
    let it = match host.irqbalance() {
        Ok(it) => it,
        Err(TuneError::Absent(_)) => return Ok(None),
        Err(e) => return Err(e),
    };
    let line = host.text(&format!("/proc/{}/cmdline", it.pid))?;
    let script = of_arguments(line.split_terminator('\0').skip(1));
    Ok(Some(script.unwrap_or(NONE).to_owned()))
}

/// Text of our drop-in: the unit's own start command, and the script.
fn body(host: &Host, script: &str) -> Result<String, TuneError> {
    let start = unit::read(host.root(), UNIT).and_then(|u| u.exec_start);
    let Some((line, at)) = start else {
        return Err(TuneError::Environment(format!("{UNIT}: does not say how it is started")));
    };
    // The start command may come from our own drop-in.
    let line = if at.starts_with(FILE) {
        line.rsplit_once(" --policyscript=").map_or(line.as_str(), |(own, _)| own)
    } else {
        &line
    };
    Ok(format!("[Service]\nExecStart=\nExecStart={line} --policyscript={script}\n"))
}

/// Checks that the script is safe: root runs it for each interrupt.
fn may_be_run(path: &str) -> Result<(), TuneError> {
    let about = std::fs::metadata(Path::new(path)).map_err(|e| TuneError::io(path, &e))?;
    let why = match about.mode() {
        _ if !about.is_file() => "no file",
        mode if mode & 0o111 == 0 => "not executable",
        mode if mode & 0o022 != 0 => "others than its owner can write it, and root would run it",
        _ if about.uid() != 0 => "not root's, and root would run it",
        _ => return Ok(()),
    };
    Err(TuneError::Environment(format!("{path}: {why}")))
}

/// Writes or removes our drop-in, and restarts irqbalance.
fn set(host: &Host, script: Option<&str>) -> Result<(), TuneError> {
    match script {
        Some(script) => {
            may_be_run(script)?;
            let text = body(host, script)?;
            host.make_folder(FOLDER)?;
            host.put_file(FILE, &text)?;
        }
        None => {
            host.remove_file(FILE)?;
            // Fails if the directory holds other files, which is fine.
            let _ = host.remove_folder(FOLDER);
        }
    }
    service::restart(host, SERVICE)
}

impl Knob for IrqbalancePolicy {
    fn target(&self) -> Target<'_> {
        Target::Irqbalance("policyscript")
    }

    /// Before the bans, which a restart loses, and before interrupt affinities.
    fn phase(&self) -> Phase {
        Phase::IrqbalanceRun
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let running = running(host)?.unwrap_or_else(|| OFF.into());
        Ok(format!("{running} {}\n", ours(host)?.unwrap_or_else(|| NONE.into())))
    }

    fn settable(&self, host: &Host) -> Result<(), TuneError> {
        let it = host.irqbalance()?;
        match service::manager(host, SERVICE, Some(it.pid)) {
            Some(Manager::Systemd) => Ok(()),
            _ => Err(TuneError::Environment(
                "systemd does not run this irqbalance: give it --policyscript where it is started"
                    .into(),
            )),
        }
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::File(service::RUNTIME.into())]
    }

    fn show(&self, exact: &str) -> String {
        exact.split_whitespace().next().unwrap_or_default().to_owned()
    }

    fn validate(&self, _: &PlanContext<'_>, old: &str, wanted: &str) -> Result<String, Refusal> {
        if self.show(old) == OFF {
            return cannot("irqbalance does not run here");
        }
        if wanted == NONE {
            return match old.split_whitespace().collect::<Vec<_>>()[..] {
                [path, NONE] if path != NONE => cannot(format!(
                    "its own settings give it {path}: remove it there and restart irqbalance"
                )),
                _ => Ok(NONE.into()),
            };
        }
        // Characters that systemd would interpret.
        let odd = |c: char| c.is_whitespace() || c.is_control() || "%$\"'\\;".contains(c);
        if !wanted.starts_with('/') || wanted.contains(odd) {
            return usage(format!("{wanted:?} is no full path of a script, nor none"));
        }
        Ok(wanted.into())
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        set(host, Some(value).filter(|v| *v != NONE))?;
        service::settle(|| {
            let now = running(host).ok().flatten();
            now.is_some_and(|now| now == value || value == NONE)
        });
        match running(host)? {
            Some(_) => Ok(()),
            None => Err(TuneError::Environment(format!(
                "{}: irqbalance was restarted and does not run: `systemctl status irqbalance` says \
                 why",
                self.target()
            ))),
        }
    }

    /// Restores our drop-in and restarts irqbalance; if it was stopped since, it stays stopped.
    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        let now = self.read(host)?;
        if now == old {
            return Ok(Undone::Restored(now));
        }
        let before = old.split_whitespace().nth(1).filter(|file| *file != NONE);
        set(host, before)?;
        service::settle(|| self.read(host).is_ok_and(|now| now == old));
        if running(host)?.is_none() && ours(host)?.as_deref() == before {
            return Ok(Undone::Gone("irqbalance was stopped; it starts as before".into()));
        }
        self.came_back(host, old)
    }

    fn undo_text(&self) -> String {
        "irqbalance is restarted as it was, and interrupts that it moved are moved back; lists \
         that it received while it ran are lost"
            .into()
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        settings_files(context)
    }

    /// A starting irqbalance moves interrupts.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        irq_affinity::all(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_in_each_spelling() {
        for (line, script) in [
            ("--foreground", None),
            ("--foreground --policyscript=/a", Some("/a")),
            ("-l /a -i 3", Some("/a")),
            ("-l/a --policyscript /b", Some("/b")),
            ("--policyscript", None),
        ] {
            assert_eq!(of_arguments(line.split(' ')), script, "{line}");
        }
    }

    #[test]
    fn the_units_own_start_is_kept_and_ours_replaced() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let unit = "[Service]\nExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS\n";
        put("lib/systemd/system/irqbalance.service", unit);
        let host = || Host::tree(tree.path()).unwrap();
        let wanted = |script: &str| {
            format!(
                "[Service]\nExecStart=\nExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS \
                 --policyscript={script}\n"
            )
        };
        let first = body(&host(), "/etc/a").unwrap();
        assert_eq!(first, wanted("/etc/a"));
        put(FILE, &first);
        assert_eq!(ours(&host()).unwrap().as_deref(), Some("/etc/a"));
        assert_eq!(body(&host(), "/etc/b").unwrap(), wanted("/etc/b"));
    }

    #[test]
    fn what_a_script_may_be() {
        let tree = tempfile::tempdir().unwrap();
        let root = probe::Root::open(tree.path()).unwrap();
        let facts = probe::facts::collect(&root, &probe::facts::Request { processes: vec![] });
        let session = crate::session::Session::default();
        let of = |old: &str, wanted: &str| {
            IrqbalancePolicy.validate(&PlanContext::new(&facts, &session), old, wanted)
        };
        assert_eq!(of("none none\n", "/etc/x").unwrap(), "/etc/x");
        assert_eq!(of("/etc/x /etc/x\n", NONE).unwrap(), NONE);
        assert!(of("/etc/own none\n", NONE).unwrap_err().why.contains("/etc/own"));
        assert!(of("off none\n", "/etc/x").unwrap_err().why.contains("does not run"));
        for odd in ["x", "/a b", "/a%i", "/a;reboot", "/$HOME", ""] {
            assert!(of("none none\n", odd).is_err(), "{odd:?}");
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert!(may_be_run(path).unwrap_err().to_string().contains("not executable"));
        assert!(may_be_run("/").unwrap_err().to_string().contains("no file"));
    }
}
