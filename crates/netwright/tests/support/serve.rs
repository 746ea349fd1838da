//! A `netwright serve` for a test, on ports that the kernel chooses, killed when dropped.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::Value;

pub struct Serve {
    child: Child,
    /// Its output, a JSON object on a line.
    pub events: BufReader<ChildStdout>,
    /// Its addresses: `127.0.0.1:4711`, `unix:/…`.
    pub targets: Vec<String>,
    /// The generated secret; `None` where it generated none.
    pub secret: Option<String>,
}

impl Serve {
    /// `netwright serve --json --port 0 ARGS` on this host.
    pub fn start(args: &[&str]) -> Self {
        let mut command = Command::new(super::NETWRIGHT);
        command.args(["serve", "--json", "--port", "0"]).args(args);
        Self::of(command)
    }

    /// The same, with the whole command: for another namespace or a lab's host.
    pub fn of(mut command: Command) -> Self {
        command.env_remove("NETWRIGHT_SECRET").stdout(Stdio::piped());
        let mut child = command.spawn().expect("serve does not start");
        let mut events = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        events.read_line(&mut line).expect("serve says nothing");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        let targets = said["addresses"].as_array().expect("addresses");
        let targets = targets.iter().map(|a| a.as_str().expect("a text").to_owned()).collect();
        Self { child, events, targets, secret: said["secret"].as_str().map(str::to_owned) }
    }

    pub fn target(&self) -> &str {
        &self.targets[0]
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: our own child, not waited for yet.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().expect("it is our child")
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
