//! Says on a terminal that programs are being attached: on a busy host that takes seconds.

use std::io::{self, IsTerminal, Write};

use probe::watch::Watcher;

use super::args::WatchArgs;

/// A line on standard error that is not finished yet.
pub struct Attaching {
    shown: bool,
}

impl Attaching {
    /// Said where standard error is a terminal, unless quiet, or nothing is to be attached.
    pub fn begin(args: &WatchArgs) -> Self {
        let shown = !args.output.talk.quiet && !args.no_bpf && io::stderr().is_terminal();
        if shown {
            say("netwright: attaching ...");
        }
        Self { shown }
    }

    /// How long it took; where nothing could be attached, nothing: the intervals say why.
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

/// A line that nobody reads is nobody's error.
fn say(text: &str) {
    let mut to = io::stderr();
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}
