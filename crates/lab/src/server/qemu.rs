//! QEMU's command-line arguments, computed from a server's parameters. Pure.

use std::path::Path;

use super::spec::{DiskModel, Emulation, NicModel, ServerSpec};
use crate::{
    arch::Arch,
    channel,
    image::{self, Image},
};

/// Above this number of CPUs, one thread for each is slower than one for all: the kernel often
/// waits for all CPUs, and these compete for the CPUs of this machine.
const THREADED_CPUS: u32 = 16;

/// Default number of emulation threads.
///
/// An x86-64 kernel patches its code while running (to enable a tracepoint), by way of a
/// breakpoint. With several threads, QEMU 7.2 may keep a translation of that breakpoint after its
/// removal: one thread translates the page while another writes to it. The CPU then traps for ever
/// with interrupts off (2 of 58 starts of `watch`), and the guest hangs. A single thread cannot do
/// both at once.
const fn usual(arch: Arch, cpus: u32) -> Emulation {
    match arch {
        Arch::X86_64 => Emulation::One,
        Arch::Aarch64 if cpus > THREADED_CPUS => Emulation::One,
        Arch::Aarch64 => Emulation::Each,
    }
}

const fn threads(spec: &ServerSpec) -> &'static str {
    let asked = match spec.emulation {
        // The guest's CPUs share one clock.
        _ if spec.virtual_time => Emulation::One,
        Some(asked) => asked,
        None => usual(spec.arch, spec.cpus),
    };
    match asked {
        Emulation::One => "single",
        Emulation::Each => "multi",
    }
}

/// A clock that counts instructions, 2 ns each, about the emulation time of one on this machine.
/// While all CPUs are idle it advances to the next timer at once.
const VIRTUAL_TIME: &str = "-icount shift=1,sleep=off";

/// QEMU's arguments for a server.
pub(super) fn arguments(
    spec: &ServerSpec,
    image: &Image,
    folder: &Path,
    console: &Path,
    name: &str,
) -> Vec<String> {
    let mut a = Arguments::default();
    let thread = threads(spec);
    a.add(&format!(
        "-nodefaults -no-user-config -no-reboot -display none {} -accel tcg,thread={thread}",
        spec.arch.board(spec.threads)
    ));
    if spec.virtual_time {
        a.add(VIRTUAL_TIME);
    }
    processors(&mut a, spec);
    nics(&mut a, spec);
    disk(&mut a, spec);
    if let Some(image) = &spec.image {
        // A comma ends an option; a doubled comma is a literal one.
        let file = image.display().to_string().replace(',', ",,");
        a.add("-device virtio-blk-pci,drive=image,bus=pcie.0 -drive");
        a.0.push(format!("file={file},format=raw,if=none,id=image"));
    }
    if spec.arch.shares_root() {
        a.add("-fsdev local,id=host,path=/,security_model=none,readonly=on,multidevs=remap");
        a.add("-device virtio-9p-pci,fsdev=host,mount_tag=host,bus=pcie.0");
    }
    a.add("-device virtio-serial-pci,id=ports,max_ports=8,bus=pcie.0");
    for n in 0..channel::PORTS {
        a.add(&format!(
            "-chardev socket,id=c{n},path={},server=on,wait=off",
            channel::socket(folder, n).display()
        ));
        a.add(&format!(
            "-device virtserialport,bus=ports.0,nr={},chardev=c{n},name=netwright.{n}",
            n + 1
        ));
    }
    a.add(&format!("-serial file:{}", console.display()));
    a.add(&format!(
        "-kernel {} -initrd {} -append",
        image.kernel.display(),
        image.initramfs.display()
    ));
    a.0.push(kernel_cmdline(spec, name));
    a.0
}

#[derive(Default)]
struct Arguments(Vec<String>);

impl Arguments {
    fn add(&mut self, words: &str) {
        self.0.extend(words.split(' ').map(str::to_owned));
    }
}

fn kernel_cmdline(spec: &ServerSpec, name: &str) -> String {
    let mut line = format!("{} netwright.host={name}", spec.arch.kernel_cmdline());
    if spec.arch.shares_root() {
        let modules = image::folder(&spec.cache, spec.arch).join("lib/modules");
        line += &format!(
            " netwright.agent={} netwright.modules={}",
            spec.agent.display(),
            modules.display()
        );
    }
    if spec.arch == Arch::X86_64 && spec.emulation == Some(Emulation::Each) {
        // Such a guest may hang when BPF programs are attached ([`Emulation::Each`]).
        line += " netwright.bpf=off";
    }
    if let Some(folder) = &spec.systemd {
        // Interfaces keep the kernel's names, as with the lab's own init.
        line += &format!(" net.ifnames=0 netwright.systemd={}", folder.display());
    }
    line
}

/// Arguments for CPUs, packages, clusters and nodes.
fn processors(a: &mut Arguments, spec: &ServerSpec) {
    let packages = spec.packages();
    let cores = spec.cpus / packages / spec.threads;
    let threads = spec.threads;
    a.add(&match spec.cluster {
        Some(cluster) => format!(
            "-smp {},sockets={packages},clusters={},cores={cluster},threads={threads}",
            spec.cpus,
            cores / cluster
        ),
        None => format!("-smp {},sockets={packages},cores={cores},threads={threads}", spec.cpus),
    });
    let each_mib = spec.memory_mib / spec.nodes;
    a.add(&format!("-m {}", each_mib * spec.nodes));
    let each = spec.cpus / spec.nodes;
    for node in 0..spec.nodes {
        a.add(&format!("-object memory-backend-ram,id=m{node},size={each_mib}M"));
        let (first, last) = (node * each, (node + 1) * each - 1);
        a.add(&format!("-numa node,nodeid={node},cpus={first}-{last},memdev=m{node}"));
    }
}

fn nics(a: &mut Arguments, spec: &ServerSpec) {
    // A separate PCI bus on a node, if the board can describe its node.
    let bus = match spec.arch {
        Arch::X86_64 => {
            a.add(&format!(
                "-device pxb-pcie,id=pxb,bus_nr=128,numa_node={},bus=pcie.0",
                spec.nic_node
            ));
            "pxb"
        }
        Arch::Aarch64 => "pcie.0",
    };
    for nic in 0..spec.nics {
        let port = format!("-device pcie-root-port,id=rp{nic},bus={bus},chassis={}", nic + 1);
        a.add(&match spec.arch {
            Arch::X86_64 => format!("{port},slot={nic}"),
            Arch::Aarch64 => port,
        });
        let model = spec.model(nic);
        let queues = if spec.queues > 1 && model.is_multi_queue() {
            format!(",queues={}", spec.queues)
        } else {
            String::new()
        };
        a.add(&format!("-netdev tap,id=n{nic},ifname=tap{nic},script=no,downscript=no{queues}"));
        a.add(&format!(
            "-device {},netdev=n{nic},bus=rp{nic},romfile=,mac=52:54:00:6e:77:{nic:02x}",
            device(model, spec.queues)
        ));
    }
}

fn device(model: NicModel, queues: u32) -> String {
    let virtio = format!("virtio-net-pci,mq=on,vectors={}", 2 * queues + 2);
    match model {
        NicModel::Virtio => virtio,
        NicModel::VirtioRss => virtio + ",rss=on,hash=on",
        NicModel::Vmxnet3 => "vmxnet3".into(),
        NicModel::E1000e => "e1000e".into(),
        NicModel::E1000 => "e1000".into(),
    }
}

fn disk(a: &mut Arguments, spec: &ServerSpec) {
    match spec.disk {
        DiskModel::None => {}
        DiskModel::Virtio => a.add(&format!(
            "-drive driver=null-co,size=1G,read-zeroes=on,if=none,id=d0 -device virtio-blk-pci,drive=d0,num-queues={},bus=pcie.0",
            spec.cpus.min(16)
        )),
        DiskModel::Nvme => a.add(
            "-drive driver=null-co,size=1G,read-zeroes=on,if=none,id=d0 -device nvme,drive=d0,serial=lab,bus=pcie.0",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(spec: &ServerSpec) -> String {
        let image = Image { kernel: "/c/k".into(), initramfs: "/c/i".into(), release: "6".into() };
        arguments(spec, &image, Path::new("/l"), Path::new("/l/console"), "h").join(" ")
    }

    #[track_caller]
    fn has(line: &str, words: &[&str]) {
        for w in words {
            assert!(format!(" {line} ").contains(&format!(" {w} ")), "{w:?} is not in {line}");
        }
    }

    #[test]
    fn a_server_here_has_its_nic_on_a_node_and_this_machines_root() {
        let spec = ServerSpec { arch: Arch::X86_64, ..ServerSpec::new("/bin/netwright") };
        let line = line(&spec);
        has(
            &line,
            &[
                "-M q35",
                "-accel tcg,thread=single",
                "-smp 4,sockets=2,cores=2,threads=1",
                "-numa node,nodeid=1,cpus=2-3,memdev=m1",
                "-device pxb-pcie,id=pxb,bus_nr=128,numa_node=1,bus=pcie.0",
                "-device pcie-root-port,id=rp0,bus=pxb,chassis=1,slot=0",
                "netwright.agent=/bin/netwright",
            ],
        );
        assert!(line.contains("mount_tag=host") && line.contains("console=ttyS0"));
    }

    #[test]
    fn a_kunpeng_has_clusters_in_nodes_in_packages_and_a_root_of_its_own() {
        let line = line(&ServerSpec::kunpeng("/bin/netwright"));
        has(
            &line,
            &[
                "-M virt,gic-version=3",
                "-accel tcg,thread=multi",
                "-cpu max,pauth-impdef=on",
                "-smp 16,sockets=2,clusters=2,cores=4,threads=1",
                "-m 1024",
                "-object memory-backend-ram,id=m3,size=256M",
                "-numa node,nodeid=0,cpus=0-3,memdev=m0",
                "-numa node,nodeid=3,cpus=12-15,memdev=m3",
                "-netdev tap,id=n0,ifname=tap0,script=no,downscript=no,queues=4",
                "-device virtio-net-pci,mq=on,vectors=10,netdev=n0,bus=rp0,romfile=,mac=52:54:00:6e:77:00",
            ],
        );
        assert!(line.contains("console=ttyAMA0 "), "{line}");
        for none in ["pxb", "fsdev", "9p", "ttyS0", "netwright.agent", "lpj"] {
            assert!(!line.contains(none), "{none} is in {line}");
        }
    }

    #[test]
    fn an_image_is_one_more_disk_whatever_its_name() {
        let image = Some("/a,b/disk.raw".into());
        let line = line(&ServerSpec { image, arch: Arch::X86_64, ..ServerSpec::new("/bin/n") });
        has(
            &line,
            &[
                "-device virtio-blk-pci,drive=image,bus=pcie.0",
                "-drive file=/a,,b/disk.raw,format=raw,if=none,id=image",
            ],
        );
    }

    #[test]
    fn a_thread_for_each_cpu_is_had_where_it_is_asked_for() {
        let asked = |arch, emulation| {
            line(&ServerSpec { arch, emulation, ..ServerSpec::new("/bin/netwright") })
        };
        let each = asked(Arch::X86_64, Some(Emulation::Each));
        has(&each, &["-accel tcg,thread=multi", "netwright.bpf=off"]);
        assert!(!asked(Arch::X86_64, None).contains("netwright.bpf"));
        has(&asked(Arch::Aarch64, Some(Emulation::One)), &["-accel tcg,thread=single"]);
    }

    #[test]
    fn virtual_time_is_one_threads() {
        let spec = ServerSpec { virtual_time: true, ..ServerSpec::kunpeng("/bin/netwright") };
        has(&line(&spec), &["-accel tcg,thread=single -icount shift=1,sleep=off"]);
        let spec = ServerSpec { virtual_time: false, ..spec };
        assert!(!line(&spec).contains("icount"));
    }

    #[test]
    fn large_servers_run_on_one_thread() {
        let spec = ServerSpec { cpus: 64, ..ServerSpec::kunpeng("/bin/netwright") };
        has(&line(&spec), &["-accel tcg,thread=single"]);
    }
}
