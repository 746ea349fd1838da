//! Kernel settings: the table's judgement of the value, for a kernel that starts with its defaults.

use model::{
    Reading,
    lint::{LineVerdict, SetLine, SetMode},
    settings::{self, JudgedValue, ProposedValue, Scope, Setting, ValueMatch, Verdict},
};
use parse::sysctl_conf::{folded, same_value};

use super::{Context, Judged, depends, is_computed};
use crate::order::Placed;

/// Whether a setting has one value for the whole host, as far as the table knows.
pub fn is_of_host(setting: &str) -> bool {
    let row = setting.strip_prefix("sysctl.").and_then(settings::find);
    row.and_then(|r| r.known).is_some_and(|k| k.scope == Scope::Host)
}

pub fn judge(context: &Context<'_>, key: &str, set: &SetLine, all: &[Placed<'_>]) -> Judged {
    let Some(row) = settings::find(key) else {
        return Judged::unknown("netwright does not know this setting");
    };
    let fact = context.facts.sysctls.get(key);
    let default = fact
        .map_or_else(|| Reading::absent("netwright has no default of it"), |f| f.default.clone());
    let judged = of_row(context, row, key, set, &default, all);
    Judged { default, unit: row.unit.to_owned(), ..judged }
}

fn of_row(
    context: &Context<'_>,
    row: &Setting,
    key: &str,
    set: &SetLine,
    default: &Reading<String>,
    all: &[Placed<'_>],
) -> Judged {
    let text = set.value.trim_matches(['"', '\'']);
    if is_computed(text) {
        return Judged::unknown("the value is computed when the line runs");
    }
    let default_text = default.known().map(String::as_str);
    let facts = context.facts;
    let shown = facts.sysctls.get(key).and_then(|f| f.value.known());
    let asked = |value| ProposedValue {
        value,
        // A setting that is there is not gone, whatever its vendor calls the kernel.
        now: shown.filter(|_| row.gone.is_some()).map(String::as_str),
        default: default_text,
        kernel: context.kernel,
        memory: facts.memory_bytes.known().map(|b| b.0),
        page: facts.host.page_size_bytes.known().map(|b| b.0),
    };
    let plain = numbers_in_decimal(text);
    // What the table says whatever the value: gone, an act, a matter of security.
    let first = settings::judge(key, &asked(&plain));
    if let Some(judged) = first.as_ref().and_then(not_for_the_value) {
        return judged;
    }
    let like = default_text.or(shown.map(String::as_str)).unwrap_or_default();
    let value = match in_form(row, key, like, &plain) {
        Ok(value) => value,
        Err(judged) => return *judged,
    };
    if default_text.is_some_and(|d| same_value(d, &value)) {
        return Judged::new(LineVerdict::Good, "this kernel starts with it", source_of(row));
    }
    if let Some(judged) = conditional(set.mode, &value, default_text) {
        return judged;
    }
    match settings::judge(key, &asked(&value)) {
        Some(judged) if judged.verdict != Verdict::Good => of_table(key, judged, all),
        _ => nothing_against(context, row, key, &value, default_text),
    }
}

/// `0x1f` and `017` as the kernel reads them.
fn numbers_in_decimal(text: &str) -> String {
    let word = |w: &str| {
        let number = match w.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16).ok(),
            None if w.len() > 1 && w.starts_with('0') => i128::from_str_radix(w, 8).ok(),
            None => None,
        };
        number.map_or_else(|| w.to_owned(), |n| n.to_string())
    };
    folded(text).split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Judgements that hold for every value.
fn not_for_the_value(judged: &JudgedValue) -> Option<Judged> {
    let always = judged.when == Some(ValueMatch::Always);
    Some(match judged.verdict {
        Verdict::Gone => Judged::new(LineVerdict::Gone, &judged.why, judged.source),
        Verdict::NotUndone => Judged::unknown(format!("not judged: {}", judged.why)),
        Verdict::Dangerous if always => {
            Judged::unknown("not judged: it guards the host, and is no matter of tuning")
        }
        _ => return None,
    })
}

/// The value as the kernel takes it, or the verdict on one that it does not take.
fn in_form(row: &Setting, key: &str, like: &str, value: &str) -> Result<String, Box<Judged>> {
    let is_number = |w: &str| w.parse::<i128>().is_ok();
    let numeric = !like.is_empty() && like.split(' ').all(is_number);
    let (has, takes) = (value.split(' ').count(), like.split(' ').count());
    if numeric && has > takes {
        return Err(Box::new(Judged::unknown(format!(
            "it has {has} numbers, and the setting {takes}"
        ))));
    }
    // The kernel takes fewer numbers than there are, and leaves the others.
    let rest = like.split(' ').skip(has).filter(|_| numeric);
    let whole = value.split(' ').chain(rest).collect::<Vec<_>>().join(" ");
    match tune::knobs::sysctl_form(key, like, &whole) {
        // `4M` is a unit of ours, and none of the kernel's.
        Ok(form) if numeric && !whole.split(' ').all(is_number) => Err(Box::new(Judged::new(
            LineVerdict::WrongUnit,
            format!("the kernel takes plain numbers of {} and refuses {value:?}: {form}", row.unit),
            source_of(row),
        ))),
        Ok(form) => Ok(form),
        Err(refusal) if is_taken_in_any_order(key, &refusal.why) => Err(Box::new(Judged::new(
            LineVerdict::Harmful,
            format!("the kernel takes it, with {whole} then in force: {}", refusal.why),
            source_of(row),
        ))),
        Err(refusal) => Err(Box::new(Judged::new(
            LineVerdict::NoEffect,
            format!(
                "no value of this setting, the kernel refuses it or gives it no meaning: {}",
                refusal.why
            ),
            source_of(row),
        ))),
    }
}

/// Whether only the order of the numbers is wrong, which the kernel does not compare.
fn is_taken_in_any_order(key: &str, why: &str) -> bool {
    let triples =
        ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.udp_mem"];
    triples.contains(&key) && why.contains("ascend")
}

fn source_of(row: &Setting) -> &'static str {
    row.known.map_or("", |k| k.source)
}

/// tuned's `=>` and `=<` where the default is beyond the value already.
fn conditional(mode: SetMode, value: &str, default: Option<&str>) -> Option<Judged> {
    let (value, default): (i128, i128) = (value.parse().ok()?, default?.parse().ok()?);
    let (beyond, word) = match mode {
        SetMode::Exactly => return None,
        SetMode::AtLeast => (default >= value, "at least"),
        SetMode::AtMost => (default <= value, "at most"),
    };
    beyond.then(|| {
        let why = format!("{word} {value} is what this kernel starts with: {default}");
        Judged::new(LineVerdict::NoEffect, why, "tuned.conf: the modifiers > and <")
    })
}

/// The table's verdict, in the words for a line of a file.
fn of_table(key: &str, judged: JudgedValue, all: &[Placed<'_>]) -> Judged {
    let JudgedValue { verdict, why, source, when } = judged;
    if key.ends_with(".disable_ipv6") {
        let find_out = "`ss -6 -a` shows who listens or connects by IPv6";
        return Judged {
            find_out: find_out.into(),
            ..Judged::new(
                LineVerdict::Depends,
                "no IPv6 on the interface: right where nothing uses it",
                source,
            )
        };
    }
    let other = key.replace("_ratio", "_bytes");
    if key.starts_with("vm.dirty_")
        && all.iter().any(|p| p.set.setting == format!("sysctl.{other}") && p.set.value != "0")
    {
        return Judged::new(
            LineVerdict::Good,
            format!("{other} is set, and this is its other unit"),
            source,
        );
    }
    let verdict = match (verdict, when) {
        (Verdict::Harmful, Some(ValueMatch::MostOfMemory(_))) => LineVerdict::WrongUnit,
        (Verdict::Harmful, _) => LineVerdict::Harmful,
        (Verdict::Dangerous, _) => LineVerdict::Dangerous,
        (Verdict::Lowers, _) => LineVerdict::BelowDefault,
        (Verdict::NoEffect, _) => LineVerdict::NoEffect,
        (Verdict::Gone, _) => LineVerdict::Gone,
        (Verdict::Good | Verdict::NotUndone, _) => LineVerdict::Unknown,
    };
    Judged::new(verdict, why, source)
}

/// A value that no rule of the table is against.
fn nothing_against(
    context: &Context<'_>,
    row: &Setting,
    key: &str,
    value: &str,
    default: Option<&str>,
) -> Judged {
    if let Some(judged) = depends::sysctl(context, key, value) {
        return judged;
    }
    let compares = |r: &settings::Rule| matches!(r.when, ValueMatch::Lower | ValueMatch::Higher);
    if row.rules.is_empty() {
        let known = default.map(|d| format!(" (this kernel starts with {d})")).unwrap_or_default();
        return Judged::unknown(format!("netwright has no judgement of its values{known}"));
    }
    match default {
        None if row.rules.iter().any(compares) => Judged {
            find_out: format!("`sysctl {key}` after a boot without the line, then compare"),
            ..Judged::new(
                LineVerdict::Depends,
                "whether it is less than the kernel's own value, which is not known here",
                source_of(row),
            )
        },
        None => Judged::new(LineVerdict::Good, "nothing is known against it", source_of(row)),
        Some(d) => {
            let why = format!("nothing is known against it; this kernel starts with {d}");
            Judged::new(LineVerdict::Good, why, source_of(row))
        }
    }
}
