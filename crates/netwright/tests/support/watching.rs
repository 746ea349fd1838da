//! A `netwright watch --json` of a test's own, read interval by interval, ended when dropped.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use model::{Reading, watch::WatchInterval};
use serde::de::DeserializeOwned;

pub struct Watching {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watching {
    /// Watches this host every 250 ms.
    pub fn start(args: &[&str]) -> Self {
        let args = [&["--interval", "250ms"][..], args].concat();
        Self::by(Command::new(super::NETWRIGHT), &args)
    }

    /// Begins by this command, and waits for the first interval: from then on everything is seen.
    pub fn by(mut command: Command, args: &[&str]) -> Self {
        super::needs_root();
        command.args(["watch", "--json", "--duration", "120s"]).args(args).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut this = Self { child, lines };
        this.next_as::<WatchInterval>();
        this
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next interval, as a document or as plain JSON.
    pub fn next_as<T: DeserializeOwned>(&mut self) -> T {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:.200}"))
    }

    pub fn next(&mut self) -> WatchInterval {
        self.next_as()
    }

    /// All intervals from the first until the one that began after now.
    pub fn rest(&mut self) -> Vec<WatchInterval> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as f64;
        let mut all = vec![];
        loop {
            let one = self.next();
            let after = one.ended_unix_ns.0 as f64 - one.interval_s * 1e9 > now;
            all.push(one);
            if after {
                return all;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A part of an interval that must be there.
pub fn known<T>(reading: &Reading<T>) -> &T {
    reading.known().unwrap_or_else(|| panic!("{:?}", reading.why_not()))
}
