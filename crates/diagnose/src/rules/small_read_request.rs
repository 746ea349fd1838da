//! 28: PCI read requests too small for a fast port.

use model::{BitsPerSec, Bytes, Confidence, Severity, nic::Nic};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
};

/// Catalogue number 28. Advice only: writing the register of a working device can hang it.
pub static RULE: Rule = Rule {
    id: "small_read_request",
    number: 28,
    title: "small PCI read requests",
    needs: &["read request size from the PCI configuration space (root)"],
    explained_by: &[],
    judge,
};

/// The smallest size that feeds a fast port.
const ENOUGH: Bytes = Bytes(512);
/// Port speed below which smaller requests are enough too. Our proposal.
const FAST: BitsPerSec = BitsPerSec(10_000_000_000);

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, one)
}

fn one(nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    if let Some(clear) = queues::emulated(nic) {
        return clear;
    }
    let pci = need(&format!("PCI function of {name}"), &nic.pci)?;
    let (reading, register) = match (&pci.pcix_mmrbc_bytes, &pci.read_request_bytes) {
        (pcix @ model::Reading::Known(_), _) => (pcix, "PCI-X command register, MMRBC"),
        (_, express) => (express, "PCIe DevCtl bits 14:12"),
    };
    let size = *need(&format!("read request size of {name}"), reading)?;
    if size >= ENOUGH {
        return clear(format!("{name}: read requests of {size}"), [reading]);
    }
    if let Some(speed) = nic.speed_bps.get().filter(|s| *s < FAST) {
        let text = format!("{name}: read requests of {size}, enough for {speed}");
        return clear(text, [reading, &nic.speed_bps]);
    }
    let address = nic.bus_address.get().unwrap_or_else(|| "its address".into());
    Ok(Draft::new(name, format!("{name} reads memory in requests of {size}"))
        .weigh(Severity::Info, Confidence::Low)
        .explain(
            "The NIC fetches packets to send by read requests of this size; small ones leave the \
             link waiting for answers. Firmware sets it, sometimes low on purpose to share the bus \
             fairly.",
        )
        .gain(Gain::Improves, "more transmit throughput, if the port was waiting for memory")
        .show(
            format!("read request size of {name} ({address})"),
            size.to_string(),
            format!("/sys/bus/pci/devices/{address}/config, {register}"),
        )
        .change(advice(
            &size.to_string(),
            "512 B or more",
            &format!("lspci -s {address} -vv | grep -i MaxReadReq; set it in the firmware's setup"),
            "writing the register of a working device can wedge it, so no write is proposed here",
        ))
        .on_nic(name)
        .found())
}
