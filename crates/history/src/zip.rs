//! Packs and unpacks the documents of the store with zstd.

use std::io::Read;

/// Documents are written once and read seldom: zstd's default is fast and dense enough.
const LEVEL: i32 = 3;

/// The largest text that is unpacked, bytes: a few bytes can claim to be terabytes.
const MOST: u64 = 256 << 20;

pub(crate) fn packed(text: &str) -> std::io::Result<Vec<u8>> {
    zstd::encode_all(text.as_bytes(), LEVEL)
}

/// The text again; `None` where the bytes are damaged, no text, or too many.
pub(crate) fn unpacked(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    let reader = zstd::Decoder::new(bytes).ok()?;
    let read = reader.take(MOST + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MOST).then_some(text)
}
