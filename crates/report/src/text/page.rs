//! A page of lines, headings and tables.

use super::{Ink, Line, Table, TextStyle};

/// A text under construction.
#[derive(Debug)]
pub struct Page {
    look: TextStyle,
    out: String,
}

impl Page {
    pub fn new(look: TextStyle) -> Self {
        Self { look, out: String::new() }
    }

    pub fn look(&self) -> TextStyle {
        self.look
    }

    /// A line, wrapped where it is too long; its later lines are indented by `hang`.
    pub fn line(&mut self, line: Line, hang: usize) {
        let next = self.look.width.saturating_sub(hang).max(20);
        for (i, part) in line.wrap(self.look.width, next, false).iter().enumerate() {
            if i > 0 {
                self.out.push_str(&" ".repeat(hang));
            }
            self.raw(part);
        }
    }

    /// A label and the text beside it; wrapped lines align with the text.
    pub fn labelled(&mut self, label: Line, text: &Line) {
        let indent = label.width();
        let room = self.look.width.saturating_sub(indent).max(20);
        for (i, part) in text.wrap(room, room, false).iter().enumerate() {
            let mut line = if i == 0 { label.clone() } else { Line::plain(" ".repeat(indent)) };
            line.extend(part.clone());
            self.raw(&line);
        }
    }

    /// A line without wrapping: a command to copy.
    pub fn raw(&mut self, line: &Line) {
        line.print(&mut self.out, self.look.colour);
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        self.out.push('\n');
    }

    /// An empty line, never two in a row.
    pub fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A heading, after an empty line.
    pub fn heading(&mut self, title: &str) {
        self.gap();
        self.raw(&Line::new().ink(Ink::Strong, title));
    }

    /// The section of caveats, the most important first; nothing without caveats.
    pub fn caveats(&mut self, lines: impl IntoIterator<Item = Line>) {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_some() {
            self.heading("CAVEATS");
        }
        for line in lines {
            self.line(Line::plain("  ").also(line), 4);
        }
    }

    pub fn table(&mut self, table: &Table, indent: usize) {
        for row in table.rows(self.look.width.saturating_sub(indent)) {
            let mut line = Line::plain(" ".repeat(indent));
            line.extend(row);
            self.raw(&line);
        }
    }

    pub fn finish(self) -> String {
        self.out
    }
}
