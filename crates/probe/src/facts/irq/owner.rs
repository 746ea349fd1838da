//! The NIC that an interrupt serves, and its queues.

use std::collections::{HashMap, HashSet};

use model::{
    QueueId, Reading,
    irq::{Irq, Mapping},
    nic::{Nic, UNKNOWN_KIND},
};
use parse::irq_name::{self, IrqName, Owner, Role, is_pci_address};

use crate::Root;

/// A NIC with a device behind it.
struct Card<'a> {
    nic: &'a Nic,
    driver: &'a str,
    max_tx: Option<u32>,
    /// The device's own name: `virtio2`, `0000:03:00.0`, `30be0000.ethernet`.
    device: String,
    /// The PCI function it is, or sits on.
    pci: Option<String>,
    /// Its queues, where known.
    queues: HashSet<QueueId>,
}

/// One interrupt's tie to one card.
struct Tie {
    card: usize,
    role: Role,
    queues: Vec<QueueId>,
}

/// Fills `nic`, `also_nics`, `queues`, `queue` and `mapped_by`.
pub(super) fn find(root: &Root, nics: &[Nic], irqs: &mut [Irq]) {
    let cards: Vec<Card> = nics.iter().filter_map(|nic| card(root, nic)).collect();
    if cards.is_empty() {
        return;
    }
    let reported = by_netlink(nics);
    let ties: Vec<(Vec<Tie>, Mapping)> = irqs.iter().map(|irq| ties(irq, &cards)).collect();
    let busy: HashSet<usize> = ties
        .iter()
        .flat_map(|(ties, _)| ties.iter().filter(|t| !t.queues.is_empty()).map(|t| t.card))
        .collect();
    let single = only_one(&ties);
    for (irq, (ties, mapping)) in irqs.iter_mut().zip(ties) {
        if let Some((nic, queues)) = reported.get(&irq.irq.0) {
            put(irq, &[nic.name.as_str()], queues.clone(), Mapping::NetdevNetlink, None);
            continue;
        }
        let Some(first) = ties.first() else { continue };
        let names: Vec<&str> =
            ties.iter().filter_map(|t| Some(cards.get(t.card)?.nic.name.as_str())).collect();
        let alone = !busy.contains(&first.card) && single.contains(&first.card);
        let queues = match (first.role, cards.get(first.card)) {
            (Role::Whole | Role::Vector(_), Some(card)) if alone => {
                card.nic.queues.iter().map(|q| q.id).collect()
            }
            _ => first.queues.clone(),
        };
        put(irq, &names, queues, mapping, Some(first.role));
    }
}

/// Cards with exactly one interrupt that is not known to be for events.
fn only_one(ties: &[(Vec<Tie>, Mapping)]) -> HashSet<usize> {
    let mut count: HashMap<usize, usize> = HashMap::new();
    for tie in ties.iter().flat_map(|(t, _)| t).filter(|t| t.role != Role::Event) {
        *count.entry(tie.card).or_default() += 1;
    }
    count.into_iter().filter(|(_, n)| *n == 1).map(|(card, _)| card).collect()
}

fn put(irq: &mut Irq, nics: &[&str], queues: Vec<QueueId>, by: Mapping, role: Option<Role>) {
    let Some((first, others)) = nics.split_first() else { return };
    irq.nic = Reading::Known((*first).to_owned());
    irq.also_nics = others.iter().map(|n| (*n).to_owned()).collect();
    irq.mapped_by = Reading::Known(by);
    irq.queue = if queues.is_empty() {
        Reading::absent(match role {
            Some(Role::Event | Role::Whole) => "no queue's: link events, configuration or control",
            _ => "its queue is not known",
        })
    } else {
        let words: Vec<String> = queues.iter().map(ToString::to_string).collect();
        Reading::Known(words.join("+"))
    };
    irq.queues = queues;
}

fn card<'a>(root: &Root, nic: &'a Nic) -> Option<Card<'a>> {
    if !["physical", UNKNOWN_KIND].contains(&nic.kind.as_str()) && !nic.bus_address.is_known() {
        return None;
    }
    let path = crate::facts::nic::device(root, &nic.name).into_known().map(|p| p.device);
    let parts: Vec<&str> = path.as_deref().unwrap_or_default().rsplit('/').collect();
    let of_path = parts.iter().copied().find(|p| is_pci_address(p));
    let of_nic = nic.bus_address.known().map(String::as_str).filter(|a| is_pci_address(a));
    // Without a PCI address only the interrupts' names can show it.
    let device = parts.first().copied().filter(|p| !p.is_empty()).or(of_nic).unwrap_or_default();
    Some(Card {
        nic,
        driver: nic.driver.known().map_or("", String::as_str),
        max_tx: nic.channels.known().map(|c| c.max_tx),
        device: device.to_owned(),
        pci: of_path.or(of_nic).map(str::to_owned),
        queues: nic.queues.iter().map(|q| q.id).collect(),
    })
}

/// What the kernel itself says: NIC and queues by interrupt.
fn by_netlink(nics: &[Nic]) -> HashMap<u32, (&Nic, Vec<QueueId>)> {
    let mut reported: HashMap<u32, (&Nic, Vec<QueueId>)> = HashMap::new();
    for nic in nics {
        for napi in nic.napis.known().into_iter().flatten() {
            let Some(irq) = napi.irq.known() else { continue };
            if napi.queues.is_empty() {
                continue;
            }
            let (_, queues) = reported.entry(irq.0).or_insert_with(|| (nic, vec![]));
            queues.extend(
                napi.queues.iter().copied().filter(|q| !queues.contains(q)).collect::<Vec<_>>(),
            );
            queues.sort();
        }
    }
    reported
}

/// The NICs of an interrupt: those on its PCI device, distinguished by the action's name where
/// there are several; without a device, those that the names indicate.
fn ties(irq: &Irq, cards: &[Card]) -> (Vec<Tie>, Mapping) {
    let names: Vec<IrqName> = irq.name.split(", ").map(irq_name::parse).collect();
    let device = irq.device.known();
    let on_device: Vec<usize> = cards
        .iter()
        .enumerate()
        .filter(|(_, c)| device.is_some() && c.pci.as_ref() == device)
        .map(|(i, _)| i)
        .collect();
    let named = |candidates: &mut dyn Iterator<Item = usize>| -> Vec<Tie> {
        candidates
            .filter_map(|i| {
                let card = cards.get(i)?;
                let name = names.iter().find(|n| means(n, card))?;
                Some(tie(i, card, name))
            })
            .collect()
    };
    if on_device.is_empty() {
        // A device that is known and another than a card's: whatever its name, it is not that
        // card's.
        let mut open = (0..cards.len())
            .filter(|&i| device.is_none() || cards.get(i).is_some_and(|c| c.pci.is_none()));
        return (named(&mut open), Mapping::Name);
    }
    let mut ties = named(&mut on_device.iter().copied());
    if ties.is_empty() {
        // Renamed since, or without a NIC in its name (`mlx5_comp0`, several ports on one
        // function).
        ties = on_device
            .iter()
            .filter_map(|&i| {
                let card = cards.get(i)?;
                let name = names.first().filter(|n| !means_another(n, card))?;
                Some(tie(i, card, name))
            })
            .collect();
    }
    (ties, Mapping::MsiIrqs)
}

fn tie(i: usize, card: &Card, name: &IrqName) -> Tie {
    let mut queues = name.queues(card.driver, card.max_tx);
    if !card.queues.is_empty() {
        // A combined channel need not have both.
        queues.retain(|q| card.queues.contains(q));
    }
    Tie { card: i, role: name.role, queues }
}

/// Whether the name is this very card's: the interface, or a device that only it sits on.
fn means(name: &IrqName, card: &Card) -> bool {
    match name.owner {
        Owner::Nic(nic) => nic == card.nic.name || nic == card.device,
        Owner::Device(device) => {
            (!device.is_empty() && device == card.device) || Some(device) == card.pci.as_deref()
        }
    }
}

/// Whether the name is another device's on the same function (`virtio3` beside `virtio2`).
fn means_another(name: &IrqName, card: &Card) -> bool {
    matches!(name.owner, Owner::Device(device)
        if device != card.device && Some(device) != card.pci.as_deref())
}
