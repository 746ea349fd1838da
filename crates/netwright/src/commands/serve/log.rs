//! Writes events in a thread, so that a slow or stopped reader of our output does not delay
//! clients.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::output::{Sink, note};

/// The most lines that wait to be written; more are dropped and counted.
const WAITING: usize = 4096;
/// How long the last lines may take to be written when the server ends.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum Line {
    Out(String),
    Note(String),
}

#[derive(Debug)]
pub struct Log {
    to: Option<SyncSender<Line>>,
    left_out: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

impl Log {
    pub fn start() -> Self {
        let (to, from) = sync_channel(WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let count = left_out.clone();
        let made = std::thread::Builder::new()
            .name("nw-log".into())
            .spawn(move || write_all(&from, &count));
        Self { to: Some(to), left_out, writer: made.ok() }
    }

    /// A line for standard output.
    pub fn out(&self, line: String) {
        self.put(Line::Out(line));
    }

    /// A line for standard error.
    pub fn note(&self, line: String) {
        self.put(Line::Note(line));
    }

    fn put(&self, line: Line) {
        if self.to.as_ref().is_none_or(|to| to.try_send(line).is_err()) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_all(from: &Receiver<Line>, left_out: &AtomicU64) {
    for line in from {
        match line {
            Line::Out(text) => {
                let _ = Sink::Stdout.text(&format!("{text}\n"));
            }
            Line::Note(text) => note(&text),
        }
        let n = left_out.swap(0, Ordering::Relaxed);
        if n > 0 {
            note(&format!("{n} event lines are left out: the reader was too slow"));
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.to = None;
        let until = Instant::now() + PATIENCE;
        while self.writer.as_ref().is_some_and(|w| !w.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
