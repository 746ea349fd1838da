//! Runs commands on a practice host.

use std::{
    fs,
    io::Write,
    os::unix::{
        fs::MetadataExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

use crate::{
    LabError,
    state::{HostState, NodeAccess, Registry},
    tool,
};

/// A command on the host, with this process's standard streams.
///
/// # Errors
/// For guests, which have no local process; use the guest's channel.
pub fn command(host: &HostState, argv: &[String]) -> Result<Command, LabError> {
    let NodeAccess::Namespace { namespace, cgroups } = &host.reach else {
        return Err(LabError::Usage(format!("{} is a guest", host.name)));
    };
    if argv.is_empty() {
        return Err(LabError::Usage("nothing to run: write it after --".into()));
    }
    let mut c = tool::command("ip");
    // `ip` exits with 1 for a missing command; a shell exits with 127, as a guest does.
    c.args(["netns", "exec", namespace, "sh", "-c", "exec \"$@\"", "sh"]).args(argv);
    c.stdin(Stdio::inherit());
    let cgroups: Vec<_> = cgroups.iter().map(|g| g.join("cgroup.procs")).collect();
    if !cgroups.is_empty() {
        let enter = move || {
            for procs in &cgroups {
                fs::OpenOptions::new().write(true).open(procs)?.write_all(b"0")?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only open, write and close are called, on paths made
        // before; "0" means the writing process itself.
        unsafe { c.pre_exec(enter) };
    }
    Ok(c)
}

/// The practice host that this process runs on, as `LAB/HOST`; `None` outside of labs and on a guest, which
/// does not know of its lab.
pub fn of_this_process(registry: &Registry) -> Option<String> {
    let identity = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    let own = identity(Path::new("/proc/self/ns/net"))?;
    let is_own = |host: &HostState| match &host.reach {
        NodeAccess::Namespace { namespace, .. } => {
            identity(&Path::new("/run/netns").join(namespace)) == Some(own)
        }
        NodeAccess::Guest { .. } => false,
    };
    let (labs, _) = registry.labs();
    labs.iter().find_map(|lab| {
        let host = lab.hosts.iter().find(|host| is_own(host))?;
        Some(format!("{}/{}", lab.name, host.name))
    })
}

/// The exit code that a shell would return: 128 + signal if a signal killed it.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
