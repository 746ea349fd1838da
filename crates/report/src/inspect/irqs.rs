//! Every interrupt with its affinity, its queue and its counts.

use model::{Reading, irq::Mapping};

use super::View;
use crate::{
    text::{Ink, Line, Page, Table},
    words::{grouped, ranges, reading, reading_as},
};

/// The width from which every column fits.
const ROOM: usize = 100;

pub fn show(v: &View<'_>, page: &mut Page) {
    page.heading("INTERRUPTS");
    let list = match v.facts.irqs.as_ref() {
        Reading::Known(list) => list,
        Reading::Absent(why) | Reading::Denied(why) => {
            page.line(Line::plain("  ").text(why), 4);
            return;
        }
    };
    let mut t = Table::new()
        .right("IRQ")
        .wrapping("NAME")
        .wrapping("NIC QUEUE")
        .wrapping("AFFINITY")
        .wrapping("EFFECTIVE")
        .left("NODE")
        .right("COUNT")
        .wrapping("BY CPU");
    // How a queue was found: where there is room, or with `-v`.
    if page.look().verbose || page.look().width >= ROOM {
        t = t.left("SOURCE");
    }
    for i in list {
        let target = i.target().get().unwrap_or_default();
        let by = i.counts.as_ref().map(|c| {
            let most = c.iter().max_by_key(|n| n.count).map(|n| format!("most on {}", n.cpu));
            format!("{} ({})", ranges(c.iter().map(|n| n.cpu.0)), most.unwrap_or_default())
        });
        let one = i.counts.known().is_some_and(|c| c.len() < 2);
        t.row([
            Line::plain(i.irq),
            Line::plain(&i.name),
            serves(i),
            reading(&i.affinity),
            reading(&i.effective_affinity),
            Line::plain(ranges(v.places.nodes(&target).iter().map(|n| n.0))),
            reading_as(&i.counts, |c| grouped(c.iter().map(|n| n.count).sum())),
            if one {
                reading_as(&i.counts, |c| ranges(c.iter().map(|n| n.cpu.0)))
            } else {
                reading_as(&by, String::clone)
            },
            match i.mapped_by.get() {
                Some(Mapping::NetdevNetlink) => Line::plain("netlink"),
                Some(Mapping::MsiIrqs) => Line::plain("msi_irqs"),
                Some(Mapping::Name) => Line::plain("name"),
                None => Line::new(),
            },
        ]);
    }
    page.table(&t, 2);
}

fn serves(i: &model::irq::Irq) -> Line {
    let nic = i.nic.get().unwrap_or_default();
    let queue = i.queue.get().unwrap_or_default();
    let device = i.device.get().unwrap_or_default();
    match (nic.is_empty(), queue.is_empty()) {
        (true, _) => Line::new().ink(Ink::Faint, device),
        (false, true) => Line::plain(nic),
        (false, false) => Line::plain(format!("{nic} {queue}")),
    }
}
