//! What kind of file it is, by its name and its first lines.

use std::path::Path;

/// A kind of file that sets something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// sysctl.conf, or a file of sysctl.d.
    Sysctl,
    /// `tuned.conf` of a profile.
    Tuned,
    /// A script, or a recipe: commands, and lines of sysctl.conf.
    Script,
    /// An Ansible playbook or a Kubernetes manifest.
    Yaml,
    Dockerfile,
    /// The options of irqbalance: `/etc/default/irqbalance`.
    Irqbalance,
}

/// The kind of a file.
pub fn of(path: &Path, bytes: &[u8]) -> Kind {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let head = String::from_utf8_lossy(bytes.get(..16_384).unwrap_or(bytes));
    let lines =
        || head.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with(['#', ';']));
    if name.ends_with(".yml") || name.ends_with(".yaml") {
        return Kind::Yaml;
    }
    if name.contains("dockerfile")
        || name.contains("containerfile")
        || parse::dockerfile::is_one(bytes)
    {
        return Kind::Dockerfile;
    }
    if name == "irqbalance" || name.starts_with("irqbalance.") {
        return Kind::Irqbalance;
    }
    if name.ends_with(".sh") || head.starts_with("#!") {
        return Kind::Script;
    }
    let section = |l: &str| l.starts_with('[') && l.ends_with(']');
    if name == "tuned.conf" || lines().next().is_some_and(section) {
        return Kind::Tuned;
    }
    // A file of assignments alone is sysctl.conf; one with commands among them is a recipe.
    let is_command = |l: &str| {
        let first = l.split_whitespace().next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '+');
        !first.is_empty()
            && first.chars().all(plain)
            && !l.contains(" =")
            && !first.starts_with('-')
    };
    let sysctl = name.ends_with(".conf") && !lines().any(is_command);
    match sysctl || !lines().any(is_command) {
        true => Kind::Sysctl,
        false => Kind::Script,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_first_lines_tell() {
        for (name, text, kind) in [
            ("/etc/sysctl.conf", "net.core.x = 1\n", Kind::Sysctl),
            ("99-x.conf", "# c\n-net.core.x=1\nnet/core/y = 2\n", Kind::Sysctl),
            ("recipe.txt", "net.core.x = 1\nservice irqbalance stop\n", Kind::Script),
            ("rc.local", "#!/bin/sh\nsysctl -w net.core.x=1\n", Kind::Script),
            ("a/tuned.conf", "[main]\n", Kind::Tuned),
            ("x.conf", "# tuned\n[main]\nsummary=x\n", Kind::Tuned),
            ("play.yml", "- hosts: all\n", Kind::Yaml),
            ("Dockerfile.prod", "FROM x\n", Kind::Dockerfile),
            ("build", "FROM x\nRUN y\n", Kind::Dockerfile),
            ("/etc/default/irqbalance", "A=1\n", Kind::Irqbalance),
            ("empty", "", Kind::Sysctl),
        ] {
            assert_eq!(of(Path::new(name), text.as_bytes()), kind, "{name}");
        }
    }
}
