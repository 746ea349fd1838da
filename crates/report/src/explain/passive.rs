//! `explain --pid`, `--port` as text.

use model::{
    Bytes, Nanos, Reading,
    passive::{ConnectionClass, PassiveDocument, TimesNs},
};

use super::percent;
use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::{grouped, many},
};

pub fn text(d: &PassiveDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    head(d, &mut page);
    for (n, class) in d.classes.iter().enumerate() {
        if n > 0 {
            page.gap();
        }
        one(class, look, &mut page);
    }
    page.gap();
    cost(d, look, &mut page);
    let mut caveats = vec![];
    if d.observed_share < 0.995 {
        let text = format!(
            "Sampled {} of the time to limit overhead: counts cover that time only.",
            percent(d.observed_share)
        );
        caveats.push(Line::plain(text));
    }
    caveats.extend(d.warnings.iter().map(|w| Line::new().ink(Ink::Warn, w.to_string())));
    page.caveats(caveats);
    page.finish()
}

fn head(d: &PassiveDocument, page: &mut Page) {
    let ports = d.ports.iter().map(|p| format!("port {p}"));
    let pids = d.pids.iter().map(|p| format!("process {p}"));
    let asked: Vec<String> = ports.chain(pids).collect();
    let title = Line::new()
        .ink(Ink::Strong, format!("Response time of {}", asked.join(", ")))
        .text(format!(" · watched for {}", d.window_ns));
    page.line(title, 2);
    if d.interrupted {
        let text = "Ended early: the figures cover the time until then.";
        page.line(Line::new().ink(Ink::Warn, text), 2);
    }
}

fn one(c: &ConnectionClass, look: TextStyle, page: &mut Page) {
    let at = match &c.port {
        Reading::Known(port) => format!("{} port {port}", c.transport.to_uppercase()),
        _ => "Unix socket".into(),
    };
    let title = Line::plain(format!("{} on {at}", c.process)).text(format!(
        " · {} · {} ({}/s) · {} request, {} response",
        many(c.pids.len(), "process"),
        many(c.exchanges as usize, "request"),
        grouped(c.exchanges_per_s.round() as u64),
        Bytes(c.request_bytes.round() as u64),
        Bytes(c.response_bytes.round() as u64)
    ));
    page.line(verdict(c), 2);
    page.line(title, 2);
    if look.verbose {
        let pids: Vec<String> = c.pids.iter().map(u32::to_string).collect();
        page.line(Line::new().ink(Ink::Faint, format!("processes {}", pids.join(", "))), 2);
    }
    page.gap();
    parts(c, look, page);
}

fn parts(c: &ConnectionClass, look: TextStyle, page: &mut Page) {
    let mut table = Table::new()
        .left("COMPONENT")
        .right("P50")
        .right("P90")
        .right("P99")
        .right("MEAN")
        .right("SAMPLES")
        .wrapping("");
    let mut row = |name: &str, times: &Reading<TimesNs>, about: &str| {
        let Some(t) = times.known() else {
            let why = times.why_not().unwrap_or_default();
            let none = || Line::new().ink(Ink::Faint, "-");
            let name = Line::new().ink(Ink::Strong, name);
            let cells = [name, none(), none(), none(), none(), none()];
            table.row(cells.into_iter().chain([Line::new().ink(Ink::Faint, why)]));
            return;
        };
        let some = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| Nanos(ns).to_string());
        table.row([
            Line::new().ink(Ink::Strong, name),
            Line::plain(Nanos(t.p50).to_string()),
            Line::plain(some(t.p90)),
            Line::plain(some(t.p99)),
            Line::plain(Nanos(t.mean.round() as u64).to_string()),
            Line::plain(grouped(t.count)),
            Line::new().ink(Ink::Faint, if look.verbose { about } else { "" }),
        ]);
    };
    row("path RTT", &c.path_rtt_ns, "smoothed round trip, with the client's delayed ACK");
    row("  min", &c.path_least_rtt_ns, "smallest round trip");
    row("queueing", &c.queueing_ns, "from readable to read");
    row("  wake-up", &c.wakeup_ns, "part of queueing: from wake-up to running");
    let service = Reading::Known(c.service_ns.clone());
    row("service", &service, "from read to the response's first byte");
    page.table(&table, 0);
}

/// The answer in a sentence.
fn verdict(c: &ConnectionClass) -> Line {
    let mean = |t: &Reading<TimesNs>| t.known().map(|t| t.mean);
    let server = c.service_ns.mean + mean(&c.queueing_ns).unwrap_or(0.0);
    let server = format!("server {}", Nanos(server.round() as u64));
    match (c.network_share_low.known(), c.network_share_high.known()) {
        (Some(low), Some(high)) => {
            let (low, high) = (low.min(*high), low.max(*high));
            let share = match high - low < 0.02 {
                true => percent(high),
                false => format!("{} to {}", percent(low), percent(high)),
            };
            Line::new()
                .ink(Ink::Strong, format!("Network {share}"))
                .text(format!("; {server} (mean)"))
        }
        _ => Line::plain(format!("Network share unknown; {server} (mean)")),
    }
}

fn cost(d: &PassiveDocument, look: TextStyle, page: &mut Page) {
    let share = d.cost.busiest_cpu_share.known().copied().unwrap_or(0.0);
    let each = match d.cost.ns_per_exchange.known() {
        Some(ns) => format!(", {} per request", Nanos(ns.round() as u64)),
        None => String::new(),
    };
    let budget = match d.cost.budget_share.known() {
        // The overhead is sampled: the limit stops the programs a little late.
        Some(most) if share > *most => {
            format!("limit {} of each second, enforced a little late", percent(*most))
        }
        Some(most) => format!("limit {}", percent(*most)),
        None => "no limit".into(),
    };
    let text = format!("Probe overhead: {:.2}% of the busiest CPU{each}; {budget}.", share * 100.0);
    page.line(Line::new().ink(Ink::Faint, text), 2);
    if !look.verbose {
        return;
    }
    for p in &d.cost.programs {
        let text = match p.ran.known() {
            Some(ran) => {
                let runs = ran.runs.known().map_or("?".into(), |n| grouped(*n));
                let ns = ran.ns_per_run.known().map(|ns| format!(" of {ns:.0} ns"));
                format!("{}: {runs} runs{}", p.program, ns.unwrap_or_default())
            }
            None => format!("{}: {}", p.program, p.ran.why_not().unwrap_or_default()),
        };
        page.line(Line::new().ink(Ink::Faint, text), 4);
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Warning,
        passive::Cost,
        watch::{ProgramStatus, Ran},
    };

    use super::*;
    use crate::testing::golden;

    fn times(count: u64, us: u64) -> TimesNs {
        let ns = us * 1_000;
        TimesNs {
            count,
            mean: ns as f64,
            p50: ns,
            p90: (count >= 10).then_some(2 * ns),
            p99: (count >= 100).then_some(3 * ns),
        }
    }

    fn document() -> PassiveDocument {
        let class = ConnectionClass {
            port: Reading::Known(5432),
            transport: "tcp".into(),
            process: "postgres".into(),
            pids: vec![11, 12],
            exchanges: 4_000,
            exchanges_per_s: 400.4,
            request_bytes: 62.4,
            response_bytes: 66.0,
            response_calls: 1.0,
            path_rtt_ns: Reading::Known(times(4_000, 60)),
            path_least_rtt_ns: Reading::Known(times(4_000, 20)),
            queueing_ns: Reading::Known(times(4_000, 30)),
            wakeup_ns: Reading::Known(times(50, 25)),
            service_ns: times(4_000, 90),
            timed_by_call: 0,
            network_share_low: Reading::Known(0.142_857),
            network_share_high: Reading::Known(0.333_333),
        };
        let ran = Ran {
            runs: Reading::Known(8_000),
            ns_per_run: Reading::Known(90.4),
            time_ns: Reading::Known(723_200),
        };
        PassiveDocument {
            schema_version: 1,
            kind: "explain-passive".into(),
            started_unix_s: 0,
            ports: vec![5432],
            pids: vec![],
            window_ns: Nanos(10_000_000_000),
            observed_share: 1.0,
            classes: vec![class],
            cost: Cost {
                programs: vec![ProgramStatus {
                    object: "exchanges".into(),
                    program: "sk_data_ready".into(),
                    gives: "queueing".into(),
                    ran: Reading::Known(ran),
                }],
                programs_ns: Reading::Known(Nanos(4_000_000)),
                ns_per_exchange: Reading::Known(1_000.0),
                busiest_cpu_share: Reading::Known(0.0031),
                budget_share: Reading::Known(0.01),
            },
            warnings: vec![],
            interrupted: false,
        }
    }

    fn plain(d: &PassiveDocument, verbose: bool) -> String {
        text(d, TextStyle { width: 100, colour: false, verbose })
    }

    #[test]
    fn a_limit_that_was_passed_is_not_said_to_have_held() {
        let mut d = document();
        d.cost.busiest_cpu_share = Reading::Known(0.0105);
        let said = plain(&d, false);
        assert!(
            said.contains("1.05%") && said.contains("limit 1.0% of each second, enforced"),
            "{said}"
        );
    }

    #[test]
    fn parts_share_and_cost_are_reported() {
        let said = plain(&document(), false);
        for wanted in [
            "Response time of port 5432 · watched for 10 s",
            "postgres on TCP port 5432 · 2 processes · 4,000 requests (400/s) · 62 B request, 66 B response",
            "Network 14.3% to 33.3%; server 120 µs (mean)",
            "Probe overhead: 0.31% of the busiest CPU, 1 µs per request; limit 1.0%.",
        ] {
            assert!(said.contains(wanted), "{wanted:?} is missing:\n{said}");
        }
        let row = said.lines().find(|l| l.starts_with("  wake-up")).unwrap();
        // 50 exchanges are too few for a p99.
        let words: Vec<&str> = row.split_whitespace().take(8).collect();
        assert_eq!(words, ["wake-up", "25", "µs", "50", "µs", "-", "25", "µs"]);
        assert!(said.lines().all(|l| l.chars().count() <= 100), "{said}");
        assert!(!said.contains("Sampled") && !said.contains("sk_data_ready"), "{said}");
    }

    #[test]
    fn the_answer_stands_in_the_second_line_at_both_widths() {
        let mut d = document();
        d.observed_share = 0.25;
        d.warnings = vec![Warning::ProcessesNotComplete];
        golden!("passive", "Network 14.3% to 33.3%; server 120 µs", |style| text(&d, style));
    }

    #[test]
    fn what_is_not_known_says_why_and_what_was_left_out_is_reported() {
        let mut d = document();
        let c = &mut d.classes[0];
        let none = || Reading::absent("a Unix socket has no path");
        (c.port, c.transport) = (Reading::absent("a Unix socket"), "unix".into());
        (c.path_rtt_ns, c.path_least_rtt_ns) = (none(), none());
        (c.network_share_low, c.network_share_high) =
            (Reading::absent("no path"), Reading::absent("no path"));
        d.observed_share = 0.25;
        d.interrupted = true;
        d.warnings = vec![Warning::ProcessesNotComplete];
        let said = plain(&d, true);
        for wanted in [
            "Sampled 25.0% of the time",
            "Ended early",
            "postgres on Unix socket",
            "processes 11, 12",
            "a Unix socket has no path",
            "Network share unknown; server 120 µs",
            "sk_data_ready: 8,000 runs of 90 ns",
            "  too many server processes to record",
        ] {
            assert!(said.contains(wanted), "{wanted:?} is missing:\n{said}");
        }
    }
}
