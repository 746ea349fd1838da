//! A line on a terminal while eBPF programs are attached, which takes seconds on a busy host.

use std::io::{self, IsTerminal, Write};

use probe::watch::Watcher;

use super::args::WatchArgs;

/// An unfinished line on standard error.
pub struct Attaching {
    shown: bool,
}

impl Attaching {
    /// Begins the line where standard error is a terminal, unless quiet or without eBPF.
    pub fn begin(args: &WatchArgs) -> Self {
        let shown = !args.output.talk.quiet && !args.no_bpf && io::stderr().is_terminal();
        if shown {
            say("netwright: attaching ...");
        }
        Self { shown }
    }

    /// Completes the line with the time taken. Where nothing was attached it is erased; the
    /// intervals have the reason.
    pub fn end(self, watcher: &Watcher) {
        if !self.shown {
            return;
        }
        match watcher.attached() {
            0 => say("\r\x1b[K"),
            n => {
                let s = watcher.attached_after().as_secs_f64();
                say(&format!("\r\x1b[Knetwright: {n} programs attached after {s:.1} s\n"));
            }
        }
    }
}

/// A failure to write this line is ignored.
fn say(text: &str) {
    let mut to = io::stderr();
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
