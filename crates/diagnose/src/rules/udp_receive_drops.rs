//! 35: datagrams dropped at a full socket.

use model::{Confidence, Severity, samples::UdpSocketSample};

use crate::{
    Case, Rule, drop_reasons,
    knob::{self, advice},
    rate::{self, Pattern},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, settle},
    sockets, text,
};

/// Catalogue number 35. A buffer absorbs a burst. An application that never reads, or reads too
/// slowly, fills any buffer. The readings within the window tell the cases apart.
pub static RULE: Rule = Rule {
    id: "udp_receive_drops",
    number: 35,
    title: "datagrams dropped because the socket's buffer was full",
    needs: &["Udp RcvbufErrors over a window", "UDP sockets over a window, to name the one"],
    explained_by: &["below_kernel_default"],
    judge,
};

const RMEM_MAX: &str = "net.core.rmem_max";
/// Share of datagrams from which their loss is critical, as at a NIC's ring (rule 8).
const MANY: f64 = 0.01;
/// Share of the readings, or of the steps between them, that counts as all the time. Our proposal.
const MOSTLY: f64 = 0.8;
const SHOWN: usize = 4;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let v4 = case.protocol("Udp.RcvbufErrors")?;
    let v6_read = case.protocol6("Udp6.RcvbufErrors");
    let v6 = v6_read.clone().ok().flatten();
    let dropped = v4 + v6.unwrap_or(0);
    let window = case.window_s()?;
    let Some(sure) = rate::sustained(dropped, window) else {
        let text = format!("{} datagrams dropped {}", text::count(dropped), case.over());
        return clear(text, [&case.protocol("Udp.RcvbufErrors"), &v6_read]);
    };
    let received = case.protocol("Udp.InDatagrams").unwrap_or(0)
        + case.protocol("Udp6.InDatagrams").unwrap_or(0);
    let lost = dropped as f64 / (dropped + received) as f64;
    let pattern = Pattern::of(case, &["Udp.RcvbufErrors", "Udp6.RcvbufErrors"]);
    let severity = match sure {
        Confidence::Low => Severity::Info,
        _ if lost >= MANY => Severity::Critical,
        _ => Severity::Warning,
    };
    let worst = case.samples()?.udp_sockets.known().and_then(|all| all.first());
    let subject = worst.map_or("UDP".into(), |s| s.address.clone());
    let title = format!(
        "UDP receive buffer overflow: {} datagrams lost ({})",
        text::count(dropped),
        // Some datagrams were delivered, so the share is never "100.0%".
        if lost > 0.99 { format!("{:.2}%", lost * 100.0) } else { text::percent(lost) }
    );
    let v6 = v6.map_or("not counted".into(), text::count);
    let mut draft = Draft::new(subject, title)
        .weigh(severity, pattern.surer(sure))
        .explain("Datagrams for a full receive buffer are dropped.")
        .add(&pattern.text())
        .show(
            format!("RcvbufErrors {}", case.over()),
            format!("{} (IPv4), {v6} (IPv6)", text::count(v4)),
            "/proc/net/snmp Udp, /proc/net/snmp6 Udp6",
        );
    draft = drop_reasons::show(case, RULE.id, draft);
    // The socket and its process follow the count, as a short report is cut.
    for socket in case.samples()?.udp_sockets.known().into_iter().flatten().take(SHOWN) {
        draft = show(draft, socket);
    }
    if received > 0 {
        draft = draft.show(
            format!("datagrams delivered {}", case.over()),
            text::count(received),
            "/proc/net/snmp, /proc/net/snmp6",
        );
    }
    Ok(match worst {
        Some(socket) => remedy(case, draft, socket)?,
        None => unnamed(case, draft)?,
    }
    .found())
}

fn show(draft: Draft, s: &UdpSocketSample) -> Draft {
    let steps = s.readings.saturating_sub(1);
    let queue = match s.buffer_bytes.get() {
        Some(bytes) => format!(
            "Recv-Q up to {} of {} bytes, at least half full in {} of {} samples",
            text::count(s.most_queue_bytes),
            text::count(bytes),
            s.filled_readings,
            s.readings
        ),
        None => format!("Recv-Q up to {} bytes", text::count(s.most_queue_bytes)),
    };
    let drops = s.drops.get().map_or("some".into(), text::count);
    let when = match steps {
        0 => String::new(),
        steps => format!(", in {} of {steps} intervals", s.dropped_in),
    };
    draft.show(
        format!("socket {}, {}", s.address, sockets::owners(&s.owners)),
        format!("{drops} dropped{when}; {queue}"),
        match s.buffer_bytes.is_known() {
            true => "sock_diag (ss -uamp: d drops, rb buffer)",
            false => "/proc/net/udp",
        },
    )
}

/// Why a socket is full.
enum Reader {
    /// Nothing was read from a queue that is always full.
    Absent,
    /// Something was read, but the queue is always full.
    TooSlow,
    /// The queue is mostly not full.
    Bursts,
    Unknown,
}

fn reader(s: &UdpSocketSample) -> Reader {
    let most = |n: u32, of: u32| of > 1 && f64::from(n) >= MOSTLY * f64::from(of);
    let steady = most(s.dropped_in, s.readings.saturating_sub(1));
    if !s.buffer_bytes.is_known() || s.readings < 3 {
        Reader::Unknown
    } else if steady && most(s.filled_readings, s.readings) {
        if s.shrank_in == 0 { Reader::Absent } else { Reader::TooSlow }
    } else if s.filled_readings * 2 < s.readings {
        Reader::Bursts
    } else {
        Reader::Unknown
    }
}

fn remedy(case: &Case<'_>, draft: Draft, s: &UdpSocketSample) -> Result<Draft, Missing> {
    let who = sockets::owners(&s.owners);
    let look = match s.owners.known().and_then(|all| all.first()) {
        Some(owner) => format!("top -H -p {}", owner.pid),
        None => "ss -uamp".into(),
    };
    let reads = |draft: Draft, says: &str, new: &str| {
        draft
            .add(says)
            .gain(Gain::Unblocks, "no datagrams lost, once the application keeps up")
            .change(advice("", new, &look, "restart of the application, where its code changes"))
            // No setting explains it, and it explains no other finding.
            .alone()
    };
    Ok(match reader(s) {
        Reader::Absent => reads(
            draft,
            &format!(
                "{who} is not reading: its queue was full in nearly every sample and never \
                 shrank. A larger buffer does not help."
            ),
            "find out what keeps the application from reading this socket",
        ),
        Reader::TooSlow => reads(
            draft,
            &format!(
                "{who} is always too slow: its queue was full in nearly every sample. A larger \
                 buffer does not help."
            ),
            "more CPU for the reader, less work for each datagram, or more sockets (SO_REUSEPORT)",
        ),
        Reader::Bursts => {
            let draft = draft
                .add(&format!(
                    "The queue of {who} was mostly not full: the drops come in bursts, which a \
                     larger buffer bridges."
                ))
                .gain(Gain::Improves, "no datagrams lost in bursts");
            let changes = larger(case, s, &who);
            draft.show_sysctl(case, RMEM_MAX).changes(changes).on_sysctl(RMEM_MAX)
        }
        Reader::Unknown => undecided(case, draft),
    })
}

fn undecided(case: &Case<'_>, draft: Draft) -> Draft {
    draft
        .add(
            "Whether a larger buffer helps is not known: it bridges bursts, and does nothing for a \
             reader that is always too slow. Watch Recv-Q of the socket while it drops.",
        )
        .gain(Gain::Improves, "no datagrams lost")
        .show_sysctl(case, RMEM_MAX)
        .on_sysctl(RMEM_MAX)
        .change(advice(
            "",
            "find the socket and see whether its queue is always full",
            "watch -n 0.2 ss -uamp",
            "none",
        ))
}

/// No socket with drops was seen: it is closed, or the sockets could not be read.
fn unnamed(case: &Case<'_>, draft: Draft) -> Result<Draft, Missing> {
    let why = match case.samples()?.udp_sockets.why_not() {
        Some(why) => format!("Which socket it was is not known: {why}."),
        None => "Which socket it was is not known: none that is there now dropped any.".into(),
    };
    Ok(undecided(case, draft.add(&why)))
}

/// Twice the buffer: the kernel doubles the value of `SO_RCVBUF`, up to `rmem_max`.
fn larger(case: &Case<'_>, s: &UdpSocketSample, who: &str) -> Vec<Proposal> {
    let Some(buffer) = s.buffer_bytes.get() else { return vec![] };
    let mut changes = vec![];
    if case.sysctl_number(RMEM_MAX).is_ok_and(|most| most < buffer) {
        let risk = "memory: every socket may request this much";
        changes.push(knob::sysctl(case, RMEM_MAX, &buffer.to_string(), risk));
    }
    changes.push(advice(
        &format!("{buffer} bytes"),
        &format!("{} bytes", buffer.saturating_mul(2)),
        &format!("set SO_RCVBUF to {buffer} or more in {who}"),
        "restart of the application; memory",
    ));
    changes
}
