//! Profiles: TOML files with a group of settings and a reason for each. The profiles of this
//! directory are built in; users can write their own and inherit from these.

mod expand;

use std::{ops::Range, path::Path};

use model::tune::{LeftOut, Profile, ProfileLine, ProfileValue};
use serde::Deserialize;
use toml::Spanned;

pub use expand::{expand, raise, there};

use crate::TuneError;

/// The built-in profiles, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("database", include_str!("../profiles/database.toml")),
    ("latency", include_str!("../profiles/latency.toml")),
    ("lore-2008", include_str!("../profiles/lore-2008.toml")),
    ("storage-node", include_str!("../profiles/storage-node.toml")),
    ("throughput-10g", include_str!("../profiles/throughput-10g.toml")),
    ("web", include_str!("../profiles/web.toml")),
];

/// Longest profile file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Deeper inheritance can only be a cycle.
const MAX_DEPTH: usize = 16;

/// A profile as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    description: String,
    #[serde(default)]
    inherits: Vec<String>,
    #[serde(default)]
    drop: Vec<String>,
    #[serde(default)]
    left_out: Vec<String>,
    #[serde(default)]
    line: Vec<Spanned<WrittenLine>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLine {
    knob: String,
    value: Option<Value>,
    at_least: Option<Value>,
    why: String,
    refuted: Option<String>,
}

/// A value in any TOML type that a profile may use.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Number(i64),
    Switch(bool),
    Text(String),
    Words(Vec<Value>),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Switch(on) => if *on { "on" } else { "off" }.into(),
            Self::Text(text) => text.clone(),
            Self::Words(words) => words.iter().map(Self::text).collect::<Vec<_>>().join(" "),
        }
    }
}

/// Loads a profile by name, or from a file (a name with a `/` or ending in `.toml`).
///
/// # Errors
/// The profile does not exist or is invalid; the message names the line.
pub fn load(name: &str) -> Result<Profile, TuneError> {
    one(name, None, 0)
}

/// All built-in profiles.
///
/// # Errors
/// None in practice: a test loads every one.
pub fn all() -> Result<Vec<Profile>, TuneError> {
    BUILT_IN.iter().map(|(name, _)| load(name)).collect()
}

fn one(name: &str, folder: Option<&Path>, depth: usize) -> Result<Profile, TuneError> {
    if depth > MAX_DEPTH {
        return Err(TuneError::Usage(format!("profile {name}: inherits from itself")));
    }
    if let Some((_, text)) = BUILT_IN.iter().find(|(n, _)| *n == name) {
        return parse(name, text, None, depth);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let names: Vec<&str> = BUILT_IN.iter().map(|(n, _)| *n).collect();
        return Err(TuneError::Usage(format!(
            "there is no profile {name:?}; there are {}, or a file of your own (./{name}.toml)",
            names.join(", ")
        )));
    }
    let path = folder.map_or_else(|| Path::new(name).to_owned(), |f| f.join(name));
    let shown = path.display().to_string();
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::InvalidData => TuneError::Usage(format!("{shown}: holds no text")),
        _ if e.raw_os_error().is_some() => TuneError::io(&shown, &e),
        _ => TuneError::Environment(format!("{shown}: {e}")),
    };
    let text = probe::given::text(&path, MAX_BYTES).map_err(failed)?;
    parse(&shown, &text, path.parent(), depth)
}

pub(crate) fn parse(
    name: &str,
    text: &str,
    folder: Option<&Path>,
    depth: usize,
) -> Result<Profile, TuneError> {
    let wrong = |span: Option<Range<usize>>, why: &str| {
        let at = span.map_or(String::new(), |s| format!(", line {}", line_of(text, s.start)));
        TuneError::Usage(format!("profile {name}{at}: {why}"))
    };
    let written: Written = toml::from_str(text).map_err(|e| wrong(e.span(), e.message().trim()))?;
    let mut lines: Vec<ProfileLine> = Vec::new();
    for parent in &written.inherits {
        lines.extend(one(parent, folder, depth + 1)?.lines);
    }
    for knob in &written.drop {
        let before = lines.len();
        lines.retain(|l| l.knob != *knob);
        if lines.len() == before {
            return Err(wrong(None, &format!("drops {knob}, which it does not inherit")));
        }
    }
    let inherited = lines.len();
    for line in &written.line {
        let at = line.span();
        let line = line.get_ref();
        let wanted = match (&line.value, &line.at_least) {
            (Some(value), None) => ProfileValue::Exactly(value.text()),
            (None, Some(value)) => ProfileValue::AtLeast(value.text()),
            _ => return Err(wrong(Some(at), "a line has either value or at_least")),
        };
        if lines.iter().skip(inherited).any(|l| l.knob == line.knob) {
            return Err(wrong(Some(at), &format!("{} stands twice", line.knob)));
        }
        lines.push(ProfileLine {
            knob: line.knob.clone(),
            wanted,
            why: line.why.clone(),
            refuted: line.refuted.clone(),
            at: format!("{name}, line {}", line_of(text, at.start)),
        });
    }
    Ok(Profile {
        name: name.to_owned(),
        description: written.description,
        inherits: written.inherits,
        lines: last_counts(lines),
        left_out: written.left_out.iter().map(|line| left_out(line)).collect(),
    })
}

/// Parses a line `WHAT: WHY`.
fn left_out(line: &str) -> LeftOut {
    let (what, why) = line.split_once(": ").unwrap_or((line, ""));
    LeftOut { what: what.to_owned(), why: why.to_owned() }
}

/// Keeps one line for each knob: the last one, at the position of the first.
fn last_counts(lines: Vec<ProfileLine>) -> Vec<ProfileLine> {
    let mut all: Vec<ProfileLine> = Vec::new();
    for line in lines {
        match all.iter_mut().find(|l| l.knob == line.knob) {
            Some(earlier) => *earlier = line,
            None => all.push(line),
        }
    }
    all
}

fn line_of(text: &str, byte: usize) -> usize {
    // A span may begin at the blank lines before it.
    let before = text.get(..byte).unwrap_or(text);
    before.matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs;

    #[test]
    fn every_built_in_profile_names_knobs_and_reasons() {
        let files: Vec<String> = {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
            let name =
                |e: std::fs::DirEntry| e.path().file_stem().unwrap().to_str().map(str::to_owned);
            let mut all: Vec<String> =
                std::fs::read_dir(folder).unwrap().map(|e| name(e.unwrap()).unwrap()).collect();
            all.sort();
            all
        };
        assert_eq!(files, BUILT_IN.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        for profile in all().unwrap() {
            assert!(!profile.lines.is_empty() && !profile.description.is_empty());
            for line in &profile.lines {
                assert!(line.why.len() > 5, "{line:?}");
                assert_eq!(line.refuted.is_some(), profile.name == "lore-2008", "{line:?}");
                // Names that stand for several knobs: of each interface, CPU or queue interrupt.
                let knob = match line.knob.as_str() {
                    "irq.affinity" => "irq.30.affinity".into(),
                    all => all.replace("nic.*.", "nic.eth0.").replace("cpu.", "cpu.0."),
                };
                assert!(knobs::find(&knob).is_some() || line.refuted.is_some(), "{line:?}");
            }
        }
    }

    #[test]
    fn a_policy_for_interrupts_is_one_change_request_an_interface() {
        let facts =
            serde_json::from_str(include_str!("../../diagnose/tests/golden/_base/facts.json"));
        let of = |name: &str, chosen: &[String]| -> Vec<String> {
            let (change_requests, _) =
                expand(&load(name).unwrap(), facts.as_ref().unwrap(), chosen);
            let irqs = change_requests.into_iter().filter(|w| w.knob == "irq.affinity");
            irqs.map(|w| w.value).collect()
        };
        for name in ["database", "latency", "storage-node", "throughput-10g"] {
            assert_eq!(of(name, &[]), ["local:eth0"], "{name}");
            assert_eq!(of(name, &["a".into(), "b".into()]), ["local:a", "local:b"], "{name}");
        }
        assert!(of("web", &[]).is_empty());
    }

    #[test]
    fn a_line_of_ones_own_wins_over_the_inherited_one() {
        let p = load("storage-node").unwrap();
        let ring: Vec<_> = p.lines.iter().filter(|l| l.knob == "nic.*.rings.rx").collect();
        assert_eq!(ring.len(), 1);
        assert_eq!(ring[0].wanted, ProfileValue::AtLeast("2048".into()));
        assert!(ring[0].at.starts_with("storage-node, line "), "{}", ring[0].at);
        assert!(p.lines.iter().any(|l| l.at.starts_with("throughput-10g, line ")));
        assert_eq!(load("throughput-10g").unwrap().lines[0].at, "throughput-10g, line 13");
    }

    #[test]
    fn a_file_inherits_drops_and_names_its_mistakes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let line = "[[line]]\nknob = 'nic.a.mtu'\nvalue = 1400\nwhy = 'because'\n";
        let base = write("base.toml", &format!("description = 'x'\n{line}"));
        let own = "description = 'y'\ninherits = ['./base.toml', 'web']\n\
                   drop = ['sysctl.net.ipv4.tcp_tw_reuse']\n";
        let own = load(&write("own.toml", own)).unwrap();
        assert_eq!(own.lines[0].at, format!("{base}, line 2").replace("base", "./base"));
        assert_eq!(own.lines.len(), load("web").unwrap().lines.len());
        for (text, why) in [
            ("description = 'x'\n[[line]]\nknob = 'a'\nwhy = 'b'\n", "line 2: a line has either"),
            ("description = 'x'\ndrop = ['a']\n", "does not inherit"),
            ("description = 'x'\nblue = 1\n", "line 2: unknown field `blue`"),
            ("description = 'x'\ninherits = ['./bad.toml']\n", "inherits from itself"),
            ("description = 'x'\ninherits = ['none']\n", "there is no profile \"none\""),
            ("[[line]]\nknob = 'a'\nvalue = 1\n", "missing field"),
        ] {
            let e = load(&write("bad.toml", text)).unwrap_err();
            assert!(matches!(e, TuneError::Usage(_)), "{e:?}");
            assert!(e.to_string().contains(why), "{e}");
        }
        let twice = write("twice.toml", &format!("description = 'x'\n{line}{line}"));
        assert!(load(&twice).unwrap_err().to_string().contains("line 6: nic.a.mtu stands twice"));
        assert!(matches!(load("/nowhere/x.toml"), Err(TuneError::Absent(_))));
    }
}
