//! The live view for browsers, or a page of metrics for scrapers: a server that only reads.
//!
//! [`WebServer::tell`] hands an interval over and never waits for a browser. Each connection has a
//! thread, which takes the newest interval when it has written the one before.

mod connection;
mod connections;
mod head;
mod news;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use model::watch::{WatchHost, WatchRecord};
use page::live::Live;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::{connections::Connections, head::Site, news::News};
use crate::error::{Result, ViewError};

/// How often an end is noticed while nobody connects.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How long the threads may take to say the end.
const GOODBYE: Duration = Duration::from_millis(500);

/// A socket that listens; browsers wait until [`Listening::serve`].
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

/// Makes the page of metrics for the `Accept` header of a request.
pub type Metrics = Box<dyn Fn(&str) -> MetricsPage + Send + Sync>;

/// A page of metrics.
#[derive(Debug, Clone)]
pub struct MetricsPage {
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    pub text: String,
}

/// Intervals for browsers, or figures for scrapers.
enum Content {
    Watch(Box<News>),
    Metrics(Metrics),
}

impl Content {
    fn news(&self) -> Option<&News> {
        match self {
            Self::Watch(news) => Some(news),
            Self::Metrics(_) => None,
        }
    }

    fn site(&self) -> Site {
        match self {
            Self::Watch(_) => Site::Watch,
            Self::Metrics(_) => Site::Metrics,
        }
    }
}

/// What every connection shares.
struct Shared {
    /// The key that a client must know; `None` where every client is served.
    key: Option<String>,
    content: Content,
    connections: Connections,
    stop: AtomicBool,
}

/// The running server; dropping it tells every browser the end.
pub struct WebServer {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Listening {
    /// Listens on an address. Port 0 takes a free port.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let failed = |e| ViewError::Listen(address, e);
        let listener = TcpListener::bind(address).map_err(failed)?;
        // The thread that accepts looks for the end meanwhile.
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// The address with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves this host, or a recording. With a key only clients that know it.
    ///
    /// # Errors
    /// The kernel refused to start a thread.
    pub fn serve(self, host: WatchHost, recorded: bool, key: Option<String>) -> Result<WebServer> {
        self.begin(Content::Watch(Box::new(News::new(Live::new(host, recorded)))), key)
    }

    /// Serves a page of metrics, at `/metrics`. With a key only clients that know it.
    ///
    /// # Errors
    /// The kernel refused to start a thread.
    pub fn serve_metrics(self, metrics: Metrics, key: Option<String>) -> Result<WebServer> {
        self.begin(Content::Metrics(metrics), key)
    }

    fn begin(self, content: Content, key: Option<String>) -> Result<WebServer> {
        let shared = Arc::new(Shared {
            key,
            content,
            connections: Connections::default(),
            stop: AtomicBool::new(false),
        });
        let with = shared.clone();
        let accepting = thread::Builder::new()
            .name("nw-web".into())
            .spawn(move || accept(&self.listener, &with))
            .map_err(ViewError::Thread)?;
        Ok(WebServer { shared, accepting: Some(accepting) })
    }
}

impl WebServer {
    /// Hands an interval over to the browsers; waits for none of them.
    pub fn tell(&self, record: &WatchRecord) {
        if let Some(news) = self.shared.content.news() {
            news.add(record);
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(news) = self.shared.content.news() {
            news.wake();
        }
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        self.shared.connections.end(GOODBYE);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        let _ = poll(&mut ready, Some(&LOOK));
        match listener.accept() {
            Ok((stream, _)) => {
                let Some(id) = shared.connections.enter(&stream) else { continue };
                let with = shared.clone();
                let serve = move || {
                    // A client that goes away is no failure.
                    let _ = connection::serve(id, stream, &with);
                    with.connections.leave(id);
                };
                let thread = thread::Builder::new().name("nw-web".into()).stack_size(256 << 10);
                if thread.spawn(serve).is_err() {
                    shared.connections.leave(id);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            // No descriptors are left, or the client has gone: the next one may be served.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}
