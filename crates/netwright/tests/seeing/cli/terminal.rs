//! Tests of what only a terminal gets, and of the width of lines.

use std::{
    fs,
    io::Read,
    os::fd::FromRawFd,
    process::{Command, Stdio},
};

use crate::support::{NETWRIGHT, run};

#[test]
fn colour_and_progress_are_for_terminals_only() {
    let esc = |text: &str| text.contains('\x1b');
    assert!(!esc(&run(NETWRIGHT, &["doctor", "--window", "100ms"])));
    let plain = on_terminal(&["inspect", "host"], &[("NO_COLOR", "1")]);
    assert!(!esc(&plain), "NO_COLOR: {plain:?}");
    let inked = on_terminal(&["inspect", "host"], &[]);
    assert!(esc(&inked), "no colour on a terminal: {inked:?}");
    assert!(!esc(&on_terminal(&["inspect", "host"], &[("TERM", "dumb")])));
    let progress = on_terminal(&["doctor", "--window", "300ms"], &[("NO_COLOR", "1")]);
    assert!(progress.contains("watching for 300 ms"), "{progress:?}");
    let quiet = on_terminal(&["doctor", "--quiet", "--window", "300ms"], &[("NO_COLOR", "1")]);
    assert!(!quiet.contains("watching"), "{quiet:?}");
    let json = on_terminal(&["schema", "doctor"], &[]);
    assert!(!esc(&json), "a document is never coloured");
}

#[test]
fn lines_keep_to_the_width_asked_for() {
    for width in ["60", "80", "132"] {
        let out = Command::new(NETWRIGHT).arg("inspect").env("COLUMNS", width).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let most: usize = width.parse().unwrap();
        for line in text.lines() {
            let one_word = line.trim().split(' ').count() == 1;
            assert!(line.chars().count() <= most || one_word, "{width}: {line:?}");
        }
    }
}

/// Runs it with a terminal as standard output and error; returns the terminal's output.
fn on_terminal(args: &[&str], env: &[(&str, &str)]) -> String {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: fills two descriptors; no name, no settings.
    let made = unsafe {
        libc::openpty(
            &mut master,
            &mut slave,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(made, 0, "no terminal: {}", std::io::Error::last_os_error());
    // SAFETY: both are ours and each is given away once.
    let (mut screen, tty) =
        unsafe { (fs::File::from_raw_fd(master), fs::File::from_raw_fd(slave)) };
    let mut command = Command::new(NETWRIGHT);
    command.args(args).env_remove("NO_COLOR").env("TERM", "xterm");
    command.envs(env.iter().copied());
    command.stdout(tty.try_clone().unwrap()).stderr(tty.try_clone().unwrap()).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    // After the child has ended nothing holds the terminal, and reading ends with EIO.
    drop((command, tty));
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n) = screen.read(&mut buffer) {
        if n == 0 {
            break;
        }
        seen.extend(&buffer[..n]);
    }
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&seen));
    String::from_utf8(seen).unwrap()
}
