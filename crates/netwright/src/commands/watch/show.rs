//! Prints intervals as lines of JSON or text.

use model::watch::{WatchFilter, WatchHost, WatchRecord};
use report::watch::Teller;
use view::web::WebServer;

use super::{args::WatchArgs, browser::Browser};
use crate::{
    failure::Failure,
    output::{Lines, Sink},
};

/// The output of intervals.
pub struct Show {
    filter: WatchFilter,
    way: OutputForm,
    web: Option<WebServer>,
}

enum OutputForm {
    Json(Lines),
    Text(Lines, Box<Teller>),
    /// A recording or browsers only: nothing is printed.
    Nothing,
}

impl Show {
    /// The output of the flags.
    ///
    /// # Errors
    /// The output's file cannot be created, or a thread for browsers cannot start.
    pub fn new(
        args: &WatchArgs,
        sink: &Sink,
        filter: WatchFilter,
        host: &WatchHost,
        browser: Option<Browser>,
    ) -> Result<Self, Failure> {
        // With `--quiet --record` nothing is printed, unless an output file was named.
        let unseen = args.output.talk.quiet
            && args.recording.record.is_some()
            && args.output.output.is_none();
        let way = if args.output.json {
            OutputForm::Json(sink.lines()?)
        } else if unseen || super::only_browser(args) {
            OutputForm::Nothing
        } else {
            let look = sink.look(args.output.talk.verbose);
            let teller = Teller::new(look, host.clone()).of_some_cpus(filter.cpus.is_some());
            OutputForm::Text(sink.lines()?, Box::new(teller))
        };
        let recorded = args.recording.replay.is_some();
        let web = browser.map(|b| b.serve(host, recorded)).transpose()?;
        Ok(Self { filter, way, web })
    }

    /// Whether the text may show the end of a followed process.
    pub fn tells_ends(&self) -> bool {
        matches!(self.way, OutputForm::Text(..))
    }

    /// Prints one interval.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn tell(&mut self, mut record: WatchRecord) -> Result<(), Failure> {
        self.filter.apply(&mut record.interval);
        if let Some(web) = &self.web {
            web.tell(&record);
        }
        match &mut self.way {
            OutputForm::Json(lines) => lines.json(&record.interval),
            OutputForm::Text(lines, teller) => lines.text(&teller.tell(&record)),
            OutputForm::Nothing => Ok(()),
        }
    }
}
