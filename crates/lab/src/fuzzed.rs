//! What the fuzzers feed. An entry must not panic on any bytes.

/// A parser's name, and what feeds it any bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of outside bytes in this crate.
pub const PARSERS: &[Parser] = &[("guest_frame", guest_frame)];

/// What a guest says on its port, until that ends.
fn guest_frame(mut bytes: &[u8]) {
    while crate::frame::read(&mut bytes).is_ok() {}
}
