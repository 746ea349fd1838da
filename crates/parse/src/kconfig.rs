//! A kernel's build configuration as text: `CONFIG_HZ=250`, `# CONFIG_X is not set`.

use std::collections::BTreeMap;

use crate::ParseError;

/// Options that were set, by name without `CONFIG_`, values unquoted (`y`, `m`, `250`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelConfig(BTreeMap<String, String>);

impl KernelConfig {
    /// The value of an option; `None` where it is not set.
    pub fn get(&self, option: &str) -> Option<&str> {
        self.0.get(option).map(String::as_str)
    }

    /// Whether an option is built in.
    pub fn yes(&self, option: &str) -> bool {
        self.get(option) == Some("y")
    }
}

/// Parses the text of a `.config`.
///
/// # Errors
/// When not one option is in it: an empty or foreign file must not read as "everything off".
pub fn parse(bytes: &[u8]) -> Result<KernelConfig, ParseError> {
    let text = String::from_utf8_lossy(bytes);
    let options: BTreeMap<String, String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.trim().trim_matches('"').to_owned()))
        .collect();
    if options.is_empty() {
        return Err(ParseError::new(1, "a kernel configuration such as CONFIG_HZ=250", bytes));
    }
    Ok(KernelConfig(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_set_and_not_set() {
        let c = parse(
            b"#\n# Timers\n#\nCONFIG_HZ_250=y\n# CONFIG_HZ_1000 is not set\nCONFIG_HZ=250\nCONFIG_LSM=\"landlock,yama\"\nCONFIG_TUN=m\n",
        )
        .unwrap();
        assert_eq!(c.get("HZ"), Some("250"));
        assert_eq!(c.get("HZ_1000"), None);
        assert_eq!(c.get("LSM"), Some("landlock,yama"));
        assert!(c.yes("HZ_250") && !c.yes("TUN") && !c.yes("NOPE"));
    }

    #[test]
    fn a_foreign_file_is_no_configuration() {
        assert!(parse(b"").is_err());
        assert!(parse(b"hello = y\n").is_err());
    }
}
