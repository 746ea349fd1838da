//! Turns the flags of `explain` into a checked request.

use explain::request::{Path, Request, Target};

use super::args::ExplainArgs;
use crate::{
    commands::measure::{
        self,
        counts::OneSize,
        flags::{ProtocolArg, pin},
    },
    failure::Failure,
};

const HOUR_NS: u64 = 3_600_000_000_000;

/// The checked request.
///
/// # Errors
/// An invalid value, or a flag for another kind of target.
pub fn request(args: &ExplainArgs) -> Result<Request, Failure> {
    check(args)?;
    let target = Target::parse(&args.target)?;
    if let Some((option, kind)) = foreign(args, &target) {
        return Err(Failure::Usage(format!(
            "{option} is for {kind} targets and has no effect on {}",
            target.shown()
        )));
    }
    Ok(Request {
        secret: secret(args, &target)?,
        target,
        url: args.target.clone(),
        responder: args.responder.clone(),
        ours: crate::commands::ours()?,
        request_bytes: args.request.0,
        response_bytes: args.response.unwrap_or(args.request).0,
        headers: args.header.header.clone(),
        tls: args.trust.spec(false)?,
        commands: commands(args),
        keys: measure::redis::KEYS,
        data_bytes: measure::redis::DATA_BYTES,
        redis_password: measure::redis::password(),
        scripts: measure::pg::scripts(&args.script.script)?,
        protocol: args.script.protocol.into(),
        scale: args.variables.scale,
        variables: args.variables.define.iter().cloned().collect(),
        flows: args.flows.flows.0.clone(),
        threads: args.placement.threads,
        paths: args.path.clone(),
        cores: args.cores,
        channels: args.channels.as_ref().map(|counts| counts.0.clone()),
        verify: args.verify,
        duration: args.duration,
        longest: args.longest(),
        round: args.round,
        wait: args.placement.wait.into(),
        pin: args.placement.pin(),
        peer_pin: pin(&args.peer_cpu, args.placement.no_pin),
    })
}

/// The secret for an `rtt://` server, a responder or a path's host; `None` without any of them.
fn secret(args: &ExplainArgs, target: &Target) -> Result<Option<traffic::Secret>, Failure> {
    let to_host = args.path.iter().any(|path| matches!(path, Path::Host(_)));
    let needed = matches!(target, Target::Rtt(_)) || args.responder.is_some() || to_host;
    if needed { measure::secret(&args.secret) } else { Ok(None) }
}

fn commands(args: &ExplainArgs) -> Vec<String> {
    match args.command.as_slice() {
        [] => vec![measure::redis::COMMAND.into()],
        some => some.to_vec(),
    }
}

fn check(args: &ExplainArgs) -> Result<(), Failure> {
    if args.target.is_empty() {
        return Err(Failure::Usage(
            "nothing to explain: give a TARGET (rtt://HOST, http://HOST/), or a running server: \
             --port PORT, --pid PID"
                .into(),
        ));
    }
    let most = stats::queueing::MOST_CLIENTS;
    if let Some(n) = args.flows.flows.0.iter().find(|n| **n > most) {
        return Err(Failure::Usage(format!("--flows {n}: at most {most}")));
    }
    if !(20_000_000..=10_000_000_000).contains(&args.round.0) {
        return Err(Failure::Usage("--round: from 20ms to 10s".into()));
    }
    if args.duration.0 > HOUR_NS {
        return Err(Failure::Usage("--duration: at most 1h".into()));
    }
    if args.max_duration.is_some_and(|most| most.0 < args.duration.0 || most.0 > 3 * HOUR_NS) {
        return Err(Failure::Usage(format!(
            "--max-duration: from --duration, {}, to 3h",
            args.duration
        )));
    }
    Ok(())
}

const REDIS: &str = "redis:// and rediss://";

/// The first flag given that is for another kind of target, and that kind.
fn foreign(args: &ExplainArgs, target: &Target) -> Option<(&'static str, &'static str)> {
    let own = match target {
        Target::Rtt(_) => "rtt://",
        Target::Http(_) => "http:// and https://",
        Target::Redis(_) => REDIS,
        Target::Pg(_) => "pg://",
    };
    let tls = if own == REDIS { REDIS } else { "http:// and https://" };
    let given = [
        ("--request", "rtt://", args.request != OneSize(64)),
        ("--response", "rtt://", args.response.is_some()),
        ("--header", "http:// and https://", !args.header.header.is_empty()),
        ("--ca", tls, args.trust.ca.is_some()),
        ("--insecure", tls, args.trust.insecure),
        ("--command", REDIS, !args.command.is_empty()),
        ("--script", "pg://", !args.script.script.is_empty()),
        ("--protocol", "pg://", args.script.protocol != ProtocolArg::Simple),
        ("--scale", "pg://", args.variables.scale.is_some()),
        ("--define", "pg://", !args.variables.define.is_empty()),
    ];
    let foreign = given.into_iter().find(|(_, kind, given)| *given && *kind != own);
    foreign.map(|(option, kind, _)| (option, kind))
}
