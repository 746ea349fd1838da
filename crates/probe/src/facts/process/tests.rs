//! Tests on generated trees of processes.

use std::{fs, os::unix::fs::symlink, path::Path};

use model::{Bytes, CpuId, NumaNode, Reading};

use super::{super::Selector, read};
use crate::Root;

const STAT: &str =
    "S 1 1 1 0 -1 0 0 0 0 0 17 5 0 0 20 0 2 0 77 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0";

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let to = self.0.path().join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, text).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let to = self.0.path().join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        symlink(target, to).unwrap();
        self
    }

    /// A process with two threads in namespace 4026531840.
    fn process(&self, pid: u32, comm: &str) -> &Self {
        let p = format!("proc/{pid}");
        self.file(&format!("{p}/comm"), &format!("{comm}\n"));
        self.file(
            &format!("{p}/status"),
            &format!("Name:\t{comm}\nTgid:\t{pid}\nVmRSS:\t    8 kB\n"),
        );
        for tid in [pid, pid + 1] {
            let t = format!("{p}/task/{tid}");
            self.file(&format!("{t}/stat"), &format!("{tid} ({comm}) {STAT}\n"));
            self.file(&format!("{t}/status"), "Cpus_allowed_list:\t0-3,64\n");
        }
        self.link(&format!("{p}/ns/net"), "net:[4026531840]");
        self.link(&format!("{p}/exe"), &format!("/usr/sbin/{comm}-program-with-long-name"))
    }

    fn root(&self) -> Root {
        Root::open(Path::new(self.0.path())).unwrap()
    }
}

fn pids(root: &Root, selector: Selector) -> (Vec<u32>, Vec<String>) {
    let (found, warnings) = read(root, &[selector]);
    (found.iter().map(|p| p.pid).collect(), warnings)
}

#[test]
fn threads_affinity_and_memory() {
    let t = Tree::new();
    t.process(40, "nginx");
    t.file("proc/40/task/40/sched", "nginx (40, #threads: 2)\nse.nr_migrations : 12\n");
    t.file("proc/40/numa_maps", "7f00 default anon=2 N0=1 N1=2 kernelpagesize_kB=4\n");
    t.file("proc/40/cmdline", "nginx: master\0-g\0\0");
    // A thread that ended while its folder was listed.
    fs::create_dir_all(t.0.path().join("proc/40/task/99")).unwrap();
    let (found, warnings) = read(&t.root(), &[Selector::Pid(40), Selector::Name("nginx".into())]);
    assert_eq!(warnings, [""; 0]);
    let p = &found[0];
    assert_eq!((found.len(), p.chosen_by.as_str()), (1, "pid 40, name nginx"));
    assert_eq!(p.threads.iter().map(|t| t.tid).collect::<Vec<_>>(), [40, 41]);
    assert_eq!(p.threads[0].affinity.known().unwrap().to_string(), "0-3,64");
    assert_eq!(p.threads[0].last_cpu, Reading::Known(CpuId(3)));
    assert_eq!(p.threads[0].migrations, Reading::Known(12));
    assert!(p.threads[1].migrations.why_not().unwrap().contains("CONFIG_SCHED_DEBUG"));
    assert_eq!(p.threads[0].cpu_ticks, Reading::Known(22));
    assert_eq!(p.memory_by_node.known().unwrap()[&NumaNode(1)], Bytes(8192));
    assert_eq!(p.arguments.known().unwrap(), &["nginx: master", "-g", ""]);
    assert!(!p.sockets.is_known() && !p.cgroup.is_known());
}

#[test]
fn cpusets_of_both_versions() {
    let t = Tree::new();
    t.process(10, "a").process(20, "b").process(30, "c");
    t.file("proc/10/cgroup", "3:cpuset:/docker/x\n0::/\n");
    t.file("proc/20/cgroup", "0::/system.slice/b.service\n");
    t.file("proc/30/cgroup", "0::/../outside\n");
    t.file("proc/self/mountinfo", "1 0 0:1 /docker /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n2 0 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    t.file("sys/fs/cgroup/cpuset/x/cpuset.effective_cpus", "0-1\n");
    t.file("sys/fs/cgroup/cpuset/x/cpuset.effective_mems", "0\n");
    t.file("sys/fs/cgroup/unified/system.slice/cpuset.cpus.effective", "2-3\n");
    fs::create_dir_all(t.0.path().join("sys/fs/cgroup/unified/system.slice/b.service")).unwrap();
    let (found, _) = read(&t.root(), &[Selector::Pid(10), Selector::Pid(20), Selector::Pid(30)]);
    let cpus = |i: usize| found[i].cpuset_cpus.known().map(ToString::to_string);
    assert_eq!(cpus(0).as_deref(), Some("0-1"));
    assert_eq!(found[0].cpuset_mems.known().unwrap().to_string(), "0");
    assert_eq!(cpus(1).as_deref(), Some("2-3"), "the nearest cgroup with the controller");
    assert!(found[1].cpuset_mems.why_not().unwrap().contains("no cgroup above"));
    assert_eq!(cpus(2), None);
    assert_eq!(found[1].unit, Reading::Known("b.service".into()));
    assert_eq!(found[1].container, Reading::Known("none".into()));
}

const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   103        0 500 1 0 100 0 0 10 0\n   1: 0F02000A:1538 0202000A:0050 01 00000010:00000000 02:000005BE 00000000  1000        0 501 2 0 20 4 30 10 -1\n";

#[test]
fn sockets_and_ports_in_the_process_own_namespace() {
    let t = Tree::new();
    t.process(10, "postgres").process(20, "other");
    for pid in [10, 20] {
        t.file(&format!("proc/{pid}/net/tcp"), TCP);
    }
    t.file("proc/10/net/udp", "  sl\n  9: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 502 2 0 0\n");
    for (fd, target) in [
        ("0", "/dev/null"),
        ("3", "socket:[500]"),
        ("4", "socket:[501]"),
        ("5", "socket:[502]"),
        ("6", "socket:[9]"),
    ] {
        t.link(&format!("proc/10/fd/{fd}"), target);
    }
    t.link("proc/20/fd/1", "pipe:[500]");
    let root = t.root();
    assert_eq!(pids(&root, Selector::Port(5432)), (vec![10], vec![]));
    // What the holder began is its service's: PostgreSQL's backends hold no listening socket.
    t.process(30, "postgres").file("proc/30/stat", "30 (postgres) S 10 30");
    t.file("proc/20/stat", "20 (other) S 1 20");
    assert_eq!(pids(&root, Selector::Port(5432)).0, [10, 30]);
    assert_eq!(pids(&root, Selector::Port(68)).0, [10, 30], "bound UDP counts");
    let (none, warnings) = pids(&root, Selector::Port(80));
    assert_eq!((none.len(), warnings), (0, vec!["no process listens on port 80".into()]));
    let (found, _) = read(&root, &[Selector::Pid(10)]);
    let s = found[0].sockets.known().unwrap();
    assert_eq!((s.count, s.established, s.udp), (4, 1, 1));
    assert_eq!(s.listening_ports, [5432]);
}

#[test]
fn names_units_and_containers() {
    let id = "6ef0b1b4bbdd2b63a0b0c7bd5d3ffd9cd0cd10a5e1a4d2a91c3a7b3c1d5f0e92";
    let t = Tree::new();
    t.process(10, "ceph-osd").process(20, "abcdefghijklmno");
    t.file("proc/10/cgroup", "0::/system.slice/ceph-osd@3.service\n");
    t.file("proc/20/cgroup", &format!("0::/system.slice/docker-{id}.scope\n"));
    t.file(
        &format!("var/lib/docker/containers/{id}/config.v2.json"),
        r#"{"Name":"/web","Config":{"Env":["SECRET=x"]}}"#,
    );
    let root = t.root();
    assert_eq!(pids(&root, Selector::Name("ceph-osd".into())).0, [10]);
    assert_eq!(
        pids(&root, Selector::Name("ceph-osd-program-with-long-name".into())).0,
        [10],
        "by program"
    );
    assert_eq!(pids(&root, Selector::Unit("ceph-osd@3".into())).0, [10]);
    assert_eq!(pids(&root, Selector::Unit("ceph-osd@3.service".into())).0, [10]);
    for name in [id, "6ef0b1b4bbdd", "web"] {
        assert_eq!(pids(&root, Selector::Container(name.into())).0, [20], "{name}");
    }
    assert_eq!(
        pids(&root, Selector::Container("6ef".into())).1,
        ["no process is in the container 6ef"]
    );
    assert_eq!(pids(&root, Selector::Pid(7)).1, ["no process has the id 7"]);
}
