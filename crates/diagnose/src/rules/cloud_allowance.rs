//! 36: the cloud provider's limit for this instance.

use model::{Confidence, Severity, nic::Nic};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    text,
};

/// Catalogue number 36. No setting of the guest moves this limit, so tuning waits.
pub static RULE: Rule = Rule {
    id: "cloud_allowance",
    number: 36,
    title: "the cloud's allowance for this instance is exceeded",
    needs: &["driver statistics *_allowance_exceeded over a window"],
    explained_by: &[],
    judge,
};

const SUFFIX: &str = "_allowance_exceeded";
/// Allowances of the whole NIC; the others concern single services.
const WHOLE_NIC: [&str; 3] = ["bw_in", "bw_out", "pps"];

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_physical(case, |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    // Only one driver reports its allowances so far.
    if let Some(driver) = nic.driver.known().filter(|d| *d != "ena") {
        return clear(format!("{name}: driver {driver} reports no allowance"), [&nic.driver]);
    }
    let source = format!("ethtool -S {name}");
    let stats = need(&source, &case.nic_sample(name)?.driver_stats)?;
    let mut grown = vec![];
    let mut looked = 0;
    for (stat, d) in stats.iter().filter(|(s, _)| s.ends_with(SUFFIX)) {
        looked += 1;
        let n = *need(&format!("{source}: {stat}"), d)?;
        if n > 0 {
            grown.push((stat, n));
        }
    }
    if looked == 0 {
        return Err(Missing(format!("{source}: has no *{SUFFIX}")));
    }
    if grown.is_empty() {
        let text = format!("{name}: none of {} grew", text::plural(looked, "allowance counter"));
        return clear(text, [&case.nic_sample(name)?.driver_stats]);
    }
    let whole =
        grown.iter().any(|(s, _)| WHOLE_NIC.iter().any(|w| s.strip_suffix(SUFFIX) == Some(w)));
    let list: Vec<&str> = grown.iter().filter_map(|(s, _)| s.strip_suffix(SUFFIX)).collect();
    let mut draft = Draft::new(
        name,
        format!("the cloud's allowance of {name} is exceeded: {}", list.join(", ")),
    )
    .weigh(if whole { Severity::Critical } else { Severity::Warning }, Confidence::High)
    .explain(if whole {
        "The provider queues or drops what exceeds the instance's allowance. No setting of \
             this host moves that limit, so do not tune for it."
    } else {
        "The provider drops what exceeds this allowance: conntrack counts connections through \
             security groups, linklocal the requests to its name, time and metadata services \
             (cache those)."
    })
    .gain(
        Gain::Unblocks,
        "the instance's limit is gone, if a larger one or less traffic is possible",
    );
    for (stat, n) in &grown {
        draft = draft.show(format!("{stat} {}", case.over()), text::count(*n), &source);
    }
    draft = draft.change(advice(
        "this instance type",
        "a larger instance, or less traffic",
        "none on this host",
        "none",
    ));
    Ok(if whole { draft.on_nic(name) } else { draft.alone() }.found())
}
