//! The meaning of a piece of text or of a mark; a style sheet decides its look.

/// The meaning of a span of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    Code,
    Good,
    Warn,
    Bad,
}
