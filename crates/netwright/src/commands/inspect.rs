//! `netwright inspect`: what the host is.

use model::Facts;

use crate::{
    exit::{Done, Failure},
    request::Inspect,
};

/// Reads, draws, prints.
pub fn run(request: &Inspect) -> Result<Done, Failure> {
    let mut facts = request.source.facts()?;
    keep_nics(&mut facts, &request.nics)?;
    request.sink.json(&facts)?;
    Ok(Done::Yes)
}

/// Leaves only the NICs asked for.
fn keep_nics(facts: &mut Facts, names: &[String]) -> Result<(), Failure> {
    for name in names {
        if !facts.nics.iter().any(|n| n.name == *name) {
            let there: Vec<&str> = facts.nics.iter().map(|n| n.name.as_str()).collect();
            return Err(Failure::Environment(format!(
                "no NIC {name:?} here; there are: {}",
                if there.is_empty() { "none".to_owned() } else { there.join(", ") }
            )));
        }
    }
    if !names.is_empty() {
        facts.nics.retain(|n| names.contains(&n.name));
    }
    Ok(())
}
