//! 20: connections refused because the application did not accept them in time.

use model::{Confidence, Severity};

use crate::{
    Case, Rule, drop_reasons,
    knob::{self, advice},
    rate,
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "accept_queue_overflow",
    number: 20,
    title: "a listener's accept queue overflows",
    needs: &["ListenOverflows over a window", "listeners with queue and limit, to name the one"],
    explained_by: &["below_kernel_default"],
    judge,
};

const SOMAXCONN: &str = "net.core.somaxconn";
/// Overflows a minute above which it is a warning, and critical.
const WARN: f64 = 1.0;
const CRITICAL: f64 = 5.0;
/// This kernel family's default limit since 5.4; the proposal is never lower.
const LEAST_LIMIT: u64 = 4_096;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

/// A listener with a full queue now or in the window. The kernel takes one more than the limit.
struct Full {
    address: String,
    queue: u32,
    limit: u32,
    /// The number of readings with a full queue; `None` where only the facts show it.
    readings: Option<u32>,
}

/// Evidence: how full each listener's queue is, when the facts were read or over the window.
fn queues_read(case: &Case<'_>) -> Result<(), Missing> {
    if case.samples()?.listeners.is_known() {
        return Ok(());
    }
    for l in need("listening sockets", &case.facts.listeners)? {
        need(&format!("accept queue of {}", l.address), &l.accept_queue)?;
        need(&format!("accept queue limit of {}", l.address), &l.accept_queue_limit)?;
    }
    Ok(())
}

/// Listeners at their limit in the facts or at any reading of the window, fullest first.
fn full(case: &Case<'_>) -> Vec<Full> {
    let listeners = case.facts.listeners.known().into_iter().flatten();
    let once = listeners.filter_map(|l| {
        let limit = l.accept_queue_limit.get().filter(|&n| n > 0)?;
        let (address, queue) = (l.address.clone(), l.accept_queue.get()?);
        Some(Full { address, queue, limit, readings: None })
    });
    let samples = case.samples.known().and_then(|s| s.listeners.known());
    let seen = samples.into_iter().flatten().filter(|l| l.full_readings > 0).map(|l| Full {
        address: l.address.clone(),
        queue: l.fullest_accept_queue,
        limit: l.accept_queue_limit,
        readings: Some(l.full_readings),
    });
    let mut full: Vec<Full> = seen.collect();
    for l in once.filter(|l| l.queue >= l.limit) {
        if !full.iter().any(|f| f.address == l.address) {
            full.push(l);
        }
    }
    full.sort_by_key(|l| (std::cmp::Reverse(l.queue), l.address.clone()));
    full
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let overflows = case.protocol("TcpExt.ListenOverflows")?;
    let window = case.window_s()?;
    let a_minute = rate::at_most_per_minute(overflows, window);
    let full = full(case);
    if a_minute <= WARN && full.is_empty() {
        let text = format!("ListenOverflows grew by {overflows} {}", case.over());
        return clear(text, [&case.protocol("TcpExt.ListenOverflows"), &queues_read(case)]);
    }
    let (severity, confidence) = match a_minute {
        n if n > CRITICAL => (Severity::Critical, Confidence::High),
        n if n > WARN => (Severity::Warning, Confidence::High),
        _ => (Severity::Warning, Confidence::Medium),
    };
    let subject = full.first().map_or("listeners".into(), |l| l.address.clone());
    let title = if overflows > 0 {
        format!("an accept queue was found full {} times", text::count(overflows))
    } else {
        format!("the accept queue of {subject} is at its limit")
    };
    let mut draft = Draft::new(subject, title)
        .weigh(severity, confidence)
        .explain(
            "Connections wait here until the application accepts them; when the queue is full the \
             client's handshake is dropped and tried again after a second or more, which is counted \
             again. The limit is the smaller of the application's own backlog and somaxconn.",
        )
        .gain(Gain::Unblocks, "no connection set-ups of a second and more")
        .show(format!("ListenOverflows {}", case.over()), text::count(overflows), "/proc/net/netstat");
    for l in full.iter().take(4) {
        let when = match (l.readings, case.samples.known()) {
            (Some(n), Some(s)) => format!(" (in {n} of {} samples)", s.readings),
            _ => String::new(),
        };
        draft = draft.show(
            format!("accept queue of {}{}", l.address, owner(case, &l.address)),
            format!("{} waiting, limit {}{when}", l.queue, l.limit),
            "sock_diag (ss -ltn)",
        );
    }
    draft = drop_reasons::show(case, RULE.id, draft).show_sysctl(case, SOMAXCONN);
    let changes = match full.first() {
        Some(l) => remedies(case, &l.address, u64::from(l.limit)),
        None => {
            draft = draft.add(unnamed(case));
            vec![]
        }
    };
    Ok(draft.changes(changes).on_sysctl(SOMAXCONN).found())
}

/// Why no listener is named, and what to do.
fn unnamed(case: &Case<'_>) -> &'static str {
    let limits = case.facts.listeners.known().into_iter().flatten();
    if limits.filter(|l| l.accept_queue_limit.is_known()).count() == 0 {
        "Which listener it was is not known: the queues' limits could not be read (sock_diag)."
    } else {
        "No listener's queue was full when it was read, so which one it was is not known: watch \
         `ss -ltn` while it happens."
    }
}

fn owner(case: &Case<'_>, address: &str) -> String {
    let listeners = case.facts.listeners.known();
    let Some(l) = listeners.into_iter().flatten().find(|l| l.address == address) else {
        return String::new();
    };
    let Some(pids) = l.pids.known().filter(|p| !p.is_empty()) else { return String::new() };
    let name = |pid: &u32| {
        let process = case.facts.processes.iter().find(|p| p.pid == *pid);
        process.map_or(format!("pid {pid}"), |p| format!("{}[{pid}]", p.name))
    };
    format!(" ({})", pids.iter().take(3).map(name).collect::<Vec<_>>().join("; "))
}

/// Raises the effective limit: somaxconn where it is smaller, and always the application's.
fn remedies(case: &Case<'_>, address: &str, limit: u64) -> Vec<Proposal> {
    let new = limit.saturating_mul(2).max(LEAST_LIMIT);
    let mut changes = vec![];
    if let Ok(now) = case.sysctl_number(SOMAXCONN)
        && now < new
    {
        changes.push(knob::sysctl(
            case,
            SOMAXCONN,
            &new.to_string(),
            "low; takes effect only when the application listens again",
        ));
    }
    changes.push(advice(
        &limit.to_string(),
        &new.to_string(),
        &format!("raise the backlog in the configuration of what listens on {address} and restart it"),
        "restart of the application; a longer queue hides an application that is too slow to accept",
    ));
    changes
}
