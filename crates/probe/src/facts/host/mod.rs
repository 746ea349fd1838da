//! The kernel, the machine, and the virtualisation or container around them.

pub(crate) mod build;
mod capabilities;
mod clock;
mod container;
mod hypervisor;

use model::{
    Bytes, CpuSet, Reading,
    facts::NoAccess,
    host::{Host, Reader},
};
use parse::cpuinfo::CpuInfo;
use serde::{Deserialize, Serialize};

use crate::{ReadError, Root, error::reading};

/// System calls' answers about the kernel, as a snapshot records them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sysconf {
    page_size_bytes: u64,
    clock_ticks_per_s: u64,
}

/// Reads the host as a whole. What could not be read for want of a right or a kernel feature
/// is added to `no_access`.
pub fn read(root: &Root, no_access: &mut Vec<NoAccess>) -> Host {
    let cpuinfo = reading(root.read("/proc/cpuinfo")).map(|b| parse::cpuinfo::parse(&b));
    let online = online(root, &cpuinfo);
    let kernel = kernel(root);
    let arch = arch(root, &cpuinfo);
    Host {
        name: root.word("/proc/sys/kernel/hostname"),
        kernel_version: root.word("/proc/sys/kernel/version"),
        page_size_bytes: page_size(root, &arch),
        clock_ticks_per_s: clock_ticks_per_s(root),
        arch,
        distribution: distribution(root),
        hypervisor: hypervisor::read(root, cpuinfo.known(), no_access),
        container: container::read(root),
        lockdown: lockdown(root, no_access),
        cmdline: root.word("/proc/cmdline"),
        machine: machine(root, cpuinfo.known()),
        cpu_model: cpuinfo.and_then(|i| match i.model {
            Some(model) => Reading::Known(model),
            None => Reading::absent("/proc/cpuinfo: names no model"),
        }),
        cpus_possible: root.list("/sys/devices/system/cpu/possible"),
        cpus_present: root.list("/sys/devices/system/cpu/present"),
        cpus_online: root.list("/sys/devices/system/cpu/online").or_else(|| online),
        smt: root.word("/sys/devices/system/cpu/smt/control"),
        clocksource: clock::source(root),
        clocksources_available: clock::available(root),
        clock_read_ns: clock::read_ns(root),
        sched_ext: sched_ext(root),
        build: build::read(root, kernel.known().map(String::as_str), no_access),
        kernel,
        uptime_s: uptime(root).map(|s| s as u64),
        reader: reader(root),
    }
}

/// The CPUs that run where the tree has no list of them: `cpuinfo` has a block for each, and
/// `/proc/interrupts` a column.
fn online(root: &Root, cpuinfo: &Reading<CpuInfo>) -> Reading<CpuSet> {
    let why = "/sys/devices/system/cpu/online: not there, and /proc/cpuinfo numbers no CPU";
    let of_info = cpuinfo.known().map(|i| i.online.clone()).filter(|s| !s.is_empty());
    match of_info.filter(|_| !root.is_whole()) {
        Some(set) => Reading::Known(set),
        None if root.is_whole() => Reading::absent(why),
        None => reading(super::irq::interrupts(root)).map(|t| t.cpus.into_iter().collect()),
    }
}

/// The value of one parameter of the kernel cmdline that is a cpulist, flags in front left out
/// (`isolcpus=domain,managed_irq,2-7`): the empty set where the line has no such parameter.
pub(super) fn boot_list(root: &Root, name: &str) -> Reading<CpuSet> {
    const PATH: &str = "/proc/cmdline";
    root.parsed(PATH, |line| {
        let params = parse::kernel_cmdline::parse(line);
        // The kernel takes the last one.
        let value = params.into_iter().rev().find(|p| p.key == name).and_then(|p| p.value);
        let value = value.unwrap_or_default();
        let flags = value.split(',').take_while(|w| w.starts_with(|c: char| c.is_alphabetic()));
        let words: Vec<&str> = flags.collect();
        // Without `domain` among the flags the scheduler still uses them.
        if !words.is_empty() && !words.contains(&"domain") {
            return Ok(CpuSet::new());
        }
        let list: Vec<&str> = value.split(',').skip(words.len()).collect();
        parse::list::parse(list.join(",").as_bytes())
    })
}

/// A cpulist file in which older kernels print `(null)` for "none were asked for".
pub(super) fn list_or_null(root: &Root, path: &str) -> Reading<CpuSet> {
    root.parsed(path, |b| match parse::text::word(b).as_str() {
        "(null)" => Ok(CpuSet::new()),
        _ => parse::list::parse(b),
    })
}

/// Kernel release; `Linux version 5.15.0 (…)` where the sysctl is not in the tree.
fn kernel(root: &Root) -> Reading<String> {
    let release = root.word("/proc/sys/kernel/osrelease");
    if release.is_known() {
        return release;
    }
    let version = root.word("/proc/version").into_known();
    version
        .and_then(|v| v.strip_prefix("Linux version ")?.split(' ').next().map(str::to_owned))
        .map_or(release, Reading::Known)
}

fn arch(root: &Root, cpuinfo: &Reading<CpuInfo>) -> Reading<String> {
    root.word("/proc/sys/kernel/arch")
        .or_else(|| reading(root.ask("uname-machine", ask_machine)))
        .or_else(|| match cpuinfo.known().and_then(|i| i.arch) {
            Some(arch) => Reading::Known(arch.to_owned()),
            None => Reading::absent(
                "/proc/sys/kernel/arch: not there (since 6.1), no recorded uname, and /proc/cpuinfo has no known shape",
            ),
        })
}

/// `os-release(5)`: the file of the administrator first, then the vendor's.
fn distribution(root: &Root) -> Reading<String> {
    let name = |path: &str| {
        reading(root.read(path)).and_then(|b| match parse::os_release::pretty_name(&b) {
            Some(name) => Reading::Known(name),
            None => Reading::Absent(format!("{path}: names no distribution")),
        })
    };
    let etc = name("/etc/os-release");
    if etc.is_known() { etc } else { name("/usr/lib/os-release").or_else(|| etc) }
}

fn lockdown(root: &Root, no_access: &mut Vec<NoAccess>) -> Reading<String> {
    const PATH: &str = "/sys/kernel/security/lockdown";
    // The folder is the kernel's, its content securityfs's.
    if root.entries("/sys/kernel/security").is_ok_and(|names| names.is_empty()) {
        no_access.push(NoAccess {
            what: "kernel lockdown mode".into(),
            why: "/sys/kernel/security: nothing is mounted there".into(),
            remedy: "mount -t securityfs securityfs /sys/kernel/security".into(),
        });
    }
    root.word(PATH).and_then(|text| match parse::text::chosen(text.as_bytes()) {
        Some(mode) => Reading::Known(mode),
        None => Reading::Absent(format!("{PATH}: no mode is marked in {text:?}")),
    })
}

/// The name of the scheduler in BPF that places tasks; `none` where the kernel's own does.
fn sched_ext(root: &Root) -> Reading<String> {
    root.word("/sys/kernel/sched_ext/state").and_then(|state| match state.as_str() {
        "enabled" => root.word("/sys/kernel/sched_ext/root/ops"),
        _ => Reading::Known("none".into()),
    })
}

/// DMI on PCs and arm servers, the device tree's model on boards and POWER, `/proc/sysinfo` on
/// IBM Z.
fn machine(root: &Root, cpuinfo: Option<&CpuInfo>) -> Reading<String> {
    let words = |paths: &[&str]| {
        let known: Vec<String> = paths.iter().filter_map(|p| root.word(p).into_known()).collect();
        (!known.is_empty()).then(|| known.join(" "))
    };
    let sysinfo = || {
        let bytes = root.read("/proc/sysinfo").ok()?;
        let field = |key| parse::sysinfo_s390::field(&bytes, key);
        Some(format!("{} {}", field("Manufacturer")?, field("Type")?))
    };
    words(&["/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"])
        .or_else(|| words(&["/proc/device-tree/model"]))
        .or_else(|| cpuinfo?.machine.clone())
        .or_else(sysinfo)
        .map_or_else(
            || Reading::absent("/sys/class/dmi/id, /proc/device-tree/model: not there"),
            Reading::Known,
        )
}

/// Seconds since boot, with their fraction.
pub(crate) fn uptime_s(root: &Root) -> Option<f64> {
    uptime(root).get()
}

fn uptime(root: &Root) -> Reading<f64> {
    const PATH: &str = "/proc/uptime";
    root.parsed(PATH, parse::text::numbers::<f64>).and_then(|n| match n.first() {
        Some(s) if s.is_finite() && *s >= 0.0 => Reading::Known(*s),
        _ => Reading::Absent(format!("{PATH}: empty")),
    })
}

fn reader(root: &Root) -> Reader {
    const PATH: &str = "/proc/self/status";
    let status = reading(root.read(PATH));
    let field = |key: &str| {
        status.as_ref().and_then(|s| match parse::proc_status::value(s, key) {
            Some(value) => Reading::Known(value.trim().to_owned()),
            None => Reading::Absent(format!("{PATH}: no {key} line")),
        })
    };
    let strange = |what: &str, text: &str| format!("{PATH}: no {what} is {text:?}");
    Reader {
        // Real, effective, saved and file system id.
        euid: field("Uid").and_then(|ids| {
            match ids.split_whitespace().nth(1).and_then(|id| id.parse().ok()) {
                Some(id) => Reading::Known(id),
                None => Reading::Absent(strange("user id", &ids)),
            }
        }),
        capabilities: field("CapEff").and_then(|mask| match u64::from_str_radix(&mask, 16) {
            Ok(bits) => Reading::Known(capabilities::names(bits)),
            Err(_) => Reading::Absent(strange("capability mask", &mask)),
        }),
    }
}

/// Values of `sysconf(3)`. **Source**: `_SC_PAGESIZE`, `_SC_CLK_TCK`.
fn sysconf(root: &Root) -> Reading<Sysconf> {
    reading(root.ask("sysconf", ask_sysconf))
}

/// Of a tree without the answer: what the kernel fixes for the architecture (`PAGE_SHIFT`; others
/// choose it when they are built).
fn page_size(root: &Root, arch: &Reading<String>) -> Reading<Bytes> {
    let fixed = arch.known().is_some_and(|a| ["x86_64", "i686", "s390x"].contains(&a.as_str()));
    let read = sysconf(root).map(|s| Bytes(s.page_size_bytes));
    if fixed && !root.is_whole() { read.or_else(|| Reading::Known(Bytes(4096))) } else { read }
}

/// Of a tree without the answer: `USER_HZ`, which is 100 on every architecture but alpha and ia64.
pub(crate) fn clock_ticks_per_s(root: &Root) -> Reading<u64> {
    let read = sysconf(root).map(|s| s.clock_ticks_per_s);
    if root.is_whole() { read } else { read.or_else(|| Reading::Known(100)) }
}

fn ask_sysconf() -> Result<Sysconf, ReadError> {
    Ok(Sysconf {
        page_size_bytes: rustix::param::page_size() as u64,
        clock_ticks_per_s: rustix::param::clock_ticks_per_second(),
    })
}

fn ask_machine() -> Result<String, ReadError> {
    Ok(rustix::system::uname().machine().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests;
