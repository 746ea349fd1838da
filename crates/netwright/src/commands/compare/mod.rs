//! `netwright compare`: a verdict on two groups of runs that exist already.

pub mod args;
mod groups;

use compare::{NoMetric, Request};

use self::args::CompareArgs;
use crate::{
    failure::{CommandEnd, Failure},
    output::Answer,
};

/// Reads both groups, compares them and prints the verdict.
pub fn run(args: &CompareArgs) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    let request = Request {
        groups: groups::of(args)?,
        noise_floor: groups::runs(&args.noise_floor)?.1,
        choices: args.metric.clone(),
        all_metrics: args.all_metrics,
        limit: args.limit,
        min_effect: args.min_effect,
    };
    let document = compare::compare(&request).map_err(|e| Failure::Usage(usage(&e)))?;
    answer.tell(&document, |d, look| match args.markdown {
        true => report::compare::markdown(d),
        false => report::compare::text(d, look),
    })?;
    Ok(if document.passed { CommandEnd::Yes } else { CommandEnd::No })
}

/// The line for who typed.
fn usage(e: &NoMetric) -> String {
    let some = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    match e {
        NoMetric::NotThere { metric, known } => {
            format!("--metric {metric}: not in both groups; the metrics of both: {}", some(known))
        }
        NoMetric::NoDirection { metrics } => {
            let first = metrics.first().map_or("NAME", String::as_str);
            format!(
                "which way is better is not known of {}: --metric {first}:higher or --metric \
                 {first}:lower",
                some(metrics)
            )
        }
        NoMetric::NothingInCommon { before, after } => format!(
            "the groups have no metric in common: {} before, {} after",
            some(before),
            some(after)
        ),
        NoMetric::NoFigure => {
            "the runs of --noise-floor have no metric of which the better direction is known: \
             --metric NAME:higher or --metric NAME:lower"
                .into()
        }
    }
}
