//! Memory of both ends during minutes at full speed.

use std::{io, time::Duration};

use crate::{
    options::Options,
    ours,
    room::{Room, sleep},
    table::{Table, Verdict},
};

/// The largest ratio of the end to the first tenth of the time.
const MOST_GROWTH: u64 = 512 << 10;

/// Each kind of traffic.
pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    if !ours::ready() {
        return Ok(());
    }
    let ms = (options.minutes * 60_000.0) as u64;
    table.part(&format!(
        "Resident memory over {:.1} minutes of each, from a tenth of it on",
        options.minutes
    ));
    for arguments in [
        &["rtt", "--request", "64", "--wait", "spin"][..],
        &["rtt", "--request", "64", "--flows", "64"],
        &["stream"],
    ] {
        watch(room, table, ms, arguments)?;
    }
    Ok(())
}

fn watch(room: &Room, table: &mut Table, ms: u64, arguments: &[&str]) -> io::Result<()> {
    let (peer, port) = ours::serve(room, room.peer)?;
    let local = ours::measure(room, port, ms, room.peer, arguments)?;
    room.wait_traffic(1_000_000)?;
    let tenth = Duration::from_millis(ms / 10);
    sleep(tenth)?;
    let first = (local.resident()?, peer.resident()?);
    let mut most = first;
    for _ in 0..8 {
        sleep(tenth)?;
        most = (most.0.max(local.resident()?), most.1.max(peer.resident()?));
    }
    let last = (local.resident()?, peer.resident()?);
    ours::document(local, ms)?;
    let grown = most.0.saturating_sub(first.0).max(most.1.saturating_sub(first.1));
    let kib = |bytes: u64| bytes >> 10;
    let text = format!(
        "{:<40} near {} → {} KiB, far {} → {} KiB (grown by at most {} KiB, ≤ {})",
        arguments.join(" "),
        kib(first.0),
        kib(last.0),
        kib(first.1),
        kib(last.1),
        kib(grown),
        kib(MOST_GROWTH),
    );
    table.line(&text, if grown <= MOST_GROWTH { Verdict::Kept } else { Verdict::Missed });
    Ok(())
}
