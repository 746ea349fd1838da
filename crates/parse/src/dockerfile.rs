//! Settings that a Dockerfile makes while the image is built: its `RUN` instructions.
//!
//! **Source**: Dockerfile reference of Docker (RUN, line continuation, here-documents).

use model::lint::{Place, SetLine};

use crate::shell_settings;

/// Every setting of the `RUN` instructions, in order.
pub fn parse(bytes: &[u8]) -> Vec<SetLine> {
    of_instruction(bytes, "run")
}

/// The settings of `CMD` and `ENTRYPOINT`, which a container carries out when it starts, unless its
/// command line says otherwise.
pub fn at_start(bytes: &[u8]) -> Vec<SetLine> {
    let mut all = of_instruction(bytes, "cmd");
    all.extend(of_instruction(bytes, "entrypoint"));
    all.sort_by_key(|s| s.line);
    all
}

fn of_instruction(bytes: &[u8], instruction: &str) -> Vec<SetLine> {
    let text = String::from_utf8_lossy(bytes);
    let mut out = Vec::new();
    let mut lines = text.lines().zip(1u32..).peekable();
    while let Some((first, number)) = lines.next() {
        let Some(rest) = after(first, instruction) else { continue };
        let mut script = rest.to_owned();
        if let Some(delimiter) = heredoc(rest) {
            let body: Vec<&str> =
                lines.by_ref().map(|(l, _)| l).take_while(|l| l.trim() != delimiter).collect();
            script = format!("\n{}", body.join("\n"));
        }
        while script.ends_with('\\')
            && let Some((next, _)) = lines.next()
        {
            script.push('\n');
            // A comment between continued lines does not end the instruction.
            script.push_str(if next.trim_start().starts_with('#') {
                "\\"
            } else {
                next.trim_end()
            });
        }
        match serde_json::from_str::<Vec<String>>(&script) {
            Ok(words) => out.extend(shell_settings::of_words(&words, number, Place::ImageBuild)),
            Err(_) => out.extend(shell_settings::parse_from(&script, number, Place::ImageBuild)),
        }
    }
    for set in &mut out {
        set.whole = false;
    }
    out
}

/// Whether a text is a Dockerfile: its first instruction is `FROM` or `ARG`.
pub fn is_one(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes.get(..8192).unwrap_or(bytes));
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .next()
        .and_then(|l| l.split_whitespace().next())
        .is_some_and(|w| w.eq_ignore_ascii_case("from") || w.eq_ignore_ascii_case("arg"))
}

/// What follows an instruction and its flags.
fn after<'l>(line: &'l str, instruction: &str) -> Option<&'l str> {
    let line = line.trim();
    let name = line.get(..instruction.len()).filter(|n| n.eq_ignore_ascii_case(instruction))?;
    let mut rest = line.strip_prefix(name)?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    loop {
        rest = rest.trim_start();
        if !rest.starts_with("--") {
            return Some(rest);
        }
        rest = rest.split_once(char::is_whitespace)?.1;
    }
}

/// The delimiter where the instruction is a here-document.
fn heredoc(rest: &str) -> Option<String> {
    let delimiter = rest.strip_prefix("<<")?.trim_start_matches('-').trim();
    let word = delimiter.trim_matches(['"', '\'']);
    (!word.is_empty() && !word.contains(char::is_whitespace)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_in_all_its_forms() {
        let text = "FROM debian:12\nCMD sysctl -w net.core.no=1\nRUN apt-get update \\\n # why\n && sysctl -w net.core.a=1 \\\n && true\n\
                    RUN [\"sysctl\", \"-w\", \"net.core.b=2\"]\nrun --mount=type=cache echo net.core.c=3 >> /etc/sysctl.conf\n\
                    RUN <<EOF\nsysctl -w net.core.d=4\nEOF\nRUNNER sysctl -w net.core.no=1\n";
        let all = parse(text.as_bytes());
        let rows: Vec<_> =
            all.iter().map(|s| (s.line, s.setting.as_str(), s.value.as_str())).collect();
        assert_eq!(
            rows,
            [
                (5, "sysctl.net.core.a", "1"),
                (7, "sysctl.net.core.b", "2"),
                (8, "sysctl.net.core.c", "3"),
                (10, "sysctl.net.core.d", "4"),
            ]
        );
        assert!(is_one(text.as_bytes()) && !is_one(b"net.core.x = 1\n"));
        let starts: Vec<_> = at_start(text.as_bytes()).into_iter().map(|s| s.line).collect();
        assert_eq!(starts, [2]);
        let starts = at_start(
            b"FROM a\nENTRYPOINT [\"sh\", \"-c\", \"sysctl -w net.core.a=1\"]\nCMD [\"a\"]\n",
        );
        assert_eq!(starts.len(), 1, "{starts:?}");
    }
}
