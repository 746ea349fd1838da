//! The far end that the network alone is measured with: as given, or a child of ours on this
//! host, which ends with us.

use std::{
    fs::{self, DirBuilder},
    io::{BufRead, BufReader},
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use traffic::Secret;

use crate::exit::Failure;

/// A far end.
#[derive(Debug)]
pub struct Responder {
    /// Where it listens.
    pub target: String,
    /// What it demands.
    pub secret: Option<Secret>,
    child: Option<Child>,
    /// The folder of its Unix socket.
    folder: Option<Folder>,
}

/// A folder that only we may look into, removed with what is in it.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let all = (0..100).map(|n| {
            let name = format!("netwright-explain-{}-{n}", std::process::id());
            std::env::temp_dir().join(name)
        });
        let mut last = None;
        // One that is there already belongs to somebody else, whoever made it.
        for path in all {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) => last = Some(e),
            }
        }
        Err(last.unwrap_or_else(|| std::io::ErrorKind::AlreadyExists.into()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Responder {
    /// One that runs already.
    pub fn given(target: String, secret: Option<Secret>) -> Self {
        Self { target, secret, child: None, folder: None }
    }

    /// Starts one on an address of this host.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(address: &str) -> Result<Self, Failure> {
        Self::child(&["--port", "0", "--bind", address], address)
    }

    /// Starts one on a Unix socket in a folder of its own.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_on_unix_socket() -> Result<Self, Failure> {
        let no = |e| Failure::Environment(format!("cannot make a folder for a socket: {e}"));
        let folder = Folder::new().map_err(no)?;
        let path = folder.0.join("socket").display().to_string();
        let mut this = Self::child(&["--unix", &path], &path)?;
        this.folder = Some(folder);
        Ok(this)
    }

    fn child(args: &[&str], place: &str) -> Result<Self, Failure> {
        let no = |why: String| {
            Failure::Environment(format!("cannot start a responder on {place}: {why}"))
        };
        let program = std::env::current_exe().map_err(|e| no(e.to_string()))?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--json", "--quiet"])
            .args(args)
            .env_remove("NETWRIGHT_SECRET")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Ctrl-C is for us: the round under way shall end well.
            .process_group(0);
        // SAFETY: between fork and exec only this system call is made.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(|e| no(e.to_string()))?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line).map_err(|e| no(e.to_string()))?;
        }
        // From here on it ends whatever happens.
        let mut this = Self::given(String::new(), None);
        this.child = Some(child);
        let said: serde_json::Value =
            serde_json::from_str(&line).map_err(|_| no("it says nothing".into()))?;
        let listens = said.pointer("/addresses/0").and_then(|a| a.as_str());
        this.target = listens.ok_or_else(|| no("it listens nowhere".into()))?.to_owned();
        this.secret = said["secret"].as_str().map(Secret::new).transpose()?;
        Ok(this)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
