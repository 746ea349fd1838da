//! The operator's answers: one line each, which Ctrl-C does not wait for.

use std::{
    os::fd::RawFd,
    sync::atomic::{AtomicBool, Ordering},
};

/// How long it is between looks for Ctrl-C, in ms.
const LOOK_MS: libc::c_int = 100;

/// Reads answers, byte by byte: what is read ahead would not be seen by poll(2).
pub struct Answers {
    from: RawFd,
    over: bool,
}

impl Answers {
    /// From the standard input.
    pub fn of_operator() -> Self {
        Self { from: libc::STDIN_FILENO, over: false }
    }

    /// Whether there are no more.
    pub fn over(&self) -> bool {
        self.over
    }

    /// Whether the next answer is yes. An end of the input is a no, to all further questions too;
    /// `stop` is one to this.
    pub fn yes(&mut self, stop: &AtomicBool) -> bool {
        let mut line = Vec::new();
        while !self.over && !stop.load(Ordering::Relaxed) {
            let mut byte = 0u8;
            match self.read(&mut byte) {
                None => continue,
                Some(1) if byte == b'\n' => break,
                Some(1) => line.push(byte),
                Some(_) => {
                    self.over = true;
                    return false;
                }
            }
        }
        let stopped = stop.load(Ordering::Relaxed);
        !stopped && matches!(line.trim_ascii(), b"y" | b"Y" | b"yes")
    }

    /// How many bytes were read, below 1 at the end; `None` where there is nothing yet.
    fn read(&self, byte: &mut u8) -> Option<isize> {
        let mut poll = libc::pollfd { fd: self.from, events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, and one byte, both ours for the time of the calls.
        unsafe {
            if libc::poll(&mut poll, 1, LOOK_MS) < 1 {
                return None;
            }
            Some(libc::read(self.from, std::ptr::from_mut(byte).cast(), 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        os::fd::AsRawFd,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn each_line_is_an_answer_and_an_end_is_no_to_all() {
        let (reads, mut writes) = std::io::pipe().unwrap();
        let mut answers = Answers { from: reads.as_raw_fd(), over: false };
        let never = AtomicBool::new(false);
        writes.write_all(b"y\nno\n yes \ny").unwrap();
        drop(writes);
        assert_eq!(
            [answers.yes(&never), answers.yes(&never), answers.yes(&never)],
            [true, false, true]
        );
        assert!(!answers.over());
        assert!(!answers.yes(&never) && answers.over() && !answers.yes(&never));
    }

    #[test]
    fn who_presses_ctrl_c_at_the_question_is_not_waited_for() {
        let (reads, _writes) = std::io::pipe().unwrap();
        let mut answers = Answers { from: reads.as_raw_fd(), over: false };
        let (began, stop) = (Instant::now(), AtomicBool::new(false));
        let said = std::thread::scope(|threads| {
            let said = threads.spawn(|| answers.yes(&stop));
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
            said.join().unwrap()
        });
        assert!(!said && began.elapsed() < Duration::from_secs(10));
    }
}
