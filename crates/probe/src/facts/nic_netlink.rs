//! What rtnetlink and the `netdev` family add to the interfaces of sysfs: kind and details,
//! addresses, MTU limits, queueing disciplines, NAPI instances, XDP.

mod details;
mod files;

use std::collections::HashMap;

use model::{
    IrqId, Nanos, QueueId, Reading,
    facts::NoAccess,
    napi::Napi,
    netns::NetNamespace,
    nic::{Nic, Qdisc},
};
use parse::{
    genl_netdev::{NapiMessage, QueueMessage},
    rtnl_link::LinkMessage,
    rtnl_qdisc::{self, QdiscMessage},
};

use crate::{
    ReadError, Root,
    ask::{self, netlink::Dump, rtnl::Answers},
    error::reading,
    facts::netns,
};

/// Why the interfaces of `/sys` are not those of this network namespace; `None` where they are.
/// sysfs shows the namespace that it was mounted in: after `nsenter -n` alone the facts would mix
/// two hosts.
pub fn contradiction(nics: &[Nic], answers: &Answers) -> Option<String> {
    let links = &answers.links.as_ref().ok()?.entries;
    let same = |n: &Nic, l: &LinkMessage| {
        l.name == n.name
            && n.ifindex.get().is_none_or(|i| i == l.ifindex)
            && n.mac.known().zip(l.mac.as_ref()).is_none_or(|(a, b)| a == b)
    };
    // Every namespace has a loopback of the same name, index and address.
    let nics: Vec<&Nic> = nics.iter().filter(|n| n.name != "lo").collect();
    let here: Vec<&str> = links.iter().map(|l| l.name.as_str()).filter(|n| *n != "lo").collect();
    if nics.is_empty() || nics.iter().any(|n| links.iter().any(|l| same(n, l))) {
        return None;
    }
    let theirs: Vec<&str> = nics.iter().map(|n| n.name.as_str()).collect();
    Some(format!(
        "/sys shows another network namespace's interfaces ({}) than this one has ({}), as after \
         `nsenter -n` alone; run it with a /sys of its own: unshare -m sh -c 'mount -t sysfs sysfs \
         /sys && exec netwright …', or by `ip netns exec`",
        few(&theirs),
        few(&here)
    ))
}

/// The first names of a list.
fn few(names: &[&str]) -> String {
    const SHOWN: usize = 4;
    if names.is_empty() {
        return "only lo".into();
    }
    let shown: Vec<&str> = names.iter().copied().take(SHOWN).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Adds to each interface what netlink knows of it. In a tree of files that has no such
/// answers the details come from `/sys` and `/proc`, and the rest stays absent.
pub fn enrich(
    root: &Root,
    nics: &mut [Nic],
    answers: &Answers,
    namespaces: &Reading<Vec<NetNamespace>>,
) -> Vec<NoAccess> {
    let qdiscs = ask::rtnl::qdiscs(root);
    let no_access = no_access(answers, &qdiscs);
    let qdiscs = by_nic(reading(qdiscs), |q| q.ifindex);
    let netdev = Netdev::ask(root);
    let addresses = by_nic(reading(answers.addresses.clone()), |a| a.ifindex);
    let map = details::Map::new(answers.links.as_ref().ok(), namespaces);
    let from_files = match &answers.links {
        Ok(_) => HashMap::new(),
        Err(_) => files::details(root, nics),
    };
    for nic in nics {
        if let Some(link) = nic.ifindex.get().and_then(|i| map.link(i)) {
            reported(nic, link);
            nic.details = map.details(link);
        } else {
            not_reported(nic, answers.links.as_ref().err());
            if let Some((kind, details)) = from_files.get(&nic.name) {
                nic.kind.clone_from(kind);
                nic.details = details.clone();
            }
        }
        nic.addresses = of_nic(&addresses, nic).map(|a| netns::texts(a.iter()));
        nic.qdiscs = of_nic(&qdiscs, nic).map(|q| q.iter().map(qdisc).collect());
        netdev.add_to(nic);
    }
    no_access
}

/// What one link message says that needs no other.
fn reported(nic: &mut Nic, link: &LinkMessage) {
    let kind = netns::kind(link);
    // A device behind it makes it hardware, whatever the driver calls its links (IPoIB).
    if !kind.is_empty() && nic.kind != "physical" {
        nic.kind = kind;
    }
    let since = |v: Option<u32>, what: &str| {
        v.map_or_else(
            || Reading::Absent(format!("{what}: not reported; since Linux 4.19")),
            Reading::Known,
        )
    };
    nic.min_mtu = since(link.min_mtu, "IFLA_MIN_MTU");
    nic.max_mtu = since(link.max_mtu, "IFLA_MAX_MTU").and_then(|max| match max {
        0 => Reading::absent("IFLA_MAX_MTU: 0, the driver sets no limit"),
        max => Reading::Known(max),
    });
    nic.xdp = link.xdp.map_or_else(|| Reading::absent("IFLA_XDP: not reported"), Reading::Known);
}

fn not_reported(nic: &mut Nic, error: Option<&ReadError>) {
    fn why<T>(name: &str, error: Option<&ReadError>) -> Reading<T> {
        match error {
            Some(e) => e.clone().into_reading(),
            None => Reading::Absent(format!("netlink/links: {name} is not among them")),
        }
    }
    nic.min_mtu = why(&nic.name, error);
    nic.max_mtu = why(&nic.name, error);
    nic.xdp = why(&nic.name, error);
}

type ByNic<T> = Reading<HashMap<u32, Vec<T>>>;

fn by_nic<T>(dump: Reading<Dump<T>>, ifindex: impl Fn(&T) -> u32) -> ByNic<T> {
    dump.map(|dump| {
        let mut map: HashMap<u32, Vec<T>> = HashMap::new();
        for entry in dump.entries {
            map.entry(ifindex(&entry)).or_default().push(entry);
        }
        map
    })
}

/// The entries of one interface; none is an empty list, not an absent one.
fn of_nic<'a, T>(map: &'a ByNic<T>, nic: &Nic) -> Reading<&'a [T]> {
    map.as_ref().and_then(|map| {
        nic.ifindex.as_ref().map(|i| map.get(i).map(Vec::as_slice).unwrap_or_default())
    })
}

/// A queueing discipline for people and machines.
fn qdisc(q: &QdiscMessage) -> Qdisc {
    fn reported<T: Into<u64>>(v: Option<T>, what: &str) -> Reading<u64> {
        v.map_or_else(
            || Reading::Absent(format!("{what}: not reported")),
            |v| Reading::Known(v.into()),
        )
    }
    Qdisc {
        kind: q.kind.clone(),
        handle: rtnl_qdisc::handle(q.handle),
        parent: rtnl_qdisc::parent(q.parent),
        sent_bytes: reported(q.sent_bytes, "sent bytes"),
        sent_packets: reported(q.sent_packets, "sent packets"),
        drops: reported(q.drops, "drops"),
        overlimits: reported(q.overlimits, "overlimits"),
        requeues: reported(q.requeues, "requeues"),
        backlog_bytes: reported(q.backlog_bytes, "backlog bytes"),
        backlog_packets: reported(q.backlog_packets, "backlog packets"),
    }
}

/// The `netdev` family's answers.
struct Netdev {
    napis: ByNic<NapiMessage>,
    queues: ByNic<QueueMessage>,
}

impl Netdev {
    fn ask(root: &Root) -> Self {
        Self {
            napis: by_nic(reading(ask::netdev::napis(root)), |n| n.ifindex),
            queues: by_nic(reading(ask::netdev::queues(root)), |q| q.ifindex),
        }
    }

    fn add_to(&self, nic: &mut Nic) {
        let queues = of_nic(&self.queues, nic);
        let napis = of_nic(&self.napis, nic);
        let of = |id: u32| -> Vec<QueueId> {
            let all = queues.known().copied().unwrap_or_default();
            let mut ids: Vec<QueueId> =
                all.iter().filter(|q| q.napi_id == Some(id)).map(|q| q.id).collect();
            ids.sort_unstable();
            ids
        };
        nic.napis = napis.as_ref().map(|napis| {
            let mut list: Vec<Napi> = napis.iter().map(|n| napi(n, of(n.id))).collect();
            list.sort_by_key(|n| n.id);
            list
        });
        for queue in &mut nic.queues {
            queue.napi_id = queues.as_ref().and_then(|all| napi_id(all, queue.id));
            queue.irq = queue.napi_id.clone().and_then(|id| {
                let list = nic.napis.known().map(Vec::as_slice).unwrap_or_default();
                list.iter().find(|n| n.id == id).map_or_else(
                    || Reading::Absent(format!("NAPI {id}: not among the instances")),
                    |n| n.irq.clone(),
                )
            });
        }
    }
}

fn napi_id(queues: &[QueueMessage], id: QueueId) -> Reading<u32> {
    match queues.iter().find(|q| q.id == id) {
        Some(QueueMessage { napi_id: Some(napi), .. }) => Reading::Known(*napi),
        Some(_) => Reading::absent("no NAPI instance polls it"),
        None => Reading::absent("not in use (the link is down, or has fewer channels)"),
    }
}

fn napi(n: &NapiMessage, queues: Vec<QueueId>) -> Napi {
    Napi {
        id: n.id,
        irq: n.irq.map_or_else(
            || Reading::Absent(format!("the driver reports no interrupt for NAPI {}", n.id)),
            |irq| Reading::Known(IrqId(irq)),
        ),
        pid: n.pid.map_or_else(
            || Reading::Absent(format!("NAPI {} has no thread", n.id)),
            Reading::Known,
        ),
        threaded: n.threaded.map_or_else(
            || Reading::absent("not reported; since Linux 6.17"),
            |t| Reading::Known(t != 0),
        ),
        gro_flush_timeout_ns: n.gro_flush_timeout.map_or_else(
            || Reading::absent("not reported by NAPI; since Linux 6.13"),
            |ns| Reading::Known(Nanos(ns)),
        ),
        defer_hard_irqs: n.defer_hard_irqs.map_or_else(
            || Reading::absent("not reported by NAPI; since Linux 6.13"),
            Reading::Known,
        ),
        irq_suspend_timeout_ns: n.irq_suspend_timeout.map_or_else(
            || Reading::absent("not reported by NAPI; since Linux 6.13"),
            |ns| Reading::Known(Nanos(ns)),
        ),
        queues,
    }
}

fn no_access(answers: &Answers, qdiscs: &Result<Dump<QdiscMessage>, ReadError>) -> Vec<NoAccess> {
    let line = |what: &str, why: String| NoAccess { what: what.into(), why, remedy: String::new() };
    let mut lines = vec![];
    if let Err(e) = &answers.links {
        lines.push(line("kinds, MTU limits and XDP of links", e.to_string()));
    }
    let interrupted = [
        ("links", answers.links.as_ref().is_ok_and(|d| d.interrupted)),
        ("addresses", answers.addresses.as_ref().is_ok_and(|d| d.interrupted)),
        ("qdiscs", qdiscs.as_ref().is_ok_and(|d| d.interrupted)),
    ];
    for (what, _) in interrupted.iter().filter(|(_, is)| *is) {
        lines.push(line(
            &format!("some {what}, perhaps"),
            format!("netlink/{what}: they changed each time while being listed"),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        facts::{listener, nic},
        root::record::Recorder,
    };

    fn read(root: &Root) -> (Vec<Nic>, Reading<Vec<NetNamespace>>, String) {
        let mut nics = nic::read(root);
        let answers = Answers::ask(root);
        let (namespaces, _) = netns::read(root, &answers);
        enrich(root, &mut nics, &answers, &namespaces);
        (nics, namespaces, format!("{:?}", listener::read(root)))
    }

    /// Whatever is learned here by other ways than files is learned again from a recording.
    #[test]
    fn a_recording_reads_as_the_live_host_does() {
        let recorder = Arc::new(Recorder::default());
        let live = read(&Root::recording(recorder.clone()));
        assert!(live.0.iter().any(|n| n.kind == "loopback" && n.addresses.is_known()));
        let tree = tempfile::tempdir().unwrap();
        let recording = recorder.take();
        let at = |path: &str| {
            let path = tree.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        for (path, bytes) in &recording.files {
            std::fs::write(at(path), bytes).unwrap();
        }
        for (path, target) in &recording.links {
            std::os::unix::fs::symlink(target, at(path)).unwrap();
        }
        let again = read(&Root::open(tree.path()).unwrap());
        assert_eq!(live.1, again.1, "namespaces");
        assert_eq!(live.2, again.2, "listeners");
        for (live, again) in live.0.iter().zip(&again.0) {
            let ours = |n: &Nic| {
                let Nic { kind, details, addresses, napis, qdiscs, .. } = n.clone();
                (kind, details, addresses, napis, qdiscs)
            };
            assert_eq!(ours(live), ours(again));
        }
    }
}
