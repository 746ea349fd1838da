//! 47: an IOMMU in strict mode translates the DMA of a NIC at a high packet rate.

use model::{Confidence, Severity, host::kernel_version, nic::Nic};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 48. Advice only: the mode is a choice between speed and protection.
pub static RULE: Rule = Rule {
    id: "iommu_strict",
    number: 48,
    title: "the IOMMU forgets each buffer at once, at a high packet rate",
    needs: &["the IOMMU's mode for the NIC (Linux 5.15)", "packets of the NIC over a window"],
    explained_by: &[],
    judge,
};

/// Packets a second of one NIC from which the mode is worth a look. Our proposal.
const MANY: f64 = 100_000.0;
/// The first kernel that calls lazy invalidation `DMA-FQ` (sysfs-kernel-iommu_groups of the kernel's ABI
/// documentation). Before, `DMA` is either.
const LAZY_NAMED_SINCE: (u32, u32) = (5, 15);
const STRICT: &str = "DMA";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let pci = need(&format!("PCI function of {name}"), &nic.pci)?;
    let mode = need(&format!("IOMMU mode of {name}"), &pci.iommu)?.as_str();
    if mode != STRICT {
        return clear(format!("{name}: IOMMU mode {mode}"), [&pci.iommu]);
    }
    let kernel = need("the kernel's release", &case.facts.host.kernel)?;
    match kernel_version(kernel) {
        Some(known) if known >= LAZY_NAMED_SINCE => {}
        _ => {
            return Err(Missing(format!(
                "IOMMU mode of {name}: before Linux 5.15 {STRICT} is strict or lazy"
            )));
        }
    }
    let (received, sent) =
        (case.nic_statistic(name, "rx_packets"), case.nic_statistic(name, "tx_packets"));
    let rate = (received.clone()? + sent.clone()?) as f64 / case.window_s()?;
    if rate < MANY {
        let text = format!("{name}: strict IOMMU mode, at {} packets", text::per_s(rate));
        return clear(text, [&received, &sent]);
    }
    let address = nic.bus_address.get().unwrap_or_else(|| "its address".into());
    let file = format!("/sys/bus/pci/devices/{address}/iommu_group/type");
    Ok(Draft::new(name, format!("the IOMMU translates {name}'s DMA in strict mode"))
        .weigh(Severity::Info, Confidence::Low)
        .explain(
            "The driver gives buffers to the NIC and takes them back. In strict mode the kernel waits each \
             time until the IOMMU has forgotten the buffer; in lazy mode it does so for many at once.",
        )
        .add("How much time that takes here was not measured: drivers that keep buffers mapped pay little.")
        .gain(Gain::Improves, "less CPU time for each packet, where the driver unmaps its buffers")
        .show(format!("IOMMU mode of {name} ({address})"), format!("{STRICT}, strict"), file.clone())
        .show(
            format!("packets of {name} {}", case.over()),
            text::per_s(rate),
            format!("/sys/class/net/{name}/statistics/{{rx,tx}}_packets"),
        )
        .change(advice(
            "strict",
            "lazy: iommu.strict=0 on the kernel cmdline",
            &format!(
                "cat {file}; perf top -e cycles:k, and look for iommu functions; then `netwright tune plan \
                 boot.iommu.strict=0` names the file to edit"
            ),
            "a reboot; a faulty device can reach a buffer for some milliseconds after it was taken back",
        ))
        .on_nic(name)
        .alone()
        .found())
}
