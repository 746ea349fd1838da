//! Wrong settings and paths in network namespaces: `doctor` finds each, its remedy ends it, and
//! look-alikes are left alone.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::atomic::Ordering,
    thread,
    time::Duration,
};

use crate::support::{
    NETWRIGHT, Namespace,
    planted::{
        Inside, apply, beside, doctor, doctor_with, figure, finding, found, nstat, pair, silent,
    },
};

#[test]
fn a_pair_whose_ends_disagree_about_the_mtu() {
    let (ns, there) = pair();
    ns.run("ping", &["-c1", "-W2", "10.88.0.2"]);
    there.run("ip", &["link", "set", "vb", "mtu", "1400"]);
    let mut socket = None;
    let _sender = Inside::every(&ns, Duration::from_millis(10), move || {
        let socket = socket.get_or_insert_with(|| UdpSocket::bind("10.88.0.1:0").unwrap());
        let _ = socket.send_to(&[0; 1_450], "10.88.0.2:9999");
    });
    let counter = "/sys/class/net/va/statistics/tx_dropped";
    let (d, truth) = beside(&ns, || ns.run("cat", &[counter]).trim().parse().unwrap());
    let f = found(&d, "mtu_mismatch", "va");
    assert_eq!(f["severity"], "warning", "{f:#}");
    truth.holds(&d, figure(f, "tx_dropped of va"));
    assert_eq!((figure(f, "MTU of va"), figure(f, "MTU of vb")), (1_500, 1_400), "{f:#}");
    apply(&ns, &d, &["nic.va.mtu=1400"]);
    silent(&doctor(&ns), "mtu_mismatch");
}

/// More busy tasks than CPUs: the verdict says that the CPUs are busy, whatever the rules found.
#[test]
fn cpus_that_are_all_busy_are_named_in_the_verdict() {
    let ns = Namespace::new();
    let cpus = thread::available_parallelism().unwrap().get();
    let _busy: Vec<Inside> = (0..cpus * 2)
        .map(|_| Inside::run(&ns, |stop| while !stop.load(Ordering::Relaxed) {}))
        .collect();
    let d = doctor(&ns);
    let cpu = &d["window"]["cpu"];
    assert_eq!(cpu["cpus"], cpus, "{cpu:#}");
    assert!(cpu["busy_share"].as_f64().unwrap() >= 0.95, "{cpu:#}");
    if fs::exists("/proc/pressure/cpu").unwrap() {
        assert!(cpu["waiting_share"].as_f64().unwrap() >= 0.8, "{cpu:#}");
    }
    let said = ns.run(NETWRIGHT, &["doctor", "--window", "1s", "--no-bpf"]);
    assert!(said.contains("CPU TIME  all "), "{said}");
}

/// The look-alike: a bridge with a smaller MTU than its ports, which is allowed.
#[test]
fn a_bridge_smaller_than_its_ports_is_clear() {
    let (ns, _there) = pair();
    ns.run("ip", &["link", "add", "br0", "type", "bridge"]);
    ns.run("ip", &["link", "set", "va", "master", "br0"]);
    ns.run("ip", &["link", "set", "br0", "mtu", "1400", "up"]);
    silent(&doctor(&ns), "mtu_mismatch");
}

/// The kernel's documentation: without deferral the suspension has no effect. Needs Linux 6.13.
#[test]
fn a_suspension_without_deferral() {
    let (ns, _there) = pair();
    ns.run("ethtool", &["-K", "va", "gro", "on"]);
    silent(&doctor(&ns), "irq_suspension");
    let state = tempfile::tempdir().unwrap();
    let set = |change: &str| {
        let mut command = std::process::Command::new(NETWRIGHT);
        command.args(["tune", "apply", "--netns", &ns.name, "--no-confirm", change]);
        let out = command.env("NETWRIGHT_STATE", state.path()).output().unwrap();
        assert!(out.status.success(), "{change}: {}", String::from_utf8_lossy(&out.stderr));
    };
    set("nic.va.napi.irq_suspend_timeout.0=20ms");
    let d = doctor(&ns);
    let f = found(&d, "irq_suspension", "va");
    let evidence = f["evidence"].to_string();
    assert!(evidence.contains("irq-suspend-timeout 20 ms"), "{f:#}");
    // Only the missing half is proposed; both of its settings are needed.
    let both = ["nic.va.napi.defer_hard_irqs.0=100", "nic.va.napi.gro_flush_timeout.0=20000"];
    apply(&ns, &d, &both);
    silent(&doctor(&ns), "irq_suspension");
}

#[test]
fn sack_switched_off() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.ipv4.tcp_sack=0"]);
    let d = doctor(&ns);
    let f = found(&d, "sack_timestamps_off", "net.ipv4.tcp_sack");
    assert_eq!(figure(f, "net.ipv4.tcp_sack"), 0);
    apply(&ns, &d, &["sysctl.net.ipv4.tcp_sack=1"]);
    silent(&doctor(&ns), "sack_timestamps_off");
}

#[test]
fn timestamps_switched_off() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.ipv4.tcp_timestamps=0"]);
    let d = doctor(&ns);
    let f = found(&d, "sack_timestamps_off", "net.ipv4.tcp_timestamps");
    assert_eq!(figure(f, "net.ipv4.tcp_timestamps"), 0);
    apply(&ns, &d, &["sysctl.net.ipv4.tcp_timestamps=1"]);
    silent(&doctor(&ns), "sack_timestamps_off");
}

/// The look-alike: duplicate SACK off, and timestamps without random offset (value 2).
#[test]
fn neighbours_of_sack_and_timestamps_are_clear() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.ipv4.tcp_dsack=0", "net.ipv4.tcp_timestamps=2"]);
    silent(&doctor(&ns), "sack_timestamps_off");
}

#[test]
fn a_setting_below_this_kernels_default() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.core.somaxconn=128"]);
    let d = doctor(&ns);
    let f = found(&d, "below_kernel_default", "net.core.somaxconn");
    assert_eq!(figure(f, "net.core.somaxconn"), 128);
    assert_eq!(figure(f, "default of net.core.somaxconn"), 4_096);
    apply(&ns, &d, &["sysctl.net.core.somaxconn=4096"]);
    silent(&doctor(&ns), "below_kernel_default");
}

/// The look-alike: also changed, but raised.
#[test]
fn a_setting_above_the_default_is_clear() {
    let ns = Namespace::new();
    ns.run("sysctl", &["-q", "net.core.somaxconn=8192"]);
    silent(&doctor(&ns), "below_kernel_default");
}

/// Bulk TCP through a shaper with a queue of this length.
fn bulk(limit: &str) -> (Namespace, Namespace, [Inside; 2]) {
    let (ns, there) = pair();
    ns.run("ethtool", &["-K", "va", "tso", "off", "gso", "off"]);
    let shaper = ["root", "tbf", "rate", "30mbit", "burst", "6000", "limit", limit];
    ns.run("tc", &[&["qdisc", "add", "dev", "va"][..], &shaper].concat());
    let reader = Inside::run(&there, |stop| {
        let listener = TcpListener::bind("10.88.0.2:8080").unwrap();
        let mut connection = listener.accept().unwrap().0;
        connection.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut buffer = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            let _ = connection.read(&mut buffer);
        }
    });
    there.await_listener(8080);
    let writer = Inside::run(&ns, |stop| {
        let mut connection = TcpStream::connect("10.88.0.2:8080").unwrap();
        connection.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        while !stop.load(Ordering::Relaxed) {
            let _ = connection.write(&[0; 16_384]);
        }
    });
    thread::sleep(Duration::from_millis(500));
    (ns, there, [writer, reader])
}

#[test]
fn segments_lost_at_a_shaper() {
    let (ns, _there, _load) = bulk("15000");
    let (d, truth) = beside(&ns, || nstat(&ns, "TcpRetransSegs"));
    let f = found(&d, "retransmits", "TCP");
    truth.holds(&d, figure(f, "RetransSegs"));
    assert!(f["evidence"].to_string().contains("retransmitted to 10.88.0.2"), "{f:#}");
    assert!(f["caused_by"].to_string().contains("qdisc_drops"), "{f:#}");
    ns.run("tc", &["qdisc", "del", "dev", "va", "root"]);
    thread::sleep(Duration::from_millis(500));
    silent(&doctor(&ns), "retransmits");
}

/// The look-alike: an equally slow path with a queue that holds everything.
#[test]
fn a_slow_path_that_loses_nothing_is_clear() {
    let (ns, _there, _load) = bulk("100000000");
    silent(&doctor(&ns), "retransmits");
}

/// A busy process on one CPU, or moving to the other one every 2 ms. Killed on drop.
struct Busy(libc::pid_t);

impl Busy {
    fn start(moves: bool) -> Self {
        // SAFETY: the child calls nothing but system calls that a signal handler may make.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: the same; every structure is this function's own.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let (mut cpu, mut now) = (0, std::mem::zeroed::<libc::timespec>());
                loop {
                    let mut set: libc::cpu_set_t = std::mem::zeroed();
                    libc::CPU_SET(cpu, &mut set);
                    libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
                    cpu = if moves { 1 - cpu } else { 0 };
                    libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
                    let from = now.tv_sec * 1_000_000_000 + now.tv_nsec;
                    while now.tv_sec * 1_000_000_000 + now.tv_nsec - from < 2_000_000 {
                        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
                    }
                }
            }
        }
        thread::sleep(Duration::from_millis(100));
        Self(pid)
    }

    fn moves(&self) -> u64 {
        let all = fs::read_to_string(format!("/proc/{}/sched", self.0)).unwrap();
        let line = all.lines().find(|l| l.starts_with("se.nr_migrations")).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // SAFETY: the child of this process, not yet waited for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

#[test]
fn a_process_that_moves_between_cpus_all_the_time() {
    let ns = Namespace::new();
    let busy = Busy::start(true);
    let (before, began) = (busy.moves(), std::time::Instant::now());
    let d = doctor_with(&ns, &["--pid", &busy.0.to_string()]);
    let rate = (busy.moves() - before) as f64 / began.elapsed().as_secs_f64();
    let f = finding(&d, "app_migrates").unwrap_or_else(|| panic!("{d:#}"));
    assert!(f["subject"].as_str().unwrap().ends_with(&format!("[{}]", busy.0)), "{f:#}");
    let said = figure(f, "migrations of thread") as f64;
    // Against the kernel's count over the whole run of doctor, of which the window is the most part. A
    // factor of two is outside.
    assert!((0.6..1.6).contains(&(said / rate)), "{said} a second, {rate}: {f:#}");
    assert!(!f["changes"].as_array().unwrap().is_empty(), "{f:#}");
    drop(busy);
    // The remedy, and the look-alike: equally busy, without migrations.
    let pinned = Busy::start(false);
    silent(&doctor_with(&ns, &["--pid", &pinned.0.to_string()]), "app_migrates");
}
