//! The TCP connections that send, and the processes that hold them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use model::{
    Reading, Samples,
    samples::{ConnectionSample, Delta, Owner},
};

use crate::{
    Root,
    samples::{Sockets, clock::monotonic_ns, sockets::Names},
};

/// Which sockets an interval reads: some 2 ms of CPU time at most.
pub const SOCKETS: Sockets = Sockets::Tcp { most: 1_000 };

/// A walk over all descriptors is due when this many times its own length has passed since the last
/// one: it takes 0.2% of a CPU at most.
const PAUSE: u64 = 500;

/// The processes of the sockets that sent at the last walk.
#[derive(Debug, Default)]
pub struct Senders {
    owners: BTreeMap<u64, Reading<Vec<Owner>>>,
    /// When the next walk may begin.
    walk_at: u64,
}

impl Senders {
    /// Leaves the connections that sent or retransmitted, and names their processes. A new connection
    /// may remain without a name until the next walk.
    pub fn name(&mut self, root: &Root, samples: &mut Samples) {
        let Reading::Known(all) = &mut samples.connections else { return };
        all.retain(sent);
        all.sort_by_key(|c| Reverse(c.bytes_acked.get()));
        if monotonic_ns() >= self.walk_at {
            self.walk(root, all);
        }
        for c in all {
            c.owners = match self.owners.get(&c.inode) {
                Some(owners) => owners.clone(),
                None if c.inode == 0 => Reading::absent("no process holds it any more"),
                None => Reading::absent("not looked for yet"),
            };
        }
    }

    fn walk(&mut self, root: &Root, all: &[ConnectionSample]) {
        let inodes: BTreeSet<u64> = all.iter().map(|c| c.inode).filter(|i| *i != 0).collect();
        if inodes.iter().all(|i| self.owners.contains_key(i)) {
            return;
        }
        let begun = monotonic_ns();
        // All of them: a parent may have handed a socket to a worker since the last walk.
        let mut names = Names::look(root, &inodes);
        let found = inodes.into_iter().map(|inode| (inode, names.of(inode)));
        self.owners = found.filter(|(_, owners)| !matches!(owners, Reading::Absent(_))).collect();
        let now = monotonic_ns();
        self.walk_at = now.saturating_add(now.saturating_sub(begun).saturating_mul(PAUSE));
    }
}

/// One of which that is not known stays, so that its reason is told.
fn sent(c: &ConnectionSample) -> bool {
    let grew = |d: &Delta| d.get() != Some(0);
    grew(&c.bytes_acked) || grew(&c.retransmits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{Options, delta, one};
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    #[test]
    fn who_sent_stays_with_its_process_and_the_idle_ones_go() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = || {
            let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            (client, server.accept().unwrap().0)
        };
        let ((idle, _a), (mut busy, mut b)) = (pair(), pair());
        let root = Root::live();
        let options = Options { sockets: SOCKETS, ..Options::default() };
        let before = one(&root, 0, &options);
        busy.write_all(&[0; 4000]).unwrap();
        b.read_exact(&mut [0; 4000]).unwrap();
        let mut samples = delta::samples(&[before, one(&root, 0, &options)]).unwrap();
        let mut senders = Senders::default();
        senders.name(&root, &mut samples);
        let all = samples.connections.known().unwrap();
        let of = |s: &TcpStream| {
            let at = s.local_addr().unwrap().to_string();
            all.iter().find(|c| c.local == at)
        };
        assert!(of(&idle).is_none(), "{all:#?}");
        let busy = of(&busy).unwrap();
        assert_eq!(busy.bytes_acked, Reading::Known(4000));
        let pids: Vec<u32> = busy.owners.known().unwrap().iter().map(|o| o.pid).collect();
        assert_eq!(pids, [std::process::id()]);
        assert!(senders.walk_at > monotonic_ns(), "the next walk has to wait");
    }
}
