//! `netwright inspect`: shows the host's facts.

use clap::ValueEnum;
use model::Facts;
use report::inspect;

use crate::{
    args::Section,
    failure::{CommandEnd, Failure},
    request::Inspect,
};

/// Reads the facts, draws the picture where asked for, and prints the text or JSON.
pub fn run(request: &Inspect) -> Result<CommandEnd, Failure> {
    let mut facts = request.source.facts()?;
    if let Some(picture) = &request.picture {
        picture.text(&report::picture::svg(&facts))?;
    }
    keep_nics(&mut facts, &request.nics)?;
    if request.json {
        request.sink.line(|| Ok(probe::facts::json(&facts)?))?;
    } else if request.prints_text() {
        request.sink.text(&text(request, &facts))?;
    }
    // The process ends here; freeing a large host's facts would take milliseconds.
    std::mem::forget(facts);
    Ok(CommandEnd::Yes)
}

fn text(request: &Inspect, facts: &Facts) -> String {
    let look = request.sink.look(request.verbose);
    let mut sections: Vec<inspect::Section> =
        request.sections.iter().copied().map(section).collect();
    if !request.nics.is_empty() && !sections.contains(&inspect::Section::Nics) {
        sections.push(inspect::Section::Nics);
    }
    if sections.is_empty() {
        let mut text = inspect::overview(facts, look);
        if look.verbose {
            let all = Section::value_variants().iter().copied().map(section);
            text += "\n";
            text += &inspect::sections(facts, &all.collect::<Vec<_>>(), look);
        }
        text
    } else {
        inspect::sections(facts, &sections, look)
    }
}

/// Removes the NICs that were not asked for.
fn keep_nics(facts: &mut Facts, names: &[String]) -> Result<(), Failure> {
    for name in names {
        if !facts.nics.iter().any(|n| n.name == *name) {
            let there = tune::suggestion::hint(name, facts.nics.iter().map(|n| n.name.as_str()));
            return Err(Failure::Environment(format!("no NIC {name:?} here; {there}")));
        }
    }
    if !names.is_empty() {
        facts.nics.retain(|n| names.contains(&n.name));
    }
    Ok(())
}

fn section(asked: Section) -> inspect::Section {
    match asked {
        Section::Host => inspect::Section::Host,
        Section::Cpus => inspect::Section::Cpus,
        Section::Numa => inspect::Section::Numa,
        Section::Nics => inspect::Section::Nics,
        Section::Irqs => inspect::Section::Irqs,
        Section::Softnet => inspect::Section::Softnet,
        Section::Sysctls => inspect::Section::Sysctls,
        Section::Tuners => inspect::Section::Tuners,
        Section::Processes => inspect::Section::Processes,
        Section::Listeners => inspect::Section::Listeners,
        Section::Storage => inspect::Section::Storage,
        Section::Namespaces => inspect::Section::Namespaces,
    }
}
