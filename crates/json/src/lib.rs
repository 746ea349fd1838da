//! Documents as JSON, byte for byte as `serde_json` writes them; but no document has numbers with a
//! fraction as keys.
//!
//! `serde_json` is generic over where it writes to. Its code is then made anew in each crate that prints,
//! for each destination and layout, and there it is compiled for size. What is called for every number and
//! string is made once here, and for speed.

mod writer;

use serde::Serialize;

use writer::Writer;
pub use writer::{Error, Layout};

/// Hands a document over in pieces of some 64 KiB, in order.
///
/// # Errors
/// What `to` answered, or the document's own refusal: a map whose keys are no text.
pub fn write(
    document: &impl Serialize,
    layout: Layout,
    to: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<(), Error> {
    let mut writer = Writer::new(layout, Some(to));
    document.serialize(&mut writer)?;
    writer.end().map(drop)
}

/// A document on one line, without a line end.
///
/// # Errors
/// The document's own refusal, see [`write`].
pub fn text(document: &impl Serialize) -> Result<String, Error> {
    let mut writer = Writer::new(Layout::Line, None);
    document.serialize(&mut writer)?;
    let bytes = writer.end()?;
    String::from_utf8(bytes).map_err(|e| Error::Document(e.to_string()))
}

#[cfg(test)]
mod tests;
