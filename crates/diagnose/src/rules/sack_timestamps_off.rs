//! 19: selective acknowledgement or timestamps switched off.

use model::Confidence;

use crate::{
    Case, Rule, knob,
    rule::{Draft, Gain, Judgement, Missing, clear, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "sack_timestamps_off",
    number: 19,
    title: "SACK or timestamps switched off",
    needs: &["net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"],
    explained_by: &[],
    judge,
};

/// Key, what its absence costs, what its return brings.
const WHAT_IS_LOST: [(&str, &str, &str); 2] = [
    (
        "net.ipv4.tcp_sack",
        "Without selective acknowledgement a sender learns of one lost segment per round trip and \
         sends data again that had arrived.",
        "faster recovery from loss",
    ),
    (
        "net.ipv4.tcp_timestamps",
        "Without timestamps there is no protection against wrapped sequence numbers (at 10 Gbit/s \
         the space wraps in 3.4 s), fewer round-trip samples, and tcp_tw_reuse cannot work.",
        "safety at high rates, better estimates of the round trip",
    ),
];

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    WHAT_IS_LOST.iter().map(|(key, cost, gain)| settle(key, one(case, key, cost, gain))).collect()
}

fn one(case: &Case<'_>, key: &str, cost: &str, gain: &str) -> Result<Judgement, Missing> {
    let value = case.sysctl_number(key)?;
    if value != 0 {
        return clear(format!("{key} is {value}"), [&case.sysctl_number(key)]);
    }
    let resent = case.protocol("Tcp.RetransSegs").unwrap_or(0);
    let hurts = key.ends_with("sack") && resent > 0;
    let mut draft = Draft::new(key, format!("{key} is 0"))
        .weigh(case.setting_severity(), if hurts { Confidence::Medium } else { Confidence::Low })
        .explain(cost)
        .gain(Gain::Improves, gain)
        .show_sysctl(case, key);
    if hurts {
        draft = draft.show(
            format!("segments retransmitted {}", case.over()),
            text::count(resent),
            "/proc/net/snmp Tcp RetransSegs",
        );
    }
    Ok(draft.change(knob::sysctl(case, key, "1", "new connections only")).on_sysctl(key).found())
}
