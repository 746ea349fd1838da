//! A benchmark inside a guest whose clock counts instructions: what other work takes of this machine
//! shows in none of its figures, and its wires are the kernel's netem.

use std::{io, process::Command, time::Duration};

use lab::{server::ServerSpec, testing::TestLab};

pub const FLAG: &str = "--virtual-time";

/// Runs this very program in a guest, with the same options but [`FLAG`], if that is among them;
/// `None` if not.
///
/// # Errors
/// No guest, or the program failed there.
pub fn instead(netwright: &str) -> io::Result<Option<()>> {
    if !std::env::args().any(|a| a == FLAG) {
        return Ok(None);
    }
    // One CPU: the clock is that of all of them together.
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
    let argv: Vec<&str> =
        std::iter::once(&*program).chain(options.iter().map(String::as_str)).collect();
    exec(&argv).map(Some)
}
