//! The lines as SARIF 2.1.0, for code review. **Source**: OASIS, Static Analysis Results Interchange
//! Format Version 2.1.0.

use model::lint::{LineVerdict, LintDocument, LintLine};
use serde_json::{Value, json};

/// One run with a result for each line that is not good here. Lines that are unknown are no results.
pub fn sarif(document: &LintDocument) -> Value {
    let reported: Vec<LineVerdict> =
        LineVerdict::ALL.into_iter().filter(|v| level(*v).is_some()).collect();
    let rules: Vec<Value> = reported.iter().map(|v| rule(*v)).collect();
    let results: Vec<Value> = document
        .lines
        .iter()
        .filter_map(|l| {
            let at = reported.iter().position(|v| *v == l.verdict)?;
            Some(result(l, at, level(l.verdict)?))
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "netwright lint",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// How SARIF grades a verdict; `None` for what needs no attention.
fn level(verdict: LineVerdict) -> Option<&'static str> {
    match verdict {
        v if v.is_bad() => Some("error"),
        v if v.should_go() => Some("warning"),
        LineVerdict::Depends => Some("note"),
        _ => None,
    }
}

fn rule(verdict: LineVerdict) -> Value {
    let text = match verdict {
        LineVerdict::Dangerous => "The line can hang the host, or opens it to others.",
        LineVerdict::Harmful => "The line costs performance or reliability.",
        LineVerdict::WrongUnit => "The value was meant in another unit than the kernel's.",
        LineVerdict::BelowDefault => "The line sets less than the kernel starts with.",
        LineVerdict::Gone => "The kernel does not have the setting any more.",
        LineVerdict::NoEffect => "The line changes nothing that it is written for.",
        _ => "Whether the line helps depends on the host.",
    };
    json!({
        "id": verdict.key(),
        "shortDescription": { "text": text },
        "defaultConfiguration": { "level": level(verdict) },
    })
}

fn result(line: &LintLine, rule: usize, level: &str) -> Value {
    let mut text = format!("{} = {}: {}", line.setting, line.value, line.why);
    if !line.find_out.is_empty() {
        text = format!("{text}; find out: {}", line.find_out);
    }
    if !line.source.is_empty() {
        text = format!("{text} ({})", line.source);
    }
    json!({
        "ruleId": line.verdict.key(),
        "ruleIndex": rule,
        "level": level,
        "message": { "text": text },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&line.file) },
                "region": { "startLine": line.line.max(1) },
            },
        }],
    })
}

/// A path as a URI reference: bytes that a path of a URI does not take are escaped.
fn uri(path: &str) -> String {
    let mut out = if path.starts_with('/') { String::from("file://") } else { String::new() };
    for byte in path.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"/-._~@+=,".contains(&byte);
        match plain {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
