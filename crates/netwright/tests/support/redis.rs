//! A real Redis for a test, on a free port of loopback and a Unix socket in a temporary folder.
//!
//! A shell between the test and the server waits for its standard input to end, so the server also
//! ends with a test process that was killed.

use std::{
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

pub struct Redis {
    folder: tempfile::TempDir,
    child: Option<Child>,
    pub port: u16,
    more: Vec<String>,
}

impl Redis {
    /// Starts one with further arguments: `["--maxclients", "3"]`.
    pub fn start(more: &[&str]) -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
        let folder = tempfile::tempdir().expect("a folder for Redis");
        let more = more.iter().map(|w| (*w).to_owned()).collect();
        let mut server = Self { folder, child: None, port, more };
        server.run();
        server
    }

    /// Starts it (again) and waits until it listens.
    pub fn run(&mut self) {
        let folder = self.folder.path();
        let mut command = Command::new("sh");
        command.args(["-c", "redis-server \"$@\" >/dev/null 2>&1 & read _; kill $!; wait", "sh"]);
        command.args(["--save", "", "--port", &self.port.to_string(), "--dir"]).arg(folder);
        command.arg("--unixsocket").arg(self.socket()).args(&self.more);
        let child = command.stdin(Stdio::piped()).spawn();
        self.child = Some(child.expect("a shell"));
        let port = self.more.iter().position(|w| w == "--tls-port");
        let port = port.and_then(|n| self.more.get(n + 1)?.parse().ok()).unwrap_or(self.port);
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "no redis-server; `make test-deps` installs it");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it and waits until it has.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The real client's output for a command, over the Unix socket.
    pub fn ask(&self, args: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        let out = command.arg("-s").arg(self.socket()).args(args).output().expect("redis-cli");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    /// The server's own count of a command.
    pub fn calls(&self, command: &str) -> u64 {
        let all = self.ask(&["INFO", "commandstats"]);
        let line = all.lines().find_map(|l| l.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|l| l.split(',').next()?.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}
