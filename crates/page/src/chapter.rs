//! What each kind of document says on a page, and the parts that several kinds share.

mod compare;
mod doctor;
mod explain;
mod fix;
mod inspect;
mod measure;
mod passive;
mod prove;
mod shared;

use model::Severity;

use crate::{
    block::{Block, Chapter, Text},
    document::{Document, Kind},
    repeat,
};

/// The questions that the story of a page answers, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What limits the host or the workload.
    Limits,
    Measured,
    Changed,
    Gained,
}

/// A chapter with its sentences for the story.
#[derive(Debug, Clone, Default)]
pub struct Written {
    pub chapter: Chapter,
    pub story: Vec<(Part, Text)>,
}

impl Written {
    fn tell(&mut self, part: Part, text: Text) {
        self.story.push((part, text));
    }
}

/// Where a kind stands on a page: a diagnosis that found something first, the host's facts last.
pub fn order(kind: &Kind) -> u8 {
    match kind {
        Kind::Doctor(d) if d.findings.iter().any(|f| f.severity > Severity::Info) => 0,
        Kind::Explain(_) | Kind::Passive(_) => 1,
        Kind::Rtt(_)
        | Kind::Stream(_)
        | Kind::Connect(_)
        | Kind::Http(_)
        | Kind::Pg(_)
        | Kind::Redis(_) => 2,
        Kind::Doctor(_) => 3,
        Kind::Fix(_) => 4,
        Kind::Prove(_) => 5,
        Kind::Compare(_) => 6,
        Kind::Inspect(_) => 7,
    }
}

/// The chapter of a document.
pub fn write(d: &Document, number: usize) -> Written {
    let id = format!("run-{number}");
    let mut written = match &d.kind {
        Kind::Doctor(typed) => doctor::write(d, typed),
        Kind::Inspect(typed) => inspect::write(d, typed),
        Kind::Explain(typed) => explain::write(d, typed),
        Kind::Passive(typed) => passive::write(d, typed),
        Kind::Prove(typed) => prove::write(d, typed),
        Kind::Fix(typed) => fix::write(d, typed),
        Kind::Compare(typed) => compare::write(d, typed),
        Kind::Rtt(_)
        | Kind::Stream(_)
        | Kind::Connect(_)
        | Kind::Http(_)
        | Kind::Pg(_)
        | Kind::Redis(_) => measure::write(d),
    };
    let chapter = &mut written.chapter;
    chapter.id = id;
    chapter.heading("Run it again");
    let repeat = repeat::commands(d);
    if !repeat.lines.is_empty() {
        chapter.blocks.push(Block::Commands(repeat.lines));
    }
    chapter.say(Text::with_code(&repeat.about));
    chapter.say(Text::plain("Source: ").then(crate::block::Tone::Code, &d.name).and("."));
    chapter.blocks.push(Block::More {
        title: "The same result as the terminal shows it, in full".into(),
        text: shared::terminal(d),
    });
    written
}
