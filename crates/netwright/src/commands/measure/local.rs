//! What `measure http`, `pg` and `redis` share: addresses of the server, this end's CPUs and
//! waiting, rounds for `--precision`, and the responder.

use clap::Args;
use model::{
    Nanos,
    measure::{Common, PeerProgram, Pin, ServedInterval, Transport},
};

use super::flags::{
    AddressArgs, AroundArgs, PlacementArgs, RepeatArgs, SecretArgs, SocketArgs, SoftirqArgs,
};
use crate::{failure::Failure, output::row};

/// The window without `--duration`.
const WINDOW: Nanos = Nanos(5_000_000_000);
/// The default time limit for a number of requests or transactions.
const LONGEST: Nanos = Nanos(600_000_000_000);

const PRECISION: &str =
    "Repeat until the 95% CI is this narrow, such as 2%; in percent of the median latency";
const WARMUP: &str = "Traffic before the window, not measured; with a number of requests, the time \
                      to connect [default: 200ms]";

/// Placement of the client, and the responder that reports the server's host.
#[derive(Debug, Args)]
#[command(
    mut_arg("precision", |a| a.help(PRECISION)),
    mut_arg("warmup", |a| a.help(WARMUP)),
)]
pub struct ClientArgs {
    #[command(flatten)]
    pub around: AroundArgs,
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// `netwright serve` on the server's host; HOST:PORT, reports the CPU use of that host.
    #[arg(long, value_name = "TARGET", help_heading = "Server")]
    pub responder: Option<String>,
    #[command(flatten)]
    pub secret: SecretArgs,
    #[command(flatten)]
    pub address: AddressArgs,
    #[command(flatten)]
    pub placement: PlacementArgs,
    #[command(flatten)]
    pub socket: SocketArgs,
    /// Print progress at this interval to standard error, as pgbench's -P does: 1; the result has
    /// intervals of this length [default: 1s, printed on a terminal].
    #[arg(value_parser = model::seconds, long, short = 'P', value_name = "DURATION", value_parser = seconds, help_heading = "Output")]
    pub interval: Option<Nanos>,
    #[command(flatten)]
    pub kernel: SoftirqArgs,
}

impl ClientArgs {
    /// The common part of the request. `counted`: a number of requests or transactions ends the
    /// window.
    ///
    /// # Errors
    /// The window is too short.
    pub fn common(
        &self,
        target: String,
        duration: Option<Nanos>,
        counted: bool,
    ) -> Result<Common, Failure> {
        let duration_ns = duration.unwrap_or(if counted { LONGEST } else { WINDOW });
        if duration_ns.0 < 10_000_000 {
            return Err(Failure::Usage("--duration: at least 10ms".into()));
        }
        Ok(Common {
            target,
            peer: PeerProgram::Server,
            transport: Transport::Tcp,
            family: self.address.family(),
            bind: self.address.bind.clone(),
            duration_ns,
            warmup_ns: self.around.before(),
            cooldown_ns: if counted { Nanos(0) } else { self.around.after() },
            wait: self.placement.wait.into(),
            peer_wait: self.placement.wait.into(),
            pin: self.placement.pin(),
            peer_pin: Pin::No,
            threads: self.placement.threads,
            socket: self.socket.options(),
            confidence_per_mille: self.repeat.precision.map(|p| p.0),
            max_time_ns: self.repeat.max_time,
        })
    }
}

/// Parses a duration; a bare number is seconds, as for pgbench.
fn seconds(text: &str) -> Result<Nanos, String> {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    text.parse().map_err(|e| format!("{e}"))
}

/// A progress line for an interval, in pgbench's format.
pub fn interval(i: &ServedInterval) {
    let latency = i
        .latency_mean_ns
        .get()
        .map_or_else(|| "lat - ms".to_owned(), |ns| format!("lat {:.3} ms", ns as f64 / 1e6));
    let (end, per_s, failed) = (i.end_s, i.transactions_per_s, i.failed);
    row(&format!("progress: {end:.1} s, {per_s:.1} tps, {latency}, {failed} failed"));
}
