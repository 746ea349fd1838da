//! What `snapshot` wrote, as text.

use model::Bytes;

use crate::{
    text::{Line, Page, TextStyle},
    words::many,
};

/// An archive that is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Path of the file, as given.
    pub path: String,
    /// How many sources it holds: files and answers of the kernel.
    pub sources: usize,
    /// The size of the file, which is compressed.
    pub archive: Bytes,
    /// The size of the sources.
    pub unpacked: Bytes,
    /// How often the counters were read within the window.
    pub readings: usize,
    /// Whether Ctrl-C ended the window.
    pub interrupted: bool,
    pub redacted: bool,
}

/// The file and what is in it.
pub fn text(w: &Written, look: TextStyle) -> String {
    let cut = if w.interrupted { ", window interrupted" } else { "" };
    let redacted = if w.redacted { ", redacted" } else { "" };
    let mut page = Page::new(look);
    let line = Line::plain(format!("wrote {}: {} in ", w.path, many(w.sources, "source")))
        .also(Line::plain(w.archive).unbroken())
        .also(Line::plain(format!(" ({} unpacked),", w.unpacked)))
        .also(Line::plain(format!(
            " {} of the counters{cut}{redacted}",
            many(w.readings, "reading")
        )));
    page.line(line, 2);
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;

    #[test]
    fn an_archive_fits_80_and_120_columns() {
        let written = Written {
            path: "db-7.example.org-2026-11-24T10-11-12.tar.zst".into(),
            sources: 1_334,
            archive: Bytes(86_323),
            unpacked: Bytes(234_496),
            readings: 3,
            interrupted: true,
            redacted: true,
        };
        golden!("snapshot", "wrote db-7.example.org-2026", |style| text(&written, style));
    }
}
