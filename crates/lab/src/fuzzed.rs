//! Fuzz targets. A target must not panic on any input.

/// A parser's name, and the function that feeds it arbitrary bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of external input in this crate.
pub const PARSERS: &[Parser] = &[("guest_frame", guest_frame)];

/// Frames that a guest sends on its port, until the input ends.
fn guest_frame(mut bytes: &[u8]) {
    while crate::frame::read(&mut bytes).is_ok() {}
}
