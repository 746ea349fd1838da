//! The kernel cmdline: `root=/dev/vda quiet sysctl.net.core.somaxconn=8192 -- single`. **Source**:
//! `next_arg` in the kernel's `lib/cmdline.c`.

/// One parameter of the boot line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    pub key: String,
    /// What follows `=`, without quotes; `None` for a bare word.
    pub value: Option<String>,
}

/// Splits a boot line as the kernel does: blanks separate unless quoted, `--` ends it (the
/// rest is init's).
pub fn parse(bytes: &[u8]) -> Vec<Param> {
    let text = String::from_utf8_lossy(bytes);
    let mut words = Vec::new();
    let (mut word, mut quoted) = (String::new(), false);
    for c in text.trim_matches(|c: char| c.is_whitespace() || c == '\0').chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.push(c);
            }
            c if c.is_whitespace() && !quoted => {
                words.push(std::mem::take(&mut word));
            }
            c => word.push(c),
        }
    }
    words.push(word);
    words
        .iter()
        .map(|w| w.trim_matches('"'))
        .take_while(|w| *w != "--")
        .filter(|w| !w.is_empty())
        .map(|w| match w.split_once('=') {
            Some((k, v)) => {
                Param { key: k.to_owned(), value: Some(v.trim_matches('"').to_owned()) }
            }
            None => Param { key: w.to_owned(), value: None },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_the_kernel_does() {
        let p = parse(b"root=/dev/vda quiet dyndbg=\"file a +p ; b\" \"x y=1\" sysctl.net/core/somaxconn=8192 -- single=1\n");
        let rows: Vec<_> = p.iter().map(|p| (p.key.as_str(), p.value.as_deref())).collect();
        assert_eq!(
            rows,
            [
                ("root", Some("/dev/vda")),
                ("quiet", None),
                ("dyndbg", Some("file a +p ; b")),
                ("x y", Some("1")),
                ("sysctl.net/core/somaxconn", Some("8192")),
            ]
        );
        assert_eq!(parse(b""), []);
    }
}
