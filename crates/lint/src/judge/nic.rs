//! Settings of interfaces, queues, interrupts and CPUs: what the knob of `tune` takes on this host,
//! and what decides whether it helps.

use model::{
    knob::{NicSetting, Target},
    lint::{LineVerdict, SetLine},
    tune::RefusedAs,
};

use super::{Context, Judged, depends, is_computed};

/// The verdict; `None` for what is no knob and not known.
pub fn judge(context: &Context<'_>, set: &SetLine) -> Option<Judged> {
    let target = Target::parse(&set.setting);
    let depends = depends::setting(&set.setting);
    let nic = target.and_then(Target::nic);
    if is_computed(&set.setting) || is_computed(&set.value) {
        return depends;
    }
    let knob = tune::knobs::find(&set.setting);
    let Some((knob, nic)) = knob.zip(nic) else { return depends };
    let Some(fact) = context.facts.nics.iter().find(|n| n.name == nic) else {
        let absent = format!("no interface {nic} on this host");
        let judged = match target {
            Some(Target::Nic(_, NicSetting::Plain("txqueuelen"))) => Some(queue_length(&set.value)),
            _ => depends,
        };
        return Some(match judged {
            Some(judged) => Judged { why: format!("{absent}; {}", judged.why), ..judged },
            None => Judged::unknown(absent),
        });
    };
    if let Some(Target::Nic(_, NicSetting::Plain("txqueuelen"))) = target {
        return Some(queue_length(&set.value));
    }
    let old = match target {
        Some(Target::Nic(_, NicSetting::Plain("mtu"))) => fact.mtu.get().map(|m| m.to_string()),
        _ => None,
    };
    match tune::value::accepted(context.facts, &*knob, &old.unwrap_or_default(), &set.value) {
        Ok(_) => depends,
        Err(refusal) => match refusal.kind {
            RefusedAs::Harmful => Some(Judged::new(
                LineVerdict::Harmful,
                refusal.why,
                "the knob's check of this host",
            )),
            RefusedAs::Usage => Some(Judged::new(
                LineVerdict::NoEffect,
                format!("no value of this setting: {}", refusal.why),
                "ethtool(8), ip-link(8)",
            )),
            // The host may only not have shown what decides.
            _ => depends.map(|judged| Judged {
                why: format!("{} (this host: {})", judged.why, refusal.why),
                ..judged
            }),
        },
    }
}

fn queue_length(value: &str) -> Judged {
    let source = "include/linux/netdevice.h DEFAULT_TX_QUEUE_LEN; net/ethernet/eth.c ether_setup";
    match value.parse::<u64>() {
        Ok(1000) => Judged::new(LineVerdict::Good, "an Ethernet interface starts with it", source),
        Ok(n) if n < 1000 => Judged::new(
            LineVerdict::BelowDefault,
            format!("{n} is below the 1000 that an Ethernet interface starts with"),
            source,
        ),
        Ok(_) => Judged {
            find_out: "`tc -s qdisc` shows the drops of a queue that is too short".into(),
            ..Judged::new(
                LineVerdict::Depends,
                "bounds pfifo_fast and what is queued by it alone: fq and fq_codel have limits of \
                 their own, and a longer queue is delay",
                source,
            )
        },
        Err(_) => {
            Judged::new(LineVerdict::NoEffect, "the kernel takes a number of packets", source)
        }
    }
}
