//! Our server in a thread of this process.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use interop::qperf::{self, Event, Limits};

pub struct PeerEnd {
    pub port: u16,
    pub events: Arc<Mutex<Vec<Event>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PeerEnd {
    pub fn at(address: &str, limits: Limits) -> Self {
        let address: SocketAddr = address.parse().unwrap();
        let listeners = qperf::listen(&[address]).unwrap();
        let port = listeners[0].local_addr().unwrap().port();
        let (stop, events) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(vec![])));
        let (theirs, reported) = (stop.clone(), events.clone());
        let thread = std::thread::spawn(move || {
            let on_event = |e| reported.lock().unwrap().push(e);
            qperf::serve(&listeners, &limits, &theirs, &on_event).unwrap();
        });
        Self { port, events, stop, thread: Some(thread) }
    }

    pub fn new(limits: Limits) -> Self {
        Self::at("127.0.0.1:0", limits)
    }

    pub fn target(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The first `n` `Ended` events: test, received, sent. They arrive after the client has its
    /// results.
    pub fn ended(&self, n: usize) -> Vec<(&'static str, u64, u64)> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let all = self.ended_now();
            if all.len() >= n {
                return all;
            }
            assert!(Instant::now() < deadline, "{all:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn ended_now(&self) -> Vec<(&'static str, u64, u64)> {
        let events = self.events.lock().unwrap();
        let one = |e: &Event| match e {
            Event::Ended { test, received, sent, .. } => Some((*test, *received, *sent)),
            _ => None,
        };
        events.iter().filter_map(one).collect()
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}
