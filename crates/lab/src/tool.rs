//! External programs of a lab: iproute2, ethtool, QEMU. Each runs to its end; errors include its
//! own output.

use std::{
    fs::File,
    process::{Command, Output, Stdio},
    sync::{Mutex, PoisonError},
};

use crate::LabError;

static OWNER: Mutex<Option<File>> = Mutex::new(None);

/// Gives this file to the programs that make something, as their standard input: its lock lasts
/// until the last of them has ended.
pub(crate) fn share_lock(file: File) {
    *OWNER.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
}

/// Standard input for a program that reads none.
fn stdin_owner() -> Stdio {
    let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    owner.as_ref().and_then(|f| f.try_clone().ok()).map_or_else(Stdio::null, Stdio::from)
}

/// Which Debian package brings a program.
const PACKAGES: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("ethtool", "ethtool"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("qemu-system-aarch64", "qemu-system-arm"),
    ("busybox", "busybox-static"),
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
];

/// The package of a program; by default the program's name.
pub fn package_of(program: &str) -> &str {
    PACKAGES.iter().find(|(p, _)| *p == program).map_or(program, |(_, package)| package)
}

/// A command, also found if root's PATH lacks the `sbin` directories.
pub fn command(program: &str) -> Command {
    let mut c = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    c.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
    c.stdin(Stdio::null());
    c
}

/// A command that waits before exec until [`crate::Lab::release`] has recorded its PID; it exits if
/// the process that started it dies first.
pub fn command_after_release(program: &str) -> Command {
    let mut c = command("sh");
    c.args(["-c", "read -r _ && exec \"$@\" </dev/null", "sh", program]).stdin(Stdio::piped());
    c
}

/// Runs a program to its end; a failure of it is no error.
///
/// # Errors
/// [`LabError::Missing`]: the program is not installed.
pub fn output(program: &str, args: &[&str]) -> Result<Output, LabError> {
    let mut command = command(program);
    if matches!(program, "ip" | "tc" | "ethtool") {
        command.stdin(stdin_owner());
    }
    command.args(args).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            LabError::Missing { tool: program.to_owned(), package: package_of(program).to_owned() }
        }
        _ => LabError::failed(format!("running {program}"), e),
    })
}

/// Runs a program that must succeed; returns its standard output.
///
/// # Errors
/// The program's error output.
pub fn run(program: &str, args: &[&str]) -> Result<String, LabError> {
    let out = output(program, args)?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&out.stderr);
    let last = said.lines().map(str::trim).rfind(|l| !l.is_empty()).unwrap_or("no message");
    Err(LabError::failed(
        format!("{program} {}", args.join(" ")),
        format!("{last} ({})", out.status),
    ))
}

/// Runs `ip ARGS`, split at blanks.
///
/// # Errors
/// As [`run`].
pub fn ip(args: &str) -> Result<String, LabError> {
    run("ip", &args.split_whitespace().collect::<Vec<_>>())
}

/// Fails unless this process runs as root.
///
/// # Errors
/// [`LabError::NeedsRoot`] for other users.
pub fn needs_root() -> Result<(), LabError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LabError::NeedsRoot) }
}
