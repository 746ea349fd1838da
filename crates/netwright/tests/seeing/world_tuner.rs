//! The real irqbalance, configured to leave every interrupt alone, against the output of its own
//! socket.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, needs_root, run};
use serde_json::Value;

const SOCKETS: &str = "/run/irqbalance";
const SECRET: &str = "NWTEST_SECRET=hunter2-of-the-world-test";

/// The affinity and the effective affinity of every interrupt.
fn affinities() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for irq in fs::read_dir("/proc/irq").unwrap() {
        for file in ["smp_affinity", "effective_affinity"] {
            let path = irq.as_ref().unwrap().path().join(file);
            if let Ok(text) = fs::read_to_string(&path) {
                all.insert(path.display().to_string(), text);
            }
        }
    }
    all
}

fn irqs() -> Vec<u32> {
    let mut irqs: Vec<u32> = fs::read_dir("/proc/irq")
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_str()?.parse().ok())
        .collect();
    irqs.sort_unstable();
    irqs
}

/// A running irqbalance that may touch nothing, killed by its id when dropped.
struct Balancer {
    child: Child,
    _script: tempfile::TempDir,
}

impl Balancer {
    fn start(banned_cpus: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("ban-all");
        fs::write(&script, "#!/bin/sh\necho ban=true\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let (secret, value) = SECRET.split_once('=').unwrap();
        let child = Command::new("/usr/sbin/irqbalance")
            .arg("--foreground")
            .arg(format!("--policyscript={}", script.display()))
            .args(irqs().iter().map(|irq| format!("--banirq={irq}")))
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env(secret, value)
            .envs(banned_cpus.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("irqbalance is needed; `make test-deps` installs it");
        Self { child, _script: dir }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn facts_once_it_answers(&self) -> Value {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let facts: Value =
                serde_json::from_str(&run(NETWRIGHT, &["inspect", "--json"])).unwrap();
            let tuner = tuner(&facts);
            let answered = tuner["evidence"]
                .as_array()
                .unwrap()
                .iter()
                .any(|e| e.as_str().unwrap().contains("bans CPUs"));
            if answered {
                assert_eq!(tuner["pid"], self.pid());
                return facts;
            }
            assert!(Instant::now() < until, "no answer of irqbalance: {tuner:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(format!("{SOCKETS}/irqbalance{}.sock", self.pid()));
    }
}

fn tuner(facts: &Value) -> &Value {
    let all = facts["tuners"].as_array().unwrap();
    all.iter().find(|r| r["kind"] == "irqbalance").expect("no irqbalance among the tuners")
}

/// The socket's answer, queried by the test.
fn asked(pid: u32) -> String {
    let mut stream = UnixStream::connect(format!("{SOCKETS}/irqbalance{pid}.sock")).unwrap();
    stream.write_all(b"setup").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The folder of its socket, which its unit would make; removed if made here.
struct Sockets(bool);

impl Sockets {
    fn new() -> Self {
        let made = !Path::new(SOCKETS).exists();
        if made {
            fs::create_dir(SOCKETS).unwrap();
        }
        Self(made)
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if self.0 {
            let _ = fs::remove_dir(SOCKETS);
        }
    }
}

#[test]
fn irqbalance_is_seen_as_it_sees_itself_and_nothing_moves() {
    needs_root();
    let before = affinities();
    {
        let _sockets = Sockets::new();
        let balancer = Balancer::start(&[("IRQBALANCE_BANNED_CPULIST", "1")]);
        let facts = balancer.facts_once_it_answers();
        let ours = tuner(&facts);
        let theirs = asked(balancer.pid());
        // `SLEEP 10 IRQ 1 LOAD 0 DIFF 0 CLASS 0 … BANNED 00000002`
        let words: Vec<&str> = theirs.split_whitespace().collect();
        assert_eq!(words[words.len() - 2], "BANNED", "{theirs}");
        assert_eq!(u64::from_str_radix(words[words.len() - 1].trim_matches('\0'), 16), Ok(2));
        assert_eq!(ours["banned_cpus"], "1");
        let mut listed: Vec<u64> =
            words.windows(2).filter(|w| w[0] == "IRQ").map(|w| w[1].parse().unwrap()).collect();
        listed.sort_unstable();
        let ours_irqs: Vec<u64> =
            ours["banned_irqs"].as_array().unwrap().iter().map(|i| i.as_u64().unwrap()).collect();
        assert!(listed.iter().all(|i| ours_irqs.contains(i)), "{theirs}\n{ours_irqs:?}");
        assert_eq!(ours_irqs, irqs().iter().map(|&i| u64::from(i)).collect::<Vec<_>>());
        let evidence = ours["evidence"].to_string();
        assert!(evidence.contains("environ: IRQBALANCE_BANNED_CPULIST=1"), "{evidence}");
        assert!(evidence.contains("ban-all about each IRQ"), "{evidence}");
        assert!(!facts.to_string().contains("hunter2-of-the-world-test"));
        no_secret_is_recorded();
    }
    {
        // Where it cannot create a file it listens on an abstract name.
        let balancer = Balancer::start(&[("IRQBALANCE_BANNED_CPUS", "1")]);
        let facts = balancer.facts_once_it_answers();
        assert_eq!(tuner(&facts)["banned_cpus"], "0");
    }
    assert_eq!(affinities(), before, "an interrupt was moved");
}

/// A recording keeps irqbalance's variables, and nothing else of its environment.
fn no_secret_is_recorded() {
    let recorder = Arc::new(probe::root::record::Recorder::default());
    let root = probe::Root::recording(recorder.clone());
    let tuners = probe::facts::tuner::read(&root);
    assert!(tuners.iter().any(|r| r.kind == "irqbalance"));
    let secret = b"hunter2-of-the-world-test";
    for (path, bytes) in recorder.take().files {
        assert!(!bytes.windows(secret.len()).any(|w| w == secret), "{path}");
    }
}
