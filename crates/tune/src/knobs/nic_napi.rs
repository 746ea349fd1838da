//! `nic.NIC.napi.SETTING.WHICH`: a setting of one NAPI instance. Writing the interface's file of the
//! same name sets every instance's.

use model::{
    knob::{NicSetting, Target},
    napi::names,
    tune::{AtStake, NapiValue},
};
use parse::genl_netdev::NapiMessage;

use crate::{
    Host, TuneError,
    knob::{
        Kind, Knob, PlanContext, Refusal, Undone, cannot, nanoseconds, nic_file, number, switch,
    },
    need::Need,
    phase::Phase,
};

/// `napi-get` and `napi-set` of netlink's `netdev` family. Since Linux 6.13, `threaded` since 6.17.
pub const KIND: Kind = Kind {
    name: "nic_napi",
    spelling: "nic.NIC.napi.defer_hard_irqs|gro_flush_timeout|irq_suspend_timeout|threaded.rx-N=VALUE",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Napi(name, which)) if is_instance(which) => {
            Some(Box::new(NicNapi {
                nic,
                setting: SETTINGS.iter().find(|s| s.name == name)?,
                which,
            }))
        }
        _ => None,
    },
};

struct NicNapi<'k> {
    nic: &'k str,
    setting: &'static Setting,
    which: &'k str,
}

/// One setting of a NAPI instance.
struct Setting {
    name: &'static str,
    /// **Source**: `Documentation/netlink/specs/netdev.yaml`, attribute set `napi`.
    attribute: u16,
    unit: &'static str,
    /// Topic for tuner conflicts, as in [`Knob::sets`]; empty if none fits.
    sets: &'static str,
    of: fn(&NapiMessage) -> Option<u64>,
    judge: fn(&str) -> Result<String, Refusal>,
}

const SETTINGS: [Setting; 4] = [
    Setting {
        name: "defer_hard_irqs",
        attribute: 5,
        unit: "empty polls",
        sets: "interrupt coalescing",
        of: |n| n.defer_hard_irqs.map(u64::from),
        judge: |w| Ok(number(w, 0, i32::MAX as u64, "polls")?.to_string()),
    },
    Setting {
        name: "gro_flush_timeout",
        attribute: 6,
        unit: "ns",
        sets: "gro",
        of: |n| n.gro_flush_timeout,
        judge: nanoseconds,
    },
    Setting {
        name: "irq_suspend_timeout",
        attribute: 7,
        unit: "ns",
        sets: "interrupt coalescing",
        of: |n| n.irq_suspend_timeout,
        judge: nanoseconds,
    },
    Setting {
        name: "threaded",
        attribute: 8,
        unit: "",
        sets: "threaded napi",
        of: |n| n.threaded.map(u64::from),
        judge: |w| switch(w).map(str::to_owned),
    },
];

/// Whether the text is a NAPI id or a queue name.
fn is_instance(which: &str) -> bool {
    let digits = which.strip_prefix("rx-").or_else(|| which.strip_prefix("tx-")).unwrap_or(which);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

impl NicNapi<'_> {
    fn absent(&self, why: &str) -> TuneError {
        TuneError::Absent(format!("{}: {why}", self.target()))
    }

    fn instance(&self, host: &Host) -> Result<NapiMessage, TuneError> {
        let Self { nic, which, .. } = self;
        let all = host.napis(nic)?;
        let has: Vec<&str> = all.iter().rev().map(|(name, _)| name.as_str()).take(8).collect();
        let why = match has.as_slice() {
            [] => format!("{nic} has no NAPI now (its link is down, or its driver registers none)"),
            some => format!("no such NAPI; {nic} has {}", some.join(", ")),
        };
        let found = all.into_iter().find(|(name, _)| name == which).map(|(_, n)| n);
        found.ok_or_else(|| self.absent(&why))
    }
}

/// The NAPI instance settings that writing another knob of the interface may change: the setting
/// `only`, or all.
pub fn of_nic(host: &Host, nic: &str, only: Option<&str>) -> Vec<String> {
    // Empty before 6.8, and for a directory tree.
    let napis = host.napis(nic).unwrap_or_default();
    let wanted = |s: &&Setting| only.is_none_or(|only| only == s.name);
    let mut all = Vec::new();
    for setting in SETTINGS.iter().filter(wanted) {
        let has = napis.iter().filter(|(_, n)| (setting.of)(n).is_some());
        all.extend(has.map(|(which, _)| format!("nic.{nic}.napi.{}.{which}", setting.name)));
    }
    all
}

/// What writing an interface's file does to its NAPI instances, for a plan; `None` if the kernel
/// has no such per-instance setting.
pub fn side_effects(
    context: &PlanContext<'_>,
    nic: &str,
    name: &str,
    old: &str,
) -> Option<AtStake> {
    let napis = context.nic(nic)?.napis.known()?;
    let names = names(napis.iter().map(|n| (n.id, n.queues.clone())).collect());
    let value = |n: &model::napi::Napi| match name {
        "defer_hard_irqs" => n.defer_hard_irqs.get().map(u64::from),
        "gro_flush_timeout" => n.gro_flush_timeout_ns.get().map(|t| t.0),
        _ => n.threaded.get().map(u64::from),
    };
    let all = napis
        .iter()
        .filter_map(|n| Some(NapiValue { napi: names.get(&n.id)?.clone(), value: value(n)? }));
    let all: Vec<NapiValue> = all.collect();
    let count = all.len();
    let own = all.into_iter().filter(|n| n.value.to_string() != old.trim()).collect();
    (count > 0).then_some(AtStake::Napis { count, own })
}

impl Knob for NicNapi<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Napi(self.setting.name, self.which))
    }

    /// After the interface's file, which sets every instance.
    fn phase(&self) -> Phase {
        Phase::Spread
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let value = (self.setting.of)(&self.instance(host)?);
        value.map(|v| v.to_string()).ok_or_else(|| {
            self.absent(
                "this kernel has no such setting of one NAPI (since Linux 6.13, threaded 6.17)",
            )
        })
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        match context.nic(self.nic) {
            Some(_) => (self.setting.judge)(wanted),
            None => cannot("no such interface"),
        }
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::HostNet]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let napi = self.instance(host)?;
        let number = value.trim().parse().map_err(|_| {
            TuneError::Usage(format!(
                "{}: {value:?} is no number that the kernel takes",
                self.target()
            ))
        })?;
        host.set_napi(napi.id, self.setting.attribute, number)
    }

    /// An instance that the driver removed took its value along.
    fn lost(&self, host: &Host, _: &str) -> Option<String> {
        let Self { nic, which, .. } = self;
        let flags = host.text(&nic_file(nic, "flags")).ok()?;
        let is_up = u32::from_str_radix(flags.trim().strip_prefix("0x")?, 16).ok()? & 1 == 1;
        let has = host.napis(nic).ok()?.iter().any(|(name, _)| name == which);
        (is_up && !has).then(|| format!("{nic} has no NAPI {which} any more"))
    }

    /// With the link down there are no instances; a new instance gets the interface's value.
    ///
    /// **Source**: `netif_napi_add_weight_locked` and `napi_restore_config`; the interface's files are
    /// written into a kept configuration, too.
    fn is_made_anew(&self, host: &Host, old: &str) -> bool {
        let nic = self.nic;
        let gets = match self.setting.name {
            "irq_suspend_timeout" => Ok("0".to_owned()),
            "defer_hard_irqs" => host.text(&nic_file(nic, "napi_defer_hard_irqs")),
            name => host.text(&nic_file(nic, name)),
        };
        let none = host.napis(nic).is_ok_and(|all| all.is_empty());
        none && gets.is_ok_and(|value| value.trim() == old.trim())
    }

    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        match self.read(host) {
            Ok(now) if now == old => return Ok(Undone::Restored(now)),
            Err(TuneError::Absent(why)) => {
                return Ok(self.lost(host, old).map_or(Undone::Gone(why), Undone::Lost));
            }
            _ => {}
        }
        self.write(host, old)?;
        self.came_back(host, old)
    }

    fn unit(&self) -> &'static str {
        self.setting.unit
    }

    fn sets(&self) -> &'static str {
        self.setting.sets
    }
}
