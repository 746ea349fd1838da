//! 27: a PCIe link that cannot feed the port.

use model::{
    Confidence, Severity,
    nic::{Nic, PciFunction},
};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, need},
    text,
};

/// Catalogue number 27. A link trained below what both could do is only worth a finding where
/// the port can outrun it.
pub static RULE: Rule = Rule {
    id: "pcie_degraded",
    number: 27,
    title: "the PCIe link is slower than the port",
    needs: &["PCIe link speed and width", "port speed"],
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn link(speed: Option<u32>, width: Option<u32>) -> String {
    let speed = speed.map_or("unknown speed".into(), |s| format!("{} GT/s", f64::from(s) / 1000.0));
    format!("{speed} x{}", width.map_or("?".into(), |w| w.to_string()))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let pci = need(&format!("PCI function of {name}"), &nic.pci)?;
    let address = nic.bus_address.get().unwrap_or_else(|| "its address".into());
    let usable = need(&format!("/sys/bus/pci/devices/{address}/current_link_*"), &pci.usable_bps)?;
    let port = need(&format!("/sys/class/net/{name}/speed"), &nic.speed_bps)?;
    let now = link(pci.link_speed_mts.get(), pci.link_width.get());
    let most = link(pci.max_link_speed_mts.get(), pci.max_link_width.get());
    if usable >= port {
        return Ok(Judgement::Clear(format!(
            "{name}: link {now} carries {usable}, the port {port}"
        )));
    }
    let (narrow, slow) = shortfall(pci);
    let received = case.nic_statistic(name, "rx_bytes").unwrap_or(0);
    let window = case.window_s().unwrap_or(f64::INFINITY);
    let rate = received as f64 * 8.0 / window;
    let near = rate > usable.0 as f64 * 0.8;
    let (severity, confidence) = match (near, narrow, slow) {
        (true, ..) => (Severity::Critical, Confidence::High),
        (_, true, _) => (Severity::Warning, Confidence::Medium),
        // An idle link may have lowered its speed to save power.
        (_, false, true) => (Severity::Info, Confidence::Low),
        _ => (Severity::Warning, Confidence::Medium),
    };
    let mut draft = Draft::new(
        name,
        format!("{name}'s PCIe link carries {usable}, its port {port}"),
    )
    .weigh(severity, confidence)
    .explain(match (narrow, slow) {
        (true, _) => {
            "The link came up with fewer lanes than both ends have: a bad contact, a wrong \
                 slot or a riser. Lanes are not saved at idle."
        }
        (false, true) => {
            "The link runs below its highest speed. Some links lower their speed when idle: \
                 look again under load before acting."
        }
        _ => "The card or the slot has too few lanes or too low a speed for this port.",
    })
    .gain(Gain::Unblocks, "the port's full rate, where the traffic asks for it")
    .show(
        format!("link of {name} ({address})"),
        format!("{now} now, {most} at most"),
        format!("/sys/bus/pci/devices/{address}/current_link_speed, _width, max_link_*"),
    )
    .show("what that carries after encoding, each way", usable.to_string(), "computed")
    .show(
        format!("port speed of {name}"),
        port.to_string(),
        format!("/sys/class/net/{name}/speed"),
    );
    if received > 0 && window.is_finite() {
        draft = draft.show(
            format!("received {}", case.over()),
            format!(
                "{} ({} of the link)",
                model::BitsPerSec(rate as u64),
                text::percent(rate / usable.0.max(1) as f64)
            ),
            format!("/sys/class/net/{name}/statistics/rx_bytes"),
        );
    }
    Ok(draft
        .change(advice(
            &now,
            &most,
            &format!(
                "lspci -s {address} -vv | grep -i lnk; then reseat the card or use another slot"
            ),
            "the host must be opened",
        ))
        .on_nic(name)
        .found())
}

/// Fewer lanes than possible; a lower speed than possible.
fn shortfall(pci: &PciFunction) -> (bool, bool) {
    let less = |now: Option<u32>, most: Option<u32>| now.zip(most).is_some_and(|(n, m)| n < m);
    (
        less(pci.link_width.get(), pci.max_link_width.get()),
        less(pci.link_speed_mts.get(), pci.max_link_speed_mts.get()),
    )
}
