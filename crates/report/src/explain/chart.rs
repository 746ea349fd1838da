//! Bars of text, in eighths of a column.

/// Eighths of a cell.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar of at most `width` cells for `most`.
pub fn bar(value: f64, most: f64, width: usize) -> String {
    if !(value > 0.0 && most > 0.0 && value.is_finite()) {
        return String::new();
    }
    let eighths = ((value / most).min(1.0) * width as f64 * 8.0).round() as usize;
    let rest = PARTS.get(eighths % 8).copied().unwrap_or_default();
    "█".repeat(eighths / 8) + rest
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(1.0, 1.0, 4), "████");
        assert_eq!(bar(0.5, 1.0, 4), "██");
        assert_eq!(bar(0.3, 1.0, 4), "█▎");
        for nothing in [bar(0.0, 1.0, 4), bar(-1.0, 1.0, 4), bar(f64::NAN, 1.0, 4)] {
            assert_eq!(nothing, "");
        }
    }
}
