//! A real PostgreSQL for a test. `initdb` makes it in a temporary folder, with a Unix socket there
//! and a free port of loopback. Dropping the value stops and removes it.
//!
//! A shell between the test and the server waits for its standard input to end. So the server also
//! ends with a test process that was killed, or that keeps it in a `static`. The next start removes
//! folders that a crash left behind.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// The user id of `nobody` on Debian, as the server refuses to run as root.
const NOBODY: u32 = 65534;

const PREFIX: &str = "nwtest-pg-";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Differences from a server that trusts everybody.
#[derive(Default)]
pub struct Setup<'a> {
    /// Lines of `pg_hba.conf`: `host all all 127.0.0.1/32 scram-sha-256`. Lines that trust the
    /// owner `postgres` precede them. Empty: everybody is trusted.
    pub hba: &'a str,
    /// Further lines for `postgresql.conf`: `ssl = on`, `password_encryption = 'md5'`.
    pub conf: &'a str,
    /// Files for the data folder, readable by the server only: `("server.key", …)`.
    pub files: &'a [(&'a str, &'a str)],
}

pub struct Postgres {
    folder: PathBuf,
    child: Option<Child>,
    /// Its port on 127.0.0.1, also in the name of its Unix socket.
    pub port: u16,
}

impl Postgres {
    /// Makes one that trusts everybody.
    pub fn start() -> Self {
        Self::with(&Setup::default())
    }

    /// Makes a server and waits until it answers.
    pub fn with(setup: &Setup<'_>) -> Self {
        sweep();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("{PREFIX}{}-{n}", std::process::id()));
        fs::create_dir(&folder).expect("a folder for PostgreSQL");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our own folder");
        own(&folder);
        let mut server = Self { folder, child: None, port: 0 };
        server.initialize(setup);
        server.run();
        server
    }

    fn initialize(&self, setup: &Setup<'_>) {
        let data = self.data();
        let mut initdb = unprivileged(&tool("initdb"));
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--no-sync", "--no-instructions", "-D"]).arg(&data);
        done(&mut initdb);
        let conf = format!(
            "listen_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nfsync = off\n\
             synchronous_commit = off\nfull_page_writes = off\nshared_buffers = 32MB\n\
             max_connections = 200\nautovacuum = off\n{}\n",
            self.folder.display(),
            setup.conf,
        );
        let mut file = fs::File::options()
            .append(true)
            .open(data.join("postgresql.conf"))
            .expect("initdb made it");
        file.write_all(conf.as_bytes()).expect("room on the disk");
        if !setup.hba.is_empty() {
            let owner = "local all postgres trust\nhost all postgres 127.0.0.1/32 trust\n";
            fs::write(data.join("pg_hba.conf"), format!("{owner}{}\n", setup.hba))
                .expect("room on the disk");
        }
        for (name, text) in setup.files {
            let path = data.join(name);
            fs::write(&path, text).expect("room on the disk");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our own file");
            own(&path);
        }
    }

    /// Starts it (again) on its port, and waits until it answers.
    pub fn run(&mut self) {
        let first = self.port == 0;
        for _ in 0..5 {
            if first {
                let free = TcpListener::bind("127.0.0.1:0").expect("a port");
                self.port = free.local_addr().expect("it").port();
            }
            if self.listens() {
                return;
            }
            self.stop();
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not start: {log}");
    }

    fn listens(&mut self) -> bool {
        // The end of its standard input stops the server; the folder is removed afterwards.
        let script = "\"$1\" -D \"$2/data\" -p \"$3\" >>\"$2/log\" 2>&1 & \
                      trap '' INT TERM HUP; read -r word; kill -INT $! 2>&-; wait $!; [ -n \"$word\" ] || rm -rf \"$2\"";
        let mut command = unprivileged(Path::new("sh"));
        command.args(["-c", script, "postgres"]).arg(tool("postgres"));
        command.arg(&self.folder).arg(self.port.to_string()).stdin(Stdio::piped());
        self.child = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("sh"));
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            let asked = self.tool("psql").args(["-Atc", "select 1"]).output().expect("psql");
            if asked.status.success() {
                return true;
            }
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            if log.contains("could not create any TCP/IP sockets") {
                let _ = fs::remove_file(self.folder.join("log"));
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Stops it as `pg_ctl stop -m fast` does, and waits for its end.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            if let Some(mut input) = child.stdin.take() {
                let _ = input.write_all(b"stop\n");
            }
            let _ = child.wait();
        }
    }

    /// The URL of this user: `postgres://USER@127.0.0.1:PORT/postgres`.
    pub fn url(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/postgres", self.port)
    }

    /// The folder of its Unix socket and of its `log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its data folder, with `postgresql.conf` and `pg_hba.conf`.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A tool of PostgreSQL (`psql`, `pgbench`) for this server: over its Unix socket and as its
    /// owner, unless the arguments differ.
    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(tool(name));
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("PG") {
                command.env_remove(key);
            }
        }
        command.env("PGHOST", &self.folder).env("PGPORT", self.port.to_string());
        command.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
        command
    }

    /// The result of SQL as the owner: one row per line, `|` between columns. Panics where it
    /// fails.
    pub fn sql(&self, text: &str) -> String {
        let out = done(self.tool("psql").args(["-v", "ON_ERROR_STOP=1", "-XAtqc", text]));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The path of a program of PostgreSQL: of the newest installed version, or in `PATH`.
pub fn tool(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|e| Some((e.file_name().to_str()?.parse::<u32>().ok()?, e.path())))
        .map(|(version, path)| (version, path.join("bin").join(name)))
        .filter(|(_, path)| path.exists())
        .max();
    newest.map_or_else(|| PathBuf::from(name), |(_, path)| path)
}

/// Runs a command to its end; panics with its output if it fails.
fn done(command: &mut Command) -> Output {
    let out = command.output().unwrap_or_else(|e| {
        panic!("{command:?}: {e}; `make test-deps` installs what the tests need")
    });
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    out
}

fn is_root() -> bool {
    // SAFETY: takes nothing, changes nothing.
    unsafe { libc::geteuid() == 0 }
}

fn own(path: &Path) {
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root may give a file away");
    }
}

/// A command that runs as a user that the server accepts.
fn unprivileged(program: &Path) -> Command {
    let mut command;
    if is_root() {
        command = Command::new("setpriv");
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}")]);
        command.arg("--clear-groups").arg(program);
    } else {
        command = Command::new(program);
    }
    command.current_dir("/").env("LC_ALL", "C");
    command
}

/// Removes the folders of test processes that have ended.
fn sweep() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(PREFIX).and_then(|r| r.split('-').next()) else {
            continue;
        };
        let path = entry.path();
        let server = fs::read_to_string(path.join("data/postmaster.pid")).unwrap_or_default();
        let lives = |pid: &str| Path::new("/proc").join(pid).exists();
        if !lives(pid) && !server.lines().next().is_some_and(lives) {
            let _ = fs::remove_dir_all(path);
        }
    }
}
