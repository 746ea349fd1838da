//! `measure offload` over a path that is healthy, and over one that lies in one way at a time: a
//! process of the test is both network cards and the wire.

mod card;
mod frame;
mod path;

use crate::support::{NETWRIGHT, needs_root, output, serve::Serve};
use card::Lie;
use model::measure::{Offload, OffloadDocument, OffloadProbe, OffloadRowVerdict, PieceSize};
use path::Path;

/// The document, which must have the exit code that its answer has.
fn probed(path: &Path) -> OffloadDocument {
    let out = path.client.output(NETWRIGHT, &["measure", "offload", path.serve.target(), "--json"]);
    let text = String::from_utf8_lossy(&out.stdout);
    let document: OffloadDocument = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&out.stderr)));
    assert_eq!(out.status.code(), Some(i32::from(!document.lies.is_empty())));
    document
}

fn named(document: &OffloadDocument) -> Vec<(Offload, &str)> {
    document.lies.iter().map(|l| (l.offload, l.end.as_str())).collect()
}

/// More runs of the healthy path, and each lie in both directions: by hand.
fn more() -> Option<u32> {
    std::env::var("NETWRIGHT_OFFLOAD_RUNS").ok().map(|n| n.parse().unwrap())
}

/// The direction in which a lie is tried.
#[derive(Clone, Copy, PartialEq)]
enum To {
    Server,
    Client,
}

/// What a lie of the direction to the server must be called; of the other one at the other end.
fn is_named(lie: Lie, to: To, offloads: &[(Offload, &str)]) {
    needs_root();
    let swapped = |end: &str| match end {
        "local" => "peer".to_owned(),
        "peer" => "local".to_owned(),
        other => other.to_owned(),
    };
    let ways = [(To::Server, lie, Lie::None), (To::Client, Lie::None, lie)];
    for (_, forward, reverse) in ways.into_iter().filter(|w| w.0 == to || more().is_some()) {
        let path = Path::new(forward, reverse);
        let document = probed(&path);
        let want: Vec<(Offload, String)> = offloads
            .iter()
            .map(|(o, end)| {
                (*o, if reverse == Lie::None { (*end).to_owned() } else { swapped(end) })
            })
            .collect();
        let got: Vec<(Offload, String)> =
            named(&document).into_iter().map(|(o, e)| (o, e.to_owned())).collect();
        assert_eq!(got, want, "{lie:?}: {:#?}", document.rows);
    }
}

/// A healthy path: nothing is named, each piece is right, and the offloads were used. By hand it runs
/// more often: `NETWRIGHT_OFFLOAD_RUNS=100`.
#[test]
fn a_healthy_path_has_no_lie() {
    needs_root();
    let path = Path::new(Lie::None, Lie::None);
    let runs = more().unwrap_or(5);
    let mut took = vec![];
    for n in 0..runs {
        let document = probed(&path);
        assert_eq!(named(&document), [], "run {n}: {:#?}", document.rows);
        for row in &document.rows {
            assert_ne!(row.verdict, OffloadRowVerdict::NotRun, "{row:?}");
            assert_eq!(row.counts.wrong(), 0, "run {n}: {row:?}");
        }
        took.push(document.took_ns.0 / 1_000_000);
        let merged = |probe: OffloadProbe| {
            let rows =
                document.rows.iter().filter(|r| r.probe == probe && r.size == PieceSize::Large);
            rows.map(|r| r.counts.received_merged).sum::<u64>()
        };
        assert!(merged(OffloadProbe::UdpSegmentedGro) > 0, "no datagram was merged");
        let nic = document.nics.peer.known().unwrap();
        assert_eq!((nic.name.as_str(), nic.features["tx-udp-segmentation"]), ("wire0", true));
    }
    took.sort_unstable();
    println!("{runs} runs, none named; {took:?} ms");
}

#[test]
fn tso_with_misplaced_payload() {
    is_named(Lie::TsoMisplaced, To::Client, &[(Offload::Tso, "local")]);
}

#[test]
fn tso_with_damaged_payload() {
    is_named(Lie::TsoDamaged, To::Server, &[(Offload::Tso, "local")]);
}

#[test]
fn tso_with_a_wrong_sequence_number() {
    is_named(Lie::TsoSequence, To::Client, &[(Offload::Tso, "local")]);
}

#[test]
fn tso_with_a_wrong_length() {
    is_named(Lie::TsoLength, To::Server, &[(Offload::Tso, "local")]);
}

#[test]
fn uso_that_splits_wrong() {
    is_named(Lie::UsoSplit, To::Client, &[(Offload::Uso, "local")]);
}

#[test]
fn a_transmit_checksum_that_stays_undone() {
    is_named(Lie::TxChecksum, To::Server, &[(Offload::TxChecksum, "local")]);
}

#[test]
fn a_receive_checksum_that_is_always_good() {
    is_named(Lie::RxGood, To::Client, &[(Offload::RxChecksum, "peer")]);
}

#[test]
fn damage_behind_a_receive_checksum_that_is_always_good() {
    is_named(
        Lie::RxGoodDamaged,
        To::Server,
        &[(Offload::Path, "between"), (Offload::RxChecksum, "peer")],
    );
}

#[test]
fn merging_of_datagrams_of_different_sizes() {
    is_named(Lie::UdpMergeSizes, To::Client, &[(Offload::UdpMerge, "peer")]);
}

#[test]
fn merging_of_datagrams_that_loses_the_last() {
    is_named(Lie::UdpMergeLast, To::Server, &[(Offload::UdpMerge, "peer")]);
}

#[test]
fn merging_of_segments_that_loses_the_last() {
    is_named(Lie::TcpMergeLast, To::Client, &[(Offload::TcpMerge, "peer")]);
}

#[test]
fn merging_of_segments_in_the_wrong_order() {
    is_named(Lie::TcpMergeOrder, To::Server, &[(Offload::TcpMerge, "peer")]);
}

#[test]
fn damage_of_large_packets_only() {
    is_named(Lie::DamageLarge, To::Client, &[(Offload::Path, "between")]);
}

#[test]
fn damage_of_small_packets_only() {
    is_named(Lie::DamageSmall, To::Server, &[(Offload::Path, "between")]);
}

/// Loopback of this host, without a right to raw sockets: that row says so, the others stand.
#[test]
fn without_a_right_to_raw_sockets_the_rest_is_measured() {
    needs_root();
    let serve = Serve::start(&[]);
    let line = format!("{NETWRIGHT} measure offload {} --json", serve.target());
    let args = ["--drop=cap_net_raw", "--", "-c", &line];
    let out = output("capsh", &args);
    let document: OffloadDocument = serde_json::from_slice(&out.stdout).unwrap();
    let row = |n: usize| document.rows.get(n).unwrap();
    let bad: Vec<usize> =
        (0..document.rows.len()).filter(|n| row(*n).probe == OffloadProbe::UdpBadSum).collect();
    let why: Vec<bool> = bad.iter().map(|n| row(*n).not_run.is_some()).collect();
    assert_eq!(why, [true, false, true, false]);
    assert!(row(bad[0]).not_run.as_ref().unwrap().contains("CAP_NET_RAW"));
    assert_eq!(named(&document), []);
}
