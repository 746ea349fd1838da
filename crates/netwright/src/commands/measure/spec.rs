//! Turns the flags of `rtt`, `stream` and `connect` into specifications.

use model::{
    BitsPerSec,
    measure::{
        Close, Common, ConnectSpec, Direction, Engine, PeerProgram, RttSpec, StreamSpec, Transport,
        Wait, ZeroCopy,
    },
};

use super::target::with_port;
use super::{
    args::{
        CloseArg, CommonArgs, ConnectArgs, DirectionArg, EngineArg, RttArgs, RttPeer, StreamArgs,
        StreamPeer, TransportArg, ZeroCopyArg,
    },
    flags::pin,
};
use crate::failure::Failure;

/// The default rate of UDP streams, bits per second.
const UDP_RATE: BitsPerSec = BitsPerSec(100_000_000);
const TCP_MESSAGE: u64 = 128 << 10;
const UDP_MESSAGE: u64 = 1400;

fn common(args: &CommonArgs, peer: PeerProgram) -> Result<Common, Failure> {
    let foreign_port = match peer {
        PeerProgram::Netwright | PeerProgram::Server => None,
        PeerProgram::Iperf3 => Some(5201),
        PeerProgram::Qperf => Some(19_765),
    };
    let unix = args.target.starts_with("unix:");
    let transport = match (args.transport, unix) {
        (None | Some(TransportArg::Unix), true) if !args.udp => Transport::Unix,
        (_, true) => {
            return Err(Failure::Usage("a target unix:PATH carries Unix sockets only".into()));
        }
        (Some(TransportArg::Unix), false) => {
            return Err(Failure::Usage("Unix sockets need a target unix:PATH".into()));
        }
        (Some(TransportArg::Udp), false) => Transport::Udp,
        (_, false) if args.udp => Transport::Udp,
        _ => Transport::Tcp,
    };
    if args.duration.0 < 10_000_000 {
        return Err(Failure::Usage("--duration: at least 10ms".into()));
    }
    let here = args.placement.wait.into();
    Ok(Common {
        target: with_port(&args.target, args.port, foreign_port)?,
        peer,
        transport,
        family: args.address.family(),
        bind: args.address.bind.clone(),
        duration_ns: args.duration,
        warmup_ns: args.around.before(),
        cooldown_ns: args.around.after(),
        wait: here,
        peer_wait: args.peer_wait.map_or(here, Wait::from),
        pin: args.placement.pin(),
        peer_pin: pin(&args.peer_cpu, args.placement.no_pin),
        threads: args.placement.threads,
        socket: args.socket.options(),
        confidence_per_mille: args.repeat.precision.map(|p| p.0),
        max_time_ns: args.repeat.max_time,
    })
}

/// The specification of `measure rtt`; refuses flags that `--peer` does not support.
///
/// # Errors
/// A flag that does not go with another one or with `--peer` (exit code 2).
pub fn rtt(args: &RttArgs) -> Result<RttSpec, Failure> {
    let peer = match args.peer {
        RttPeer::Netwright => PeerProgram::Netwright,
        RttPeer::Qperf => PeerProgram::Qperf,
    };
    Ok(RttSpec {
        common: common(&args.common, peer)?,
        request_bytes: args.request.0.clone(),
        response_bytes: args.response.as_ref().map(|s| s.0.clone()).unwrap_or_default(),
        flows: args.flows.flows.0.clone(),
        queue_depth: args.queue_depth,
        rate_per_s: args.rate.per_s(),
        timeout_ns: args.timeout.timeout,
        wait_split: args.wait_split,
        engine: match args.engine {
            EngineArg::Auto => Engine::Auto,
            EngineArg::Epoll => Engine::Epoll,
            EngineArg::IoUring => Engine::IoUring,
        },
        service_ns: None,
        think_time_ns: args.think_time,
        peer_threads: args.peer_threads,
    })
}

/// The specification of `measure stream`; UDP and foreign peers have other defaults.
///
/// # Errors
/// A flag that does not go with another one or with `--peer` (exit code 2).
pub fn stream(args: &StreamArgs) -> Result<StreamSpec, Failure> {
    let peer = match args.peer {
        StreamPeer::Netwright => PeerProgram::Netwright,
        StreamPeer::Iperf3 => PeerProgram::Iperf3,
        StreamPeer::Qperf => PeerProgram::Qperf,
    };
    let common = common(&args.common, peer)?;
    let udp = common.transport == Transport::Udp;
    let message = if udp { UDP_MESSAGE } else { TCP_MESSAGE };
    Ok(StreamSpec {
        direction: match args.direction {
            DirectionArg::Forward => Direction::Forward,
            DirectionArg::Reverse => Direction::Reverse,
            DirectionArg::Both => Direction::Both,
        },
        flows: args.flows.flows.0.clone(),
        message_bytes: args.message.as_ref().map_or_else(|| vec![message], |s| s.0.clone()),
        rate: args.rate.or(udp.then_some(UDP_RATE)),
        interval_ns: args.interval,
        zerocopy: args.zerocopy.map(|z| match z {
            ZeroCopyArg::Sendfile => ZeroCopy::Sendfile,
            ZeroCopyArg::Msg => ZeroCopy::Msg,
        }),
        skip_receive_copy: args.skip_receive_copy,
        common,
    })
}

/// The specification of `measure connect`.
pub fn connect(args: &ConnectArgs) -> Result<ConnectSpec, Failure> {
    Ok(ConnectSpec {
        common: common(&args.common, PeerProgram::Netwright)?,
        flows: args.flows.flows.0.clone(),
        rate_per_s: args.rate.per_s(),
        request_bytes: args.request.0,
        response_bytes: args.response.unwrap_or(args.request).0,
        close: match args.close {
            CloseArg::Local => Close::Local,
            CloseArg::Peer => Close::Peer,
            CloseArg::Reset => Close::Reset,
        },
        timeout_ns: args.timeout.timeout,
    })
}
