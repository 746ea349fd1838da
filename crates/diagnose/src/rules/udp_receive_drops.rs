//! 35: datagrams dropped at a full socket.

use model::{Change, Confidence, Severity};

use crate::{
    Case, Rule,
    knob::{self, advice},
    rate,
    rule::{Draft, Gain, Judgement, Missing, settle},
    text,
};

/// Catalogue number 35.
pub static RULE: Rule = Rule {
    id: "udp_receive_drops",
    number: 35,
    title: "datagrams dropped because the socket's buffer was full",
    needs: &["Udp RcvbufErrors over a window"],
    explained_by: &["below_kernel_default"],
    judge,
};

const RMEM_MAX: &str = "net.core.rmem_max";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let v4 = case.protocol("Udp.RcvbufErrors")?;
    // Without IPv6 there is no such counter.
    let v6 = case.protocol("Udp6.RcvbufErrors").ok();
    let dropped = v4 + v6.unwrap_or(0);
    let v6 = v6.map_or("not counted".into(), text::count);
    let window = case.window_s()?;
    let Some(sure) = rate::sustained(dropped, window) else {
        return Ok(Judgement::Clear(format!(
            "{} datagrams dropped {}",
            text::count(dropped),
            case.over()
        )));
    };
    let severity = if sure == Confidence::Low { Severity::Info } else { Severity::Warning };
    let received = case.protocol("Udp.InDatagrams").unwrap_or(0)
        + case.protocol("Udp6.InDatagrams").unwrap_or(0);
    let mut draft = Draft::new(
        "UDP",
        format!("{} datagrams dropped at full socket buffers", text::count(dropped)),
    )
    .weigh(severity, sure)
    .explain(
        "A datagram that finds its socket's buffer full is gone. Bursts need a larger buffer \
             (the application asks with SO_RCVBUF, up to rmem_max); a reader that is always too \
             slow needs CPU, or more sockets with SO_REUSEPORT, and no buffer helps it.",
    )
    .add(rate::caveat(window))
    .gain(Gain::Improves, "no datagrams lost in bursts")
    .show(
        format!("RcvbufErrors {}", case.over()),
        format!("{} (IPv4), {} (IPv6)", text::count(v4), v6),
        "/proc/net/snmp Udp, /proc/net/snmp6 Udp6",
    );
    if received > 0 {
        draft = draft.show(
            format!("datagrams delivered {}", case.over()),
            text::count(received),
            "/proc/net/snmp, /proc/net/snmp6",
        );
    }
    Ok(draft
        .show_sysctl(case, RMEM_MAX)
        .show_sysctl(case, "net.core.rmem_default")
        .changes(larger(case))
        .on_sysctl(RMEM_MAX)
        .on_sysctl("net.core.rmem_default")
        .found())
}

fn larger(case: &Case<'_>) -> Vec<Change> {
    let Ok(now) = case.sysctl_number(RMEM_MAX) else { return vec![] };
    let new = now.saturating_mul(2);
    vec![
        advice(
            "the socket's present SO_RCVBUF",
            &format!("larger, up to {now} bytes as things are"),
            "set a larger SO_RCVBUF in the application (ss -uamp: rb is its size, d its drops)",
            "restart of the application",
        ),
        knob::sysctl(
            case,
            RMEM_MAX,
            &new.to_string(),
            "memory: what every socket may ask for; helps only a socket that asks for more than \
             it gets now",
        ),
    ]
}
