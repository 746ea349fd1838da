//! A recording shown again.

use std::path::Path;

use super::{args::WatchArgs, only, picture, recording, show::Show};
use crate::{
    exit::{CommandEnd, Failure},
    interrupt::Window,
    output::Sink,
};

/// Shows a recording; one that is damaged as far as it can be read, and then says so.
pub fn run(args: &WatchArgs, path: &Path, sink: &Sink) -> Result<CommandEnd, Failure> {
    let mut recording = recording::open(path)?;
    only::nics(&args.only, &recording.host.nics, "in this recording")?;
    let host = recording.host.clone();
    let cpus = host.cpus.iter().map(|c| c.id).collect();
    only::cpus(&args.only, &cpus, "in this recording")?;
    only::pids_of(&args.only, &mut recording)?;
    if picture::wanted(args, sink) {
        return picture::replay(args, sink, recording);
    }
    let window = Window::open();
    let mut show = Show::new(args, sink, only::filter(&args.only), &host)?;
    for number in 0..recording.len() {
        if window.was_interrupted() {
            break;
        }
        show.tell(recording.get(number).map_err(Failure::Environment)?)?;
    }
    recording.damage().map_or(Ok(CommandEnd::Yes), |why| Err(Failure::Environment(why)))
}
