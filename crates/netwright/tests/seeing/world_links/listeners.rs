//! Tests of listening sockets against `ss`.

use std::{collections::BTreeSet, time::Duration};

use super::facts;
use crate::support::{NETWRIGHT, Namespace, run};
use serde_json::{Value, json};

#[test]
fn an_accept_queue_and_whose_it_is() {
    let (ns, elsewhere) = (Namespace::new(), Namespace::new());
    // The thread's sockets stay in the namespace; the rest of the test does not.
    let name = ns.name.clone();
    let sockets = std::thread::spawn(move || {
        let file = std::fs::File::open(format!("/run/netns/{name}")).unwrap();
        // SAFETY: takes numbers only, and moves this short-lived thread alone.
        let moved =
            unsafe { libc::setns(std::os::fd::AsRawFd::as_raw_fd(&file), libc::CLONE_NEWNET) };
        assert_eq!(moved, 0);
        let four = listen("127.0.0.1:5432");
        let six = listen("[::1]:5433");
        let waiting = [connect("127.0.0.1:5432"), connect("127.0.0.1:5432"), connect("[::1]:5433")];
        (four, six, waiting)
    })
    .join()
    .unwrap();

    let pid = std::process::id();
    // A child of another test holds this process's sockets until it executes its program: then it
    // is compared again.
    let mut seen = facts(&ns);
    for _ in 0..20 {
        if seen["listeners"].as_array().unwrap().iter().all(|l| l["pids"] == json!([pid])) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        seen = facts(&ns);
    }
    let listeners = seen["listeners"].as_array().unwrap();
    assert_eq!(
        listeners,
        &[
            json!({"address": "127.0.0.1:5432", "port": 5432, "accept_queue": 2, "accept_queue_limit": 3, "pids": [pid]}),
            json!({"address": "[::1]:5433", "port": 5433, "accept_queue": 1, "accept_queue_limit": 3, "pids": [pid]}),
        ]
    );
    // ss: State Recv-Q Send-Q Local:Port Peer:Port
    let ss: BTreeSet<Vec<String>> = ns
        .run("ss", &["-ltnH"])
        .lines()
        .map(|l| l.split_whitespace().take(4).map(str::to_owned).collect())
        .collect();
    let ours: BTreeSet<Vec<String>> = listeners
        .iter()
        .map(|l| {
            let n = |key: &str| l[key].to_string();
            vec![
                "LISTEN".into(),
                n("accept_queue"),
                n("accept_queue_limit"),
                l["address"].as_str().unwrap().into(),
            ]
        })
        .collect();
    assert_eq!(ours, ss);

    // The neighbouring namespace has no listener, though it was inspected.
    assert_eq!(facts(&elsewhere)["listeners"], json!([]));

    // A tree has no sock_diag: the same sockets and owners, without the limit.
    let tree = tempfile::tempdir().unwrap();
    let proc = tree.path().join("proc");
    std::fs::create_dir_all(proc.join("net")).unwrap();
    for file in ["net/tcp", "net/tcp6", "interrupts"] {
        std::fs::write(proc.join(file), ns.run("cat", &[&format!("/proc/{file}")])).unwrap();
    }
    let descriptors = proc.join(format!("{pid}/fd"));
    std::fs::create_dir_all(&descriptors).unwrap();
    for fd in std::fs::read_dir("/proc/self/fd").unwrap().map(|e| e.unwrap().path()) {
        let Ok(target) = std::fs::read_link(&fd) else { continue };
        std::os::unix::fs::symlink(target, descriptors.join(fd.file_name().unwrap())).unwrap();
    }
    let from_files: Value = serde_json::from_str(&run(
        NETWRIGHT,
        &["inspect", "--json", "--root", tree.path().to_str().unwrap()],
    ))
    .unwrap();
    for (file, live) in from_files["listeners"].as_array().unwrap().iter().zip(listeners) {
        assert_eq!(
            (&file["address"], &file["accept_queue"]),
            (&live["address"], &live["accept_queue"])
        );
        assert!(file["accept_queue_limit"]["absent"].is_string(), "{file:#}");
        assert_eq!(file["pids"], json!([pid]));
    }
    assert_eq!(from_files["listeners"].as_array().unwrap().len(), 2);
    drop(sockets);
}

/// Listens with a backlog of 3, which the standard library cannot.
fn listen(address: &str) -> std::net::TcpListener {
    let listener = std::net::TcpListener::bind(address).unwrap();
    // SAFETY: sets another backlog on a listening socket.
    let again = unsafe { libc::listen(std::os::fd::AsRawFd::as_raw_fd(&listener), 3) };
    assert_eq!(again, 0);
    listener
}

fn connect(address: &str) -> std::net::TcpStream {
    std::net::TcpStream::connect(address).unwrap()
}
