//! What a child says, read while it runs; also where somebody else keeps the pipe open after it.

use std::{
    io::Read,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Of what a workload prints, so much is kept.
pub(crate) const MOST_BYTES: usize = 64 << 20;

/// How often an end is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// A pipe that is being read.
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
                // What comes after the most is read and dropped, so that nobody waits for a full pipe.
                let room = MOST_BYTES.saturating_sub(kept.len()).min(n);
                kept.extend_from_slice(piece.get(..room).unwrap_or_default());
            }
        })?;
        Ok(Self { bytes, reader })
    }

    /// Whether nobody has the other end any more, after this time at most.
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

    /// What was said until now.
    pub(crate) fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
