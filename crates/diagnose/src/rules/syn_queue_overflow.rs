//! 21: half-open connections over the limit.

use model::{Confidence, Severity};

use crate::{
    Case, Rule,
    knob::{self, advice},
    rate,
    rule::{Draft, Gain, Judgement, Missing, clear, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "syn_queue_overflow",
    number: 21,
    title: "half-open connections over a listener's limit",
    needs: &[
        "TCPReqQFullDrop and TCPReqQFullDoCookies over a window",
        "ListenDrops and ListenOverflows where SYN cookies are off",
    ],
    explained_by: &["accept_queue_overflow", "below_kernel_default"],
    judge,
};

const SYN_BACKLOG: &str = "net.ipv4.tcp_max_syn_backlog";
const SOMAXCONN: &str = "net.core.somaxconn";
const COOKIES: &str = "net.ipv4.tcp_syncookies";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let full = case.protocol("TcpExt.TCPReqQFullDrop")?;
    let cookies = case.protocol("TcpExt.TCPReqQFullDoCookies")?;
    let mode = case.sysctl_number(COOKIES);
    let cookies_off = mode.as_ref().is_ok_and(|n| *n == 0);
    let unnamed = if cookies_off { unnamed_drops(case, full)? } else { 0 };
    let dropped = full + unnamed;
    // With the value 2 every connection gets a cookie, and is counted.
    if dropped == 0 && mode.as_ref().is_ok_and(|n| *n == 2) {
        return clear("net.ipv4.tcp_syncookies is 2: cookies are sent on purpose", [&mode]);
    }
    let window = case.window_s()?;
    if rate::at_most_per_minute(dropped + cookies, window) <= 1.0 {
        let text = format!(
            "{dropped} connection requests dropped and {cookies} answered by cookies {}",
            case.over()
        );
        // With cookies off, drops have no counter of their own.
        return clear(text, [&case.protocol("TcpExt.TCPReqQFullDrop"), &mode]);
    }
    let severity = if dropped > 0 { Severity::Critical } else { Severity::Warning };
    let mut draft = Draft::new("listeners", "more half-open connections than a listener may have")
        .weigh(severity, Confidence::Medium)
        .explain(
            "A burst of connections or a SYN flood. The limit behind TCPReqQFull… is the listener's \
             own backlog (at most somaxconn); tcp_max_syn_backlog limits only where SYN cookies \
             are off. Cookies keep the service up but lose TCP options such as window \
             scaling when timestamps are off.",
        )
        .gain(Gain::Improves, "no delayed or degraded connections in bursts")
        .show(format!("TCPReqQFullDrop {}", case.over()), text::count(full), "/proc/net/netstat")
        .show(
            format!("TCPReqQFullDoCookies {}", case.over()),
            text::count(cookies),
            "/proc/net/netstat",
        )
        .show_sysctl(case, SOMAXCONN)
        .show_sysctl(case, COOKIES)
        .show_sysctl(case, SYN_BACKLOG);
    if unnamed > 0 {
        draft = draft.show(
            format!("ListenDrops beyond ListenOverflows and TCPReqQFullDrop {}", case.over()),
            text::count(unnamed),
            "/proc/net/netstat",
        );
    }
    let limit = if unnamed > 0 { SYN_BACKLOG } else { SOMAXCONN };
    draft = match case.sysctl_number(SYN_BACKLOG) {
        Ok(now) if unnamed > 0 => draft.change(knob::sysctl(
            case,
            SYN_BACKLOG,
            &now.saturating_mul(2).to_string(),
            "low; memory for half-open connections",
        )),
        _ => draft.change(advice(
            "the listener's backlog",
            "twice as long, with net.core.somaxconn at least as large",
            "raise the backlog in the application's configuration and restart it",
            "restart of the application; against a flood this only buys time",
        )),
    };
    if cookies_off {
        let risk = "low: cookies are sent only when a queue is full";
        draft = draft.change(knob::sysctl(case, COOKIES, "1", risk));
    }
    Ok(draft.on_sysctl(limit).found())
}

/// Without SYN cookies the kernel keeps the last quarter of `tcp_max_syn_backlog` for clients it
/// knows, and drops others' requests before that limit with no counter but `ListenDrops`
/// (`net/ipv4/tcp_input.c` `tcp_conn_request`). Full accept and request queues count there too.
fn unnamed_drops(case: &Case<'_>, full: u64) -> Result<u64, Missing> {
    let all = case.protocol("TcpExt.ListenDrops")?;
    Ok(all.saturating_sub(case.protocol("TcpExt.ListenOverflows")?).saturating_sub(full))
}
