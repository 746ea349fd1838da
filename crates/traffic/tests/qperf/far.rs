//! Our far end in a thread of this process.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use traffic::qperf::{self, Event, Limits};

pub struct Far {
    pub port: u16,
    pub events: Arc<Mutex<Vec<Event>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Far {
    pub fn at(address: &str, limits: Limits) -> Self {
        let address: SocketAddr = address.parse().unwrap();
        let listener = qperf::listen(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, events) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(vec![])));
        let (theirs, told) = (stop.clone(), events.clone());
        let thread = std::thread::spawn(move || {
            let on_event = |e| told.lock().unwrap().push(e);
            qperf::serve(&[listener], &limits, &theirs, &on_event).unwrap();
        });
        Self { port, events, stop, thread: Some(thread) }
    }

    pub fn new(limits: Limits) -> Self {
        Self::at("127.0.0.1:0", limits)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The `Ended` events: test, received, sent.
    pub fn ended(&self) -> Vec<(&'static str, u64, u64)> {
        let events = self.events.lock().unwrap();
        let one = |e: &Event| match e {
            Event::Ended { test, received, sent, .. } => Some((*test, *received, *sent)),
            _ => None,
        };
        events.iter().filter_map(one).collect()
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}
