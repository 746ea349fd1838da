//! 51: packets of a Hyper-V NIC that go through the host, not through its virtual function.

use model::{Confidence, Severity, nic::Nic};

use crate::{
    Case, Rule,
    case::delta,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

/// Catalogue number 51. In Azure a NIC of Hyper-V (`hv_netvsc`) hands its packets to a virtual
/// function of a real card, if the machine has accelerated networking.
pub static RULE: Rule = Rule {
    id: "synthetic_path",
    number: 51,
    title: "packets of a Hyper-V NIC go through the host, not its virtual function",
    needs: &["ethtool -S of the hv_netvsc NIC", "the virtual function below it"],
    explained_by: &[],
    judge,
};

const DRIVER: &str = "hv_netvsc";
/// Share of packets that the virtual function should carry: broadcasts and the first packets of a flow
/// may take the other way. Our proposal.
const MOST: f64 = 0.50;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let mut all: Vec<Judgement> = vec![];
    for nic in queues::running_physical(case) {
        match need(&format!("driver of {}", nic.name), &nic.driver) {
            Ok(driver) if driver == DRIVER => all.push(settle(&nic.name, one(case, nic))),
            Ok(_) => {}
            Err(missing) => all.push(missing.of(&nic.name)),
        }
    }
    if all.is_empty() {
        all.push(settle(
            "",
            clear("no NIC of Hyper-V is up", [&case.nics_read(), &queues::all_states(case)]),
        ));
    }
    all
}

/// Packets of both directions over the window, all of them and those of the virtual function. The
/// kernel counts the second among the first (`netvsc_get_stats64`).
fn packets(case: &Case<'_>, nic: &Nic) -> Result<(u64, u64), Missing> {
    let name = &nic.name;
    let all = case.nic_statistic(name, "rx_packets")? + case.nic_statistic(name, "tx_packets")?;
    let source = format!("ethtool -S {name}");
    let own = need(&source, &case.nic_sample(name)?.driver_stats)?;
    let of = |counter: &str| delta(&format!("{source}: {counter}"), own.get(counter));
    Ok((all, of("vf_rx_packets")? + of("vf_tx_packets")?))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let (all, by_function) = packets(case, nic)?;
    let rate = all as f64 / case.window_s()?;
    let below = case.facts.nics.iter().find(|n| n.master.known() == Some(name));
    let masters = case.facts.nics.iter().find_map(|n| need("master of each NIC", &n.master).err());
    let since_boot = need("ethtool -S", &nic.driver_stats)?;
    let ever =
        ["vf_rx_packets", "vf_tx_packets"].iter().filter_map(|c| since_boot.get(*c)).sum::<u64>();
    let share = by_function as f64 / all.max(1) as f64;
    if share >= MOST {
        let text = format!("{name}: its virtual function carries {}", text::percent(share));
        return clear(text, [&nic.driver_stats]);
    }
    if rate < queues::BUSY_NIC_PER_S {
        let text = format!("{name}: {}, too few to matter", text::per_s(rate));
        return clear(text, [&nic.driver_stats]);
    }
    let Some(function) = below else {
        if let Some(missing) = masters {
            return Err(missing);
        }
        let (title, severity, confidence, why) = match ever > 0 {
            true => (
                format!("{name} lost its virtual function"),
                Severity::Warning,
                Confidence::High,
                "It had one since boot: the host took it away for maintenance and did not bring it back, or \
                 its driver is unbound.",
            ),
            false => (
                format!("{name} has no virtual function"),
                Severity::Info,
                Confidence::Low,
                "The machine was made without accelerated networking, its size has none, or the driver \
                 of the virtual function (mlx4, mlx5, mana) is missing.",
            ),
        };
        return Ok(draft(case, nic, title, (all, by_function))
            .weigh(severity, confidence)
            .add(why)
            .change(advice(
                "no virtual function",
                "accelerated networking",
                "lspci; dmesg | grep -i -e hv_netvsc -e 'VF '",
                "the machine must be stopped to turn accelerated networking on",
            ))
            .found());
    };
    let state = function.operstate.known().map_or("not known", String::as_str);
    Ok(draft(
        case,
        nic,
        format!("{name} does not use its virtual function {}", function.name),
        (all, by_function),
    )
    .weigh(
        if case.since_boot() { Severity::Info } else { Severity::Warning },
        if case.since_boot() { Confidence::Low } else { Confidence::High },
    )
    .add("It is there: it is down, or something configured it by itself.")
    .show(
        format!("state of {}", function.name),
        state,
        format!("/sys/class/net/{}/operstate", function.name),
    )
    .change(advice(
        "through the host",
        &format!("{} up, without an address of its own", function.name),
        &format!("ip link set {} up; dmesg | grep -i 'data path'", function.name),
        "low",
    ))
    .found())
}

fn draft(case: &Case<'_>, nic: &Nic, title: String, (all, by_function): (u64, u64)) -> Draft {
    let name = &nic.name;
    let source = format!("ethtool -S {name}");
    Draft::new(name, title)
        .explain(
            "Its packets go through the host's software switch, which costs CPU time, latency and \
             packets a second.",
        )
        .gain(Gain::Improves, "lower latency, more packets a second, less CPU time")
        .show(
            format!("packets of {name} {}", case.over()),
            text::count(all),
            format!("/sys/class/net/{name}/statistics/{{rx,tx}}_packets"),
        )
        .show(
            format!("of these by its virtual function {}", case.over()),
            text::count(by_function),
            source,
        )
        .on_nic(name)
}
