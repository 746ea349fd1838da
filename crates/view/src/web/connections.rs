//! The open connections, and their bounds.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Shutdown, TcpStream},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The most connections without a stream: their requests are read, or a page is written. One more
/// ends the oldest of them, so that slow clients cannot keep others out.
const MOST_REQUESTS: usize = 32;
/// The most streams of events.
const MOST_STREAMS: usize = 32;

#[derive(Debug, Default)]
pub struct Connections {
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    /// By number, so that the first is the oldest.
    open: BTreeMap<u64, TcpStream>,
    /// Those of `open` that are streams of events.
    streams: BTreeSet<u64>,
}

impl Connections {
    /// A new connection's number; `None` where its socket cannot be used.
    pub fn enter(&self, stream: &TcpStream) -> Option<u64> {
        let copy = stream.try_clone().ok()?;
        let mut inside = self.lock();
        if inside.open.len() - inside.streams.len() >= MOST_REQUESTS {
            let oldest = inside.open.iter().find(|(id, _)| !inside.streams.contains(id));
            // Its thread sees the end, and leaves.
            oldest.map(|(_, stream)| stream.shutdown(Shutdown::Both));
            let oldest = oldest.map(|(id, _)| *id);
            oldest.map(|id| inside.open.remove(&id));
        }
        let id = inside.next;
        inside.next += 1;
        inside.open.insert(id, copy);
        Some(id)
    }

    /// Makes a connection a stream of events; whether there was room.
    pub fn become_stream(&self, id: u64) -> bool {
        let mut inside = self.lock();
        let room = inside.streams.len() < MOST_STREAMS && inside.open.contains_key(&id);
        if room {
            inside.streams.insert(id);
        }
        room
    }

    pub fn leave(&self, id: u64) {
        let mut inside = self.lock();
        inside.open.remove(&id);
        inside.streams.remove(&id);
    }

    /// Waits until all have left, then ends the others.
    pub fn end(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.lock().open.is_empty() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        for stream in self.lock().open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // Each change of the maps is complete when a panic unlocks them.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_slow_request_makes_room_and_a_stream_stays() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let all = Connections::default();
        let clients: Vec<TcpStream> = (0..MOST_REQUESTS + 2)
            .map(|_| {
                let client = TcpStream::connect(address).unwrap();
                let id = all.enter(&listener.accept().unwrap().0).unwrap();
                if id == 0 {
                    assert!(all.become_stream(id));
                }
                client
            })
            .collect();
        let open: Vec<u64> = all.lock().open.keys().copied().collect();
        assert_eq!(open.len(), MOST_REQUESTS + 1, "the stream, and the most requests");
        assert_eq!(open[..2], [0, 2], "the oldest request had to go");
        assert!(!all.become_stream(1), "it is closed");
        drop(clients);
        for id in open {
            all.leave(id);
        }
        assert!(all.lock().streams.is_empty());
    }

    #[test]
    fn streams_have_a_bound() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let all = Connections::default();
        let became = |_| all.become_stream(all.enter(&stream).unwrap());
        assert_eq!((0..2 * MOST_STREAMS).map(became).filter(|b| *b).count(), MOST_STREAMS);
    }
}
