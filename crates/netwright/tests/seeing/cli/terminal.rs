//! Tests of what only a terminal gets, and of the width of lines.

use std::{
    fs,
    io::Read,
    os::fd::FromRawFd,
    process::{Command, Stdio},
    time::{Duration, Instant},
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

/// Whoever types `doctor` sees at once that it works, then what the settings say, and after the window the report.
/// The bounds leave seconds to a busy machine; only the order and the window are exact.
#[test]
fn doctor_shows_a_first_line_long_before_its_report_and_ends_by_itself() {
    const WINDOW: Duration = Duration::from_secs(5);
    let shown = shown_on_terminal(&["doctor", "--no-store"], &[("NO_COLOR", "1")]);
    let at = |what: &str| {
        let mut text = String::new();
        let chunk = shown.iter().find(|(_, chunk)| {
            text.push_str(chunk);
            text.contains(what)
        });
        chunk.unwrap_or_else(|| panic!("no {what:?} in {text:?}")).0
    };
    let reading = at("reading this host's settings [");
    let look = at("First look: ");
    let watching = at("watching for 5");
    let report = at("goal: throughput");
    assert!(reading <= look && look <= watching, "{reading:?} {look:?} {watching:?}");
    assert!(reading < WINDOW, "the first line came after {reading:?}");
    assert!(look + WINDOW.mul_f64(0.8) < report, "{look:?} {report:?}");
    // Neither in a pipe, nor with --quiet.
    let quiet = on_terminal(&["doctor", "--quiet", "--no-store", "--window", "100ms"], &[]);
    let piped = run(NETWRIGHT, &["doctor", "--no-store", "--window", "100ms"]);
    assert!(!quiet.contains("First look") && !piped.contains("First look"), "{quiet}{piped}");
}

/// Runs it with a terminal as standard output and error; returns the terminal's output.
fn on_terminal(args: &[&str], env: &[(&str, &str)]) -> String {
    shown_on_terminal(args, env).into_iter().map(|(_, chunk)| chunk).collect()
}

/// As [`on_terminal`], in pieces: each with the time since the start.
fn shown_on_terminal(args: &[&str], env: &[(&str, &str)]) -> Vec<(Duration, String)> {
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
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    // After the child has ended nothing holds the terminal, and reading ends with EIO.
    drop((command, tty));
    let (mut seen, mut chunks) = (Vec::new(), Vec::new());
    let mut buffer = [0; 4096];
    while let Ok(n) = screen.read(&mut buffer) {
        if n == 0 {
            break;
        }
        seen.extend(&buffer[..n]);
        // A character may be cut in two: what is whole is shown.
        let whole = match std::str::from_utf8(&seen) {
            Ok(_) => seen.len(),
            Err(e) => e.valid_up_to(),
        };
        let rest = seen.split_off(whole);
        chunks.push((
            begun.elapsed(),
            String::from_utf8(std::mem::replace(&mut seen, rest)).unwrap(),
        ));
    }
    assert!(child.wait().unwrap().success(), "{chunks:?}");
    assert!(seen.is_empty(), "no text: {seen:?}");
    chunks
}
