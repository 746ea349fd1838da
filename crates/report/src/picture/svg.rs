//! A minimal SVG writer for pictures of hosts. It escapes every text.

use std::fmt::Write;

use crate::text::escaped;

/// Every desktop has one of these fonts; there is no external resource.
const FONTS: &str = "system-ui, 'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif";

/// An SVG under construction; coordinates in px at natural size.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
}

/// How a shape is painted.
#[derive(Debug, Clone, Copy)]
pub struct Paint<'a> {
    pub fill: &'a str,
    /// Border; `none` for none.
    pub stroke: &'a str,
    pub width: f64,
    pub dashed: bool,
}

impl<'a> Paint<'a> {
    pub fn fill(fill: &'a str) -> Self {
        Self { fill, stroke: "none", width: 0.0, dashed: false }
    }

    /// Inside and a thin border.
    pub fn framed(fill: &'a str, stroke: &'a str) -> Self {
        Self { fill, stroke, width: 1.0, dashed: false }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Font<'a> {
    pub size: f64,
    pub colour: &'a str,
    pub bold: bool,
    /// SVG's `text-anchor`: `start`, `middle` or `end`.
    pub anchor: &'a str,
}

impl<'a> Font<'a> {
    /// Plain, from the left.
    pub fn new(size: f64, colour: &'a str) -> Self {
        Self { size, colour, bold: false, anchor: "start" }
    }

    /// The same in bold.
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// The same around its position.
    pub fn centred(self) -> Self {
        Self { anchor: "middle", ..self }
    }
}

impl Svg {
    /// A rectangle with corners of radius `r`.
    pub fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), r: f64, p: Paint<'_>) {
        let Paint { fill, stroke, .. } = p;
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"{r:.1}\" \
             fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"{:.1}\"{}/>",
            p.width,
            if p.dashed { " stroke-dasharray=\"3 2\"" } else { "" }
        );
        self.body.push('\n');
    }

    pub fn circle(&mut self, (x, y): (f64, f64), r: f64, p: Paint<'_>) {
        let Paint { fill, stroke, width, .. } = p;
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" fill=\"{fill}\" \
             stroke=\"{stroke}\" stroke-width=\"{width:.1}\"/>"
        );
    }

    /// A text with its base line at `y`.
    pub fn text(&mut self, (x, y): (f64, f64), font: Font<'_>, text: &str) {
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{:.1}\" fill=\"{}\"{}{}>{}</text>",
            font.size,
            font.colour,
            if font.bold { " font-weight=\"600\"" } else { "" },
            if font.anchor == "start" {
                String::new()
            } else {
                format!(" text-anchor=\"{}\"", font.anchor)
            },
            escaped(text)
        );
    }

    /// Opens a group with a tooltip.
    pub fn open(&mut self, title: &str) {
        let _ = writeln!(self.body, "<g><title>{}</title>", escaped(title));
    }

    /// Closes the last group.
    pub fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub fn finish(self, (w, h): (f64, f64), title: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" \
             viewBox=\"0 0 {w:.0} {h:.0}\" font-family=\"{FONTS}\">\n\
             <title>{}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}

/// The approximate width of a text, rounded up to the widest of the fonts.
pub fn text_width(text: &str, size: f64) -> f64 {
    crate::text::width(text) as f64 * size * 0.62
}

/// The text, cut with `…` where it would be wider than `room`; empty where nothing fits.
pub fn fit(text: &str, size: f64, room: f64) -> String {
    // A box sized for its text has exactly this room, up to rounding.
    if text_width(text, size) <= room + 0.01 {
        return text.to_owned();
    }
    let columns = (room / (size * 0.62)).floor() as usize;
    if columns < 2 {
        return String::new();
    }
    let (head, _) = crate::text::split_at_width(text, columns - 1);
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_text() {
        let mut s = Svg::default();
        s.text((0.0, 0.0), Font::new(9.0, "#000"), "</text><script>&\"'\x1b\u{ffff}");
        let out = s.finish((10.0, 10.0), "a<b");
        assert!(out.contains("&lt;/text&gt;&lt;script&gt;&amp;&quot;&#39;\\x1b\u{fffd}</text>"));
        assert!(out.contains("<title>a&lt;b</title>"));
    }

    #[test]
    fn cuts_what_does_not_fit() {
        assert_eq!(fit("eth0", 10.0, 100.0), "eth0");
        assert_eq!(fit("enp129s0f1np1", 10.0, 50.0), "enp129s…");
        assert_eq!(fit("eth0", 10.0, 5.0), "");
    }
}
