//! Traffic loops in threads of this process, which count their work.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{JoinHandle, sleep},
    time::{Duration, Instant},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficKind {
    /// 64-byte datagrams to a socket that is never read: each is a softirq, with little else.
    Udp,
    /// A stream at full speed.
    Stream,
    /// A byte back and forth, both ends on one CPU.
    Rtt,
}

impl TrafficKind {
    /// The name of the load for `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Stream => "stream",
            Self::Rtt => "rtt",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Udp => "UDP 64 bytes, sends a CPU second",
            Self::Stream => "TCP stream, bytes a CPU second",
            Self::Rtt => "TCP 1 byte there and back, trips a CPU second",
        }
    }
}

/// The work and the CPU time of the loops.
#[derive(Default)]
struct Counts {
    done: AtomicU64,
    stop: AtomicBool,
}

pub struct Traffic {
    pub kind: TrafficKind,
    counts: Arc<Counts>,
    clocks: Vec<libc::clockid_t>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Traffic {
    /// Starts the loops on loopback.
    pub fn start(kind: TrafficKind) -> io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let mut traffic = Self { kind, counts, clocks: vec![], threads: vec![] };
        match kind {
            TrafficKind::Udp => {
                let to = UdpSocket::bind("127.0.0.1:0")?;
                let from = UdpSocket::bind("127.0.0.1:0")?;
                from.connect(to.local_addr()?)?;
                traffic.add(0, move |counts| {
                    let _unread = &to;
                    while !counts.stop.load(Relaxed) {
                        from.send(&[7; 64])?;
                        counts.done.fetch_add(1, Relaxed);
                    }
                    Ok(())
                });
            }
            TrafficKind::Stream => {
                let (mut local, mut peer) = connected()?;
                traffic.add(0, move |counts| {
                    let block = vec![7; 65_536];
                    while !counts.stop.load(Relaxed) {
                        local.write_all(&block)?;
                    }
                    Ok(())
                });
                traffic.add(1, move |counts| {
                    let mut block = vec![0; 65_536];
                    loop {
                        let n = peer.read(&mut block)?;
                        if n == 0 {
                            return Ok(());
                        }
                        counts.done.fetch_add(n as u64, Relaxed);
                    }
                });
            }
            TrafficKind::Rtt => {
                let (mut local, mut peer) = connected()?;
                traffic.add(0, move |counts| {
                    let mut byte = [7];
                    while !counts.stop.load(Relaxed) {
                        local.write_all(&byte)?;
                        local.read_exact(&mut byte)?;
                        counts.done.fetch_add(1, Relaxed);
                    }
                    Ok(())
                });
                traffic.add(0, move |_| {
                    let mut byte = [0];
                    while peer.read(&mut byte)? == 1 {
                        peer.write_all(&byte)?;
                    }
                    Ok(())
                });
            }
        }
        sleep(Duration::from_millis(200));
        Ok(traffic)
    }

    fn add(&mut self, cpu: usize, body: impl FnOnce(&Counts) -> io::Result<()> + Send + 'static) {
        let counts = Arc::clone(&self.counts);
        let (tell, reported) = std::sync::mpsc::channel();
        self.threads.push(std::thread::spawn(move || {
            let mut clock = 0;
            // SAFETY: plain system calls on variables of ours.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(cpu, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
                libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock);
            }
            let _ = tell.send(clock);
            body(&counts)
        }));
        self.clocks.extend(reported.recv());
    }

    /// Work per second of these threads' CPU time. Other processes' CPU time does not affect it;
    /// softirqs and programs in them do.
    pub fn rate(&mut self, window: Duration) -> f64 {
        let (done, ns) = (self.counts.done.load(Relaxed), self.cpu_ns());
        let until = Instant::now() + window;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            sleep(left);
        }
        let (done, ns) = (self.counts.done.load(Relaxed) - done, self.cpu_ns() - ns);
        done as f64 / (ns as f64 / 1e9)
    }

    fn cpu_ns(&self) -> u64 {
        let one = |clock: &libc::clockid_t| {
            let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the kernel writes to a variable of ours.
            unsafe { libc::clock_gettime(*clock, &raw mut t) };
            t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
        };
        self.clocks.iter().map(one).sum()
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.counts.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let local = TcpStream::connect(listener.local_addr()?)?;
    let (peer, _) = listener.accept()?;
    local.set_nodelay(true)?;
    peer.set_nodelay(true)?;
    Ok((local, peer))
}
