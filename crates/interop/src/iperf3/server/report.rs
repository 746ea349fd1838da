//! The server's text output, for clients that request it (`--get-server-output`).

use std::fmt::Write as _;

use crate::iperf3::{
    flow::{Flow, FlowCounters, FlowSnapshot},
    params::Params,
};

/// Size limit in bytes; beyond it only the summary follows.
const LIMIT: usize = 128 << 10;

/// Output lines in iperf3's format.
pub struct Report {
    text: String,
    udp: bool,
    full: bool,
}

impl Report {
    /// `None` if the client did not request it.
    pub fn new(asked: &Params, client: std::net::SocketAddr, flows: &[Flow]) -> Option<Self> {
        if !asked.get_server_output {
            return None;
        }
        let mut text =
            format!("Accepted connection from {}, port {}\n", client.ip(), client.port());
        let address = |a: std::io::Result<socket2::SockAddr>| {
            let a = a.ok().and_then(|a| a.as_socket());
            a.map_or_else(String::new, |a| format!("{} port {}", a.ip().to_canonical(), a.port()))
        };
        for flow in flows {
            let (here, there) =
                (address(flow.socket.local_addr()), address(flow.socket.peer_addr()));
            let _ = writeln!(text, "[{:>3}] local {here} connected to {there}", flow.id);
        }
        let mut report = Self { text, udp: asked.udp, full: false };
        report.head();
        Some(report)
    }

    fn head(&mut self) {
        self.text.push_str(match self.udp {
            true => "[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n",
            false => "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd\n",
        });
    }

    pub fn interval(
        &mut self,
        flows: &[Flow],
        start: &FlowSnapshot,
        from: &FlowSnapshot,
        to: &FlowSnapshot,
        omitted: bool,
    ) {
        if self.text.len() > LIMIT {
            if !self.full {
                self.text.push_str("(further intervals left out)\n");
            }
            self.full = true;
            return;
        }
        let times = (from.seconds_since(start), to.seconds_since(start));
        let note = if omitted { "(omitted)" } else { "" };
        self.lines(flows, from, to, times, note);
    }

    pub fn summary(&mut self, flows: &[Flow], start: &FlowSnapshot, end: &FlowSnapshot) {
        self.text.push_str("- - - - - - - - - - - - - - - - - - - - - - - - -\n");
        self.head();
        self.lines(flows, start, end, (0.0, end.seconds_since(start)), "");
    }

    fn lines(
        &mut self,
        flows: &[Flow],
        from: &FlowSnapshot,
        to: &FlowSnapshot,
        times: (f64, f64),
        note: &str,
    ) {
        for (flow, (a, b)) in flows.iter().zip(from.flows.iter().zip(&to.flows)) {
            self.line(flow.id, a, b, times, note);
        }
    }

    fn line(
        &mut self,
        id: u64,
        a: &FlowCounters,
        b: &FlowCounters,
        (from, to): (f64, f64),
        note: &str,
    ) {
        let bytes = b.bytes.saturating_sub(a.bytes);
        let rate = bytes as f64 * 8.0 / (to - from).max(1e-9);
        let role = if b.sends { "TX-S" } else { "RX-S" };
        let (bytes, rate) =
            (scaled(bytes as f64, 1024.0, "Bytes"), scaled(rate, 1000.0, "bits/sec"));
        let tail = match (self.udp, b.sends, b.tcp) {
            (true, true, _) => format!("{:>23}", b.datagrams.saturating_sub(a.datagrams)),
            (true, false, _) => {
                let lost = b.missing().saturating_sub(a.missing());
                let all = b.highest.saturating_sub(a.highest);
                let share = 100.0 * lost as f64 / all.max(1) as f64;
                format!("{:.3} ms  {lost}/{all} ({share:.2}%)", b.jitter_ns as f64 / 1e6)
            }
            (false, _, Some(now)) => {
                let before = a.tcp.map_or(0, |t| t.retransmits);
                let cwnd = f64::from(now.snd_cwnd) * f64::from(now.snd_mss);
                let again = now.retransmits.saturating_sub(before);
                format!("{again:>4}  {:>12}", scaled(cwnd, 1024.0, "Bytes"))
            }
            (false, _, None) => String::new(),
        };
        let line =
            format!("[{id:>3}][{role}] {from:>6.2}-{to:<6.2} sec  {bytes}  {rate}  {tail} {note}");
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    pub fn text(self) -> String {
        self.text
    }
}

/// A number with four digits and a unit prefix, as iperf3 prints it.
fn scaled(value: f64, step: f64, unit: &str) -> String {
    let mut value = value;
    let mut prefix = "";
    for next in ["K", "M", "G", "T", "P"] {
        if value < step {
            break;
        }
        value /= step;
        prefix = next;
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:>4.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_look_like_iperf3s() {
        assert_eq!(scaled(2048.0 * 1024.0 * 1024.0, 1024.0, "Bytes"), "2.00 GBytes");
        assert_eq!(scaled(10_230_000.0, 1000.0, "bits/sec"), "10.2 Mbits/sec");
        assert_eq!(scaled(123.0, 1024.0, "Bytes"), " 123 Bytes");
    }
}
