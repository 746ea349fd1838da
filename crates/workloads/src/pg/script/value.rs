//! Values and variables of scripts, and their text form.

use std::fmt;

/// The value of a script's variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value, written as `NULL`.
    Null,
    Bool(bool),
    Int(i64),
    /// A number with a fraction.
    Double(f64),
    /// Text from a server or the command line; an expression parses it on use.
    Text(String),
}

impl Value {
    /// Whether `\if` counts it as true: numbers other than 0 do, `NULL` does not.
    ///
    /// # Errors
    /// Its text is neither a number nor a truth value.
    pub fn is_true(&self) -> Result<bool, String> {
        Ok(Scalar::read("", self)?.is_true())
    }
}

/// SQL's form, and pgbench's: 15 digits for a double.
impl fmt::Display for Value {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => to.write_str("NULL"),
            Self::Bool(b) => write!(to, "{b}"),
            Self::Int(n) => write!(to, "{n}"),
            Self::Double(x) => to.write_str(&general(*x)),
            Self::Text(text) => to.write_str(text),
        }
    }
}

/// A value in a computation: a [`Value`] with its text parsed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Bool(b) => Self::Bool(b),
            Scalar::Int(n) => Self::Int(n),
            Scalar::Double(x) => Self::Double(x),
        }
    }
}

impl Scalar {
    /// A variable's value for a computation.
    ///
    /// # Errors
    /// Its text is neither a number, a truth value nor `null`; the message has pgbench's words and
    /// `name`.
    pub fn read(name: &str, value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Int(n) => Self::Int(*n),
            Value::Double(x) => Self::Double(*x),
            Value::Text(text) => {
                return Self::read_text(text)
                    .ok_or_else(|| format!("malformed variable \"{name}\" value: \"{text}\""));
            }
        })
    }

    /// Parses `null`, or `true`, `t`, `yes`, `on` and their opposites in any case, or a number.
    fn read_text(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let begins = |word: &str| !lower.is_empty() && word.starts_with(&lower);
        if lower == "null" {
            Some(Self::Null)
        } else if begins("true") || begins("yes") || lower == "on" {
            Some(Self::Bool(true))
        } else if begins("false") || begins("no") || lower == "off" || lower == "of" {
            Some(Self::Bool(false))
        } else {
            let trimmed = text.trim_ascii();
            let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
                return trimmed.parse().ok().map(Self::Int);
            }
            let x: f64 = trimmed.parse().ok()?;
            // A finite text beyond a double's range is no number.
            (x.is_finite() || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
                .then_some(Self::Double(x))
        }
    }

    pub fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(b) => b,
            Self::Int(n) => n != 0,
            Self::Double(x) => x != 0.0,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// The truth value; a number is none.
    ///
    /// # Errors
    /// The value is of another type; the message has pgbench's words.
    pub fn boolean(self) -> Result<bool, String> {
        match self {
            Self::Bool(b) => Ok(b),
            other => Err(format!("cannot coerce {} to boolean", other.kind())),
        }
    }

    /// The nearest integer; ties go to the even one.
    ///
    /// # Errors
    /// A double beyond 64 bits, or a value that is no number.
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is refused first")]
    pub fn int(self) -> Result<i64, String> {
        match self {
            Self::Int(n) => Ok(n),
            Self::Double(x) => {
                let x = x.round_ties_even();
                // 2^63 can be represented as a double, 2^63 - 1 cannot.
                if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) {
                    Ok(x as i64)
                } else {
                    Err(format!("double to int overflow for {}", general(x)))
                }
            }
            other => Err(format!("cannot coerce {} to int", other.kind())),
        }
    }

    /// The number as a double; beyond 2^53 an integer loses digits, as in pgbench.
    ///
    /// # Errors
    /// The value is no number; the message has pgbench's words.
    #[expect(clippy::cast_precision_loss, reason = "as pgbench computes")]
    pub fn double(self) -> Result<f64, String> {
        match self {
            Self::Double(x) => Ok(x),
            Self::Int(n) => Ok(n as f64),
            other => Err(format!("cannot coerce {} to double", other.kind())),
        }
    }
}

/// As C's `%.15g`, with SQL's words for infinity and NaN.
fn general(x: f64) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x < 0.0 { "-Infinity" } else { "Infinity" }.into();
    }
    let text = format!("{x:.14e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..15).contains(&exponent) {
        let after = usize::try_from(14 - exponent).unwrap_or(0);
        return trim(&format!("{x:.after$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(digits), exponent.abs())
}

/// A client's variables.
///
/// There are few of them, so lookups are linear: for a dozen that is faster than an index.
#[derive(Debug, Clone, Default)]
pub struct Vars(Vec<(Box<str>, Value)>);

impl Vars {
    /// Variables that every script has: `client_id` from 0, `scale`, `default_seed` for hash
    /// functions, and `random_seed`.
    pub fn predefined(client_id: i64, scale: i64, default_seed: i64, random_seed: i64) -> Self {
        let mut vars = Self::default();
        for (name, value) in [
            ("scale", scale),
            ("client_id", client_id),
            ("default_seed", default_seed),
            ("random_seed", random_seed),
        ] {
            vars.set(name, Value::Int(value));
        }
        vars
    }

    /// Sets a variable; an old value of the name is replaced.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(n, _)| **n == *name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// A variable's value; `None` if it was never set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| **n == *name).map(|(_, value)| value)
    }
}

/// Whether a variable can have this name: letters of any language, digits and underscores, not
/// beginning with a digit.
pub(super) fn is_name(text: &str) -> bool {
    name_length(text) == text.len() && !text.is_empty()
}

/// Length in bytes of the variable name at the start of a text.
pub(super) fn name_length(text: &str) -> usize {
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'_' || !b.is_ascii();
    match text.bytes().next() {
        Some(first) if is_letter(first) => {
            text.bytes().position(|b| !is_letter(b) && !b.is_ascii_digit()).unwrap_or(text.len())
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_15_digits_as_c_does() {
        for (x, text) in [
            (0.1 + 0.2, "0.3"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1.0 / 3.0, "0.333333333333333"),
            (2.0e100, "2e+100"),
            (999_999_999_999_999.9, "1e+15"),
            (f64::INFINITY, "Infinity"),
            (0.0, "0"),
        ] {
            assert_eq!(general(x), text, "{x:e}");
        }
    }

    #[test]
    fn text_is_read_as_what_it_says() {
        for (text, value) in [
            ("NULL", Some(Scalar::Null)),
            ("t", Some(Scalar::Bool(true))),
            ("Ye", Some(Scalar::Bool(true))),
            ("on", Some(Scalar::Bool(true))),
            ("n", Some(Scalar::Bool(false))),
            ("off", Some(Scalar::Bool(false))),
            ("o", None),
            ("", None),
            (" 12 ", Some(Scalar::Int(12))),
            ("-9223372036854775808", Some(Scalar::Int(i64::MIN))),
            ("9223372036854775808", None),
            ("1.5e1", Some(Scalar::Double(15.0))),
            ("1e999", None),
            ("inf", Some(Scalar::Double(f64::INFINITY))),
            ("abc", None),
        ] {
            assert_eq!(Scalar::read_text(text), value, "{text:?}");
        }
    }

    #[test]
    fn names_begin_with_a_letter() {
        assert!(["a", "_1", "größe", "A9"].iter().all(|n| is_name(n)));
        assert!(["", "1a", "a-b", "a b"].iter().all(|n| !is_name(n)));
    }
}
