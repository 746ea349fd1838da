//! The queue and interrupt of a NAPI instance.

use std::collections::{BTreeMap, BTreeSet};

use model::{IrqId, QueueId, Reading, ids::Direction, irq::Irq, nic::Nic};

use crate::{
    Root,
    ask::rtnl,
    facts::{irq, netns, nic, nic_netlink},
};

/// What is known of this network namespace's NICs; read when an instance is seen first.
#[derive(Debug, Default)]
pub struct NamespaceNics {
    own: Option<u64>,
    nics: Vec<Nic>,
    irqs: Vec<Irq>,
    /// Instances that another reading would tell nothing new about.
    asked: BTreeSet<u32>,
    /// Interrupts after which instances were polled, where they are the NIC's own.
    after: BTreeMap<u32, IrqId>,
}

/// Where an instance belongs.
#[derive(Debug)]
pub struct NapiQueue {
    /// Its receive queue; its transmit queue where it polls only that.
    pub queue: Reading<QueueId>,
    pub irq: Reading<IrqId>,
    /// Whether the kernel says that it has a thread.
    pub threaded: Reading<bool>,
}

/// An instance as the kernel's program saw it.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    pub id: u32,
    pub nic: &'a str,
    /// The NIC's network namespace.
    pub netns: u32,
    /// The interrupt after which it was polled last.
    pub irq: Option<IrqId>,
}

impl NamespaceNics {
    pub fn of(&mut self, root: &Root, napi: Instance<'_>) -> NapiQueue {
        if self.own.is_none() {
            self.own = netns::own_inode(root).ok();
        }
        if self.own != Some(u64::from(napi.netns)) {
            let why = || format!("{} is in another network namespace", napi.nic);
            let (queue, irq) = (Reading::Absent(why()), Reading::Absent(why()));
            return NapiQueue { queue, irq, threaded: Reading::Absent(why()) };
        }
        if self.asked.insert(napi.id) {
            self.ask(root);
        }
        self.remember(napi);
        self.find(napi)
    }

    fn ask(&mut self, root: &Root) {
        let mut nics = nic::read(root);
        let links = rtnl::Answers::ask(root);
        nic_netlink::enrich(root, &mut nics, &links, &Reading::absent("not asked"));
        self.irqs = irq::read(root, &nics).into_known().unwrap_or_default();
        irq::attach(&mut nics, &self.irqs);
        self.nics = nics;
        let all = self.nics.iter().filter_map(|n| n.napis.known()).flatten();
        self.asked.extend(all.map(|n| n.id));
    }

    /// The interrupt before a poll may be another device's: only one of the same NIC counts.
    fn remember(&mut self, napi: Instance<'_>) {
        let Some(irq) = napi.irq else { return };
        let own = |i: &&Irq| i.irq == irq && i.nic.known().map(String::as_str) == Some(napi.nic);
        if self.irqs.iter().any(|i| own(&i)) {
            self.after.insert(napi.id, irq);
        }
    }

    fn find(&self, napi: Instance<'_>) -> NapiQueue {
        let nic = self.nics.iter().find(|n| n.name == napi.nic);
        let reported = nic.and_then(|n| n.napis.known()?.iter().find(|i| i.id == napi.id));
        let after = self.after.get(&napi.id).copied();
        let by_irq = after.and_then(|a| self.irqs.iter().find(|i| i.irq == a));
        let queue = reported
            .and_then(|t| first(&t.queues))
            .or_else(|| first(&by_irq?.queues))
            .map_or_else(|| Reading::absent(why(nic)), Reading::Known);
        let of_queue = |queue: &QueueId| {
            let queue = nic?.queues.iter().find(|q| q.id == *queue)?;
            queue.irq.get()
        };
        let irq = reported
            .and_then(|t| t.irq.get())
            .or(after)
            .or_else(|| queue.known().and_then(of_queue))
            .map_or_else(
                || {
                    Reading::absent(
                        "neither the kernel nor a name shows the interrupt of this \
                                    instance",
                    )
                },
                Reading::Known,
            );
        let threaded = match reported {
            Some(t) => t.threaded.clone().or_else(|| Reading::Known(t.pid.is_known())),
            None => Reading::absent(why(nic)),
        };
        NapiQueue { queue, irq, threaded }
    }
}

/// A receive queue before a transmit queue.
fn first(queues: &[QueueId]) -> Option<QueueId> {
    let rx = queues.iter().find(|q| q.direction == Direction::Rx);
    rx.or_else(|| queues.first()).copied()
}

fn why(nic: Option<&Nic>) -> String {
    match nic.map(|n| &n.napis) {
        None => "this interface was not there when interfaces were read".into(),
        Some(Reading::Known(_)) => "the kernel ties no queue to this instance".into(),
        Some(Reading::Absent(why) | Reading::Denied(why)) => why.clone(),
    }
}
