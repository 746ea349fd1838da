//! 24: offloads that are off at the cost of CPU time, or LRO on a forwarding host.

use model::{
    Confidence, Severity,
    drivers::Act,
    nic::{Feature, Nic},
};

use crate::{
    Case, Rule,
    knob::{self, change},
    queues::{self, BUSY_NIC_PER_S},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "offloads_off",
    number: 24,
    title: "offloads off under load, or LRO on while forwarding",
    needs: &[
        "offload features",
        "CPU time of the NIC's CPUs",
        "packets over a window",
        "net.ipv4.ip_forward",
    ],
    explained_by: &["cloud_allowance"],
    judge,
};

/// Kernel name, `ethtool -K` name, direction's packet counter, what it does.
const WANTED: [(&str, &str, &str, &str); 2] = [
    (
        "rx-gro",
        "gro",
        "rx",
        "joins received segments before the protocol work, which then happens once for many",
    ),
    (
        "tx-tcp-segmentation",
        "tso",
        "tx",
        "lets the NIC cut large sends, so that the protocol work happens once for many segments",
    ),
];

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let mut out = queues::each_physical(case, |nic| one(case, nic));
    if case.facts.nics.iter().any(|n| n.kind == "physical") {
        out.extend(
            queues::running_physical(case).into_iter().map(|nic| settle(&nic.name, lro(case, nic))),
        );
    }
    out
}

fn features(nic: &Nic) -> Result<&std::collections::BTreeMap<String, Feature>, Missing> {
    need(&format!("ethtool -k {}", nic.name), &nic.features)
}

fn feature<'a>(nic: &'a Nic, name: &str) -> Result<&'a Feature, Missing> {
    let found = features(nic)?.get(name);
    found.ok_or_else(|| Missing(format!("ethtool -k {}: does not name {name}", nic.name)))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let features = features(nic)?;
    let name = &nic.name;
    let off: Vec<_> = WANTED
        .iter()
        .filter(|(kernel, ..)| features.get(*kernel).is_some_and(|f| !f.active))
        .collect();
    let Some((_, short, way, does)) = off.first() else {
        let each = WANTED.map(|w| feature(nic, w.0).map(drop));
        return clear(format!("{name}: GRO and TSO are on"), [&each[0], &each[1]]);
    };
    queues::not_threaded(nic)?;
    let window = case.window_s()?;
    let packets = case.nic_statistic(name, &format!("{way}_packets"))?;
    let bytes = case.nic_statistic(name, &format!("{way}_bytes"))?;
    let busiest = queues::busiest_rx_cpu(case, nic);
    let (cpu, load) = busiest.clone()?;
    let rate = packets as f64 / window;
    if rate < BUSY_NIC_PER_S || !load.hot() {
        let text = format!(
            "{name}: {} is off, {} packets ({way}), CPU {cpu} {}: nothing to gain now",
            short.to_uppercase(),
            text::per_s(rate),
            load.text()
        );
        return clear(text, [&nic.features, &busiest, &queues::all_rx_irqs(case, nic)]);
    }
    let list: Vec<String> = off.iter().map(|o| o.1.to_uppercase()).collect();
    let mut draft =
        Draft::new(name, format!("{} off on {name} while CPU {cpu} is hot", list.join(" and ")))
            .weigh(Severity::Warning, Confidence::Medium)
            .explain(format!("{} {does}.", short.to_uppercase()))
            .gain(Gain::Improves, "fewer cycles per byte on the hot CPU, for bulk traffic")
            .show_load(case, cpu, load)
            .show(
                format!("{way} packets {}", case.over()),
                format!(
                    "{}, {} bytes each",
                    text::per_s(rate),
                    bytes.checked_div(packets).unwrap_or(0)
                ),
                format!("/sys/class/net/{name}/statistics"),
            )
            .on_nic(name)
            .on_cpus(&[cpu].into_iter().collect());
    for (kernel, ..) in &off {
        let fixed = features.get(*kernel).is_some_and(|f| f.fixed);
        let state = if fixed { "off [fixed]" } else { "off" };
        draft = draft.show(format!("{kernel} of {name}"), state, format!("ethtool -k {name}"));
    }
    let changes = off.iter().filter_map(|(kernel, ..)| {
        let fixed = features.get(*kernel).is_some_and(|f| f.fixed);
        (!fixed).then(|| switch(nic, kernel, "off", "on"))
    });
    let changes: Vec<_> = changes.collect();
    let note = if changes.len() < off.len() {
        "What the driver fixes off cannot be switched on."
    } else {
        ""
    };
    Ok(draft.add(note).changes(changes).found())
}

fn switch(nic: &Nic, kernel: &str, old: &str, new: &str) -> Proposal {
    change(
        format!("nic.{}.features.{kernel}", nic.name),
        old,
        new,
        format!(
            "{}; it may be set on purpose (capture, XDP, a driver fault)",
            knob::impact(nic, Act::Feature(kernel))
        ),
    )
}

/// LRO merges packets in a way that cannot be undone for forwarding.
fn lro(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let lro = feature(nic, "rx-lro");
    if !lro.as_ref().map_err(Clone::clone)?.active {
        return clear(format!("{name}: LRO is not on"), [&lro]);
    }
    let v4 = case.sysctl_number("net.ipv4.ip_forward")?;
    let v6_read = case.sysctl_number("net.ipv6.conf.all.forwarding");
    let v6 = v6_read.clone().unwrap_or(0);
    let bridged =
        nic.master.known().is_some_and(|m| case.nic(m).is_some_and(|b| b.kind == "bridge"));
    if v4 == 0 && v6 == 0 && !bridged {
        let text = format!("{name}: LRO is on and the host does not forward");
        return clear(text, [&case.sysctl_number("net.ipv4.ip_forward"), &v6_read, &nic.master]);
    }
    let mut draft = Draft::new(name, format!("LRO is on on {name} while this host forwards"))
        .weigh(case.setting_severity(), Confidence::Low)
        .explain(
            "LRO merges packets in a way that cannot be undone, so forwarded ones are changed or \
             dropped as too large. GRO does the same work reversibly. The kernel switches LRO off \
             when forwarding starts; it was switched on again.",
        )
        .gain(Gain::Improves, "forwarded packets arrive unchanged")
        .show(format!("rx-lro of {name}"), "on", format!("ethtool -k {name}"))
        .show_sysctl(case, "net.ipv4.ip_forward")
        .show_sysctl(case, "net.ipv6.conf.all.forwarding");
    if bridged {
        draft = draft.show(
            format!("master of {name}"),
            nic.master.known().map_or("", |m| m),
            format!("/sys/class/net/{name}/master"),
        );
    }
    Ok(draft.change(switch(nic, "rx-lro", "on", "off")).on_nic(name).found())
}
