//! 18: TCP short of memory, as a whole or socket by socket.

use model::{Bytes, Confidence, Severity};

use crate::{
    Case, Rule, pressure, rate,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "tcp_memory_pressure",
    number: 18,
    title: "TCP is short of memory",
    needs: &["sockstat", "net.ipv4.tcp_mem", "page size", "protocol counters over a window"],
    explained_by: &["tcp_mem_units", "below_kernel_default"],
    judge,
};

const KEY: &str = "net.ipv4.tcp_mem";
const SOURCE: &str = "/proc/net/sockstat, TCP: mem";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("all TCP sockets", whole(case)), settle("single sockets", single(case))]
}

/// All sockets together against the limits.
fn whole(case: &Case<'_>) -> Result<Judgement, Missing> {
    let values = case.sysctl_numbers(KEY)?;
    let [_, pressure, max] = values[..] else {
        return Err(Missing(format!("{KEY}: {} values instead of three", values.len())));
    };
    let gauges = need("/proc/net/sockstat", &case.samples()?.sockstat)?;
    let used = *gauges.get("TCP.mem").ok_or_else(|| Missing(format!("{SOURCE}: not there")))?;
    let page = need("page size", &case.facts.host.page_size_bytes)?.0;
    let size = |pages: u64| {
        format!("{} pages ({})", text::count(pages), Bytes(pages.saturating_mul(page)))
    };
    let began = case.protocol("TcpExt.TCPMemoryPressures");
    let entered = began.clone().unwrap_or(0);
    if used <= pressure && entered == 0 {
        let text = format!("TCP uses {} of {} before pressure", size(used), size(pressure));
        return clear(text, [&case.samples()?.sockstat, &began]);
    }
    let severity = if used >= max { Severity::Critical } else { Severity::Warning };
    let title = if used > pressure {
        format!("TCP uses {}, pressure starts at {}", size(used), size(pressure))
    } else {
        format!("TCP was under memory pressure {}, and no longer is", text::times(entered))
    };
    let mut draft = Draft::new(KEY, title)
        .weigh(severity, Confidence::High)
        .explain(
            "Under pressure the kernel shrinks receive windows, collapses queues and in the end \
             refuses buffers: every connection slows down. Find the sockets that hold the memory \
             (ss -tm) before raising the limit: usually some application does not read.",
        )
        .gain(Gain::Unblocks, "windows open again for all connections")
        .show("memory of all TCP sockets", size(used), SOURCE)
        .show_sysctl(case, KEY);
    if entered > 0 {
        draft = draft.show(
            format!("times pressure began {}", case.over()),
            text::count(entered),
            "/proc/net/netstat TCPMemoryPressures",
        );
    }
    if let Ok(memory) = pressure::host(case, "memory") {
        draft = draft.show_pressure(case, memory);
    }
    Ok(draft.on_sysctl(KEY).found())
}

/// Single sockets over their own buffer.
fn single(case: &Case<'_>) -> Result<Judgement, Missing> {
    let pruned = case.protocol("TcpExt.PruneCalled")?;
    let collapsed = case.protocol("TcpExt.TCPRcvCollapsed")?;
    let window = case.window_s()?;
    let Some(sure) = rate::sustained(pruned, window) else {
        let text = format!(
            "receive queues were pruned {} times and {} segments collapsed {}",
            text::count(pruned),
            text::count(collapsed),
            case.over()
        );
        return clear(text, [&case.protocol("TcpExt.PruneCalled")]);
    };
    let severity = if sure == Confidence::Low { Severity::Info } else { Severity::Warning };
    Ok(Draft::new("net.ipv4.tcp_rmem", "single sockets ran over their receive buffer")
        .weigh(severity, sure)
        .explain(
            "The kernel had to prune or collapse receive queues: data came in small pieces or \
             faster than the application read it. Find the sockets (ss -tm, column skmem) first; \
             a larger maximum helps only those whose reader keeps up.",
        )
        .add(&rate::Pattern::of(case, &["TcpExt.PruneCalled"]).text())
        .gain(Gain::Improves, "less CPU spent on repacking, no data dropped after it arrived")
        .show(format!("PruneCalled {}", case.over()), text::count(pruned), "/proc/net/netstat")
        .show(
            format!("TCPRcvCollapsed {}", case.over()),
            text::count(collapsed),
            "/proc/net/netstat",
        )
        .show_sysctl(case, "net.ipv4.tcp_rmem")
        .on_sysctl("net.ipv4.tcp_rmem")
        .found())
}
