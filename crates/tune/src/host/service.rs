//! Services, through the host's service manager.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::Host;
use crate::TuneError;

/// systemd kills what does not stop within 90 s.
const PATIENCE: Duration = Duration::from_secs(100);
/// Longest time between the manager's answer and the process appearing.
const SETTLING: Duration = Duration::from_secs(5);

/// Unit directories, highest precedence first.
const UNIT_FOLDERS: &[&str] =
    &["/etc/systemd/system", RUNTIME, "/usr/lib/systemd/system", "/lib/systemd/system"];
/// Unit directory of this boot; exists where systemd runs the host.
pub const RUNTIME: &str = "/run/systemd/system";

/// The unit file in effect.
pub fn unit_file(host: &Host, name: &str) -> Option<String> {
    UNIT_FOLDERS.iter().map(|f| format!("{f}/{name}")).find(|p| host.root().exists(p))
}

/// The program that starts and stops this host's services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    Systemd,
    OpenRc,
}

impl Manager {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::OpenRc => "openrc",
        }
    }

    fn command(self, service: &str, verb: &str) -> (&'static str, Vec<String>) {
        match self {
            Self::Systemd => (SYSTEMCTL, systemctl(&[verb, &format!("{service}.service")])),
            Self::OpenRc => ("rc-service", vec![service.into(), verb.into()]),
        }
    }
}

const SYSTEMCTL: &str = "systemctl";

fn systemctl(words: &[&str]) -> Vec<String> {
    [&["--no-ask-password"], words].concat().into_iter().map(str::to_owned).collect()
}

/// The manager that runs a service or would start it; `pid` is its process. A service started by
/// hand has no manager.
pub fn manager(host: &Host, service: &str, pid: Option<u32>) -> Option<Manager> {
    let there = |path: &str| host.root().exists(path);
    if there(RUNTIME) {
        let unit = format!("{service}.service");
        let runs = match pid {
            Some(pid) => host
                .text(&format!("/proc/{pid}/cgroup"))
                .is_ok_and(|c| c.lines().any(|l| l.ends_with(&format!("/{unit}")))),
            None => unit_file(host, &unit).is_some(),
        };
        return runs.then_some(Manager::Systemd);
    }
    let runs = there("/run/openrc/softlevel")
        && there(&format!("/etc/init.d/{service}"))
        && there(&format!("/run/openrc/started/{service}")) == pid.is_some();
    runs.then_some(Manager::OpenRc)
}

/// Starts or stops a service and waits until the manager reports success.
///
/// # Errors
/// The manager's error, or a timeout.
pub fn run(host: &Host, manager: Manager, service: &str, on: bool) -> Result<(), TuneError> {
    let (program, arguments) = manager.command(service, if on { "start" } else { "stop" });
    ask(host, program, &arguments)
}

/// Makes systemd reload a service's files, and restart the service if it runs.
///
/// # Errors
/// As [`run`].
pub fn restart(host: &Host, service: &str) -> Result<(), TuneError> {
    ask(host, SYSTEMCTL, &systemctl(&["daemon-reload"]))?;
    ask(host, SYSTEMCTL, &systemctl(&["try-restart", &format!("{service}.service")]))
}

fn ask(host: &Host, program: &str, arguments: &[String]) -> Result<(), TuneError> {
    let what = format!("{program} {}", arguments.join(" "));
    if !host.is_live() {
        return Err(TuneError::Environment(format!("{what}: a folder has no services")));
    }
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| TuneError::io(&what, &e))?;
    let begin = Instant::now();
    loop {
        match child.try_wait().map_err(|e| TuneError::io(&what, &e))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let why = format!("{what}: {status}; {program} says why");
                return Err(TuneError::Environment(why));
            }
            None if begin.elapsed() >= PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(TuneError::Environment(format!("{what}: not done in {PATIENCE:?}")));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Waits up to 5 s for `done`; the caller reads the state afterwards.
pub fn settle(done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() && begin.elapsed() < SETTLING {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_its_managers_or_nobodys() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let of = |pid| manager(&Host::tree(tree.path()).unwrap(), "irqbalance", pid);
        put("proc/7/cgroup", "0::/system.slice/irqbalance.service\n");
        put("proc/8/cgroup", "0::/user.slice/user-0.slice\n");
        assert_eq!(of(Some(7)), None);
        put("run/systemd/system/x", "");
        assert_eq!((of(Some(7)), of(Some(8)), of(None)), (Some(Manager::Systemd), None, None));
        put("lib/systemd/system/irqbalance.service", "");
        assert_eq!(of(None), Some(Manager::Systemd));
        std::fs::remove_dir_all(tree.path().join("run")).unwrap();
        put("run/openrc/softlevel", "");
        put("etc/init.d/irqbalance", "");
        assert_eq!((of(None), of(Some(8))), (Some(Manager::OpenRc), None));
        put("run/openrc/started/irqbalance", "");
        assert_eq!((of(None), of(Some(8))), (None, Some(Manager::OpenRc)));
    }
}
