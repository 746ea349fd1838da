//! A writer of elements for HTML and SVG. Escaping is by construction: names of elements and
//! attributes are constants of the program, and every other text is escaped on its way in.

use std::fmt::Display;

use report::text::escaped;

/// HTML or SVG under construction. Only [`Markup::element`] opens an element, and it closes it.
#[derive(Debug, Default)]
pub struct Markup {
    out: String,
}

/// An attribute: its name, and its value, which is escaped.
pub type Attribute<'a> = (&'static str, &'a dyn Display);

impl Markup {
    /// An element with its content.
    pub fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) {
        self.begin(name, attributes);
        self.out.push('>');
        inside(self);
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// An element without content: `meta`, `rect`.
    pub fn leaf(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.begin(name, attributes);
        self.out.push_str("/>");
    }

    /// An element with a text alone.
    pub fn says(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.element(name, attributes, |m| m.text(text));
    }

    /// A text; line ends are kept.
    pub fn text(&mut self, text: &str) {
        self.out.push_str(&escaped(text));
    }

    /// A text of the program itself, unescaped: the document type, the style sheet.
    pub fn constant(&mut self, text: &'static str) {
        self.out.push_str(text);
    }

    /// All that was written.
    pub fn finish(self) -> String {
        self.out
    }

    fn begin(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.out.push_str(&escaped(&value.to_string()));
            self.out.push('"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_text_or_an_attribute() {
        let hostile = "</p><script>alert(1)</script>\" onload='x' & \x1b[31m\u{202e}\n\u{ffff}";
        let mut m = Markup::default();
        m.says("p", &[("title", &hostile)], hostile);
        let out = m.finish();
        assert_eq!(out.matches('<').count(), 2, "{out}");
        assert_eq!(out.matches('>').count(), 2, "{out}");
        assert_eq!(out.matches('"').count(), 2, "{out}");
        assert!(!out.contains(['\x1b', '\u{202e}', '\'', '\u{ffff}']), "{out}");
        assert!(out.contains("\\x1b[31m\\u{202e}"), "shown as text: {out}");
    }
}
