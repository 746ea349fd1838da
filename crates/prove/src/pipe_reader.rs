//! Reads a child's output while the child runs, also where another process keeps the pipe open
//! afterwards.

use std::{
    io::Read,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How much of a workload's output is kept, bytes.
pub(crate) const MOST_BYTES: usize = 64 << 20;

/// How often the end of the output is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// A pipe and the thread that reads it.
#[derive(Debug)]
pub(crate) struct PipeReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl PipeReader {
    pub(crate) fn reading(mut from: impl Read + Send + 'static) -> std::io::Result<Self> {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let reader = thread::Builder::new().spawn(move || {
            let mut piece = vec![0; 64 << 10];
            loop {
                let n = match from.read(&mut piece) {
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => return,
                    Ok(n) => n,
                };
                let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
                // Output beyond the limit is read and dropped, so that no writer blocks on a full
                // pipe.
                let room = MOST_BYTES.saturating_sub(kept.len()).min(n);
                kept.extend_from_slice(piece.get(..room).unwrap_or_default());
            }
        })?;
        Ok(Self { bytes, reader })
    }

    /// Waits at most this long for the pipe to be closed by all writers; whether it was.
    pub(crate) fn ends_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.reader.is_finished() {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }

    /// The output so far.
    pub(crate) fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
