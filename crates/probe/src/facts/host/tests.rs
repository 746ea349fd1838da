use std::{fs, io::Write, os::unix::fs::symlink, path::Path};

use super::*;

/// A tree of these files; a content that starts with `->` makes a link.
fn host(files: &[(&str, &[u8])]) -> (Host, Vec<NoAccess>) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("proc")).unwrap();
    for (path, content) in files {
        let path = dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.strip_prefix(b"->") {
            Some(target) => symlink(Path::new(std::str::from_utf8(target).unwrap()), path).unwrap(),
            None => fs::write(path, content).unwrap(),
        }
    }
    let mut no_access = Vec::new();
    let root = Root::open(dir.path()).unwrap();
    (read(&root, &mut no_access), no_access)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

const CONFIG: &[u8] = b"CONFIG_HZ=1000\nCONFIG_VIRT_CPU_ACCOUNTING_GEN=y\n\
    CONFIG_IRQ_TIME_ACCOUNTING=y\nCONFIG_PREEMPT_VOLUNTARY=y\n";

#[test]
fn build_options_from_the_running_kernel_or_from_its_file() {
    let packed = gzip(CONFIG);
    let (live, no_access) = host(&[("/proc/config.gz", &packed)]);
    assert_eq!(live.build.hz, Reading::Known(1000));
    assert_eq!(live.build.cpu_accounting, Reading::Known("virt_gen".into()));
    assert_eq!(live.build.irq_time_accounting, Reading::Known(true));
    assert_eq!(live.build.preempt, Reading::Known("voluntary".into()));
    assert!(no_access.iter().all(|u| u.what != "kernel build options"));

    let release: (&str, &[u8]) = ("/proc/sys/kernel/osrelease", b"6.1.0-18-amd64\n");
    let (filed, _) = host(&[release, ("/boot/config-6.1.0-18-amd64", CONFIG)]);
    assert_eq!(filed.build, live.build);
}

#[test]
fn build_options_that_cannot_be_read_are_not_off() {
    let cut = gzip(CONFIG);
    let cut = cut.get(..cut.len() / 2).unwrap();
    let (h, no_access) = host(&[("/proc/config.gz", cut)]);
    for known in [h.build.hz.is_known(), h.build.irq_time_accounting.is_known()] {
        assert!(!known);
    }
    assert!(no_access.iter().any(|u| u.what == "kernel build options"));
    assert!(!h.build.btf.is_known(), "a tree without /sys/kernel says nothing of BTF");
    let version: (&str, &[u8]) = ("/proc/sys/kernel/version", b"#1 SMP PREEMPT_RT Debian\n");
    let (rt, _) = host(&[version]);
    assert_eq!(rt.build.preempt, Reading::Known("rt".into()));
    let (bare, _) = host(&[]);
    assert!(!bare.build.preempt.is_known(), "nothing was read: {:?}", bare.build.preempt);
}

#[test]
fn a_container_image_booted_as_a_machine_is_no_container() {
    let none: (&str, &[u8]) = ("/proc/self/cgroup", b"0::/\n");
    let mark: (&str, &[u8]) = ("/.dockerenv", b"");
    let pid: (&str, &[u8]) = ("/proc/self/ns/pid", b"->pid:[4026531836]");
    let cgroup: (&str, &[u8]) = ("/proc/self/ns/cgroup", b"->cgroup:[4026531835]");
    let reported = |files: &[(&str, &[u8])]| host(files).0.container;
    assert_eq!(reported(&[none, mark, pid, cgroup]), Reading::Known("none".into()));
    let own: (&str, &[u8]) = ("/proc/self/ns/pid", b"->pid:[4026532299]");
    assert_eq!(reported(&[none, mark, own, cgroup]), Reading::Known("docker".into()));
    assert_eq!(reported(&[none, own, cgroup]), Reading::Known("none".into()));
    assert_eq!(
        reported(&[none, ("/proc/1/environ", b"PATH=/bin\0container=lxc\0"), pid, cgroup]),
        Reading::Known("lxc".into())
    );
    let id = "3f1b2c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809";
    let shared = format!("0::/docker/{id}\n");
    assert_eq!(
        reported(&[("/proc/self/cgroup", shared.as_bytes()), pid, cgroup]),
        Reading::Known("docker".into()),
        "with the host's namespaces, by its cgroup"
    );
    assert!(!reported(&[]).is_known());
}

#[test]
fn the_clock_and_a_scheduler_in_bpf() {
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
    let (current, available) =
        (format!("{CLOCK}/current_clocksource"), format!("{CLOCK}/available_clocksource"));
    let (h, _) = host(&[
        (&current, b"acpi_pm\n"),
        (&available, b"tsc hpet acpi_pm \n"),
        ("/sys/kernel/sched_ext/state", b"enabled\n"),
        ("/sys/kernel/sched_ext/root/ops", b"rusty_1.0.14\n"),
    ]);
    assert_eq!(h.clocksource, Reading::Known("acpi_pm".into()));
    let all = h.clocksources_available.into_known().unwrap();
    assert_eq!(all, ["tsc", "hpet", "acpi_pm"]);
    assert!(!h.clock_read_ns.is_known(), "a tree has no recorded time");
    assert_eq!(h.sched_ext, Reading::Known("rusty_1.0.14".into()));
    let (h, _) = host(&[("/sys/kernel/sched_ext/state", b"disabled\n")]);
    assert_eq!(h.sched_ext, Reading::Known("none".into()));
    assert!(!host(&[]).0.sched_ext.is_known(), "before 6.12");
}

#[test]
fn who_reads_and_what_the_kernel_is_called() {
    let (h, no_access) = host(&[
        (
            "/proc/self/status",
            b"Name:\tnetwright\nUid:\t1000\t0\t0\t0\nCapEff:\t0000000000003000\n",
        ),
        ("/proc/version", b"Linux version 5.15.0-rc1 (gcc) #1 SMP\n"),
        ("/proc/uptime", b"2143.52 3800.11\n"),
        ("/sys/kernel/security/lockdown", b"none [integrity] confidentiality\n"),
        ("/usr/lib/os-release", b"NAME=Fedora\nVERSION='41 (Cloud)'\n"),
    ]);
    assert_eq!(h.reader.euid, Reading::Known(0));
    assert_eq!(
        h.reader.capabilities,
        Reading::Known(vec!["cap_net_admin".into(), "cap_net_raw".into()])
    );
    assert_eq!(h.kernel, Reading::Known("5.15.0-rc1".into()));
    assert_eq!(h.uptime_s, Reading::Known(2143));
    assert_eq!(h.lockdown, Reading::Known("integrity".into()));
    assert_eq!(h.distribution, Reading::Known("Fedora 41 (Cloud)".into()));
    assert!(no_access.iter().all(|u| u.what != "kernel lockdown mode"));
    let why = h.build.btf.why_not();
    assert_eq!(why, Some("/sys/kernel/btf/vmlinux: not there"), "a tree with some of /sys/kernel");
    for (line, there) in [("CONFIG_DEBUG_INFO_BTF=y\n", true), ("CONFIG_HZ=250\n", false)] {
        let (h, _) = host(&[("/proc/config.gz", &gzip(line.as_bytes()))]);
        assert_eq!(h.build.btf, Reading::Known(there), "by the configuration: {line}");
    }
}
