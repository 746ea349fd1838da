//! Names of processes and threads, each read at most once per interval.

use std::{cell::RefCell, collections::BTreeMap};

use crate::Root;

/// The names that were asked for within one interval.
pub struct Comms {
    root: Root,
    known: RefCell<BTreeMap<u32, Option<String>>>,
}

impl Comms {
    /// Names are read at the first question for each process.
    pub fn new(root: &Root) -> Self {
        Self { root: root.clone(), known: RefCell::default() }
    }

    /// `/proc/N/comm` of a process or thread; `None` of one that is gone.
    pub fn of(&self, id: u32) -> Option<String> {
        let mut known = self.known.borrow_mut();
        let read = || self.root.word(&format!("/proc/{id}/comm")).into_known();
        known.entry(id).or_insert_with(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let comm = dir.path().join("proc/7/comm");
        std::fs::create_dir_all(comm.parent().unwrap()).unwrap();
        std::fs::write(&comm, "first\n").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let comms = Comms::new(&root);
        assert_eq!((comms.of(7), comms.of(8)), (Some("first".into()), None));
        std::fs::write(&comm, "second\n").unwrap();
        assert_eq!(comms.of(7), Some("first".into()));
        assert_eq!(Comms::new(&root).of(7), Some("second".into()));
    }
}
