//! `mesh --once` as text: how many targets answered, and a row for each.

use model::{
    Reading,
    mesh::{MeshDocument, MeshTarget},
};

use crate::{
    measure::numbers::{none, share, time},
    text::{Ink, Line, Page, Table, TextStyle},
    words::{grouped, many},
};

/// The page: how many targets answered, the pairs, and whether the own CPU was throttled.
pub fn text(d: &MeshDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(answer(d), 2);
    page.line(
        Line::plain(format!("{}, one of {}, seed {}", d.source, many(d.peers, "peer"), d.seed)),
        2,
    );
    page.gap();
    page.table(&table(&d.targets), 0);
    page.caveats(caveats(d).into_iter().map(Line::plain));
    page.finish()
}

fn answer(d: &MeshDocument) -> Line {
    let answered = d.targets.iter().filter(|t| t.answered()).count();
    let ink = if answered == d.targets.len() { Ink::Good } else { Ink::Bad };
    Line::new()
        .ink(ink, format!("{answered} of {} answered", many(d.targets.len(), "target")))
        .text(if d.interrupted { "; the round was ended early" } else { "" })
}

fn table(targets: &[MeshTarget]) -> Table {
    let mut table = Table::new()
        .left("TARGET")
        .right("min")
        .right("p50")
        .right("p90")
        .right("max")
        .right("lost")
        .wrapping("");
    for target in targets {
        let name = Line::plain(&target.target);
        let row = match &target.result {
            Reading::Known(probe) => {
                let q = probe.rtt_ns.as_ref();
                let at = |ns: Option<u64>| ns.map_or_else(none, time);
                let sent = probe.answered + probe.lost;
                let lost = match probe.lost {
                    0 => Line::plain("0"),
                    n => Line::new().ink(Ink::Bad, grouped(n)),
                };
                let part = share(probe.lost as f64 / sent.max(1) as f64);
                [
                    name,
                    at(q.map(|q| q.min)),
                    at(q.map(|q| q.p50)),
                    at(q.map(|q| q.p90)),
                    at(q.map(|q| q.max)),
                    lost,
                    Line::new().ink(Ink::Faint, format!("of {} ({part})", grouped(sent))),
                ]
            }
            Reading::Absent(why) | Reading::Denied(why) => {
                let why = Line::new().ink(Ink::Bad, why);
                [name, none(), none(), none(), none(), none(), why]
            }
        };
        table.row(row);
    }
    table
}

fn caveats(d: &MeshDocument) -> Vec<String> {
    match &d.quota {
        Reading::Known(Some(quota)) if quota.throttled_periods > 0 => {
            vec![format!("{quota}; these round trips are too long")]
        }
        Reading::Known(_) => vec![],
        Reading::Absent(why) | Reading::Denied(why) => {
            vec![format!("whether the own CPU was throttled is not known: {why}")]
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Nanos,
        measure::Quantiles,
        mesh::{MeshProbe, QuotaUse},
    };

    use super::*;
    use crate::testing::golden;

    #[test]
    fn the_silent_and_the_lossy_stand_out() {
        let q = Quantiles {
            count: 91,
            min: 181_000,
            p50: 212_400,
            p90: 305_000,
            max: 1_204_000,
            ..Quantiles::default()
        };
        let target = |name: &str, result| MeshTarget { target: name.into(), result };
        let probe = |rtt_ns, answered, lost| Reading::Known(MeshProbe { rtt_ns, answered, lost });
        let d = MeshDocument {
            schema_version: model::SCHEMA_VERSION,
            kind: "mesh".into(),
            started_unix_s: 1_795_000_000,
            source: "10.0.0.1:7471".into(),
            peers: 1_000,
            seed: 7,
            targets: vec![
                target("10.0.3.17:7471", probe(Some(q), 91, 9)),
                target("10.0.0.200:7471", probe(None, 0, 100)),
                target(
                    "10.0.1.4:7471",
                    Reading::absent("cannot connect to 10.0.1.4:7471: connection refused"),
                ),
            ],
            quota: Reading::Known(Some(QuotaUse {
                periods: 64,
                throttled_periods: 12,
                throttled_ns: Nanos(480_000_000),
            })),
            interrupted: false,
        };
        golden!("mesh", "1 of 3 targets answered", |style| text(&d, style));
    }
}
