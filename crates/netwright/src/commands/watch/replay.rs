//! Prints the intervals of a recording.

use std::path::Path;

use view::recording;

use super::{args::WatchArgs, only, show::Show};
use crate::{
    failure::{CommandEnd, Failure},
    interrupt::Window,
    output::Sink,
};

/// Prints a recording. A damaged one is printed up to the damage, which is then reported.
pub fn run(args: &WatchArgs, path: &Path, sink: &Sink) -> Result<CommandEnd, Failure> {
    let mut recording = recording::open(path)?;
    only::nics(&args.only, &recording.host.nics, "in this recording")?;
    let host = recording.host.clone();
    let cpus = host.cpus.iter().map(|c| c.id).collect();
    only::cpus(&args.only, &cpus, "in this recording")?;
    only::pids_of(&args.only, &mut recording)?;
    let window = Window::open();
    if super::on_terminal(args, sink) {
        let (filter, colour) = (only::filter(&args.only), sink.look(false).colour);
        view::replay::show(recording, filter, colour, window.stop())?;
        return Ok(CommandEnd::Yes);
    }
    let mut show = Show::new(args, sink, only::filter(&args.only), &host)?;
    for number in 0..recording.len() {
        if window.was_interrupted() {
            break;
        }
        show.tell(recording.get(number).map_err(Failure::Environment)?)?;
    }
    recording.damage().map_or(Ok(CommandEnd::Yes), |why| Err(Failure::Environment(why)))
}
