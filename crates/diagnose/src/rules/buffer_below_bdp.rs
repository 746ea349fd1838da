//! 16: a buffer limits a connection: it holds less than the path carries within a round trip.

use model::{Confidence, Severity, samples::ConnectionSample};

use crate::{
    Case, Rule,
    knob::{self, advice},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    sockets, text,
};

/// Catalogue number 16. Judged at the sender, which knows what it waits for.
pub static RULE: Rule = Rule {
    id: "buffer_below_bdp",
    number: 16,
    title: "a connection's buffer is smaller than what fits into the path",
    needs: &["tcp_info of the connections over a window: limited times, round trip, windows"],
    explained_by: &["below_kernel_default", "tcp_memory_pressure"],
    judge,
};

const WMEM: &str = "net.ipv4.tcp_wmem";
/// The share of the window during which a buffer limits the sender.
const LIMITED: f64 = 0.10;
/// The least busy time of a connection whose counters are those since it was opened. Our proposal.
const LEAST_BUSY_S: f64 = 1.0;
/// The share of the receive window in flight within the shortest round trip. Below it the window is
/// open, and the other end's application does not read. Our proposal.
const WINDOW_FULL: f64 = 0.7;
/// The same for our send buffer. The kernel's overhead uses a part, and a third must be free before
/// the application wakes. Our proposal.
const BUFFER_FULL: f64 = 0.4;
const SHOWN: usize = 4;

/// What limits a connection.
struct HeldConnection<'a> {
    connection: &'a ConnectionSample,
    /// Share of the window; since boot, of the connection's busy time.
    share: f64,
    /// The buffer's or window's size in bytes.
    size: u64,
    rtt_ns: u64,
    bits_per_s: f64,
}

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    match both(case) {
        Ok(said) => said,
        Err(missing) => vec![missing.of("")],
    }
}

fn both(case: &Case<'_>) -> Result<Vec<Judgement>, Missing> {
    let all = need("connections", &case.samples()?.connections)?;
    let (mut windows, mut buffers, mut said) = (vec![], vec![], vec![]);
    let mut judged = 0usize;
    for c in all.iter().filter(|c| c.bytes_acked.get() != Some(0)) {
        match held(case, c) {
            Ok(by) => {
                judged += 1;
                windows.extend(by.0);
                buffers.extend(by.1);
            }
            Err(missing) => said.push(missing.of(format!("{} to {}", c.local, c.remote))),
        }
    }
    for list in [&mut windows, &mut buffers] {
        list.sort_by(|a: &HeldConnection<'_>, b| b.share.total_cmp(&a.share));
    }
    if let Some(worst) = windows.first() {
        said.push(window(case, worst, &windows));
    }
    if let Some(worst) = buffers.first() {
        said.push(buffer(case, worst, &buffers));
    }
    if windows.is_empty() && buffers.is_empty() && (judged > 0 || said.is_empty()) {
        let text = format!(
            "{}: no sender is limited by a buffer for {} of the time",
            text::plural(judged, "connection"),
            text::percent(LIMITED)
        );
        // Connections that do not report it are named in the evidence.
        said.push(settle("", clear(text, [&case.samples()?.connections])));
    }
    Ok(said)
}

/// Limited by the other end's window, and by our buffer.
type By<'a> = (Option<HeldConnection<'a>>, Option<HeldConnection<'a>>);

fn held<'a>(case: &Case<'_>, c: &'a ConnectionSample) -> Result<By<'a>, Missing> {
    let busy = || Ok(*need("busy time of tcp_info", &c.busy_ns)? as f64 / 1e9);
    // Since boot it is not known when the connection was opened.
    let window = if case.since_boot() { busy()? } else { case.window_s()? };
    if case.since_boot() && window < LEAST_BUSY_S {
        return Ok((None, None));
    }
    let share =
        |what: &str, time| -> Result<f64, Missing> { Ok(*need(what, time)? as f64 / 1e9 / window) };
    let by_window = share("rwnd_limited of tcp_info", &c.rwnd_limited_ns)?;
    let by_buffer = share("sndbuf_limited of tcp_info", &c.sndbuf_limited_ns)?;
    if by_window.max(by_buffer) < LIMITED {
        return Ok((None, None));
    }
    let busy = busy()?;
    let acked = *need("bytes_acked of tcp_info", &c.bytes_acked)? as f64;
    let rtt_ns = *need("min_rtt of tcp_info", &c.min_rtt_ns)?;
    let under_way = acked / busy.max(1e-9) * rtt_ns as f64 / 1e9;
    let by = |share: f64, size: u64, full: f64| {
        let fits = share >= LIMITED && size > 0 && under_way >= full * size as f64;
        let bits_per_s = acked * 8.0 / window;
        fits.then_some(HeldConnection { connection: c, share, size, rtt_ns, bits_per_s })
    };
    let mut found = (None, None);
    if by_window >= LIMITED {
        let size = *need("snd_wnd of tcp_info", &c.peer_window_bytes)?;
        found.0 = by(by_window, size, WINDOW_FULL);
    }
    if by_buffer >= LIMITED {
        let size = *need("send buffer by sock_diag", &c.send_buffer_bytes)?;
        found.1 = by(by_buffer, size, BUFFER_FULL);
    }
    Ok(found)
}

fn begun(
    case: &Case<'_>,
    worst: &HeldConnection<'_>,
    all: &[HeldConnection<'_>],
    by: &str,
    size: &str,
) -> Draft {
    let c = worst.connection;
    let mut draft = Draft::new(
        &c.remote,
        format!("{by} limits {} to {}", text::plural(all.len(), "connection"), rate(worst)),
    )
    .weigh(Severity::Warning, Confidence::High)
    .explain(format!(
        "A sender has at most one {size} in flight per round trip: {} bytes in {}. It sent {}.",
        text::count(worst.size),
        milliseconds(worst.rtt_ns),
        rate(worst),
    ));
    for h in all.iter().take(SHOWN) {
        let c = h.connection;
        draft = draft.show(
            format!("{} to {}, {}", c.local, c.remote, sockets::owners(&c.owners)),
            format!(
                "limited {} of the {}; {size} {} bytes, round trip {}, {}",
                text::percent(h.share),
                if case.since_boot() { "time with data to send" } else { "time" },
                text::count(h.size),
                milliseconds(h.rtt_ns),
                rate(h)
            ),
            "tcp_info by sock_diag (ss -tim)",
        );
    }
    draft
        .add(&if all.len() > SHOWN {
            format!("And {} more.", all.len() - SHOWN)
        } else {
            String::new()
        })
        .gain(
            Gain::Unblocks,
            format!("twice the rate from twice the {size}, until another limit shows"),
        )
        // A buffer's limit explains no other finding.
        .add(&if case.window_s().is_ok_and(|s| s < 1.0) {
            "The window was short.".to_owned()
        } else {
            String::new()
        })
}

fn window(case: &Case<'_>, worst: &HeldConnection<'_>, all: &[HeldConnection<'_>]) -> Judgement {
    let peer = &worst.connection.remote;
    begun(case, worst, all, "the peer's receive window", "receive window")
        .add(
            "The buffer is the peer's: the peer's application sets SO_RCVBUF, or the peer's tcp_rmem \
             is too small.",
        )
        .change(advice(
            &format!("receive window {} bytes", text::count(worst.size)),
            &format!("{} bytes or more at {peer}", text::count(worst.size.saturating_mul(2))),
            "on the peer: ss -tim; remove SO_RCVBUF from the application, or raise the third value of \
             net.ipv4.tcp_rmem",
            "memory on the peer, for each connection",
        ))
        .alone()
        .found()
}

fn buffer(case: &Case<'_>, worst: &HeldConnection<'_>, all: &[HeldConnection<'_>]) -> Judgement {
    begun(case, worst, all, "this host's send buffer", "send buffer")
        .show_sysctl(case, WMEM)
        .change(larger(case, worst))
        .on_sysctl(WMEM)
        .found()
}

/// The maximum, where the kernel has grown the buffer to it; otherwise the application set the
/// size.
fn larger(case: &Case<'_>, worst: &HeldConnection<'_>) -> Proposal {
    let values = case.sysctl_numbers(WMEM)?;
    let [least, first, most] = values.as_slice() else {
        return Err(Missing(format!("{WMEM}: not three values")));
    };
    if worst.size >= *most {
        let new = format!("{least} {first} {}", most.saturating_mul(2));
        return knob::sysctl(case, WMEM, &new, "memory, for connections that need it");
    }
    advice(
        &format!("SO_SNDBUF, {} bytes", text::count(worst.size)),
        &format!(
            "no SO_SNDBUF: the kernel then grows the buffer up to {} bytes",
            text::count(*most)
        ),
        &format!("remove SO_SNDBUF from {}", sockets::owners(&worst.connection.owners)),
        "restart of the application; memory",
    )
}

/// The rate of the connection: `32.1 Mbit/s`.
fn rate(h: &HeldConnection<'_>) -> String {
    match h.bits_per_s {
        n if n >= 1e9 => format!("{:.2} Gbit/s", n / 1e9),
        n if n >= 1e6 => format!("{:.1} Mbit/s", n / 1e6),
        n => format!("{:.0} kbit/s", n / 1e3),
    }
}

fn milliseconds(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        _ => format!("{:.1} ms", ns as f64 / 1e6),
    }
}
