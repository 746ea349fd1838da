//! Plans: the changes to be made. A plan writes nothing.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AtStake, PlanNote};
use crate::{Reading, settings::Verdict};

/// Which host a plan or journal is of. A plan made for another one is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostId {
    /// **Source**: `/proc/sys/kernel/hostname`. For people; not compared, it may be set anew.
    pub name: Reading<String>,
    /// Survives a reboot. **Source**: `/etc/machine-id`.
    pub machine_id: Reading<String>,
    /// Changes with every boot. **Source**: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Reading<String>,
    /// Inode of the network namespace. **Source**: `/proc/self/ns/net`.
    pub net_namespace: Reading<u64>,
    /// A number that no other network namespace of this boot ever has, unlike the inode; since
    /// kernel 5.14. **Source**: `SO_NETNS_COOKIE`.
    #[serde(default)]
    pub net_cookie: Reading<u64>,
}

/// An interface by what stays its own while it lives, whatever it is called. Holds within one network
/// namespace of one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NicId {
    /// What it was called.
    pub name: String,
    /// The kernel gives a number once, unless somebody asks for one that is free again.
    pub ifindex: u32,
    /// `veth`, `bridge`, …; absent for hardware. **Source**: `IFLA_INFO_KIND`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Where its hardware sits, as a PCI address or the name on another bus. **Source**: the `device`
    /// link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_address: Option<String>,
    /// The address that the hardware came with. **Source**: `IFLA_PERM_ADDRESS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The address that it had; it may be given another one. **Source**: `IFLA_ADDRESS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Of a veth, the number of its other end. **Source**: `IFLA_LINK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<u32>,
}

/// How far a change reaches, the mildest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Disruption {
    /// Nothing in flight notices.
    None,
    /// Packets wait or come out of order for a moment.
    BriefStall,
    /// The link may go down and come back.
    LinkReset,
    /// Connections may end, or traffic may stop passing.
    ConnectionLoss,
}

impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::BriefStall => "brief stall",
            Self::LinkReset => "link reset",
            Self::ConnectionLoss => "drops connections",
        })
    }
}

/// What the reach of a change is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// It does not depend on the hardware.
    #[default]
    General,
    /// It is known of the interface's driver.
    Driver,
    /// The driver, or what it does there, is not known: the worst that is usual.
    Assumed,
}

/// What a change may disturb.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Impact {
    /// How far it reaches.
    pub disruption: Disruption,
    /// Why, in words; empty where nothing is disturbed.
    pub why: String,
    /// What both are known from.
    #[serde(default)]
    pub basis: Basis,
    /// Whether the operator's own connection may be disturbed.
    pub own_connection: bool,
    /// What else is at stake.
    pub also: Vec<AtStake>,
}

impl Impact {
    pub fn none() -> Self {
        Self::of(Disruption::None, "")
    }

    /// Reaches as far as `disruption`, because of `why`; whom it touches is not said yet.
    pub fn of(disruption: Disruption, why: impl Into<String>) -> Self {
        let basis = Basis::General;
        Self { disruption, why: why.into(), basis, own_connection: false, also: vec![] }
    }
}

/// One change of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// Full name: `sysctl.net.core.somaxconn`, `nic.eth0.rings.rx`, `irq.38.affinity`.
    pub knob: String,
    /// Value now, as the kernel shows it, without the line end.
    pub old: String,
    /// Value wanted, in the kernel's own form and unit.
    pub new: String,
    /// Unit of both; empty for names, masks and switches.
    pub unit: String,
    /// What it may disturb.
    pub impact: Impact,
    /// Who sets it otherwise and may set it again; empty when nobody is known to.
    pub owner: String,
    /// How it is undone, and what of it cannot be.
    pub undo: String,
    /// The classic command that does the same, to read and to trust.
    pub command: String,
    /// Who asked: `argument 1`, `line 3`, `finding few_channels`.
    pub asked_by: String,
    /// Why a profile asks for it; empty where nobody gave a reason.
    #[serde(default)]
    pub why: String,
    /// Set where it may reset the link of a member of a bond, team or bridge: the members of one
    /// are changed one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<LinkMember>,
    /// The interface that is meant, where it is a setting of one: its name may be another's by the
    /// time it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicId>,
}

/// A member of a bond, team or bridge whose link a change may reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkMember {
    pub nic: String,
    /// What it is a member of. **Source**: `master` link.
    pub master: String,
    /// Members of it that were up before anything was changed, by name, this one included where it
    /// was: each is to be up again before the next one's link is reset.
    pub up: Vec<String>,
}

/// Why something is refused, by who can do something about it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RefusedAs {
    /// No such knob, not a value of it, wrong unit, out of range.
    Usage,
    /// The value does harm on this kernel, or takes away from what it allows by itself.
    Harmful,
    /// The value changes nothing of what it is set for.
    NoEffect,
    /// The host cannot: no such device, CPU offline, not supported.
    Environment,
    /// The privilege for the change is missing.
    Denied,
    /// Not now: something else is to be dealt with first.
    Postponed,
}

/// Something that was asked for and is not in the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// Who asked, as in [`Planned::asked_by`].
    pub asked_by: String,
    /// The knob as it was spelled.
    pub knob: String,
    /// The value as it was spelled.
    pub new: String,
    /// Which kind of reason.
    pub kind: RefusedAs,
    pub why: String,
    /// What the value of a kernel setting is, where that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What the reason rests on: the kernel's documentation or source. Empty where none is named.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// Something that is already as it was asked to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unchanged {
    /// Who asked, as in [`Planned::asked_by`].
    pub asked_by: String,
    pub knob: String,
    pub value: String,
}

/// Ordered changes with old and new value, impact and way back. `tune plan --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The host it is made for.
    pub host: HostId,
    /// In the order in which they are to be made.
    pub changes: Vec<Planned>,
    /// What is not done, and why.
    pub refused: Vec<Refused>,
    /// What needs no doing.
    pub unchanged: Vec<Unchanged>,
    /// What holds for the plan as a whole.
    pub notes: Vec<PlanNote>,
}

impl Plan {
    /// The farthest reach of all changes.
    pub fn disruption(&self) -> Disruption {
        self.changes.iter().map(|c| c.impact.disruption).max().unwrap_or(Disruption::None)
    }

    /// Whether any change may disturb the operator's own connection.
    pub fn reaches_operator(&self) -> bool {
        self.changes
            .iter()
            .any(|c| c.impact.own_connection && c.impact.disruption > Disruption::None)
    }
}
