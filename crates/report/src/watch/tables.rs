//! The tables below the CPUs, in their order: the text prints them, and so does the page of a browser.

use model::watch::WatchInterval;

use super::{counters::counters, interrupted_tasks::interrupted_tasks, listing::Listing, panes};

/// A table and its title.
#[derive(Debug, Clone, PartialEq)]
pub struct Titled {
    pub title: &'static str,
    pub list: Listing,
}

/// Every table but that of the CPUs; of the counters those that grew. With `threads` the interrupted
/// tasks are threads, else processes.
pub fn tables(interval: &WatchInterval, threads: bool) -> Vec<Titled> {
    let mut grown = counters(interval);
    grown.rows.retain(|r| r.get(2).and_then(|c| c.number).is_some_and(|n| n > 0.0));
    [
        ("interrupted tasks", interrupted_tasks(interval, threads)),
        ("queues", panes::queues(interval)),
        ("waits", panes::waits(interval)),
        ("migrations", panes::migrated_threads(interval)),
        ("messages", panes::messages(interval)),
        ("senders", panes::senders(interval)),
        ("counters that grew", grown),
    ]
    .map(|(title, list)| Titled { title, list })
    .into()
}
