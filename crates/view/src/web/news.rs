//! The newest intervals, as every browser gets them.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::watch::WatchRecord;
use page::live::Live;

/// A browser that has missed more than this is given the newest interval next.
const KEPT: usize = 4;

/// An interval in the forms that are sent.
#[derive(Debug)]
pub struct Item {
    /// Its number, from 1.
    pub number: u64,
    /// The document, as a line of `watch --json`.
    pub document: String,
    /// The event of the page.
    pub page: String,
}

#[derive(Debug)]
pub struct News {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inside {
    live: Live,
    told: u64,
    newest: VecDeque<Arc<Item>>,
}

impl News {
    pub fn new(live: Live) -> Self {
        let inside = Inside { live, told: 0, newest: VecDeque::new() };
        Self { inside: Mutex::new(inside), changed: Condvar::new() }
    }

    /// Adds an interval and wakes those who wait for it.
    pub fn add(&self, record: &WatchRecord) {
        // The document is made without the lock: it is the larger part of the work.
        let document = serde_json::to_string(&record.interval).unwrap_or_default();
        let mut inside = self.lock();
        let page = inside.live.interval(record);
        inside.told += 1;
        let number = inside.told;
        while inside.newest.len() >= KEPT {
            inside.newest.pop_front();
        }
        inside.newest.push_back(Arc::new(Item { number, document, page }));
        drop(inside);
        self.wake();
    }

    /// The first event of a page, and the number after which its intervals begin.
    pub fn hello(&self) -> (String, u64) {
        let inside = self.lock();
        (inside.live.hello(), inside.told.saturating_sub(1))
    }

    /// The interval after `seen`, or the newest one where that is gone; `None` after `patience`, and
    /// where [`News::wake`] was called for another reason.
    pub fn after(&self, seen: u64, patience: Duration) -> Option<Arc<Item>> {
        let mut inside = self.lock();
        if inside.told <= seen {
            let waited = self.changed.wait_timeout(inside, patience);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let kept = inside.newest.iter();
        let next = kept.clone().find(|i| i.number == seen + 1);
        next.or_else(|| kept.last().filter(|i| i.number > seen)).cloned()
    }

    /// Wakes all threads that wait for an interval.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::watch::{WatchHost, test_data};

    use super::*;

    #[test]
    fn a_slow_reader_gets_the_newest_interval() {
        let news = News::new(Live::new(WatchHost::unknown("a test"), false));
        let next = |seen| news.after(seen, Duration::ZERO).map(|i| i.number);
        assert_eq!((news.hello().1, next(0)), (0, None));
        let add = |turn| {
            let interval = test_data::interval(1, turn);
            news.add(&WatchRecord { interval, findings: vec![] });
        };
        (0..3).for_each(add);
        assert_eq!((next(0), next(1), next(2), next(3)), (Some(1), Some(2), Some(3), None));
        (3..10).for_each(add);
        assert_eq!((next(0), next(5), next(6), next(9)), (Some(10), Some(10), Some(7), Some(10)));
        assert_eq!(news.hello().1, 9, "a new browser begins with the newest");
    }
}
