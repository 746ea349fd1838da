//! Colours. Colour never carries information alone.

use ratatui::style::{Color, Modifier, Style};
use report::watch::contexts::Context;

/// Whether and how the view uses colours.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    /// Whether colours are used.
    pub colour: bool,
}

impl Palette {
    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The style of less important text.
    pub fn faint(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }

    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub fn warn(self) -> Style {
        self.of(Color::Yellow)
    }

    pub fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub fn context(self, context: Context) -> Style {
        self.of(match context {
            Context::Syscall | Context::User => Color::Green,
            Context::OnTask | Context::Softirq => Color::Red,
            Context::Idle | Context::System => Color::Blue,
            Context::Ksoftirqd | Context::Steal => Color::Magenta,
            Context::Threaded | Context::Irq => Color::Cyan,
        })
    }
}
