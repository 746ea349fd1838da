//! `inspect` as text: the packet path at a glance, and each section in full on request.

mod cpus;
mod header;
mod host;
mod irqs;
mod namespaces;
mod nic_full;
mod nics;
mod numa;
mod processes;
mod small;
mod sysctls;
mod tuners;
mod virtuals;

use model::{Facts, facts::NoAccess, nic::Nic};

use crate::{
    path::{self, Irqs},
    places::CpuPlaces,
    text::{Ink, Line, Page, TextStyle},
    words::{many, reading_as},
};

/// A part of the text in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Kernel, machine, memory, build.
    Host,
    /// CPUs, caches, idle states.
    Cpus,
    Numa,
    Nics,
    Irqs,
    Softnet,
    Sysctls,
    Tuners,
    Processes,
    Listeners,
    Storage,
    Namespaces,
}

/// The facts, with indices for lookups.
struct View<'a> {
    facts: &'a Facts,
    irqs: Irqs<'a>,
    places: CpuPlaces<'a>,
}

impl<'a> View<'a> {
    fn new(facts: &'a Facts) -> Self {
        Self { facts, irqs: path::irqs(facts), places: CpuPlaces::new(facts) }
    }
}

/// NICs with a device; the others get a line each.
pub(crate) fn is_physical(nic: &Nic) -> bool {
    nic.kind == "physical" || nic.bus_address.is_known()
}

/// The host at a glance.
pub fn overview(facts: &Facts, look: TextStyle) -> String {
    let v = View::new(facts);
    let mut page = Page::new(look);
    header::show(&v, &mut page);
    let physical: Vec<&Nic> = facts.nics.iter().filter(|n| is_physical(n)).collect();
    for nic in &physical {
        page.gap();
        nics::show(&v, nic, !look.verbose, &mut page);
    }
    if physical.is_empty() {
        page.gap();
        page.line(Line::plain(no_nic(facts)), 2);
    }
    virtuals::show(&v, &mut page);
    processes::brief(&v, &mut page);
    tuners::brief(&v, &mut page);
    not_visible(&facts.no_access, &mut page);
    page.finish()
}

/// Why no NIC is shown; only interfaces that were read can be without a device.
fn no_nic(facts: &Facts) -> String {
    if facts.nics.is_empty() {
        return "No interface could be read: whether there is a NIC is not known.".into();
    }
    let unknown = facts.nics.iter().filter(|n| n.kind == model::nic::UNKNOWN_KIND).count();
    match unknown {
        0 => "No NIC with a device behind it in this network namespace.".into(),
        n => format!(
            "No NIC is known to have a device behind it; {} could not be classified.",
            many(n, "interface")
        ),
    }
}

/// Sections in full, in the order asked for.
pub fn sections(facts: &Facts, sections: &[Section], look: TextStyle) -> String {
    let v = View::new(facts);
    let mut page = Page::new(look);
    for section in sections {
        match section {
            Section::Host => host::show(&v, &mut page),
            Section::Cpus => cpus::show(&v, &mut page),
            Section::Numa => numa::show(&v, &mut page),
            Section::Nics => {
                for nic in &facts.nics {
                    nic_full::show(&v, nic, &mut page);
                }
            }
            Section::Irqs => irqs::show(&v, &mut page),
            Section::Softnet => small::softnet(&v, &mut page),
            Section::Sysctls => sysctls::show(&v, &mut page),
            Section::Tuners => tuners::show(&v, &mut page),
            Section::Processes => processes::show(&v, &mut page),
            Section::Listeners => small::listeners(&v, &mut page),
            Section::Storage => small::storage(&v, &mut page),
            Section::Namespaces => namespaces::show(&v, &mut page),
        }
    }
    page.finish()
}

/// Values that could not be read, and what would make them readable.
pub(crate) fn not_visible(no_access: &[NoAccess], page: &mut Page) {
    if no_access.is_empty() {
        return;
    }
    page.heading("NO ACCESS");
    for n in no_access {
        no_access_line(n, page);
    }
}

/// What is missing and what would provide it; the reason where nothing would, or with `-v`.
pub(crate) fn no_access_line(n: &NoAccess, page: &mut Page) {
    // Most reasons already say what would show it, or the rest of it.
    let says = n.remedy.is_empty() || n.why.contains("would show");
    let text = match (says, page.look().verbose) {
        (true, _) => n.why.clone(),
        (false, true) => format!("{}; {}", n.why, n.remedy),
        (false, false) => n.remedy.clone(),
    };
    caveat(&n.what, &text, page);
}

/// An object and a remark about it, in four lines unless `-v`.
pub(crate) fn caveat(what: &str, text: &str, page: &mut Page) {
    let line = Line::plain("  ").ink(Ink::Warn, what).text(format!(": {text}"));
    let lines = if page.look().verbose { usize::MAX } else { 4 };
    page.line(line.cut(page.beside(4), lines), 4);
}

/// `label value`, the label faint.
fn fact<T>(label: &str, r: &model::Reading<T>, show: impl FnOnce(&T) -> String) -> Line {
    let mut line = Line::new().ink(Ink::Faint, format!("{label} "));
    line.extend(reading_as(r, show));
    line
}

/// Parts of at most this many columns stay in one piece when a line is wrapped.
const PIECE: usize = 32;

/// Parts with ` · ` between them; empty parts left out. Broken between parts before within.
pub(crate) fn dotted(parts: impl IntoIterator<Item = Line>) -> Line {
    let mut line = Line::new();
    for part in parts.into_iter().filter(|p| !p.is_empty()) {
        if !line.is_empty() {
            // The dot stays with what is before it.
            line.push(Ink::Faint, "\u{a0}· ");
        }
        line.extend(if part.width() <= PIECE { part.unbroken() } else { part });
    }
    line
}

/// A list of names, or `none`.
fn names(list: &[String]) -> String {
    if list.is_empty() { "none".into() } else { list.join(", ") }
}

#[cfg(test)]
mod tests {
    use model::{NumaNode, Reading, reading::Known, tuner::Tuner};

    use super::*;
    use crate::testing::{self, MachineShape, golden};

    const SHAPE: MachineShape =
        MachineShape { packages: 2, nodes: 1, l3s: 2, cores: 8, threads: 2 };

    fn host() -> Facts {
        let mut f = testing::machine(SHAPE);
        testing::add_nic(&mut f, "eth0", 1, 4, 40, &[16, 17, 3, 3]);
        let mut veth = testing::bare_nic("veth1", "veth");
        veth.details = model::nic::KindDetails::Veth {
            peer_ifindex: Known(2),
            peer: Known("eth0".into()),
            peer_namespace: Known(4_026_532_290),
            peer_mtu: Known(9000),
            peer_container: Known("web".into()),
        };
        veth.mtu = Known(1500);
        veth.up = Known(true);
        veth.master = Known("docker0".into());
        f.nics.push(veth);
        f.tuners.push(Tuner {
            kind: "irqbalance".into(),
            name: "irqbalance".into(),
            running: Known(true),
            pid: Known(412),
            arguments: Reading::absent("x"),
            owns: vec!["IRQ affinity".into()],
            settings_files: vec![],
            evidence: vec!["/proc/412/comm: irqbalance".into()],
            banned_cpus: Known("0-1".parse().unwrap()),
            banned_irqs: Reading::absent("x"),
            profile: Reading::absent("x"),
        });
        f.no_access.push(NoAccess {
            what: "coalescing of eth0".into(),
            why: "ethtool/eth0/coalesce: not permitted".into(),
            remedy: "CAP_NET_ADMIN would show it".into(),
        });
        testing::add_process(&mut f, 812, "nginx", &[2, 18]);
        f
    }

    #[test]
    fn the_overview_shows_the_packet_path_with_remarks() {
        golden!("overview", "box · Linux 6.12.0 · x86_64 · bare metal", |style| overview(
            &host(),
            style
        ));
    }

    #[test]
    fn interrupts_have_whole_names_and_figures() {
        let mut f = host();
        let Known(irqs) = &mut f.irqs else { unreachable!() };
        irqs[0].name = "virtio0-reporting_vq".into();
        golden!("irqs", "INTERRUPTS", |style| sections(&f, &[Section::Irqs], style));
    }

    #[test]
    fn sixty_four_queues_stay_readable_and_verbose_shows_them_all() {
        let mut f = testing::machine(SHAPE);
        testing::add_nic(&mut f, "eth0", 0, 64, 40, &(0..64).collect::<Vec<_>>());
        f.nics[0].numa_node = Reading::absent("-1");
        let look = TextStyle::default();
        assert!(overview(&f, look).contains("\n  rx+tx 8-15    48-55  8-15   0     8  "));
        assert!(overview(&f, look).lines().count() < 20);
        assert!(overview(&f, TextStyle { verbose: true, ..look }).lines().count() > 64);
    }

    #[test]
    fn not_known_and_not_permitted_look_different_from_each_other_and_from_zero() {
        let mut f = host();
        f.nics[0].rings = Reading::denied("EPERM");
        f.nics[0].channels = Reading::absent("EOPNOTSUPP");
        f.nics[0].numa_node = Reading::absent("-1");
        let text = overview(&f, TextStyle::default());
        assert!(text.contains("channels - · rings denied"), "{text}");
        assert!(text.contains("node - "), "{text}");
        f.nics[0].numa_node = Known(NumaNode(0));
        assert!(overview(&f, TextStyle::default()).contains("node 0 "));
    }

    #[test]
    fn every_section_fits_the_page_and_survives_a_host_that_tells_nothing() {
        let all = [
            Section::Host,
            Section::Cpus,
            Section::Numa,
            Section::Nics,
            Section::Irqs,
            Section::Softnet,
            Section::Sysctls,
            Section::Tuners,
            Section::Processes,
            Section::Listeners,
            Section::Storage,
            Section::Namespaces,
        ];
        assert!(!sections(&testing::nothing(), &all, TextStyle::default()).is_empty());
        assert!(!overview(&testing::nothing(), TextStyle::default()).is_empty());
        let text = sections(&host(), &all, TextStyle { width: 100, ..TextStyle::default() });
        let widest = text.lines().map(crate::text::width).max().unwrap();
        assert!(widest <= 100, "{widest} columns:\n{text}");
    }

    #[test]
    fn a_name_with_terminal_escapes_is_defused() {
        let mut f = host();
        f.processes[0].name = "\x1b]0;owned\x07".into();
        f.nics[1].name = "a\x1b[2J".into();
        assert!(!overview(&f, TextStyle::default()).contains('\x1b'));
    }
}
