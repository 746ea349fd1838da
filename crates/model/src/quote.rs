//! Quotes outside text for its readers: a shell, YAML, a configuration file, a terminal.
//!
//! The kernel accepts almost any bytes as an interface's name (`$(id>x)`, an escape sequence).
//! Names of interrupts, cgroups and files are as free.

use std::fmt::Write;

/// Characters that control a terminal, or change the displayed order of text.
pub fn acts(c: char) -> bool {
    let overrides =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || overrides
}

/// The text for people: what would act is shown as an escape, `\x1b`.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !acts(c) => out.push(c),
            c if u32::from(c) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    out
}

/// Quotes a text as one word of a POSIX shell. The word contains no character that controls a
/// terminal, except for line ends at its end.
pub fn shell(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    if !text.chars().any(acts) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    // `$'…'` is not known to every shell, and what `$(…)` gives loses the line ends at its end.
    let head = text.trim_end_matches('\n');
    let mut bytes = String::new();
    for b in head.bytes() {
        match b {
            b if plain(b) && b != b'%' && b != b'-' => bytes.push(char::from(b)),
            b => {
                let _ = write!(bytes, "\\{b:03o}");
            }
        }
    }
    let ends = text.get(head.len()..).filter(|e| !e.is_empty());
    let ends = ends.map(|e| format!("'{e}'")).unwrap_or_default();
    format!("\"$(printf '{bytes}')\"{ends}")
}

/// The command that sets a kernel setting.
pub fn sysctl(key: &str, value: &str) -> String {
    format!("sysctl -w {}={}", shell(key), shell(value))
}

/// The command that writes a file of the kernel's.
pub fn echo(value: &str, file: &str) -> String {
    format!("echo {} > {}", shell(value), shell(file))
}

/// The text as a value in YAML, safe from Ansible's templates.
pub fn yaml(text: &str) -> String {
    let template = ["{{", "{%", "{#"].iter().any(|t| text.contains(t));
    let mut out = String::from(if template { "!unsafe \"" } else { "\"" });
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            c if acts(c) || c == '\u{feff}' || c == '\u{2028}' || c == '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether files of udev, systemd, sysctl, tuned and NetworkManager take the name literally. Each
/// has patterns, specifiers or sections, and some cannot express such characters.
pub fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-+:@".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_for_people_stay_as_they_are() {
        assert_eq!(shell("eth0.100"), "eth0.100");
        assert_eq!(shell(""), "''");
        assert_eq!(shell("$(id>x)"), "'$(id>x)'");
        assert_eq!(shell("a'b"), r"'a'\''b'");
        assert_eq!(shell("\x1b[2J%"), "\"$(printf '\\033\\1332J\\045')\"");
        assert_eq!(shown("a\x1b[31m\u{202e}b網"), "a\\x1b[31m\\u{202e}b網");
        assert_eq!(yaml("a\"\\\x1b{{"), "!unsafe \"a\\\"\\\\\\u001b{{\"");
        assert!(is_plain("eth0.100") && is_plain("網") && is_plain("br-lan"));
        for odd in
            ["$(id>x)", "", "-x", "a%n", "a*", "a\"", "a]", "a b", "a\n", "{{a}}", "a#", "a;"]
        {
            assert!(!is_plain(odd), "{odd:?}");
        }
    }

    #[test]
    fn nothing_that_is_printed_acts() {
        let odd = "a\x1b[2J\u{9b}\n\u{202e}b";
        for text in [shown(odd), shell(odd), yaml(odd)] {
            assert!(!text.chars().any(acts), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]
        /// Shells of this machine read back what was quoted; many texts by one shell.
        #[test]
        #[allow(clippy::disallowed_methods, reason = "only a shell tells how it reads a word")]
        fn a_shell_reads_what_was_quoted(
            texts in proptest::collection::vec("([ -~\n\t\r\u{1}\u{1b}\u{9b}\u{e9}\u{202e}]|[$`\"'\\\\%\n;&|<>*?~!#(){}]){0,24}", 200),
        ) {
            let words: Vec<String> = texts.iter().map(|t| shell(t)).collect();
            let script = format!("printf '%s\\0' {}", words.join(" "));
            let mut read = String::new();
            for t in &texts {
                read.push_str(t);
                read.push('\0');
            }
            for program in ["sh", "bash"] {
                let out = std::process::Command::new(program).arg("-c").arg(&script).output();
                let out = out.unwrap_or_else(|e| panic!("{program}: {e}"));
                prop_assert_eq!(String::from_utf8_lossy(&out.stdout), read.as_str(), "{}", program);
            }
        }
    }
}
