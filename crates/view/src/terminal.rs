//! Takes the terminal, draws on it, and always restores it: at the end, on a signal, on a panic.

use std::{
    io::{self, Stdout},
    path::Path,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    thread,
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{self, Event, KeyEvent, KeyEventKind},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

use crate::{Screen, draw, error::ViewError};

/// Whether the terminal is in our mode now.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal in raw mode on the alternate screen, while this lives.
pub struct Tty {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// Input from the user.
pub enum Input {
    Key(KeyEvent),
    /// The terminal was resized.
    Resize,
    /// The terminal hung up.
    Gone,
}

impl Tty {
    /// Switches the terminal to raw mode and the alternate screen.
    ///
    /// # Errors
    /// There is no terminal, or it hung up.
    pub fn take() -> io::Result<Self> {
        give_back_on_panic();
        TAKEN.store(true, Ordering::SeqCst);
        let taken = enable_raw_mode()
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen))
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match taken {
            Ok(terminal) => Ok(Self { terminal }),
            Err(e) => {
                give_back();
                Err(e)
            }
        }
    }

    /// Draws a picture.
    ///
    /// # Errors
    /// The terminal hung up.
    pub fn draw(&mut self, screen: &Screen<'_>) -> io::Result<()> {
        let drawn = self.terminal.draw(|frame| {
            let area = frame.area();
            draw(screen, area, frame.buffer_mut());
        });
        drawn.map(drop)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal, once.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that hung up needs no restoring.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Restores it before a panic message, which would vanish with the alternate screen.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            before(info);
        }));
    });
}

/// Sends the user's input from a thread, which may block on a key. It ends with the receiver or the
/// process.
///
/// # Errors
/// No thread can be started.
pub fn listen<T: Send + 'static>(to: Sender<T>, wrap: fn(Input) -> T) -> io::Result<()> {
    let reader = thread::Builder::new().spawn(move || {
        loop {
            let input = match event::read() {
                Ok(Event::Key(key)) if key.kind == KeyEventKind::Release => continue,
                Ok(Event::Key(key)) => Input::Key(key),
                Ok(Event::Resize(..)) => Input::Resize,
                Ok(_) => continue,
                Err(_) => Input::Gone,
            };
            let gone = matches!(input, Input::Gone);
            if to.send(wrap(input)).is_err() || gone {
                return;
            }
        }
    });
    reader.map(drop)
}

/// The error for a failure to draw.
pub(crate) fn failed(e: io::Error) -> ViewError {
    ViewError::io(Path::new("the terminal"), e)
}
