//! Password files: lines of `HOST:PORT:DATABASE:USER:PASSWORD`.
//!
//! **Source**: PostgreSQL's documentation, "The Password File".

use model::Warning;
use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use super::environment::Environment;

/// Size limit of a password file in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Lines of the named file, or of `~/.pgpass`; empty without a file.
pub fn read(
    named: Option<&String>,
    environment: &Environment<'_>,
    warnings: &mut Vec<Warning>,
) -> Vec<Line> {
    let home = || Some(environment.home()?.join(".pgpass"));
    let Some(path) = named.map(PathBuf::from).or_else(home) else { return vec![] };
    let Ok(about) = fs::metadata(&path) else { return vec![] };
    let mut unused = |why: &str| {
        let file = path.display().to_string();
        warnings.push(Warning::PasswordFileNotUsed { file, why: why.into() });
        vec![]
    };
    // As libpq: a file that others may read is ignored.
    if about.is_file() && about.mode() & 0o077 != 0 {
        return unused("others may read it; chmod 600 it");
    }
    match probe::given::text(&path, MOST_BYTES) {
        Ok(text) if about.is_file() => lines(&text),
        Ok(_) | Err(_) => unused("it is no text file"),
    }
}

/// The five fields of a line.
pub type Line = [String; 5];

/// Lines with five fields; `\:` and `\\` are escapes.
pub fn lines(text: &str) -> Vec<Line> {
    let mut all = vec![];
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let (mut parts, mut chars) = (vec![String::new()], line.chars());
        while let Some(c) = chars.next() {
            let c = match c {
                ':' if parts.len() < 5 => {
                    parts.push(String::new());
                    continue;
                }
                '\\' => chars.next().unwrap_or('\\'),
                c => c,
            };
            if let Some(last) = parts.last_mut() {
                last.push(c);
            }
        }
        all.extend(Line::try_from(parts));
    }
    all
}

/// The password of the first line that matches host, port, database and user.
pub fn find(lines: &[Line], wanted: [&str; 4]) -> Option<String> {
    let fits = |line: &&Line| line.iter().zip(wanted).all(|(l, w)| l == "*" || l == w);
    lines.iter().find(fits).map(|[.., password]| password.clone()).filter(|p| !p.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let all = lines("# a:b:c:d:e\nh:5432:db:u:one\nshort:1\n*:*:*:u:t\\:w\\\\o:x\nh:*:*:*:\n");
        assert_eq!(find(&all, ["h", "5432", "db", "u"]).as_deref(), Some("one"));
        assert_eq!(find(&all, ["h", "5433", "db", "u"]).as_deref(), Some("t:w\\o:x"));
        assert_eq!(find(&all, ["h", "5433", "db", "v"]), None);
        assert_eq!(find(&all, ["i", "5433", "db", "v"]), None);
    }
}
