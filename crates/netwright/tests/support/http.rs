//! A small HTTP server with a handler of the test, and a real nginx in a temporary folder.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A request as the handler gets it.
pub struct Request {
    /// The head, without the empty line.
    pub head: String,
    pub body: Vec<u8>,
    /// Its number on this connection, from 0.
    pub on_connection: u64,
    /// Its number on this server, from 0.
    pub number: u64,
}

/// Writes a response; returns whether the connection stays open.
pub type Handler = fn(&Request, &mut TcpStream) -> bool;

/// The server; a thread for each connection.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

#[derive(Default)]
pub struct Counts {
    pub requests: AtomicU64,
    /// The number of connections that sent a request.
    pub connections: AtomicU64,
}

/// Writes status 200 with two bytes.
pub fn plain(_: &Request, to: &mut TcpStream) -> bool {
    to.write_all(b"HTTP/1.1 200 OK\r\nServer: test\r\nContent-Length: 2\r\n\r\nok").is_ok()
}

impl Server {
    /// Starts it on a port that the kernel chooses.
    pub fn start(handler: Handler) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let (stopped, counted) = (stop.clone(), counts.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let counts = counted.clone();
                std::thread::spawn(move || connection(stream, handler, &counts));
            }
        });
        Self { address, stop, counts }
    }

    /// The URL of a path: `http://127.0.0.1:PORT/…`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::SeqCst)
    }

    /// The number of connections with a request so far.
    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn connection(mut stream: TcpStream, handler: Handler, counts: &Counts) {
    let _ = stream.set_nodelay(true);
    let Ok(reading) = stream.try_clone() else { return };
    let mut reading = BufReader::new(reading);
    for on_connection in 0.. {
        let Some((head, body)) = request(&mut reading) else { return };
        if on_connection == 0 {
            counts.connections.fetch_add(1, Ordering::SeqCst);
        }
        let number = counts.requests.fetch_add(1, Ordering::SeqCst);
        if !handler(&Request { head, body, on_connection, number }, &mut stream) {
            return;
        }
    }
}

fn request(from: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(n) = line.strip_prefix("Content-Length: ") {
            length = n.trim().parse().ok()?;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    std::io::Read::read_exact(from, &mut body).ok()?;
    Some((head, body))
}

/// A real nginx with the test's configuration, killed when dropped.
pub struct Nginx {
    folder: PathBuf,
    child: Option<Child>,
    port: u16,
    scheme: &'static str,
}

impl Nginx {
    /// Starts one in a folder, with these lines in its `server` block.
    pub fn start(folder: &Path, server: &str) -> Self {
        Self::begin(folder, server, "http", "")
    }

    /// The same with TLS, with `NAME.crt` and `NAME.key` of the folder.
    pub fn start_tls(folder: &Path, name: &str, server: &str) -> Self {
        let at = folder.display();
        let more = format!(
            "ssl_certificate {at}/{name}.crt; ssl_certificate_key {at}/{name}.key; {server}"
        );
        Self::begin(folder, &more, "https", "ssl")
    }

    fn begin(folder: &Path, server: &str, scheme: &'static str, how: &str) -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
        let at = folder.display();
        // Its worker runs as root to read the folder; started by another user it warns and
        // continues.
        let text = format!(
            "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log;\n\
             user root; events {{ worker_connections 512; }}\n\
             http {{ log_format own '$status $request_method $uri $request_time $connection \
             $ssl_protocol $ssl_cipher $ssl_session_reused $ssl_server_name';\n\
             access_log {at}/access.log own;\n\
             client_body_temp_path {at}/body; proxy_temp_path {at}/proxy;\n\
             fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;\n\
             server {{ listen 127.0.0.1:{port} {how}; root {at}; {server} }} }}\n",
        );
        std::fs::write(folder.join("nginx.conf"), text).expect("a folder to write to");
        let mut nginx = Self { folder: folder.to_owned(), child: None, port, scheme };
        nginx.run();
        nginx
    }

    /// Starts it (again) and waits until it listens.
    pub fn run(&mut self) {
        let mut command = Command::new(if Path::new("/usr/sbin/nginx").exists() {
            "/usr/sbin/nginx"
        } else {
            "nginx"
        });
        command.arg("-p").arg(&self.folder).arg("-c").arg(self.folder.join("nginx.conf"));
        let child = command.stderr(Stdio::null()).spawn();
        self.child = Some(child.expect("nginx; `make test-deps` installs it"));
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < until, "nginx does not listen: {}", self.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.folder.join("error.log")).unwrap_or_default()
    }

    /// Stops it as `nginx -s stop` does, and waits for its end.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let pid = i32::try_from(child.id()).expect("a pid");
            // SAFETY: our own child, not waited for yet.
            unsafe { libc::kill(pid, libc::SIGTERM) };
            let _ = child.wait();
        }
    }

    /// The URL of a path: `http://127.0.0.1:PORT/…` or `https://…`.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address())
    }

    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The process id of its worker.
    pub fn worker(&self) -> u32 {
        let master = self.child.as_ref().expect("it runs").id();
        let children = format!("/proc/{master}/task/{master}/children");
        let text = std::fs::read_to_string(children).expect("a master's children");
        text.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("one worker")
    }

    /// The lines of its access log; complete once it is stopped.
    pub fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("access.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}
