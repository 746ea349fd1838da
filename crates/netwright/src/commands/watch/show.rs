//! Intervals as lines of JSON or text.

use model::watch::{WatchFilter, WatchHost, WatchRecord};
use report::watch::Teller;

use super::args::WatchArgs;
use crate::{
    failure::Failure,
    output::{Lines, Sink},
};

/// Where intervals go, and how.
pub struct Show {
    filter: WatchFilter,
    way: OutputForm,
}

enum OutputForm {
    Json(Lines),
    Text(Lines, Box<Teller>),
    /// They are recorded, and nobody wants to see them.
    Nothing,
}

impl Show {
    /// As was asked.
    ///
    /// # Errors
    /// When the output's file cannot be made.
    pub fn new(
        args: &WatchArgs,
        sink: &Sink,
        filter: WatchFilter,
        host: &WatchHost,
    ) -> Result<Self, Failure> {
        // Quiet beside a recording: nobody looks, unless a file for it was named.
        let unseen = args.output.talk.quiet
            && args.recording.record.is_some()
            && args.output.output.is_none();
        let way = if args.output.json {
            OutputForm::Json(sink.lines()?)
        } else if unseen {
            OutputForm::Nothing
        } else {
            let look = sink.look(args.output.talk.verbose);
            OutputForm::Text(sink.lines()?, Box::new(Teller::new(look, host.clone())))
        };
        Ok(Self { filter, way })
    }

    /// Whether a followed process's end is in what is shown, for people to read.
    pub fn tells_ends(&self) -> bool {
        matches!(self.way, OutputForm::Text(..))
    }

    /// One interval.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn tell(&mut self, mut record: WatchRecord) -> Result<(), Failure> {
        self.filter.apply(&mut record.interval);
        match &mut self.way {
            OutputForm::Json(lines) => lines.json(&record.interval),
            OutputForm::Text(lines, teller) => lines.text(&teller.tell(&record)),
            OutputForm::Nothing => Ok(()),
        }
    }
}
