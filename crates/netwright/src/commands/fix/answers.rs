//! Reads the operator's answers, a line each. Ctrl-C does not wait for them.

use std::{
    io::Stdin,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often the wait for an answer checks for Ctrl-C.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Reads answers byte by byte: poll(2) would not see bytes that were read ahead.
pub struct Answers<F = Stdin> {
    from: F,
    over: bool,
}

impl Answers {
    /// Reads from standard input.
    pub fn of_operator() -> Self {
        Self { from: std::io::stdin(), over: false }
    }
}

impl<F: AsFd> Answers<F> {
    /// Whether the input has ended.
    pub fn over(&self) -> bool {
        self.over
    }

    /// Whether the next answer is yes. The end of the input means no, also for later questions.
    /// `stop` means no for this question.
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

    /// The number of bytes read, 0 at the end or on an error; `None` where nothing is there yet.
    fn read(&self, byte: &mut u8) -> Option<usize> {
        let ready = poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&LOOK));
        ready.ok().filter(|n| *n > 0)?;
        Some(rustix::io::read(&self.from, std::slice::from_mut(byte)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn each_line_is_an_answer_and_an_end_is_no_to_all() {
        let (reads, mut writes) = std::io::pipe().unwrap();
        let mut answers = Answers { from: &reads, over: false };
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
        let mut answers = Answers { from: &reads, over: false };
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
