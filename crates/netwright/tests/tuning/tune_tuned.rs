//! Tests of `tune` beside Debian's tuned, with its own message bus, in a network and mount
//! namespace. `/proc/sys` is writable below `net` only. The tests cover the owner of a value before
//! a change, the process that reverts it, and a profile of ours in tuned.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{
    needs_root, run,
    tuned::{Practice, on_a_host},
};
use serde_json::Value;

/// Its own profile, active before the test.
const MINE: &str = "[main]\nsummary=A test's\n[sysctl]\nnet.ipv4.tcp_fin_timeout=45\n";

/// tuned and its message bus, ended when dropped.
struct Tuned {
    bus: Child,
    daemon: Child,
    log: std::path::PathBuf,
}

impl Tuned {
    /// Starts both in the calling thread's namespaces.
    fn start(host: &Practice) -> Self {
        host.only_net_can_be_written();
        for folder in ["/etc/tuned", "/run/tuned", "/run/dbus"] {
            host.hide(folder);
        }
        for (file, text) in [
            // It applies no file of the machine, and changes nothing by itself.
            (
                "tuned-main.conf",
                "daemon=1\ndynamic_tuning=0\nreapply_sysctl=0\nrecommend_command=0\n",
            ),
            ("active_profile", "mine\n"),
            ("profile_mode", "manual\n"),
        ] {
            fs::write(Path::new("/etc/tuned").join(file), text).unwrap();
        }
        profile("mine", MINE);
        let quiet = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let bus = quiet(Command::new("dbus-daemon").args(["--system", "--nofork", "--nopidfile"]));
        until("the message bus", || Path::new("/run/dbus/system_bus_socket").exists());
        let log = host.state.path().join("tuned.log");
        let daemon = quiet(Command::new("tuned").arg("-l").arg(&log));
        let tuned = Self { bus, daemon, log };
        tuned.until("45");
        tuned
    }

    /// Waits until tuned has set its profile's values.
    fn until(&self, value: &str) {
        let said = || fs::read_to_string(&self.log).unwrap_or_default();
        let begun = Instant::now();
        while fin_timeout() != value {
            assert!(begun.elapsed() < PATIENCE, "not {value} but {}: {}", fin_timeout(), said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        for child in [&mut self.daemon, &mut self.bus] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn profile(name: &str, text: &str) {
    let folder = Path::new("/etc/tuned").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("tuned.conf"), text).unwrap();
}

fn sysctl(key: &str) -> String {
    run("sysctl", &["-n", key]).trim().to_owned()
}

fn fin_timeout() -> String {
    sysctl("net.ipv4.tcp_fin_timeout")
}

/// Runs `tuned-adm ARGS`, which returns when tuned is done.
fn adm(args: &[&str]) -> String {
    run("timeout", &[&["60", "tuned-adm"], args].concat())
}

/// The reported suspects of a value's change.
fn suspects(host: &Practice, knob: &str) -> Value {
    let (code, out, err) = host.tune(&["status", "--json"]);
    assert_eq!(code, 1, "{out}{err}");
    let status: Value = serde_json::from_str(&out).unwrap();
    let values = status["values"].as_array().unwrap();
    let value = values.iter().find(|v| v["knob"] == knob).unwrap();
    value["drift"]["suspects"].clone()
}

fn owner(host: &Practice, change: &str) -> String {
    let (code, out, err) = host.tune(&["plan", "--json", change]);
    assert_eq!(code, 0, "{out}{err}");
    let plan: Value = serde_json::from_str(&out).unwrap();
    plan["changes"][0]["owner"].as_str().unwrap().to_owned()
}

#[test]
fn tuned_is_named_and_takes_over_what_is_to_be_kept() {
    needs_root();
    on_a_host(|host| {
        let tuned = Tuned::start(host);
        let own = "tuned profile mine (/etc/tuned/mine/tuned.conf:4)";
        assert_eq!(owner(host, "sysctl.net.ipv4.tcp_fin_timeout=20"), own);
        let changes = [
            "apply",
            "sysctl.net.ipv4.tcp_fin_timeout=20",
            "sysctl.net.ipv4.tcp_keepalive_intvl=30",
            "nic.v0.mtu=1400",
            "nic.v0.txqueuelen=500",
        ];
        assert_eq!(host.tune(&changes).0, 0);
        assert_eq!(host.tune(&["status"]).0, 0);

        // It sets its own value again; the other value has an unknown suspect.
        adm(&["profile", "mine"]);
        assert_eq!(fin_timeout(), "45");
        run("sysctl", &["-qw", "net.ipv4.tcp_keepalive_intvl=33"]);
        assert_eq!(suspects(host, "sysctl.net.ipv4.tcp_fin_timeout"), serde_json::json!(["tuned"]));
        assert_eq!(suspects(host, "sysctl.net.ipv4.tcp_keepalive_intvl"), serde_json::json!([]));

        // Handed over: a profile beside its own.
        let (code, text, err) = host.tune(&["persist", "--format", "tuned"]);
        assert_eq!(code, 0, "{text}{err}");
        profile("netwright", &text);
        assert_eq!(host.tune(&["rollback", "--force"]).0, 0);
        assert_eq!(fin_timeout(), "45");
        adm(&["profile", "mine", "netwright"]);
        let set = || {
            let file = |name| fs::read_to_string(format!("/sys/class/net/v0/{name}")).unwrap();
            let values = [fin_timeout(), sysctl("net.ipv4.tcp_keepalive_intvl")];
            let values = [values, [file("mtu"), file("tx_queue_len")]].concat();
            values.iter().map(|v| v.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(set(), ["20", "30", "1400", "500"], "{text}");
        assert!(adm(&["verify"]).contains("succeeded"));
        let ours = owner(host, "sysctl.net.ipv4.tcp_fin_timeout=25");
        assert!(
            ours.starts_with("tuned profile") && ours.contains("netwright/tuned.conf"),
            "{ours}"
        );

        // A stopped tuned resets its values; a restarted one sets them again.
        adm(&["off"]);
        assert_eq!(set(), ["60", "75", "1500", "1000"]);
        adm(&["profile", "mine", "netwright"]);
        tuned.until("20");
    });
}
