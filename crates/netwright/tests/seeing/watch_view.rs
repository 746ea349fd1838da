//! Tests of the live view in a real terminal: it draws, obeys keys, and always restores the
//! terminal. Its pictures are tested beside its code.

use std::{
    fs::File,
    io::{Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd},
        unix::process::ExitStatusExt,
    },
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::support::{NETWRIGHT, run};

/// A netwright with a terminal of 24 lines of 80.
struct View {
    child: Child,
    screen: File,
    /// Our end of the terminal, which keeps it alive.
    tty: File,
    seen: Arc<Mutex<Vec<u8>>>,
    before: libc::termios,
}

/// The sequence that ends the alternate screen.
const LEAVES: &str = "\x1b[?1049l";

/// Written by the test after the program has ended.
const END: &[u8] = b"<end of output>";

/// The screen after these bytes: the part of a terminal that ratatui uses (text, "go to", "clear").
fn shown(text: &str) -> String {
    let mut screen = vec![vec![' '; 80]; 24];
    let (mut y, mut x) = (0, 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\x1b' {
            if let Some(cell) = screen.get_mut(y).and_then(|row: &mut Vec<char>| row.get_mut(x)) {
                *cell = c;
            }
            x += 1;
            continue;
        }
        if chars.next_if_eq(&'[').is_none() {
            continue;
        }
        let mut numbers = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_ascii_alphabetic()) {
            numbers.push(c);
        }
        match chars.next() {
            Some('H') => {
                let mut at = numbers.split(';').map(|n| n.parse().unwrap_or(1_usize) - 1);
                (y, x) = (at.next().unwrap_or(0), at.next().unwrap_or(0));
            }
            Some('J') => screen.iter_mut().for_each(|row| row.fill(' ')),
            _ => {}
        }
    }
    screen.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned() + "\n").collect()
}

fn settings(tty: &File) -> libc::termios {
    // SAFETY: a zeroed termios is valid; the call fills it.
    unsafe {
        let mut t: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(tty.as_raw_fd(), &mut t), 0);
        t
    }
}

impl View {
    fn start(args: &[&str], env: &[(&str, &str)]) -> Self {
        let (mut master, mut slave) = (0, 0);
        let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: fills two descriptors; no name, no settings.
        let made = unsafe {
            let none = std::ptr::null_mut();
            libc::openpty(&mut master, &mut slave, none, std::ptr::null_mut(), &size)
        };
        assert_eq!(made, 0, "no terminal: {}", std::io::Error::last_os_error());
        // SAFETY: both are ours and each is given away once.
        let (screen, tty) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
        let before = settings(&tty);
        let mut command = Command::new(NETWRIGHT);
        command.args(args).env_remove("NO_COLOR").env("TERM", "xterm").envs(env.iter().copied());
        let end = || Stdio::from(tty.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let seen = Arc::new(Mutex::new(vec![]));
        let (mut from, to) = (screen.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                to.lock().unwrap().extend(&buffer[..n]);
            }
        });
        Self { child, screen, tty, seen, before }
    }

    /// All bytes so far.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// What the terminal shows now, line by line.
    fn shown(&self) -> String {
        shown(&self.text())
    }

    fn wait_for(&self, text: &str) {
        let began = Instant::now();
        while !self.shown().contains(text) {
            let seen = self.shown();
            assert!(began.elapsed() < Duration::from_secs(60), "no {text:?} in\n{seen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn press(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end; the terminal must be restored.
    fn ended(mut self) -> (ExitStatus, String) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        // Its last output is read before this.
        self.tty.write_all(END).unwrap();
        let end = String::from_utf8_lossy(END);
        while !self.text().contains(&*end) {
            assert!(began.elapsed() < Duration::from_secs(60), "the terminal is not read");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(self.text().contains(LEAVES), "it leaves its screen behind");
        let after = settings(&self.screen);
        assert_eq!(
            (self.before.c_lflag, self.before.c_iflag, self.before.c_oflag),
            (after.c_lflag, after.c_iflag, after.c_oflag),
            "the terminal is not as it was"
        );
        let text = self.text().replace(&*end, "");
        let (_, behind) = text.rsplit_once(LEAVES).unwrap();
        assert!(text.contains("\x1b[?25h"), "no cursor");
        (status, behind.to_owned())
    }
}

#[test]
fn it_draws_obeys_keys_and_leaves_by_q() {
    let mut view = View::start(&["watch", "--interval", "100ms"], &[]);
    assert!(view.text().is_empty() || view.text().starts_with("\x1b[?1049h"));
    view.wait_for("watching costs");
    view.press("1");
    view.wait_for("SYSCALL");
    view.press("?");
    view.wait_for("COLUMNS of this table");
    view.press("?");
    view.wait_for("KEYS");
    view.press("xq");
    let (status, behind) = view.ended();
    assert_eq!(status.code(), Some(0), "{behind}");
}

#[test]
fn ctrl_c_sigterm_and_the_end_of_the_time_give_the_terminal_back() {
    let mut view = View::start(&["watch", "--no-bpf"], &[]);
    view.wait_for("watching costs");
    view.press("\x03");
    assert_eq!(view.ended().0.code(), Some(0));
    let view = View::start(&["watch", "--no-bpf"], &[]);
    view.wait_for("watching costs");
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(view.child.id() as libc::pid_t, libc::SIGTERM) };
    let (status, _) = view.ended();
    assert_eq!((status.code(), status.signal()), (Some(0), None));
    let view = View::start(&["watch", "--no-bpf", "--duration", "300ms"], &[]);
    assert_eq!(view.ended().0.code(), Some(0));
}

#[test]
fn a_terminal_is_reported_that_programs_are_being_attached() {
    let args = ["watch", "--plain", "--interval", "100ms", "--duration", "100ms"];
    let mut view = View::start(&args, &[]);
    assert!(view.child.wait().unwrap().success());
    let began = Instant::now();
    while !view.text().contains("watching costs") {
        assert!(began.elapsed() < Duration::from_secs(60), "no interval in {}", view.text());
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = view.text();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}"));
    assert!(at("netwright: attaching ...") < at("programs attached after"), "{text}");
    assert!(at("programs attached after") < at("watching costs"), "{text}");
}

#[test]
fn no_color_means_none() {
    let mut view = View::start(&["watch", "--no-bpf"], &[("NO_COLOR", "1")]);
    view.wait_for("watching costs");
    view.press("q");
    let seen = view.text();
    // Resets (39, 49) are no colours.
    for code in (30..38).chain(90..98) {
        assert!(!seen.contains(&format!("\x1b[{code}m")), "colour {code}: {seen:?}");
    }
    assert!(!seen.contains("\x1b[38;"), "{seen:?}");
    view.ended();
}

#[test]
fn what_is_watched_is_recorded_and_a_replay_is_seeked_in() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.zst").display().to_string();
    let args =
        ["watch", "--no-bpf", "--interval", "100ms", "--duration", "600ms", "--record", &file];
    assert_eq!(View::start(&args, &[]).ended().0.code(), Some(0));
    let count = run(NETWRIGHT, &["watch", "--json", "--replay", &file]).lines().count();
    assert_eq!(count, 6, "a replay reads every interval that was watched");
    let mut view = View::start(&["watch", "--replay", &file], &[]);
    view.wait_for("REPLAY");
    view.press("\x1b[F");
    view.wait_for("6/6 PAUSED");
    view.press("\x1b[H");
    view.wait_for("1/6 PAUSED");
    view.press("q");
    assert_eq!(view.ended().0.code(), Some(0));
}

#[test]
fn a_damaged_recording_is_shown_and_then_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.zst");
    let name = file.display().to_string();
    let args = ["watch", "--json", "--no-bpf", "--duration", "200ms", "--interval", "100ms"];
    run(NETWRIGHT, &[&args[..], &["--record", &name]].concat());
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    let mut view = View::start(&["watch", "--replay", &name], &[]);
    view.wait_for("it was cut off");
    view.press("q");
    let (status, behind) = view.ended();
    assert_eq!(status.code(), Some(4));
    assert!(behind.contains("first 2 intervals were readable"), "{behind:?}");
}
