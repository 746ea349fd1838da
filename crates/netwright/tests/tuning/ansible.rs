//! Tests of the Ansible collection: a real `ansible-playbook` over a real sshd on each of eight hosts.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use lab::{containers::ContainersSpec, testing::TestLab};
use serde_json::Value;

use crate::support::{NETWRIGHT, needs_root, run};

const HOSTS: u32 = 8;
/// How long a host waits for a confirmation before it undoes a change by itself.
const CONFIRM_S: u64 = 25;

/// Prints one document: the result of each task on each host, and each host's counts.
const CALLBACK: &str = r#"
import json
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "stdout", "document"

    def __init__(self):
        super().__init__()
        self.results = []

    def seen(self, result, **_):
        task, host = result._task.get_name(), result._host.get_name()
        self.results.append(dict(task=task, host=host, result=result._result))

    v2_runner_on_ok = v2_runner_on_failed = v2_runner_on_unreachable = seen

    def v2_playbook_on_stats(self, stats):
        hosts = {h: stats.summarize(h) for h in stats.processed}
        print(json.dumps(dict(results=self.results, stats=hosts)))
"#;

/// Hosts with an sshd each, their journals, and an inventory.
struct Fleet {
    // Ended before the lab that they run in.
    sshd: Vec<Child>,
    lab: TestLab,
    folder: tempfile::TempDir,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for sshd in &mut self.sshd {
            let _ = sshd.kill();
            let _ = sshd.wait();
        }
    }
}

impl Fleet {
    fn new() -> Self {
        needs_root();
        let lab = TestLab::containers(&ContainersSpec { count: HOSTS, ..Default::default() });
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut this = Self { sshd: vec![], lab: lab.unwrap(), folder };
        for key in ["host", "key"] {
            let file = this.path(key);
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", file.to_str().unwrap()]);
        }
        fs::create_dir_all("/run/sshd").unwrap();
        fs::write(this.path("document.py"), CALLBACK).unwrap();
        this.sshd = (1..=HOSTS).map(|n| this.start_sshd(n)).collect();
        this.write_inventory();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start_sshd(&self, n: u32) -> Child {
        let at = |name: &str| self.path(name).display().to_string();
        let config = self.path(&format!("sshd{n}"));
        let text = format!(
            "Port 2222\nListenAddress 10.98.0.{}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n\
             SetEnv NETWRIGHT_STATE={} NETWRIGHT_STORE=off\n",
            n + 1,
            at("host"),
            at("key.pub"),
            at(&format!("c{n}"))
        );
        fs::write(&config, text).unwrap();
        fs::create_dir(self.path(&format!("c{n}"))).unwrap();
        let line = ["/usr/sbin/sshd", "-D", "-f", config.to_str().unwrap()];
        let mut sshd = self.lab.command(&format!("c{n}"), &line).unwrap();
        sshd.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn write_inventory(&self) {
        let options = format!(
            "-F /dev/null -i {} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            self.path("key").display()
        );
        let hosts = (1..=HOSTS).map(|n| format!("c{n} ansible_host=10.98.0.{}\n", n + 1));
        let text = format!(
            "[all]\n{}[all:vars]\nansible_port=2222\nansible_user=root\nnetwright_program={NETWRIGHT}\n\
             ansible_python_interpreter=/usr/bin/python3\nansible_ssh_common_args='{options}'\n",
            hosts.collect::<String>()
        );
        fs::write(self.path("hosts"), text).unwrap();
    }

    /// A command of Ansible beside the hosts, with this checkout's collection.
    fn ansible(&self, program: &str, args: &[&str]) -> Command {
        let namespace = format!("nw-{}-bridge", self.lab.state.name);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace, program, "-i"]).arg(self.path("hosts"));
        command.args(args).current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.env("PWD", self.folder.path());
        command.env("ANSIBLE_COLLECTIONS_PATH", collections()).env("ANSIBLE_FORKS", "8");
        command
            .env("ANSIBLE_PIPELINING", "1")
            .env("ANSIBLE_TIMEOUT", "5")
            .env("ANSIBLE_NOCOLOR", "1");
        command
            .env("ANSIBLE_STDOUT_CALLBACK", "document")
            .env("ANSIBLE_CALLBACK_PLUGINS", self.folder.path())
            .env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a playbook of the collection; its document, and whether all of it went well.
    fn plays(&self, playbook: &str, args: &[&str]) -> (Value, bool) {
        let name = format!("netwright.tuning.{playbook}");
        let all = [&[name.as_str()], args].concat();
        let out = self.ansible("ansible-playbook", &all).output().unwrap();
        let (said, why) =
            (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        // Warnings may stand before the document.
        let from = said.find('{').unwrap_or_else(|| panic!("{said}\n{why}"));
        let document =
            serde_json::from_str(&said[from..]).unwrap_or_else(|e| panic!("{e}: {said}"));
        (document, out.status.success())
    }

    fn somaxconn(&self, n: u32) -> String {
        let out = self.lab.output(&format!("c{n}"), &["sysctl", "-n", "net.core.somaxconn"]);
        String::from_utf8_lossy(&out.unwrap().stdout).trim().to_owned()
    }

    fn all_somaxconn(&self) -> Vec<String> {
        (1..=HOSTS).map(|n| self.somaxconn(n)).collect()
    }

    /// Ends a host's sshd with all its sessions, as a host that dies does.
    fn dies(sshd: &Child) {
        let mut all = vec![sshd.id()];
        let mut from = 0;
        while let Some(pid) = all.get(from).copied() {
            from += 1;
            let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            all.extend(list.unwrap_or_default().split(' ').filter_map(|p| p.parse::<u32>().ok()));
        }
        // The watchdog of a change is in a session of its own and stays.
        let theirs = all.into_iter().filter(|pid| name(*pid).starts_with("sshd"));
        let pids: Vec<String> = theirs.map(|pid| pid.to_string()).collect();
        let _ = Command::new("kill").arg("-9").args(pids).stderr(Stdio::null()).status();
    }
}

fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

fn collections() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ansible")
}

/// How often a host was changed or failed, by `stats`.
fn count(document: &Value, host: &str, what: &str) -> u64 {
    document["stats"][host][what].as_u64().unwrap_or_else(|| panic!("{:#}", document["stats"]))
}

/// The last result of a task on a host.
fn result<'d>(document: &'d Value, task: &str, host: &str) -> &'d Value {
    let mut all = document["results"].as_array().unwrap().iter().rev();
    // A role's name stands before that of its task.
    let is = |r: &Value| r["task"].as_str().unwrap().ends_with(task) && r["host"] == host;
    let found = all.find(|r| is(r));
    &found.unwrap_or_else(|| panic!("no {task} on {host}: {document:#}"))["result"]
}

/// One change for eight hosts: planned, rolled out while one host dies and another is not well after
/// it, rolled out once more, rolled back.
#[test]
fn a_change_is_rolled_out_and_rolled_back_on_eight_hosts_while_one_dies() {
    let mut fleet = Fleet::new();
    let settings = "{\"settings\": {\"sysctl.net.core.somaxconn\": 8192}, \"at_a_time\": \"100%\", \"may_fail\": 100}";
    let confirm = format!("confirm={CONFIRM_S}s");
    let check = "check='test ! -e {{ lookup(\"env\", \"HOME\") }}/{{ inventory_hostname }}/unwell'";
    let args = ["-e", settings, "-e", &confirm, "-e", check];

    // A plan writes nothing and shows both values.
    let (plan, fine) = fleet.plays("rollout", &[&["--check", "--diff"], &args[..]].concat());
    assert!(fine, "{plan:#}");
    let planned = result(&plan, "Change, undone by the host itself unless it is confirmed", "c4");
    assert_eq!(planned["diff"]["before"], "sysctl.net.core.somaxconn = 4096\n", "{planned:#}");
    assert_eq!(planned["diff"]["after"], "sysctl.net.core.somaxconn = 8192\n");
    assert_eq!(fleet.all_somaxconn(), ["4096"; 8]);

    // c3 is not well after the change, and c5 dies after it and before it is confirmed.
    fs::write(fleet.path("c3/unwell"), "").unwrap();
    let died = std::sync::atomic::AtomicBool::new(false);
    let begun = Instant::now();
    let (rollout, fine) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while begun.elapsed() < Duration::from_secs(120) {
                if fleet.somaxconn(5) == "8192" {
                    Fleet::dies(&fleet.sshd[4]);
                    died.store(true, Ordering::Relaxed);
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        fleet.plays("rollout", &args)
    });
    assert!(died.load(Ordering::Relaxed) && !fine);
    assert_eq!(count(&rollout, "c5", "unreachable"), 1, "{:#}", rollout["stats"]);
    for well in ["c1", "c2", "c4", "c6", "c7", "c8"] {
        assert_eq!((count(&rollout, well, "failures"), count(&rollout, well, "changed")), (0, 2));
    }
    let said = result(&rollout, "Say so", "c3")["msg"].as_str().unwrap();
    assert!(said.starts_with("c3 is as it was before"), "{said}");
    // The host that died puts itself back.
    while fleet.somaxconn(5) != "4096" {
        assert!(begun.elapsed() < Duration::from_secs(180), "c5 did not undo its change");
        std::thread::sleep(Duration::from_millis(100));
    }
    let other = ["8192", "8192", "4096", "8192", "4096", "8192", "8192", "8192"];
    assert_eq!(fleet.all_somaxconn(), other);

    // It lives again. The same once more changes what is left, and nothing else.
    fs::remove_file(fleet.path("c3/unwell")).unwrap();
    let _ = fleet.sshd[4].wait();
    fleet.sshd[4] = {
        fs::remove_dir_all(fleet.path("c5")).unwrap();
        fleet.start_sshd(5)
    };
    std::thread::sleep(Duration::from_secs(1));
    let (again, fine) = fleet.plays("rollout", &args);
    assert!(fine, "{again:#}");
    for n in 1..=HOSTS {
        let changed = if n == 3 || n == 5 { 2 } else { 0 };
        assert_eq!(count(&again, &format!("c{n}"), "changed"), changed, "c{n}");
    }
    assert_eq!(fleet.all_somaxconn(), ["8192"; 8]);

    // Back again; what somebody else has set since stays and is named.
    assert_eq!(
        fleet.lab.output("c2", &["sysctl", "-qw", "net.core.somaxconn=999"]).unwrap().code,
        0
    );
    let module = format!("executable={NETWRIGHT} state=rolled_back");
    let args = ["all", "-m", "netwright.tuning.tune", "-a", &module];
    let out = fleet.ansible("ansible", &args).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("not every value was put back: sysctl.net.core.somaxconn"), "{said}");
    let back = ["4096", "999", "4096", "4096", "4096", "4096", "4096", "4096"];
    assert_eq!(fleet.all_somaxconn(), back);
}

/// What cannot be done fails its task with the program's own reason, and changes nothing.
#[test]
fn hosts_are_diagnosed_and_their_snapshots_gathered_and_refusals_say_why() {
    let fleet = Fleet::new();
    assert_eq!(
        fleet
            .lab
            .output("c2", &["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 4096 4096"])
            .unwrap()
            .code,
        0
    );
    let at = "snapshots=gathered";
    let args = ["-e", "netwright_window=500ms", "-e", at, "--limit", "c1,c2,c3"];
    let (diagnosis, fine) = fleet.plays("doctor", &args);
    assert!(fine, "{diagnosis:#}");
    let rules = |host| result(&diagnosis, "Diagnose", host)["rules"].to_string();
    assert!(rules("c2").contains("below_kernel_default"), "{}", rules("c2"));
    assert!(!rules("c1").contains("below_kernel_default"), "{}", rules("c1"));
    let lines = result(&diagnosis, "All hosts, the most severe first", "c1")["msg"].to_string();
    assert!(lines.contains("c1: ") && lines.contains("c2: ") && lines.contains("c3: "), "{lines}");
    for n in [1, 2, 3] {
        let file = fleet.path(&format!("gathered/c{n}.tar.zst"));
        let args = ["doctor", "--root", file.to_str().unwrap(), "--json"];
        let out = Command::new(NETWRIGHT).args(args).output().unwrap();
        let judged: Value = serde_json::from_slice(&out.stdout).unwrap();
        let below = judged["findings"].to_string().contains("below_kernel_default");
        assert_eq!(below, n == 2, "c{n}");
    }

    let asks = |settings: &str| {
        let settings = format!("executable={NETWRIGHT} settings={settings}");
        let args = ["c1", "-m", "netwright.tuning.tune", "-a", &settings];
        let out = fleet.ansible("ansible", &args).output().unwrap();
        assert_eq!(out.status.code(), Some(2));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let no_knob = asks("{\"nic.eth9.mtu\":1400}");
    assert!(
        no_knob.contains("there is no such interface") && no_knob.contains("exit code 4"),
        "{no_knob}"
    );
    let no_number = asks("{\"sysctl.net.core.somaxconn\":\"many\"}");
    assert!(no_number.contains("number of connections"), "{no_number}");
    let lower =
        asks("{\"sysctl.net.core.somaxconn\":10,\"sysctl.net.ipv4.tcp_fin_timeout\":\"x\"}");
    assert!(lower.contains("below this kernel's own default"), "{lower}");
    assert!(lower.contains("tcp_fin_timeout: "), "each reason is named: {lower}");
    let both = asks("{\"sysctl.net.core.somaxconn\":8192} profile=web");
    assert!(both.contains("mutually exclusive"), "{both}");
    let nothing = asks("{}");
    assert!(nothing.contains("needs settings or a profile"), "{nothing}");
    assert_eq!(fleet.somaxconn(1), "4096");
}

/// The exporter's files, as the role puts them below a folder: systemd accepts the unit with its drop-in,
/// a second run changes nothing, and an open address without a secret is refused.
#[test]
fn the_exporter_is_installed_by_a_role_whose_unit_systemd_accepts() {
    let fleet = Fleet::new();
    let root = fleet.path("image");
    let role = |more: &[&str]| {
        let at = format!("exporter_root={}", root.display());
        // Any program: this one is small, and the unit is not started.
        let args = ["--limit", "c1", "-e", &at, "-e", "exporter_binary=/bin/true"];
        fleet.plays("exporter", &[&args[..], more].concat())
    };
    let open = ["-e", "exporter_listen=0.0.0.0:7473"];
    let (refused, fine) = role(&open);
    assert!(!fine, "{refused:#}");
    let why = result(&refused, "Beyond loopback a secret is needed", "c1")["msg"].to_string();
    assert!(why.contains("set exporter_secret"), "{why}");
    assert!(!root.exists());

    let secret = [&open[..], &["-e", "exporter_secret=correct-horse-battery"]].concat();
    let (made, fine) = role(&secret);
    assert!(fine, "{made:#}");
    let unit = root.join("etc/systemd/system/netwright-export.service");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../packaging/systemd/netwright-export.service");
    assert_eq!(fs::read(&unit).unwrap(), fs::read(shipped).unwrap());
    let mode = |file: &str| fs::metadata(root.join(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("etc/netwright/secret"), mode("usr/bin/netwright")), (0o600, 0o755));
    // The unit names targets of systemd's own.
    let own = root.join("usr/lib/systemd");
    fs::create_dir_all(&own).unwrap();
    run("cp", &["-r", "/usr/lib/systemd/system", own.to_str().unwrap()]);
    let at = format!("--root={}", root.display());
    let verified = Command::new("systemd-analyze")
        .args(["verify", &at])
        .arg("netwright-export.service")
        .output();
    let verified = verified.unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("netwright-export"), "{said}");
    let line = fs::read_to_string(unit.with_extension("service.d").join("listen.conf")).unwrap();
    let program =
        "ExecStart=/usr/bin/netwright export --quiet --listen 0.0.0.0:7473 --secret-file %d/secret";
    assert!(line.lines().any(|l| l == program), "{line}");
    let (again, fine) = role(&secret);
    assert!(fine && count(&again, "c1", "changed") == 0, "{again:#}");
}
