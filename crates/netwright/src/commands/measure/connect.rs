//! `netwright measure connect`: warns of ports that run out, and measures.

use model::measure::ConnectSpec;

use super::{conduct, each_second, flags::SecretArgs, second, secret};
use crate::{
    args::OutputArgs,
    failure::{CommandEnd, Failure},
    output::note,
};

/// Warns where local ports would run out, then measures and prints the result.
pub fn run(
    spec: &ConnectSpec,
    from: &SecretArgs,
    output: &OutputArgs,
) -> Result<CommandEnd, Failure> {
    let secret = secret(from)?;
    if let Some(why) = traffic::forecast_connect(spec).filter(|_| !output.talk.quiet) {
        note(&why.to_string());
    }
    conduct(
        output,
        |run| {
            let hear = |end_s: f64, per_s: f64| second(end_s, per_s, "connections");
            let run = traffic::Run { second: each_second(output, &hear), ..run };
            traffic::measure_connect(spec, secret.as_ref(), run)
        },
        report::measure::connect,
    )
}
