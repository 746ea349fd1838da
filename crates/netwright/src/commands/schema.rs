//! `netwright schema`: prints the JSON schema of a `--json` document.

use clap::ValueEnum;

use crate::{
    args::{Document, SchemaArgs},
    failure::{CommandEnd, Failure},
    output::Sink,
};

/// The names of all documents, a line each.
fn list() -> Result<CommandEnd, Failure> {
    let names = Document::value_variants().iter().filter_map(Document::to_possible_value);
    let lines: String = names.map(|name| format!("{}\n", name.get_name())).collect();
    Sink::Stdout.text(&lines)?;
    Ok(CommandEnd::Yes)
}

/// Prints the schema. The copies under `docs/schema` are identical.
pub fn run(args: &SchemaArgs) -> Result<CommandEnd, Failure> {
    let Some(document) = args.document else { return list() };
    let schema = match document {
        Document::Inspect => schemars::schema_for!(model::Facts),
        Document::Doctor => schemars::schema_for!(report::DoctorDocument),
        Document::DoctorPeer => schemars::schema_for!(report::doctor::peer::PeerDocument),
        Document::Compare => schemars::schema_for!(model::compare::CompareDocument),
        Document::Explain => schemars::schema_for!(model::explain::ExplainDocument),
        Document::ExplainPassive => schemars::schema_for!(model::passive::PassiveDocument),
        Document::Lint => schemars::schema_for!(model::lint::LintDocument),
        Document::MeasureRtt => schemars::schema_for!(model::measure::RttDocument),
        Document::MeasureConnect => schemars::schema_for!(model::measure::ConnectDocument),
        Document::MeasureStream => schemars::schema_for!(model::measure::StreamDocument),
        Document::MeasureOffload => schemars::schema_for!(model::measure::OffloadDocument),
        Document::MeasureHttp => schemars::schema_for!(model::measure::HttpDocument),
        Document::MeasurePg => schemars::schema_for!(model::measure::PgDocument),
        Document::MeasurePgInit => schemars::schema_for!(model::measure::PgInitDocument),
        Document::MeasureRedis => schemars::schema_for!(model::measure::RedisDocument),
        Document::Fix => schemars::schema_for!(model::fix::FixDocument),
        Document::HistoryDiff => schemars::schema_for!(model::history::HistoryDiff),
        Document::HistoryList => schemars::schema_for!(model::history::HistoryList),
        Document::Place => schemars::schema_for!(model::placement::PlacementDocument),
        Document::Prove => schemars::schema_for!(model::prove::ProveDocument),
        Document::Watch => schemars::schema_for!(model::watch::WatchInterval),
        Document::TunePlan => schemars::schema_for!(model::tune::Plan),
        Document::TuneApply => schemars::schema_for!(model::tune::Outcome),
        Document::TuneStatus => schemars::schema_for!(model::tune::Status),
        Document::TuneLog => schemars::schema_for!(model::tune::Log),
        Document::TunePersist => schemars::schema_for!(model::tune::Persisted),
        Document::TuneProfiles => schemars::schema_for!(model::tune::Profiles),
        Document::TuneJournal => schemars::schema_for!(model::tune::Record),
    };
    let text = serde_json::to_string_pretty(&schema).map_err(|e| Failure::Bug(e.to_string()))?;
    Sink::Stdout.text(&format!("{text}\n"))?;
    Ok(CommandEnd::Yes)
}
