//! A server with NUMA nodes and a multi-queue NIC: a QEMU guest under software emulation,
//! joined to a namespace of this machine by a multi-queue tap.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use crate::{
    LabError,
    channel::{self, Channel},
    image::{self, Image},
    netns,
    state::{HostState, Lab, Reach},
    tool,
};

/// What stands behind the NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicModel {
    /// Multi-queue virtio-net.
    Virtio,
    /// VMware's vmxnet3.
    Vmxnet3,
}

/// What stands behind the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskModel {
    /// No disk.
    None,
    /// virtio-blk: managed interrupts.
    Virtio,
    /// NVMe: managed interrupts.
    Nvme,
}

/// The shape of a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// CPUs.
    pub cpus: u32,
    /// Hardware threads a core.
    pub threads: u32,
    /// NUMA nodes, each a package.
    pub nodes: u32,
    /// Memory in MiB over all nodes.
    pub memory_mib: u32,
    /// Queues of the NIC.
    pub queues: u32,
    /// NICs.
    pub nics: u32,
    /// Node of the NICs.
    pub nic_node: u32,
    /// NIC model.
    pub nic: NicModel,
    /// Disk model.
    pub disk: DiskModel,
    /// The binary that serves inside; must be reachable under this machine's root.
    pub agent: PathBuf,
    /// Where kernels are cached.
    pub cache: PathBuf,
    /// How long a boot may take.
    pub patience: Duration,
}

impl ServerSpec {
    /// The default shape with a given binary inside.
    pub fn new(agent: impl Into<PathBuf>) -> Self {
        Self {
            cpus: 4,
            threads: 1,
            nodes: 2,
            memory_mib: 1024,
            queues: 4,
            nics: 1,
            nic_node: 1,
            nic: NicModel::Virtio,
            disk: DiskModel::None,
            agent: agent.into(),
            cache: image::DEFAULT_CACHE.into(),
            patience: Duration::from_secs(90),
        }
    }

    fn check(&self) -> Result<(), LabError> {
        let within = |what: &str, n: u32, low: u32, high: u32| {
            if (low..=high).contains(&n) {
                Ok(())
            } else {
                Err(LabError::Usage(format!("{what} must be {low} to {high}, not {n}")))
            }
        };
        within("--cpus", self.cpus, 1, 255)?;
        within("--threads", self.threads, 1, 2)?;
        within("--nodes", self.nodes, 1, 8)?;
        within("--queues", self.queues, 1, 16)?;
        within("--nics", self.nics, 1, 4)?;
        within("--memory", self.memory_mib, 256, 65_536)?;
        within("--nic-node", self.nic_node, 0, self.nodes - 1)?;
        if !self.cpus.is_multiple_of(self.nodes * self.threads) {
            return Err(LabError::Usage(format!(
                "--cpus {} cannot be shared evenly by --nodes {} with --threads {}",
                self.cpus, self.nodes, self.threads
            )));
        }
        Ok(())
    }
}

/// Brings up the namespace `client` and the guest `server`, and waits until it takes commands.
///
/// # Errors
/// When QEMU, the kernel or memory is missing, or the guest does not come up in time; the
/// console's last lines are part of the message.
pub fn up(
    lab: &mut Lab,
    spec: &ServerSpec,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    spec.check()?;
    check_memory(spec)?;
    let image = image::prepare(&spec.cache, progress)?;
    let client = netns::make(lab, "client")?;
    let mut addresses = Vec::new();
    for nic in 0..spec.nics {
        let multi =
            if spec.queues > 1 && spec.nic == NicModel::Virtio { " multi_queue" } else { "" };
        tool::ip(&format!("-n {client} tuntap add dev tap{nic} mode tap{multi}"))?;
        netns::address(&client, &format!("tap{nic}"), &[&format!("10.97.{nic}.1/24")])?;
        addresses.push(format!("10.97.{nic}.2"));
    }
    let console = lab.folder.join("console.log");
    let pid = start(lab, spec, &image, &client, &console)?;
    progress("waiting for the guest");
    let channel = wait(pid, &lab.folder, &console, spec.patience)?;
    configure(channel, &lab.folder, spec)?;
    lab.add_host(HostState {
        name: "client".into(),
        reach: Reach::Namespace { namespace: client, cgroups: Vec::new() },
        addresses: (0..spec.nics).map(|n| format!("10.97.{n}.1")).collect(),
        about: "namespace at the other end of the server's wire".into(),
    });
    lab.add_host(HostState {
        name: "server".into(),
        reach: Reach::Guest { ports: lab.folder.clone() },
        addresses,
        about: format!(
            "guest, {} CPUs, {} nodes, {} NIC(s) with {} queues on node {}, Linux {}",
            spec.cpus, spec.nodes, spec.nics, spec.queues, spec.nic_node, image.release
        ),
    });
    Ok(())
}

/// A guest that does not fit would make this machine swap or kill; better to say so.
fn check_memory(spec: &ServerSpec) -> Result<(), LabError> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available_kib: Option<u64> = text
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))
        .and_then(|l| l.trim().split(' ').next()?.parse().ok());
    let needed = u64::from(spec.memory_mib) + 256;
    match available_kib {
        Some(kib) if kib / 1024 < needed => Err(LabError::failed(
            "starting the guest",
            format!(
                "it needs {needed} MiB of memory, {} MiB are available; --memory asks for less",
                kib / 1024
            ),
        )),
        _ => Ok(()),
    }
}

fn start(
    lab: &mut Lab,
    spec: &ServerSpec,
    image: &Image,
    client: &str,
    console: &Path,
) -> Result<u32, LabError> {
    let log = lab.folder.join("qemu.log");
    let failed = |e: std::io::Error| LabError::failed("starting the guest", e);
    let log_file = fs::File::create(&log).map_err(failed)?;
    // Asked for first, so that a missing QEMU is named rather than `ip`'s failure to run it.
    tool::run("qemu-system-x86_64", &["--version"])?;
    let mut command = tool::command("ip");
    command
        .args(["netns", "exec", client, "qemu-system-x86_64"])
        .args(arguments(spec, image, &lab.folder, console, &lab.state.name))
        .stdin(Stdio::null())
        .stdout(log_file.try_clone().map_err(failed)?)
        .stderr(log_file);
    // A session of its own: the terminal's Ctrl-C and hang-up are not the guest's.
    let detach = || {
        // SAFETY: no arguments; fails only for a group leader, which a forked child is not.
        unsafe { libc::setsid() };
        Ok(())
    };
    // SAFETY: only setsid is called between fork and exec.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, detach) };
    let child = command.spawn().map_err(failed)?;
    // `ip netns exec` becomes QEMU: same pid.
    lab.made_process(child.id(), "the guest's QEMU")?;
    Ok(child.id())
}

/// QEMU's arguments; a pure function of the shape.
fn arguments(
    spec: &ServerSpec,
    image: &Image,
    folder: &Path,
    console: &Path,
    name: &str,
) -> Vec<String> {
    let mut a: Vec<String> = Vec::new();
    let mut add = |words: &str| a.extend(words.split(' ').map(str::to_owned));
    let cores = spec.cpus / spec.nodes / spec.threads;
    add(
        "-nodefaults -no-user-config -no-reboot -display none -M q35 -accel tcg,thread=multi -cpu max",
    );
    add(&format!(
        "-smp {},sockets={},cores={cores},threads={}",
        spec.cpus, spec.nodes, spec.threads
    ));
    add(&format!("-m {}", spec.memory_mib / spec.nodes * spec.nodes));
    let each = spec.cpus / spec.nodes;
    for node in 0..spec.nodes {
        add(&format!(
            "-object memory-backend-ram,id=m{node},size={}M",
            spec.memory_mib / spec.nodes
        ));
        let (first, last) = (node * each, (node + 1) * each - 1);
        add(&format!("-numa node,nodeid={node},cpus={first}-{last},memdev=m{node}"));
    }
    add(&format!("-device pxb-pcie,id=pxb,bus_nr=128,numa_node={},bus=pcie.0", spec.nic_node));
    for nic in 0..spec.nics {
        add(&format!("-device pcie-root-port,id=rp{nic},bus=pxb,chassis={},slot={nic}", nic + 1));
        let queues = if spec.queues > 1 && spec.nic == NicModel::Virtio {
            format!(",queues={}", spec.queues)
        } else {
            String::new()
        };
        add(&format!("-netdev tap,id=n{nic},ifname=tap{nic},script=no,downscript=no{queues}"));
        let mac = format!("52:54:00:6e:77:{nic:02x}");
        add(&match spec.nic {
            NicModel::Virtio => format!(
                "-device virtio-net-pci,netdev=n{nic},mq=on,vectors={},bus=rp{nic},romfile=,mac={mac}",
                2 * spec.queues + 2
            ),
            NicModel::Vmxnet3 => {
                format!("-device vmxnet3,netdev=n{nic},bus=rp{nic},romfile=,mac={mac}")
            }
        });
    }
    match spec.disk {
        DiskModel::None => {}
        DiskModel::Virtio => add(&format!(
            "-drive driver=null-co,size=1G,read-zeroes=on,if=none,id=d0 -device virtio-blk-pci,drive=d0,num-queues={},bus=pcie.0",
            spec.cpus.min(16)
        )),
        DiskModel::Nvme => add(
            "-drive driver=null-co,size=1G,read-zeroes=on,if=none,id=d0 -device nvme,drive=d0,serial=lab,bus=pcie.0",
        ),
    }
    add("-fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap");
    add("-device virtio-9p-pci,fsdev=host,mount_tag=host,bus=pcie.0");
    add("-device virtio-serial-pci,id=ports,max_ports=8,bus=pcie.0");
    for n in 0..channel::PORTS {
        add(&format!(
            "-chardev socket,id=c{n},path={},server=on,wait=off",
            channel::socket(folder, n).display()
        ));
        add(&format!(
            "-device virtserialport,bus=ports.0,nr={},chardev=c{n},name=netwright.{n}",
            n + 1
        ));
    }
    add(&format!("-serial file:{}", console.display()));
    add(&format!(
        "-kernel {} -initrd {} -append",
        image.kernel.display(),
        image.initramfs.display()
    ));
    a.push(format!(
        "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check lpj=4000000 netwright.agent={} netwright.modules={} netwright.host={name}",
        spec.agent.display(),
        spec.cache.join("lib/modules").display()
    ));
    a
}

/// Waits until the guest takes commands, or ends, panics, or takes too long.
fn wait(pid: u32, folder: &Path, console: &Path, patience: Duration) -> Result<Channel, LabError> {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if let Ok(channel) = Channel::open(folder, Duration::from_millis(400)) {
            return Ok(channel);
        }
        // SAFETY: reaps QEMU if it ended; it is our child.
        let ended =
            unsafe { libc::waitpid(pid as i32, std::ptr::null_mut(), libc::WNOHANG) } == pid as i32;
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

/// The last lines of a log, without terminal codes, each on a line of its own.
fn last_lines(log: &[u8]) -> String {
    let text: String =
        String::from_utf8_lossy(log).chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(12)).map(|l| format!("\n  | {l}")).collect()
}

/// Gives the guest's NICs their addresses.
fn configure(first: Channel, folder: &Path, spec: &ServerSpec) -> Result<(), LabError> {
    // Names by MAC: the kernel's own order of names is not ours to know.
    let script = (0..spec.nics)
        .map(|n| {
            format!(
                "d=$(grep -l 52:54:00:6e:77:{n:02x} /sys/class/net/*/address | cut -d/ -f5); \
                 ip link set $d down; ip link set $d name eth{n} 2>/dev/null; \
                 ip addr add 10.97.{n}.2/24 dev eth{n} && ip link set eth{n} up || exit 1; "
            )
        })
        .collect::<String>();
    let argv = ["sh", "-c", &format!("ip link set lo up; {script}")].map(str::to_owned);
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
