//! 27: a PCIe link that cannot feed the port.

use model::{
    BitsPerSec, Confidence, Reading, Severity,
    nic::{Nic, PciFunction},
};

use crate::{
    Case, Rule,
    knob::advice,
    queues, rate,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 27. A link below the capability of both ends is a finding only where the port
/// can exceed it.
pub static RULE: Rule = Rule {
    id: "pcie_degraded",
    number: 27,
    title: "the PCIe link is slower than the port",
    needs: &["PCIe link speed and width", "port speed"],
    explained_by: &[],
    judge,
};

/// The share of the link's capacity from which traffic is limited by it. Our proposal.
const NEAR_LIMIT: f64 = 0.80;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn link(speed: Option<u32>, width: Option<u32>) -> String {
    let speed = speed.map_or("unknown speed".into(), |s| format!("{} GT/s", f64::from(s) / 1000.0));
    format!("{speed} x{}", width.map_or("?".into(), |w| w.to_string()))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    if let Some(clear) = queues::emulated(nic) {
        return clear;
    }
    let pci = need(&format!("PCI function of {name}"), &nic.pci)?;
    let address = nic.bus_address.get().unwrap_or_else(|| "its address".into());
    let usable = need(&format!("PCIe link of {name}"), &pci.usable_bps)?;
    let port = need(&format!("/sys/class/net/{name}/speed"), &nic.speed_bps)?;
    let now = link(pci.link_speed_mts.get(), pci.link_width.get());
    let most = link(pci.max_link_speed_mts.get(), pci.max_link_width.get());
    if usable >= port {
        let text = format!("{name}: link {now} carries {usable}, the port {port}");
        return clear(text, [&pci.usable_bps, &nic.speed_bps]);
    }
    let traffic = rate::busier_way(case, name);
    let near_limit = traffic.is_some_and(|rate| rate > usable.0 as f64 * NEAR_LIMIT);
    let cause = Cause::of(pci);
    let (severity, confidence) = match (near_limit, cause) {
        (true, _) => (Severity::Critical, Confidence::High),
        (_, Cause::Narrow | Cause::Design) => (Severity::Warning, Confidence::Medium),
        (_, Cause::Slow | Cause::Unknown) => (Severity::Info, Confidence::Low),
    };
    let mut draft =
        Draft::new(name, format!("{name}'s PCIe link carries {usable}, its port {port}"))
            .weigh(severity, confidence)
            .explain(cause.text())
            .gain(Gain::Unblocks, "the port's full rate, where the traffic asks for it")
            .show(
                format!("link of {name} ({address})"),
                format!("{now} now, the card supports {most}"),
                format!("/sys/bus/pci/devices/{address}/{{current,max}}_link_{{speed,width}}"),
            )
            .show(
                "what that carries after encoding, each way",
                usable.to_string(),
                "computed from speed and width",
            )
            .show(
                format!("port speed of {name}"),
                port.to_string(),
                format!("/sys/class/net/{name}/speed"),
            );
    if let Some(rate) = traffic {
        draft = draft.show(
            format!("traffic in its busier direction {}", case.over()),
            format!(
                "{} ({} of the link)",
                BitsPerSec(rate as u64),
                text::percent(rate / usable.0.max(1) as f64)
            ),
            format!("/sys/class/net/{name}/statistics/{{rx,tx}}_bytes"),
        );
    }
    let better = match cause {
        Cause::Design => "a faster slot or card",
        Cause::Unknown => "not known",
        Cause::Narrow | Cause::Slow => &most,
    };
    Ok(draft
        .change(advice(
            &now,
            better,
            &format!("lspci -s {address} -vv | grep -i lnk; then reseat the card or move it"),
            "the host must be opened",
        ))
        .on_nic(name)
        .found())
}

/// Why the link is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Fewer lanes than the card has.
    Narrow,
    /// A lower speed than the card has.
    Slow,
    /// The card itself supports no more.
    Design,
    /// Some of its values are unknown.
    Unknown,
}

impl Cause {
    fn of(pci: &PciFunction) -> Self {
        let less = |now: &Reading<u32>, most: &Reading<u32>| Some(now.get()? < most.get()?);
        let narrow = less(&pci.link_width, &pci.max_link_width);
        let slow = less(&pci.link_speed_mts, &pci.max_link_speed_mts);
        match (narrow, slow) {
            (Some(true), _) => Self::Narrow,
            (_, Some(true)) => Self::Slow,
            (Some(false), Some(false)) => Self::Design,
            _ => Self::Unknown,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Narrow => {
                "The link came up with fewer lanes than the card has: a narrower slot or riser, or \
                 a bad contact. Lanes are not saved at idle."
            }
            Self::Slow => {
                "The link runs below the card's highest speed. Some links lower their speed when \
                 idle: look again under load before acting."
            }
            Self::Design => "The card itself has too few lanes or too low a speed for its port.",
            Self::Unknown => {
                "Whether the link runs below what the card could do is not known: look again \
                 under load before acting."
            }
        }
    }
}
