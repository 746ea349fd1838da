//! Turns the flags of `fix` into a checked request.

use fix::request::Request;
use prove::{
    Experiment, figure,
    spec::{Spec, metric},
};
use tune::change_request::{self, ChangeRequest};

use super::args::FixArgs;
use crate::failure::Failure;

/// The checked request.
///
/// # Errors
/// The first invalid flag.
pub fn request(args: &FixArgs) -> Result<Request, Failure> {
    let also = change_request::arguments(&args.also)?.change_requests;
    let also = also
        .into_iter()
        .map(|w| ChangeRequest { asked_by: w.asked_by.replace("argument", "--try"), ..w });
    let request = Request {
        spec: spec(args)?,
        also: also.collect(),
        goal: args.goal.of_findings(),
        responder: args.responder.clone(),
        budget: args.budget,
        runs: args.runs,
        window: args.window,
        bpf: !args.no_bpf,
        freeze_host: args.host.freeze_host,
        allow_disconnect: args.host.allow_disconnect,
        dry_run: args.dry_run,
    };
    request.check()?;
    Ok(request)
}

/// The experiment without its factor.
fn spec(args: &FixArgs) -> Result<Spec, Failure> {
    if args.run.workload.is_none() && args.run.command.is_none() {
        return Err(Failure::Usage(
            "no workload to improve: give --workload 'measure …' or URL (pg://db1/bench), or \
             --command LINE with --metric; and --yes, --ask or --dry-run says whether this host \
             may be changed"
                .into(),
        ));
    }
    let mut spec = Spec {
        workload: args.run.workload.clone(),
        command: args.run.command.clone(),
        metrics: args.run.metric.iter().map(|m| metric(m)).collect::<Result<_, _>>()?,
        ..Spec::default()
    };
    if let (Some(what), true) = (Experiment::measures(&spec), spec.metrics.is_empty()) {
        spec.metrics = figure::for_goal(&what, args.goal.of_figures());
        if spec.metrics.is_empty() {
            return Err(Failure::Usage(format!(
                "--goal: measure {what} reports no figure of that kind: use another goal \
                 (throughput, p99, cpu), or --metric"
            )));
        }
    }
    Ok(spec)
}
