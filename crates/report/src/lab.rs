//! `lab list` as text: the practice hosts that are up.

use crate::text::{Ink, Line, Page, Table, TextStyle};

/// One lab as `lab list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLab {
    pub name: String,
    /// `pair`, `containers` or `server`.
    pub topology: String,
    pub preset: Option<String>,
    /// Whether `up` has finished; what a killed one left is not complete.
    pub complete: bool,
    pub hosts: Vec<ShownHost>,
    /// Settings and measurements, one line each: of the lab, then of its links.
    pub notes: Vec<String>,
}

/// One host of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownHost {
    pub name: String,
    /// In CIDR form, by interface.
    pub addresses: Vec<String>,
    /// What it is: its CPUs, NICs or limits.
    pub about: String,
}

/// The labs, each with its hosts and notes, and at the end why a state could not be read.
pub fn text(labs: &[ShownLab], broken: &[String], look: TextStyle) -> String {
    let mut page = Page::new(look);
    for lab in labs {
        one(lab, &mut page);
    }
    if labs.is_empty() {
        page.line(Line::plain("no lab is up; `netwright lab up pair` brings one up"), 2);
    }
    for why in broken {
        page.line(Line::new().ink(Ink::Warn, "unreadable: ").text(why), 2);
    }
    page.finish()
}

fn one(lab: &ShownLab, page: &mut Page) {
    let preset = lab.preset.as_ref().map(|p| format!(", preset {p}")).unwrap_or_default();
    let head = Line::new().ink(Ink::Strong, &lab.name).text(format!("  {}{preset}", lab.topology));
    let unfinished = "  (unfinished: `netwright lab down` removes it)";
    page.line(if lab.complete { head } else { head.ink(Ink::Warn, unfinished) }, 2);
    let mut hosts = Table::new().left("").wrapping("").wrapping("");
    for host in &lab.hosts {
        hosts.row([&host.name, &host.addresses.join(" "), &host.about].map(Line::plain));
    }
    page.table(&hosts, 2);
    for note in &lab.notes {
        page.line(Line::plain("  ").text(note), 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;

    fn host(name: &str, addresses: &[&str], about: &str) -> ShownHost {
        let addresses = addresses.iter().map(|a| (*a).to_owned()).collect();
        ShownHost { name: name.into(), addresses, about: about.into() }
    }

    #[test]
    fn labs_fit_80_and_120_columns() {
        let about =
            "namespace, 2 queues, up to 10 Gbit/s, 40 µs of delay and 0.1% of loss each way";
        let pair = ShownLab {
            name: "pair".into(),
            topology: "pair".into(),
            preset: Some("latency".into()),
            complete: true,
            hosts: vec![
                host("left", &["10.99.0.1/24", "fd00:99::1/64"], about),
                host("right", &["10.99.0.2/24", "fd00:99::2/64"], "namespace"),
            ],
            notes: vec![
                "link: 40 µs each way, own jitter p50 15.4 µs, p99 36.9 µs; 1,204,553 frames sent, \
                 3 dropped"
                    .into(),
            ],
        };
        let server = ShownLab {
            name: "server".into(),
            topology: "server".into(),
            preset: None,
            complete: false,
            hosts: vec![host("server", &["10.98.0.2/24"], "guest of 8 CPUs")],
            notes: vec![],
        };
        let broken = ["/run/netwright/lab/old/state.json: EOF while parsing".to_owned()];
        let answer = "pair  pair, preset latency left";
        golden!("labs", answer, |style| text(&[pair.clone(), server.clone()], &broken, style));
        golden!("no_lab", "no lab is up", |style| text(&[], &[], style));
    }

    #[test]
    fn a_hostile_state_stays_text() {
        let why = ["\x1b[2J".to_owned()];
        assert!(!text(&[], &why, TextStyle::default()).contains('\x1b'));
    }
}
