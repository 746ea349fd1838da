//! `measure offload` as text: the offload that lies, the rows that show it, a line for each offload
//! and direction.

use model::{
    Reading,
    measure::{
        Direction, Offload, OffloadDocument, OffloadLie, OffloadNic, OffloadProbe as Probe,
        OffloadRow, OffloadRowVerdict as Verdict, PieceSize,
    },
    units::grouped,
};

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

/// The page: which offload lies, why, and all rows in groups; with `-v` each row.
pub fn text(d: &OffloadDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(head(d), 2);
    page.line(Line::new().ink(Ink::Strong, headline(d)), 2);
    for (n, lie) in d.lies.iter().enumerate() {
        show(d, n + 1, lie, &mut page);
    }
    page.gap();
    table(d, &mut page);
    page.heading("OFFLOADS");
    nic("client", &d.nics.local, &mut page);
    nic("server", &d.nics.peer, &mut page);
    let why: std::collections::BTreeSet<&String> =
        d.rows.iter().filter_map(|r| r.not_run.as_ref()).collect();
    page.caveats(why.into_iter().map(|why| Line::plain(format!("Not run: {why}."))));
    page.finish()
}

fn head(d: &OffloadDocument) -> Line {
    let name = |nic: &Reading<OffloadNic>| nic.known().map_or("?".into(), |n| n.name.clone());
    Line::new().ink(Ink::Strong, "Offloads").text(format!(
        " {} ({}) to {} ({}) · 64 and {} bytes · {} · {}",
        d.local.address,
        name(&d.nics.local),
        d.peer.address,
        name(&d.nics.peer),
        grouped(d.large_bytes),
        many(d.rows.len(), "probe"),
        d.took_ns,
    ))
}

/// Which offload lies, in one line.
pub fn headline(d: &OffloadDocument) -> String {
    let ran = d.rows.iter().filter(|r| r.verdict != Verdict::NotRun).count();
    match d.lies.as_slice() {
        [] if d.interrupted => "Ended early; no offload lies so far".into(),
        [] if ran < d.rows.len() => {
            format!("No offload lies in {}; {} did not run", many(ran, "probe"), d.rows.len() - ran)
        }
        [] => "No offload lies".into(),
        [one] => said(one),
        [one, rest @ ..] => format!("{} (and {} more)", said(one), rest.len()),
    }
}

fn said(lie: &OffloadLie) -> String {
    let way = match lie.direction {
        Direction::Reverse => "from the server to the client",
        _ => "from the client to the server",
    };
    match lie.offload {
        Offload::Path => format!("The path damages packets {way}, whichever offload is used"),
        other => format!("{} of the {} lies", name(other), end(lie)),
    }
}

fn end(lie: &OffloadLie) -> &'static str {
    match lie.end.as_str() {
        "local" => "client",
        "peer" => "server",
        _ => "path",
    }
}

fn name(offload: Offload) -> &'static str {
    match offload {
        Offload::TxChecksum => "transmit checksum offload",
        Offload::RxChecksum => "receive checksum offload",
        Offload::Tso => "TCP segmentation offload (TSO)",
        Offload::Uso => "UDP segmentation offload (USO)",
        Offload::Gso => "segmentation by the kernel (GSO)",
        Offload::TcpMerge => "merging of received TCP segments (GRO, LRO)",
        Offload::UdpMerge => "merging of received datagrams (GRO)",
        Offload::Path => "path",
    }
}

fn show(d: &OffloadDocument, number: usize, lie: &OffloadLie, page: &mut Page) {
    page.gap();
    let title = Line::new().ink(Ink::Bad, format!("{number}  {}", said(lie)));
    page.line(title, 3);
    let mut label = |label: &str, text: String| {
        let label = Line::new().text("   ").ink(Ink::Faint, format!("{label:<10}"));
        page.labelled(label, &Line::plain(text));
    };
    let rows = |all: &[usize]| all.iter().filter_map(|n| d.rows.get(*n)).collect::<Vec<_>>();
    for row in rows(&lie.against) {
        label("wrong", evidence(row));
    }
    for row in rows(&lie.contrast) {
        label("but right", evidence(row));
    }
    if let Some(or) = lie.or {
        label("or", format!("{}: these probes cannot tell them apart", name(or)));
    }
    if let Some(command) = &lie.command {
        label("off", format!("{command}   # at the {}", end(lie)));
    }
}

fn evidence(row: &OffloadRow) -> String {
    let c = &row.counts;
    let bad = row.probe == Probe::UdpBadSum;
    let counts = [
        (c.damaged, if bad { "delivered all the same" } else { "damaged" }),
        (c.cut, "truncated"),
        (c.merged, "ran into the next"),
        (c.duplicates, "came twice"),
        (c.missing, "missing"),
    ];
    let mut parts: Vec<String> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} of {} {what}", grouped(*n), grouped(c.sent)))
        .collect();
    if c.retransmits > 0 {
        parts.push(format!(
            "{} in {} of {} writes",
            many(c.retransmits as usize, "retransmit"),
            c.batches_retransmitted,
            c.batches
        ));
    }
    if c.stalled {
        parts.push("stalled".into());
    }
    if parts.is_empty() {
        parts.push(format!("{} of {} right", grouped(c.right), grouped(c.sent)));
    }
    if row.checksum_errors > 0 {
        parts.push(format!("receiver's InCsumErrors +{}", grouped(row.checksum_errors)));
    }
    format!("{}, {}: {}", probe(row.probe), size(row.size), parts.join(", "))
}

fn probe(probe: Probe) -> &'static str {
    match probe {
        Probe::UdpUnsummed => "UDP alone, no checksum",
        Probe::UdpKernelSum => "UDP alone, kernel's checksum",
        Probe::UdpAlone => "UDP alone, device's checksum",
        Probe::UdpBurst => "UDP back to back",
        Probe::UdpBurstGro => "UDP back to back, UDP_GRO",
        Probe::UdpSegmented => "UDP_SEGMENT",
        Probe::UdpSegmentedGro => "UDP_SEGMENT, UDP_GRO",
        Probe::UdpBadSum => "UDP, wrong checksum",
        Probe::TcpAlone => "TCP alone",
        Probe::TcpBurst => "TCP back to back, a segment a write",
        Probe::TcpBulk => "TCP, many segments a write",
    }
}

fn size(size: PieceSize) -> &'static str {
    match size {
        PieceSize::Small => "small",
        PieceSize::Large => "large",
        PieceSize::Rising => "rising",
    }
}

/// The rows of the table: what is tried, and by which probes.
const GROUPS: [(&str, &[Probe]); 8] = [
    ("no checksum", &[Probe::UdpUnsummed]),
    ("kernel's checksum", &[Probe::UdpKernelSum]),
    ("transmit checksum", &[Probe::UdpAlone, Probe::TcpAlone]),
    ("receive checksum", &[Probe::UdpBadSum]),
    ("UDP merging", &[Probe::UdpBurst, Probe::UdpBurstGro]),
    ("UDP segmentation", &[Probe::UdpSegmented, Probe::UdpSegmentedGro]),
    ("TCP merging", &[Probe::TcpBurst]),
    ("TCP segmentation", &[Probe::TcpBulk]),
];

fn table(d: &OffloadDocument, page: &mut Page) {
    let mut t = Table::new()
        .wrapping("OFFLOAD")
        .left("TO")
        .right("SENT")
        .right("RIGHT")
        .right("WRONG")
        .right("MISSING")
        .right("RETR")
        .right("BAD SUM")
        .left("VERDICT");
    let ways = [(Direction::Forward, "server"), (Direction::Reverse, "client")];
    for (title, probes) in GROUPS {
        for (direction, way) in ways {
            let of = |r: &&OffloadRow| probes.contains(&r.probe) && r.direction == direction;
            let rows: Vec<&OffloadRow> = d.rows.iter().filter(of).collect();
            if !d.rows.is_empty() && rows.is_empty() {
                continue;
            }
            if page.look().verbose {
                rows.iter().for_each(|r| {
                    t.row(cells(&format!("{}, {}", probe(r.probe), size(r.size)), way, &[r]))
                });
            } else {
                t.row(cells(title, way, &rows));
            }
        }
    }
    page.table(&t, 0);
}

fn cells(title: &str, way: &str, rows: &[&OffloadRow]) -> Vec<Line> {
    let ran: Vec<&&OffloadRow> = rows.iter().filter(|r| r.verdict != Verdict::NotRun).collect();
    let sum = |of: fn(&OffloadRow) -> u64| {
        let n: u64 = ran.iter().map(|r| of(r)).sum();
        match ran.is_empty() {
            true => Line::new().ink(Ink::Faint, "-"),
            false => Line::plain(grouped(n)),
        }
    };
    let any = |v: Verdict| rows.iter().any(|r| r.verdict == v);
    let verdict = if any(Verdict::Wrong) {
        Line::new().ink(Ink::Bad, "wrong")
    } else if any(Verdict::Lossy) {
        Line::new().ink(Ink::Warn, "lossy")
    } else if any(Verdict::NotRun) {
        Line::new().ink(Ink::Faint, if ran.is_empty() { "not run" } else { "part not run" })
    } else {
        Line::new().ink(Ink::Good, "right")
    };
    vec![
        Line::plain(title),
        Line::plain(way),
        sum(|r| r.counts.sent),
        sum(|r| r.counts.right),
        sum(|r| r.counts.wrong()),
        sum(|r| r.counts.missing),
        sum(|r| r.counts.retransmits),
        sum(|r| r.checksum_errors),
        verdict,
    ]
}

/// What `ethtool -k` says of an end's interface.
fn nic(end: &str, nic: &Reading<OffloadNic>, page: &mut Page) {
    let label = Line::new().ink(Ink::Faint, format!("{end}  "));
    let text = match nic {
        Reading::Known(nic) => {
            let with = |on: bool| {
                let names = nic.features.iter().filter(|(_, is)| **is == on);
                names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
            };
            format!("{}: on {}; off {}", nic.name, with(true), with(false))
        }
        other => other.why_not().unwrap_or("not known").to_owned(),
    };
    page.labelled(label, &Line::plain(text));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

    use std::collections::BTreeMap;

    use model::{
        Nanos,
        measure::{BothNics, OffloadCounts, OffloadSpec},
    };

    use super::*;
    use crate::testing::golden;

    fn row(probe: Probe, direction: Direction, counts: OffloadCounts) -> OffloadRow {
        let verdict = match (counts.wrong(), counts.retransmits) {
            (0, 0) => Verdict::Right,
            (0, _) => Verdict::Lossy,
            _ => Verdict::Wrong,
        };
        let size = PieceSize::Large;
        OffloadRow { probe, size, direction, counts, checksum_errors: 0, verdict, not_run: None }
    }

    fn document() -> OffloadDocument {
        let nic = |name: &str| {
            let features = [("tx-tcp-segmentation", true), ("rx-gro", true), ("rx-lro", false)];
            let features = features.map(|(f, on)| (f.to_owned(), on));
            Reading::Known(OffloadNic { name: name.into(), features: BTreeMap::from(features) })
        };
        let (sent, right) = (55, 55);
        let fine = OffloadCounts { sent, right, batches: 8, ..OffloadCounts::default() };
        let bad = OffloadCounts { right: 39, damaged: 16, ..fine.clone() };
        let again = OffloadCounts { retransmits: 1, batches_retransmitted: 1, ..fine.clone() };
        let mut raw = row(Probe::UdpBadSum, Direction::Forward, OffloadCounts::default());
        raw.verdict = Verdict::NotRun;
        raw.not_run = Some("the sender lacks CAP_NET_RAW".into());
        OffloadDocument {
            schema_version: 1,
            kind: "offload".into(),
            started_unix_s: 0,
            request: OffloadSpec { target: "db1".into(), family: None, bind: None },
            local: model::measure::End { address: "10.0.0.1".into(), ..Default::default() },
            peer: model::measure::End { address: "10.0.0.2".into(), ..Default::default() },
            nics: BothNics { local: nic("eth0"), peer: nic("eth1") },
            large_bytes: 1448,
            rounds: 1,
            rows: vec![
                row(Probe::TcpBurst, Direction::Forward, fine.clone()),
                row(Probe::TcpBulk, Direction::Forward, bad),
                row(Probe::TcpBurst, Direction::Reverse, again),
                row(Probe::TcpBulk, Direction::Reverse, fine),
                raw,
            ],
            lies: vec![OffloadLie {
                offload: Offload::Tso,
                end: "local".into(),
                direction: Direction::Forward,
                against: vec![1],
                contrast: vec![0],
                or: None,
                command: Some("ethtool -K eth0 tso off".into()),
            }],
            took_ns: Nanos(910_000_000),
            interrupted: false,
        }
    }

    #[test]
    fn a_lie_stands_in_the_second_line_with_what_shows_it() {
        let d = document();
        golden!("offload_lie", "TCP segmentation offload (TSO) of the client lies", |style| text(
            &d, style
        ));
    }

    #[test]
    fn no_lie_says_how_much_was_tried() {
        let d = OffloadDocument { lies: vec![], ..document() };
        golden!("offload_none", "No offload lies in 4 probes; 1 did not run", |style| text(
            &d, style
        ));
    }
}
