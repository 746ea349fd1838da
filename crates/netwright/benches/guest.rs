//! Runs a benchmark in a guest with a clock that counts instructions. Other load on this machine
//! does not affect its figures, and its links are the kernel's netem.

use std::{io, process::Command, time::Duration};

use lab::{server::ServerSpec, testing::TestLab};

pub const FLAG: &str = "--virtual-time";

/// Runs this program in a guest with the same options and those `besides`, if [`FLAG`] is among them;
/// `None` if not.
///
/// # Errors
/// There is no guest, or the program failed in it.
pub fn instead(netwright: &str, besides: &[&str]) -> io::Result<Option<()>> {
    if !std::env::args().any(|a| a == FLAG) {
        return Ok(None);
    }
    // One CPU: all CPUs of such a guest share the clock.
    let spec = ServerSpec {
        cpus: 1,
        nodes: 1,
        nic_node: 0,
        queues: 1,
        memory_mib: 2048,
        virtual_time: true,
        patience: Duration::from_secs(300),
        ..ServerSpec::new(netwright)
    };
    let lab = TestLab::server(&spec).map_err(io::Error::other)?;
    let host = format!("{}/server", lab.state.name);
    let exec = |argv: &[&str]| -> io::Result<()> {
        let status =
            Command::new(netwright).args(["lab", "exec", &host, "--"]).args(argv).status()?;
        let failed = || io::Error::other(format!("in the guest: {status}"));
        status.success().then_some(()).ok_or_else(failed)
    };
    for module in ["veth", "sch_netem"] {
        exec(&["busybox", "modprobe", module])?;
    }
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy();
    let options: Vec<String> = std::env::args().skip(1).filter(|a| a != FLAG).collect();
    let argv: Vec<&str> = std::iter::once(&*program)
        .chain(options.iter().map(String::as_str))
        .chain(besides.iter().copied())
        .collect();
    exec(&argv).map(Some)
}
