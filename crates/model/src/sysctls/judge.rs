//! Judges a value by its setting's row. Pure.

use super::{Rule, Setting, ValueMatch, Verdict, find};

/// A value that is asked for, and what it is judged by. What is not known is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProposedValue<'a> {
    /// The value, in the kernel's form.
    pub value: &'a str,
    pub now: Option<&'a str>,
    /// This kernel's own default.
    pub default: Option<&'a str>,
    pub kernel: Option<(u32, u32)>,
    /// Memory of the host in bytes.
    pub memory: Option<u64>,
    /// Bytes of a page.
    pub page: Option<u64>,
}

/// What a value is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedValue {
    pub verdict: Verdict,
    /// Why; empty where it is good.
    pub why: String,
    /// What that rests on.
    pub source: &'static str,
    /// The values that the rule is about; `None` without a rule.
    pub when: Option<ValueMatch>,
}

/// What a value of a setting is; `None` for a setting that is not in the table.
pub fn judge(key: &str, asked: &ProposedValue<'_>) -> Option<JudgedValue> {
    let row = find(key)?;
    if let Some(gone) = row.gone.filter(|g| asked.now.is_none() && reached(asked, g.since)) {
        let (major, minor) = gone.since;
        let why = format!("Linux {major}.{minor} took it away: {}", gone.why);
        return Some(JudgedValue { verdict: Verdict::Gone, why, source: gone.source, when: None });
    }
    let good =
        JudgedValue { verdict: Verdict::Good, why: String::new(), source: source(row), when: None };
    Some(row.rules.iter().find_map(|rule| by(row, rule, asked)).unwrap_or(good))
}

/// The reasons of all rules that hold for a value beside the first, which [`judge`] returns.
pub fn further_reasons(key: &str, asked: &ProposedValue<'_>) -> Vec<String> {
    let Some(row) = find(key) else { return vec![] };
    let all = row.rules.iter().filter_map(|rule| by(row, rule, asked));
    all.skip(1).map(|judged| judged.why).collect()
}

/// What a line of a recipe is that is a command and no setting; `None` for one that is not known.
pub fn command(line: &str) -> Option<JudgedValue> {
    let words = |s: &str| s.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let line = words(line);
    let known = super::rules::COMMANDS.iter().find(|(start, _)| line.starts_with(&words(start)));
    known.map(|(_, rule)| JudgedValue {
        verdict: rule.verdict,
        why: rule.why.to_owned(),
        source: rule.source,
        when: Some(rule.when),
    })
}

fn source(row: &Setting) -> &'static str {
    row.known.map_or("", |k| k.source)
}

/// Whether the kernel is at least this one; one that is not known counts as new.
fn reached(asked: &ProposedValue<'_>, version: (u32, u32)) -> bool {
    asked.kernel.is_none_or(|v| v >= version)
}

fn by(row: &Setting, rule: &Rule, asked: &ProposedValue<'_>) -> Option<JudgedValue> {
    let text = compare(rule.when, asked)?;
    let why = match (text.is_empty(), rule.why.is_empty()) {
        (true, _) => rule.why.to_owned(),
        (false, true) => text,
        (false, false) => format!("{text}: {}", rule.why),
    };
    let source = if rule.source.is_empty() { source(row) } else { rule.source };
    Some(JudgedValue { verdict: rule.verdict, why, source, when: Some(rule.when) })
}

/// What a rule has to say of the value itself, if it holds for it; `None` where it does not.
fn compare(when: ValueMatch, asked: &ProposedValue<'_>) -> Option<String> {
    let new = numbers(asked.value);
    let holds = |yes: bool| yes.then(String::new);
    match when {
        ValueMatch::Always => holds(true),
        ValueMatch::Since(version) => holds(reached(asked, version)),
        ValueMatch::Is(n) => holds(new.first() == Some(&n)),
        ValueMatch::Below(place, n) => holds(new.get(place).is_some_and(|v| *v < n)),
        ValueMatch::Above(place, n) => holds(new.get(place).is_some_and(|v| *v > n)),
        ValueMatch::Equal => holds(new.len() > 1 && new.windows(2).all(|w| w.first() == w.last())),
        ValueMatch::Lower => {
            beyond(asked, &new, |new, than| new < than).map(|(new, than, what)| {
                let than = if what.is_empty() {
                    format!("the {than} of now")
                } else {
                    format!("{what} of {than}")
                };
                format!("{new} is below {than}")
            })
        }
        ValueMatch::Higher => holds(beyond(asked, &new, |new, than| new > than).is_some()),
        ValueMatch::MostOfMemory(unit) => {
            let page = unit.or(asked.page.and_then(|p| p.try_into().ok())).unwrap_or(4096);
            let bytes = new.last()?.saturating_mul(i128::from(page));
            let most = i128::from(asked.memory?) / 4;
            (bytes > most).then(|| {
                let what = if unit.is_some() { "KiB, each" } else { "pages" };
                format!("the unit is {what} of {page} bytes: {bytes} bytes are more than a quarter of memory")
            })
        }
    }
}

/// The first number that exceeds both the present value and the default; with what it exceeds, and
/// that value's name (empty: the present value, where the default is unknown).
fn beyond(
    asked: &ProposedValue<'_>,
    new: &[i128],
    beyond: impl Fn(i128, i128) -> bool,
) -> Option<(i128, i128, &'static str)> {
    let (now, default) = (asked.now.map(numbers), asked.default.map(numbers));
    let at = |of: &Option<Vec<i128>>, i: usize| of.as_ref().and_then(|w| w.get(i)).copied();
    new.iter().enumerate().find_map(|(i, &new)| {
        let (now, default) = (at(&now, i), at(&default, i));
        // A step towards the default does not exceed it.
        if now.is_some_and(|now| !beyond(new, now)) {
            return None;
        }
        match (default, now) {
            (Some(default), _) if beyond(new, default) => {
                Some((new, default, "this kernel's own default"))
            }
            (None, Some(now)) => Some((new, now, "")),
            _ => None,
        }
    })
}

fn numbers(text: &str) -> Vec<i128> {
    text.split_whitespace().filter_map(|w| w.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(key: &str, value: &str, now: &str, default: Option<&str>) -> Verdict {
        let asked = ProposedValue {
            value,
            now: Some(now),
            default,
            kernel: Some((6, 18)),
            memory: Some(24 << 30),
            page: Some(4096),
        };
        judge(key, &asked).unwrap_or_else(|| panic!("{key} is not known")).verdict
    }

    #[test]
    fn known_lore_is_reported_for_what_it_is() {
        use Verdict::*;
        for (key, value, now, default, is) in [
            ("net.core.netdev_max_backlog", "300000", "1000", Some("1000"), Harmful),
            ("net.core.netdev_max_backlog", "10000", "1000", Some("1000"), Good),
            ("net.core.optmem_max", "524287", "131072", Some("131072"), NoEffect),
            ("net.core.rmem_default", "524287", "212992", Some("212992"), NoEffect),
            ("net.core.wmem_default", "524287", "212992", Some("212992"), NoEffect),
            ("net.core.rmem_default", "65536", "212992", Some("212992"), Lowers),
            ("net.ipv4.ip_local_port_range", "1024 65535", "32768 60999", None, Harmful),
            ("net.ipv4.ip_local_port_range", "15000 65000", "32768 60999", None, Good),
            ("net.ipv4.tcp_syncookies", "0", "1", Some("1"), Harmful),
            ("net.ipv4.tcp_syncookies", "2", "1", Some("1"), Harmful),
            ("net.ipv4.tcp_dsack", "0", "1", Some("1"), Harmful),
            ("net.ipv4.tcp_frto", "0", "2", Some("2"), Lowers),
            ("net.ipv4.tcp_retries2", "3", "15", Some("15"), Lowers),
            ("net.ipv4.tcp_retries2", "8", "15", Some("15"), Good),
            ("net.ipv4.tcp_abort_on_overflow", "1", "0", Some("0"), Harmful),
            ("net.core.netdev_budget", "50000", "300", Some("300"), Harmful),
            ("net.core.netdev_budget", "600", "300", Some("300"), Good),
            ("net.core.netdev_budget_usecs", "2000", "8000", Some("8000"), Lowers),
            ("net.ipv4.tcp_limit_output_bytes", "262144", "4194304", Some("4194304"), Lowers),
            ("kernel.shmmax", "68719476736", "18446744073692774399", None, Lowers),
            ("kernel.sem", "250 32000 100 128", "32000 1024000000 500 32000", None, Lowers),
            ("vm.min_free_kbytes", "99999999", "67584", None, Harmful),
            ("vm.min_free_kbytes", "262144", "67584", None, Good),
            ("net.ipv4.tcp_low_latency", "1", "0", Some("0"), NoEffect),
            ("net.ipv4.tcp_fack", "1", "0", None, NoEffect),
            ("net.ipv4.udp_wmem_min", "8192", "4096", Some("4096"), NoEffect),
            ("kernel.threads-max", "20", "190000", None, Harmful),
            ("kernel.pid_max", "400", "32768", None, Harmful),
            ("vm.dirty_ratio", "0", "20", None, Harmful),
            ("kernel.poweroff_cmd", "/tmp/x", "/sbin/poweroff", None, Dangerous),
            ("kernel.randomize_va_space", "0", "2", None, Dangerous),
            ("fs.suid_dumpable", "2", "0", None, Dangerous),
            ("fs.protected_symlinks", "0", "1", None, Dangerous),
            ("vm.drop_caches", "3", "", None, NotUndone),
            ("net.ipv6.conf.eth0.stable_secret", "1", "", None, NotUndone),
            ("net.ipv4.conf.eth0/100.rp_filter", "2", "0", None, Good),
        ] {
            assert_eq!(verdict(key, value, now, default), is, "{key}={value}");
        }
        assert_eq!(judge("net.ipv4.tcp_unheard_of", &ProposedValue::default()), None);
        assert_eq!(judge("kernel.unheard_of", &ProposedValue::default()), None);
    }

    #[test]
    fn what_a_kernel_lost_is_gone_only_where_it_is_not_there() {
        let recycle = |kernel, now| {
            let asked =
                ProposedValue { value: "1", now, kernel: Some(kernel), ..ProposedValue::default() };
            judge("net.ipv4.tcp_tw_recycle", &asked).unwrap().verdict
        };
        assert_eq!(recycle((6, 18), None), Verdict::Gone);
        assert_eq!(recycle((3, 10), Some("0")), Verdict::Harmful);
        assert_eq!(recycle((4, 18), Some("0")), Verdict::Harmful, "whatever the number says");
        let asked = ProposedValue { value: "1", kernel: Some((4, 9)), ..ProposedValue::default() };
        assert_eq!(judge("net.ipv4.tcp_low_latency", &asked).unwrap().verdict, Verdict::Good);
    }

    #[test]
    fn less_than_the_default_is_reported_unless_it_is_a_raise() {
        let default = Some("4096 131072 33554432");
        let of = |now, new| verdict("net.ipv4.tcp_rmem", new, now, default);
        assert_eq!(of("4096 131072 33554432", "4096 131072 16777216"), Verdict::Lowers);
        assert_eq!(of("4096 131072 6291456", "4096 131072 16777216"), Verdict::Good, "a raise");
        assert_eq!(of("4096 131072 33554432", "4096 131072 67108864"), Verdict::Good);
        assert_eq!(of("4096 131072 67108864", "4096 131072 33554432"), Verdict::Good, "default");
        assert_eq!(of("4096 131072 33554432", "4096 10000000 33554432"), Verdict::Harmful);
    }

    #[test]
    fn a_recipes_commands_are_known_by_their_first_words() {
        let of = |line| command(line).map(|j| j.verdict);
        assert_eq!(of("setpci -d 8086:1048 e6.b"), Some(Verdict::Dangerous));
        assert_eq!(of("service irqbalance  stop"), Some(Verdict::Harmful));
        assert_eq!(of("service nginx stop"), None);
    }
}
