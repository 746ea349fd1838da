//! A path of our own: a TAP device in each of two namespaces, and this process between them. The
//! kernel gives it super-frames with partial checksums, as it would give them to a card.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::OpenOptionsExt,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{
    card::{Lie, Way},
    frame::{Frame, HEADER, Header},
};
use crate::support::{NETWRIGHT, Namespace, run, serve::Serve};

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const IFF_TAP: u16 = 0x0002;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
/// Checksums, TSO over IPv4, USO (the kernel takes it for both families only).
const OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x20 | 0x40;
/// As a card moderates its interrupts: packets of one burst are handled together.
const MODERATION: Duration = Duration::from_micros(80);

/// Two hosts with a card each.
pub struct Path {
    // Dropped first, as it runs on one of the hosts.
    pub serve: Serve,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    pub client: Namespace,
    _server: Namespace,
}

impl Path {
    /// The path, whose cards lie in each direction as given.
    pub fn new(forward: Lie, reverse: Lie) -> Self {
        let (client, server) = (Namespace::new(), Namespace::new());
        let (a, b) = (tap(&client, "10.98.0.1/24"), tap(&server, "10.98.0.2/24"));
        let stop = Arc::new(AtomicBool::new(false));
        let threads = [(&a, &b, forward), (&b, &a, reverse)].map(|(from, to, lie)| {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let stop = stop.clone();
            std::thread::spawn(move || carry(from, to, Way::new(lie), &stop))
        });
        let mut serve = std::process::Command::new("ip");
        serve.args(["netns", "exec", &server.name, NETWRIGHT, "serve", "--json", "--port", "0"]);
        serve.args(["--bind", "10.98.0.2", "--open"]).stderr(std::process::Stdio::null());
        let serve = Serve::of(serve);
        Self { serve, stop, threads: threads.into(), client, _server: server }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|t| t.join().unwrap());
    }
}

/// A TAP device `wire0` with the offloads of a card.
fn tap(host: &Namespace, address: &str) -> File {
    let name = format!("/run/netns/{}", host.name);
    // A namespace belongs to a thread.
    let file = std::thread::spawn(move || {
        let netns = File::open(name).unwrap();
        rustix::thread::move_into_link_name_space(
            netns.as_fd(),
            Some(rustix::thread::LinkNameSpaceType::Network),
        )
        .unwrap();
        let tun = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .unwrap();
        let mut request = [0u8; 40];
        request[..5].copy_from_slice(b"wire0");
        request[16..18].copy_from_slice(&(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR).to_ne_bytes());
        // SAFETY: a `struct ifreq` that outlives the call, then a number.
        unsafe {
            assert_eq!(libc::ioctl(tun.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()), 0);
            assert_eq!(libc::ioctl(tun.as_raw_fd(), TUNSETOFFLOAD, OFFLOADS), 0);
        }
        tun
    });
    let file = file.join().unwrap();
    run("ip", &["-n", &host.name, "address", "add", address, "dev", "wire0"]);
    run("ip", &["-n", &host.name, "link", "set", "wire0", "up"]);
    file
}

fn carry(mut from: File, mut to: File, mut way: Way, stop: &AtomicBool) {
    let mut room = vec![0u8; 70_000];
    while !stop.load(Ordering::Relaxed) {
        let mut one = [libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        // SAFETY: one descriptor that outlives the call.
        if unsafe { libc::poll(one.as_mut_ptr(), 1, 50) } < 1 {
            continue;
        }
        std::thread::sleep(MODERATION);
        let mut sent = vec![];
        while let Ok(n) = from.read(&mut room) {
            let (header, bytes) = room[..n].split_at(HEADER);
            sent.push((Header::read(header), Frame { bytes: bytes.to_vec() }));
        }
        for (header, frame) in way.carry(sent) {
            // The other device may be down at the end of a test.
            let _ = to.write(&[header.bytes(), frame.bytes].concat());
        }
    }
}
