//! `netwright measure stream`: shows intervals on a terminal, and measures.

use model::{
    BitsPerSec,
    measure::{Direction, PeerProgram, StreamInterval, StreamSpec},
};

use super::flags::SecretArgs;
use crate::{
    args::OutputArgs,
    failure::{CommandEnd, Failure},
    output::{row, rows_wanted},
};

pub fn run(
    spec: &StreamSpec,
    secret: &SecretArgs,
    output: &OutputArgs,
) -> Result<CommandEnd, Failure> {
    let secret = super::secret(secret)?;
    // On a terminal each interval appears as soon as it is over.
    let live = rows_wanted(output.talk.quiet);
    let heard = |direction: Direction, interval: &StreamInterval| {
        if live {
            row(&interval_line(direction, interval));
        }
    };
    super::conduct(
        output,
        |run| match spec.common.peer {
            PeerProgram::Netwright | PeerProgram::Server => {
                traffic::measure_stream(spec, secret.as_ref(), run, &heard)
            }
            PeerProgram::Iperf3 => interop::iperf3::client(spec, run, &heard),
            PeerProgram::Qperf => interop::qperf::client_stream(spec, run),
        },
        report::measure::stream,
    )
}

fn way(direction: Direction) -> &'static str {
    if direction == Direction::Reverse { "reverse" } else { "forward" }
}

fn interval_line(direction: Direction, i: &StreamInterval) -> String {
    let mut line = format!(
        "{:8.2}-{:<8.2} s  {:<10} {:>14}",
        i.start_s,
        i.end_s,
        way(direction),
        BitsPerSec(i.bits_per_s as u64).to_string()
    );
    match (&i.datagrams, i.retransmits.get()) {
        (Some(d), _) => line += &format!("  lost {}/{}", d.lost, d.sent),
        (None, Some(n)) => line += &format!("  retransmits {n}"),
        _ => {}
    }
    line
}
