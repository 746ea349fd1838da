//! One connection: one request, then a page, a stream of events, or metrics.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use page::live;
use rustix::net::{RecvFlags, sockopt};

use super::{
    Content, Metrics, MetricsPage, Shared,
    head::{self, Refusal, Request, Wanted},
    news::News,
};

/// How long a write may wait for the client.
const WRITE: Duration = Duration::from_secs(10);
/// How often an end is looked for between two intervals.
const LOOK: Duration = Duration::from_millis(500);
/// A stream says that it lives at least this often.
const ALIVE: Duration = Duration::from_secs(15);
/// Bytes that wait in the kernel for a slow browser; what waits longer is old.
const SEND_BUFFER: usize = 256 << 10;
/// What is still read of a refused request, so that its client can read the answer.
const LEFT: usize = 1 << 20;

/// Headers of every answer: nothing is kept, framed, guessed or given to other sites.
const SAFE: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
                    X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
                    Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n";

/// Serves one client until it goes, is refused, or the server ends.
pub fn serve(id: u64, mut client: TcpStream, shared: &Shared) -> io::Result<()> {
    // An accepted socket inherits nothing on Linux, but other systems differ.
    client.set_nonblocking(false)?;
    client.set_nodelay(true)?;
    client.set_write_timeout(Some(WRITE))?;
    let request = match head::read(&mut client, shared.content.site(), shared.key.as_deref())? {
        Ok(request) => request,
        Err(refusal) => return refuse(&mut client, refusal),
    };
    match (request.wanted, &shared.content) {
        (Wanted::Page, _) => page(&mut client, request),
        (Wanted::Metrics, Content::Metrics(make)) => metrics(&mut client, &request, make),
        (_, Content::Metrics(_)) | (Wanted::Metrics, _) => {
            refuse(&mut client, Refusal::Nothing(shared.content.site()))
        }
        (Wanted::PageEvents | Wanted::Documents, Content::Watch(news)) => {
            if request.head_only {
                return stream_head(&mut client);
            }
            if !shared.connections.become_stream(id) {
                return refuse(&mut client, Refusal::Full);
            }
            stream(client, request.wanted == Wanted::PageEvents, news, &shared.stop)
        }
    }
}

fn page(client: &mut TcpStream, request: Request) -> io::Result<()> {
    let nonce = nonce()?;
    let body = live::page(&nonce);
    let policy = live::policy(&nonce);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n\
         Content-Security-Policy: {policy}\r\n{SAFE}\r\n"
    );
    client.write_all(head.as_bytes())?;
    if !request.head_only {
        client.write_all(body.as_bytes())?;
    }
    client.shutdown(Shutdown::Write)
}

fn metrics(client: &mut TcpStream, request: &Request, make: &Metrics) -> io::Result<()> {
    let MetricsPage { content_type, text } = make(&request.accept);
    let length = text.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Vary: Accept\r\nContent-Security-Policy: default-src 'none'\r\n{SAFE}\r\n"
    );
    client.write_all(head.as_bytes())?;
    if !request.head_only {
        client.write_all(text.as_bytes())?;
    }
    client.shutdown(Shutdown::Write)
}

/// 128 random bits in hex, new for each page.
fn nonce() -> io::Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

fn refuse(client: &mut TcpStream, refusal: Refusal) -> io::Result<()> {
    if refusal == Refusal::Key {
        // Trying keys is slow.
        thread::sleep(Duration::from_secs(1));
    }
    let (status, why) = refusal.answer();
    let length = why.len() + 1;
    let allow = if refusal == Refusal::Method { "Allow: GET, HEAD\r\n" } else { "" };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Content-Security-Policy: default-src 'none'\r\n{allow}{SAFE}\r\n{why}\n"
    );
    client.write_all(answer.as_bytes())?;
    client.shutdown(Shutdown::Write)?;
    // A socket that is closed with unread bytes would take the answer back.
    client.set_read_timeout(Some(LOOK))?;
    let until = Instant::now() + LOOK;
    let mut read = 0;
    let mut part = [0; 4096];
    while read < LEFT && Instant::now() < until {
        match client.read(&mut part)? {
            0 => break,
            n => read += n,
        }
    }
    Ok(())
}

fn stream_head(client: &mut TcpStream) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{SAFE}\r\n");
    client.write_all(head.as_bytes())
}

/// Writes each interval; a client that is slower than the intervals misses some.
fn stream(mut client: TcpStream, for_page: bool, news: &News, stop: &AtomicBool) -> io::Result<()> {
    sockopt::set_socket_send_buffer_size(&client, SEND_BUFFER)?;
    stream_head(&mut client)?;
    let (hello, mut seen) = news.hello();
    client.write_all(b"retry: 2000\n\n")?;
    if for_page {
        client.write_all(format!("event: hello\ndata: {hello}\n\n").as_bytes())?;
    }
    let mut wrote = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if let Some(item) = news.after(seen, LOOK) {
            seen = item.number;
            let (kind, data) = match for_page {
                true => ("event: interval\n", &item.page),
                false => ("", &item.document),
            };
            client.write_all(format!("id: {seen}\n{kind}data: {data}\n\n").as_bytes())?;
            wrote = Instant::now();
        } else if wrote.elapsed() >= ALIVE {
            client.write_all(b": alive\n\n")?;
            wrote = Instant::now();
        }
        if has_gone(&client) {
            return Ok(());
        }
    }
    client.write_all(b"event: end\ndata: {}\n\n")?;
    client.shutdown(Shutdown::Write)
}

/// Whether the client closed its end, or sends what nobody asked for.
fn has_gone(client: &TcpStream) -> bool {
    let mut byte = [0; 1];
    !matches!(
        rustix::net::recv(client, &mut byte, RecvFlags::DONTWAIT),
        Err(rustix::io::Errno::AGAIN)
    )
}
