//! `nic.NIC.channels`: how many queues an interface has.

use model::{
    knob::{NicSetting, Target},
    nic::{Channels as Known, Nic},
    quote,
    tune::Impact,
};
use probe::ask::ethtool::answers::Channels;

use crate::{
    Host, TuneError,
    drivers::Act,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, number, usage},
    knobs::{nic_napi, rss_table},
    need::Need,
    phase::Phase,
};

/// `ethtool -l` and `-L`. A value is `combined 4`, or `rx 2 tx 2`, by the kinds that the driver
/// has. Kinds not named keep their count.
pub const KIND: Kind = Kind {
    name: "nic_channels",
    spelling: "nic.NIC.channels='combined N' or 'rx N tx N'",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Plain("channels")) => Some(Box::new(NicChannels { nic })),
        _ => None,
    },
};

struct NicChannels<'k> {
    nic: &'k str,
}

/// Kind, count and maximum, for the kinds that the driver has.
fn kinds(c: &Channels) -> Vec<(&'static str, u32, u32)> {
    let all = [
        ("rx", c.rx_count, c.max_rx),
        ("tx", c.tx_count, c.max_tx),
        ("other", c.other_count, c.max_other),
        ("combined", c.combined_count, c.max_combined),
    ];
    all.into_iter().filter(|(_, _, most)| *most > 0).collect()
}

fn text(kinds: &[(&str, u32, u32)]) -> String {
    kinds.iter().map(|(k, n, _)| format!("{k} {n}")).collect::<Vec<_>>().join(" ")
}

fn of_facts(c: &Known) -> Channels {
    Channels {
        max_rx: c.max_rx,
        max_tx: c.max_tx,
        max_other: c.max_other,
        max_combined: c.max_combined,
        rx_count: c.rx,
        tx_count: c.tx,
        other_count: c.other,
        combined_count: c.combined,
    }
}

/// Applies `wanted`; a bare number means combined channels.
fn set(now: &mut Channels, wanted: &str) -> Result<(), Refusal> {
    let words: Vec<&str> = wanted.split_whitespace().collect();
    let pairs: Vec<(&str, &str)> = match words.as_slice() {
        [n] if now.max_combined > 0 => vec![("combined", n)],
        [] | [_] => {
            let has = text(&kinds(now));
            return usage(format!("{wanted:?} does not say which channels; now: {has}"));
        }
        many => many
            .chunks(2)
            .map(|c| (c.first().copied().unwrap_or(""), c.get(1).copied().unwrap_or("")))
            .collect(),
    };
    for (kind, count) in pairs {
        let Some((kind, _, most)) = kinds(now).into_iter().find(|(k, ..)| *k == kind) else {
            return cannot(format!(
                "the driver has no {kind} channels; now: {}",
                text(&kinds(now))
            ));
        };
        let count = number(count, 0, u64::from(most), "channels")? as u32;
        match kind {
            "rx" => now.rx_count = count,
            "tx" => now.tx_count = count,
            "other" => now.other_count = count,
            _ => now.combined_count = count,
        }
    }
    if now.combined_count + now.rx_count == 0 || now.combined_count + now.tx_count == 0 {
        return usage("at least one channel must receive and one must send");
    }
    Ok(())
}

/// Effect of a new count of receive queues on an indirection table set by hand. A table with all
/// queues in turn does not count as set by hand.
///
/// **Source**: `ethnl_set_channels`, `ethtool_set_channels`: refused where the table uses a queue
/// that would go; else the driver decides whether it builds its own again.
fn table_lost(nic: &Nic, receive: u32) -> Option<String> {
    let table = &nic.rss.known()?.table;
    if table.is_empty() || rss_table::is_in_turn(table) {
        return None;
    }
    let last = table.iter().max()?;
    let then = format!(
        "reset it first (ethtool -X {} default), and set it again after the change",
        quote::shell(&nic.name)
    );
    Some(if *last >= receive {
        format!(
            "its RSS table was set by hand and uses queue {last}, so the kernel refuses fewer than \
             {} receive channels; {then}",
            last.saturating_add(1)
        )
    } else {
        format!("its RSS table was set by hand, and what it gives each queue would be lost; {then}")
    })
}

impl Knob for NicChannels<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Plain("channels"))
    }

    fn phase(&self) -> Phase {
        Phase::Channels
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let channels = host.ethtool().channels(self.nic).map_err(|e| TuneError::read(&e))?;
        Ok(text(&kinds(&channels)))
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let Some(nic) = context.nic(self.nic) else { return cannot("no such interface") };
        let Some(now) = nic.channels.known() else {
            return cannot(nic.channels.why_not().unwrap_or("no channels").to_owned());
        };
        let mut channels = of_facts(now);
        set(&mut channels, wanted)?;
        if nic.xdp.get() == Some(true) {
            return cannot("an XDP program is attached, and its sockets are bound to queues");
        }
        let contexts = nic.rss.known().and_then(|r| r.contexts.get()).unwrap_or(0);
        if contexts > 0 {
            return cannot(format!("{contexts} additional RSS contexts are in use"));
        }
        if let Some(rules @ 1..) = nic.ntuple_rules.get() {
            return cannot(format!("{rules} ntuple rules steer to queues here"));
        }
        if let Some(why) = table_lost(nic, channels.combined_count + channels.rx_count) {
            return cannot(why);
        }
        Ok(text(&kinds(&channels)))
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let nic = self.nic;
        let mut channels = host.ethtool().channels(nic).map_err(|e| TuneError::read(&e))?;
        set(&mut channels, value)
            .map_err(|r| TuneError::Usage(format!("{}: {}", self.target(), r.why)))?;
        // A user's own `equal 2` looks like the table of a driver that uses two queues.
        host.set_channels(nic, &channels).map_err(|e| match e {
            TuneError::Kernel { errno: libc::EINVAL, .. } => TuneError::Environment(format!(
                "{e}; an RSS table that was set by hand may use more queues (ethtool -x {})",
                quote::shell(nic)
            )),
            e => e,
        })
    }

    fn undo_text(&self) -> String {
        "the old number is set again, then queueing disciplines, the RSS table, RPS, RFS, XPS, \
         interrupt affinities and the settings of each NAPI as they were"
            .into()
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        context.act_impact(self.nic, Act::Channels)
    }

    fn unit(&self) -> &'static str {
        "channels"
    }

    fn sets(&self) -> &'static str {
        "channels"
    }

    /// Removed queues lose their settings, and a driver may place its interrupts again.
    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        let nic = self.nic;
        let folder =
            |f: &str| host.root().entries(&format!("/sys/class/net/{nic}/{f}")).unwrap_or_default();
        // The qdiscs of removed mq queues come first: their undo sees only the remaining queues.
        let mut all = vec![format!("nic.{nic}.qdisc"), format!("nic.{nic}.rss.table")];
        for queue in folder("queues") {
            let settings: &[&str] =
                if queue.starts_with("rx-") { &["rps_cpus", "rfs_flows"] } else { &["xps_cpus"] };
            all.extend(settings.iter().map(|s| format!("nic.{nic}.queue.{queue}.{s}")));
        }
        let mut irqs = folder("device/msi_irqs");
        irqs.extend(folder("device/../msi_irqs"));
        all.extend(irqs.into_iter().map(|irq| format!("irq.{irq}.affinity")));
        all.extend(nic_napi::of_nic(host, nic, None));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use model::{Facts, Reading, nic::Rss};
    use probe::{
        Root,
        facts::{self, Request},
    };

    /// A NIC of four combined channels with such a table.
    fn host(table: &[u32]) -> Facts {
        let tree = tempfile::tempdir().unwrap();
        let dir = tree.path().join("sys/class/net/eth0");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("ifindex"), "2\n").unwrap();
        let root = Root::open(tree.path()).unwrap();
        let mut facts = facts::collect(&root, &Request { processes: vec![] });
        let nic = &mut facts.nics[0];
        let none = || Reading::absent("a test");
        nic.channels = Reading::Known(Known {
            rx: 0,
            tx: 0,
            other: 0,
            combined: 4,
            max_rx: 0,
            max_tx: 0,
            max_other: 0,
            max_combined: 8,
        });
        nic.rss = Reading::Known(Rss {
            table: table.to_vec(),
            key: none(),
            functions: Reading::absent("a test"),
            hash_fields: Reading::absent("a test"),
            contexts: Reading::absent("a test"),
            rings: Reading::Known(4),
        });
        facts
    }

    fn judged(table: &[u32], wanted: &str) -> Result<String, Refusal> {
        let (facts, session) = (host(table), Session::default());
        let context = PlanContext::new(&facts, &session);
        NicChannels { nic: "eth0" }.validate(&context, "combined 4", wanted)
    }

    #[test]
    fn a_table_set_by_hand_is_not_lost_in_passing() {
        let by_hand = [0, 0, 0, 1, 1, 2, 3, 3];
        let fewer = judged(&by_hand, "2").unwrap_err();
        assert!(
            fewer.why.contains("uses queue 3") && fewer.why.contains("fewer than 4"),
            "{fewer:?}"
        );
        let more = judged(&by_hand, "8").unwrap_err();
        assert!(more.why.contains("would be lost"), "{more:?}");
        for refused in [fewer, more] {
            assert_eq!(refused.kind, model::tune::RefusedAs::Environment);
            assert!(refused.why.contains("ethtool -X eth0 default"), "{refused:?}");
        }
        for (own, wanted) in
            [(&[0, 1, 2, 3, 0, 1, 2, 3][..], "2"), (&[0, 1, 0, 1], "2"), (&[], "8")]
        {
            assert_eq!(judged(own, wanted).unwrap(), format!("combined {wanted}"), "{own:?}");
        }
    }
}
