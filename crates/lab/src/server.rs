//! A server with NUMA nodes and a multi-queue NIC: a QEMU guest under software emulation. A veth
//! with as many queues, a bridge and a tap connect it to a namespace of this machine.

mod qemu;
mod spec;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use model::reading::Known;
use probe::Root;
use rustix::process::{Pid, WaitOptions, setsid, waitpid};

use crate::{
    LabError,
    arch::Arch,
    channel::Channel,
    image::{self, Image},
    netns,
    state::{HostState, Lab, NodeAccess},
    tool,
};

pub use spec::{DiskModel, Emulation, NicModel, ServerSpec};

/// Creates the namespace `client` and the guest `server`, and waits until the guest takes commands.
///
/// # Errors
/// QEMU, the kernel or memory is missing, or the guest does not start in time; the message holds
/// the console's last lines.
pub fn up(
    lab: &mut Lab,
    spec: &ServerSpec,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    spec.check()?;
    check_memory(spec)?;
    let mut image = image::prepare(&spec.cache, spec.arch, progress)?;
    if !spec.arch.shares_root() {
        let whole = lab.folder.join("initramfs");
        image::with_program(&image.initramfs, &spec.agent, &whole)?;
        image.initramfs = whole;
    }
    let (client, link) = (netns::make(lab, "client")?, netns::make(lab, "link")?);
    let mut addresses = Vec::new();
    for nic in 0..spec.nics {
        join(&client, &link, nic, spec)?;
        addresses.push(format!("10.97.{nic}.2"));
    }
    let console = lab.folder.join("console.log");
    let pid = start(lab, spec, &image, &link, &console)?;
    progress("waiting for the guest");
    let channel = wait(pid, &lab.folder, &console, spec.patience)?;
    configure(channel, &lab.folder, spec)?;
    lab.add_host(HostState {
        name: "client".into(),
        reach: NodeAccess::Namespace { namespace: client, cgroups: Vec::new() },
        addresses: (0..spec.nics).map(|n| format!("10.97.{n}.1")).collect(),
        about: "namespace at the other end of the server's link".into(),
    });
    lab.add_host(HostState {
        name: "server".into(),
        reach: NodeAccess::Guest { ports: lab.folder.clone() },
        addresses,
        about: about(spec, &image.release),
    });
    Ok(())
}

/// Connects a NIC of the guest to the client's `ethN`. A tap does not support `ethtool -l`, so the
/// client has a veth with adjustable channels. A bridge in a separate namespace forwards the frames
/// to the tap of QEMU.
fn join(client: &str, link: &str, nic: u32, spec: &ServerSpec) -> Result<(), LabError> {
    let many = spec.queues > 1 && spec.model(nic).is_multi_queue();
    let multi = if many { " multi_queue" } else { "" };
    let queues = if many { spec.queues } else { 1 };
    let q = format!("numtxqueues {queues} numrxqueues {queues}");
    let ends = [format!("veth{nic}"), format!("tap{nic}")];
    tool::ip(&format!(
        "-n {client} link add eth{nic} {q} type veth peer name veth{nic} {q} netns {link}"
    ))?;
    tool::ip(&format!("-n {link} tuntap add dev tap{nic} mode tap{multi}"))?;
    tool::ip(&format!("-n {link} link add br{nic} type bridge mcast_snooping 0"))?;
    for end in ends {
        tool::ip(&format!("-n {link} link set {end} master br{nic} up"))?;
    }
    tool::ip(&format!("-n {link} link set br{nic} up"))?;
    netns::address(client, &format!("eth{nic}"), &[&format!("10.97.{nic}.1/24")])
}

fn about(spec: &ServerSpec, release: &str) -> String {
    let place = match spec.arch {
        Arch::X86_64 => format!("on node {}", spec.nic_node),
        Arch::Aarch64 => "on no known node".into(),
    };
    format!(
        "guest, {}, {} CPUs, {} nodes, {} with {} queues {place}, Linux {release}",
        spec.arch.name(),
        spec.cpus,
        spec.nodes,
        match spec.nics {
            1 => "1 NIC".to_owned(),
            n => format!("{n} NICs"),
        },
        spec.queues
    )
}

/// Refuses a guest larger than the free memory, which would make this machine swap or kill
/// processes.
fn check_memory(spec: &ServerSpec) -> Result<(), LabError> {
    let available =
        Root::live().parsed("/proc/meminfo", |text| parse::meminfo::value(text, "MemAvailable"));
    let needed = u64::from(spec.memory_mib) + 256;
    match available.map(|bytes| bytes.0 >> 20) {
        Known(mib) if mib < needed => Err(LabError::failed(
            "starting the guest",
            format!(
                "it needs {needed} MiB of memory, {mib} MiB are available; --memory asks for less"
            ),
        )),
        _ => Ok(()),
    }
}

fn start(
    lab: &mut Lab,
    spec: &ServerSpec,
    image: &Image,
    link: &str,
    console: &Path,
) -> Result<u32, LabError> {
    let log = lab.folder.join("qemu.log");
    let failed = |e: std::io::Error| LabError::failed("starting the guest", e);
    let log_file = fs::File::create(&log).map_err(failed)?;
    // Checked first, so that the error names a missing QEMU and not `ip`'s failure to run it.
    tool::run(spec.arch.qemu(), &["--version"])?;
    let mut command = tool::command_after_release("ip");
    command
        .args(["netns", "exec", link, spec.arch.qemu()])
        .args(qemu::arguments(spec, image, &lab.folder, console, &lab.state.name))
        .stdout(log_file.try_clone().map_err(failed)?)
        .stderr(log_file);
    // A separate session: the terminal's Ctrl-C and hang-up do not reach the guest.
    let detach = || {
        // Fails only for a process group leader, which a forked child is not.
        setsid().map(drop).map_err(Into::into)
    };
    // SAFETY: only setsid is called between fork and exec.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, detach) };
    let mut child = command.spawn().map_err(failed)?;
    // The gate execs `ip netns exec`, which execs QEMU: the PID stays the same.
    lab.release(&mut child, "the guest's QEMU")?;
    Ok(child.id())
}

/// Waits until the guest takes commands; fails if it ends, panics, or times out.
fn wait(pid: u32, folder: &Path, console: &Path, patience: Duration) -> Result<Channel, LabError> {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if let Ok(channel) = Channel::open(folder, Duration::from_millis(400)) {
            return Ok(channel);
        }
        // Reaps QEMU if it ended: it is our child.
        let ended = matches!(waitpid(Pid::from_raw(pid as i32), WaitOptions::NOHANG), Ok(Some(_)));
        let said = fs::read(console).unwrap_or_default();
        let panicked = String::from_utf8_lossy(&said).contains("Kernel panic");
        if ended || panicked {
            let log = fs::read(folder.join("qemu.log")).unwrap_or_default();
            let what = if panicked { "the guest's kernel panicked" } else { "QEMU ended" };
            return Err(LabError::failed(
                "starting the guest",
                format!("{what}{}{}", last_lines(&log), last_lines(&said)),
            ));
        }
    }
    let said = fs::read(console).unwrap_or_default();
    Err(LabError::Timeout {
        what: "the guest taking commands".into(),
        seconds: patience.as_secs(),
        tail: last_lines(&said),
    })
}

/// The last lines of a log, without terminal codes, each on its own line.
fn last_lines(log: &[u8]) -> String {
    let text: String =
        String::from_utf8_lossy(log).chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(12)).map(|l| format!("\n  | {l}")).collect()
}

/// Configures the addresses of the guest's NICs.
fn configure(first: Channel, folder: &Path, spec: &ServerSpec) -> Result<(), LabError> {
    let drivers: String = spec
        .models
        .iter()
        .filter_map(|m| m.module())
        .map(|m| format!("busybox modprobe {m} || exit 1; "))
        .collect();
    // Finds NICs by MAC: the kernel's order of names is not predictable.
    let script = (0..spec.nics)
        .map(|n| {
            format!(
                "d=$(grep -l 52:54:00:6e:77:{n:02x} /sys/class/net/*/address | cut -d/ -f5); \
                 ip link set $d down; ip link set $d name eth{n} 2>/dev/null; \
                 ip addr add 10.97.{n}.2/24 dev eth{n} && ip link set eth{n} up || exit 1; "
            )
        })
        .collect::<String>();
    // udevd may be about to bring a link up or to rename it.
    let settle = if spec.systemd.is_some() { "udevadm settle -t 20; " } else { "" };
    let argv =
        ["sh", "-c", &format!("ip link set lo up; {drivers}{settle}{script}")].map(str::to_owned);
    let done = first.output(&argv, Duration::from_secs(30))?;
    if done.code != 0 {
        let console = fs::read(folder.join("console.log")).unwrap_or_default();
        return Err(LabError::failed(
            "configuring the guest's NIC",
            format!("{}{}", String::from_utf8_lossy(&done.stderr).trim(), last_lines(&console)),
        ));
    }
    Ok(())
}
