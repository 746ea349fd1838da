//! Turns a profile into change requests for a host. Pure.

use model::{
    Facts,
    tune::{Profile, ProfileValue, Refused, RefusedAs},
};

use crate::{
    TuneError,
    change_request::{ChangeRequest, RequestMode},
    suggestion,
};

/// The interfaces that `nic.*` stands for.
fn interfaces<'f>(facts: &'f Facts, chosen: &'f [String]) -> Vec<&'f str> {
    if !chosen.is_empty() {
        return chosen.iter().map(String::as_str).collect();
    }
    let fit = facts.nics.iter().filter(|n| n.kind == "physical" && n.up.get() == Some(true));
    fit.map(|n| n.name.as_str()).collect()
}

/// Checks that the chosen interfaces exist.
///
/// # Errors
/// The first that does not exist, and those that do.
pub fn there(facts: &Facts, chosen: &[String]) -> Result<(), TuneError> {
    let is_there = |name: &&String| facts.nics.iter().any(|n| n.name == **name);
    let Some(none) = chosen.iter().find(|n| !is_there(n)) else { return Ok(()) };
    let names = facts.nics.iter().map(|n| n.name.as_str());
    let there = suggestion::hint(none, names);
    Err(TuneError::Absent(format!("--nic {none}: there is no such interface here; {there}")))
}

/// The profile's lines as change requests for this host. The second list holds lines whose
/// interface does not exist.
pub fn expand(
    profile: &Profile,
    facts: &Facts,
    chosen: &[String],
) -> (Vec<ChangeRequest>, Vec<Refused>) {
    let (mut change_requests, mut refused) = (Vec::<ChangeRequest>::new(), Vec::new());
    for line in &profile.lines {
        let (value, mode) = match (&line.wanted, &line.refuted) {
            (ProfileValue::Exactly(v) | ProfileValue::AtLeast(v), Some(why)) => {
                (v, RequestMode::Refuted(why.clone()))
            }
            (ProfileValue::Exactly(v), None) => (v, RequestMode::Exactly),
            (ProfileValue::AtLeast(v), None) => (v, RequestMode::AtLeast),
        };
        let asked_by = format!("profile {}", line.at);
        let change_request = |knob: String| ChangeRequest {
            knob,
            value: value.clone(),
            asked_by: asked_by.clone(),
            why: line.why.clone(),
            mode: mode.clone(),
        };
        // A policy for the interrupts of each interface: `local:*`.
        if let Some(policy) = value.strip_suffix(":*").filter(|_| line.knob == "irq.affinity") {
            let each = interfaces(facts, chosen).into_iter();
            change_requests.extend(each.map(|nic| ChangeRequest {
                value: format!("{policy}:{nic}"),
                ..change_request(line.knob.clone())
            }));
            continue;
        }
        let Some(rest) = line.knob.strip_prefix("nic.*.") else {
            change_requests.push(change_request(line.knob.clone()));
            continue;
        };
        let nics = interfaces(facts, chosen);
        if nics.is_empty() && line.refuted.is_some() {
            change_requests.push(change_request(line.knob.clone()));
        } else if nics.is_empty() {
            refused.push(Refused {
                asked_by: asked_by.clone(),
                knob: line.knob.clone(),
                new: value.clone(),
                kind: RefusedAs::Environment,
                why: "no physical interface is up here; --nic NAME chooses another".into(),
                verdict: None,
                source: String::new(),
            });
        }
        for nic in nics {
            let knob = format!("nic.{nic}.{rest}");
            // A line for one interface overrides a line for all interfaces.
            if !profile.lines.iter().any(|l| l.knob == knob) {
                change_requests.push(change_request(knob));
            }
        }
    }
    (change_requests, refused)
}

/// Word by word the largest of `wanted`, the current value and the kernel's default. `None` if the
/// word counts differ or a word is no number.
pub fn raise(now: &str, default: Option<&str>, wanted: &str) -> Option<String> {
    let numbers =
        |s: &str| -> Option<Vec<i128>> { s.split_whitespace().map(|w| w.parse().ok()).collect() };
    let (now, wanted) = (numbers(now)?, numbers(wanted)?);
    if now.len() != wanted.len() {
        return None;
    }
    let default = default.and_then(numbers).filter(|d| d.len() == now.len());
    let word = |(i, (now, wanted)): (usize, (&i128, &i128))| {
        let default = default.as_ref().and_then(|d| d.get(i)).copied().unwrap_or(*now);
        // The default only matters if a word is raised at all.
        if now >= wanted { *now } else { (*wanted).max(default) }.to_string()
    };
    Some(now.iter().zip(&wanted).enumerate().map(word).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raising_never_lowers_and_never_stays_below_the_default() {
        let default = Some("4096 131072 33554432");
        assert_eq!(
            raise("4096\t131072\t33554432\n", default, "4096 131072 16777216").unwrap(),
            "4096 131072 33554432"
        );
        assert_eq!(
            raise("4096 87380 6291456", default, "4096 131072 16777216").unwrap(),
            "4096 131072 33554432"
        );
        assert_eq!(raise("128", Some("4096"), "1024").unwrap(), "4096");
        assert_eq!(raise("8192", Some("4096"), "1024").unwrap(), "8192");
        assert_eq!(raise("256", None, "1024").unwrap(), "1024");
        assert_eq!(raise("4096 87380", None, "1"), None);
        assert_eq!(raise("cubic", None, "1"), None);
    }
}
