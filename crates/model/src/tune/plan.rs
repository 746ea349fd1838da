//! Plans: the changes to be made. A plan writes nothing.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AtStake, PlanNote};
use crate::{Reading, sysctls::Verdict};

/// Identity of the host of a plan or journal. A plan for another host is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostId {
    /// **Source**: `/proc/sys/kernel/hostname`. For people; not compared, because it can be
    /// changed.
    pub name: Reading<String>,
    /// It survives a reboot. **Source**: `/etc/machine-id`.
    pub machine_id: Reading<String>,
    /// It changes with every boot. **Source**: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: Reading<String>,
    /// Inode of the network namespace. **Source**: `/proc/self/ns/net`.
    pub net_namespace: Reading<u64>,
    /// A number that is unique among the network namespaces of this boot, unlike the inode; since
    /// kernel 5.14. **Source**: `SO_NETNS_COOKIE`.
    #[serde(default)]
    pub net_cookie: Reading<u64>,
}

/// Identity of an interface, independent of its name. Valid within one network namespace of one
/// boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NicId {
    /// Its name at the time of the plan.
    pub name: String,
    /// Interface index. The kernel does not reuse an index, unless a program requests a free one.
    pub ifindex: u32,
    /// `veth`, `bridge`, …; absent for hardware. **Source**: `IFLA_INFO_KIND`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Location of its hardware: a PCI address or the name on another bus. **Source**: the `device`
    /// link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_address: Option<String>,
    /// Permanent hardware address. **Source**: `IFLA_PERM_ADDRESS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Address at the time of the plan; it can be changed. **Source**: `IFLA_ADDRESS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// For a veth, the interface index of the other end. **Source**: `IFLA_LINK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<u32>,
}

/// Impact of a change, from mild to severe.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Disruption {
    /// No effect on traffic.
    None,
    /// Packets are delayed or reordered for a moment.
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

/// Basis of the impact of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The impact does not depend on the hardware.
    #[default]
    General,
    /// The impact is known for the interface's driver.
    Driver,
    /// The driver, or its behaviour, is not known: the worst usual impact is assumed.
    Assumed,
}

/// Impact of a change on traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Impact {
    /// What the change disturbs while it is written.
    pub disruption: Disruption,
    /// The reason, in words; empty where nothing is disturbed.
    pub why: String,
    /// What `disruption` and `why` are known from.
    #[serde(default)]
    pub basis: Basis,
    /// Whether the operator's own connection may be disturbed.
    pub own_connection: bool,
    /// What else is at stake, beside the interruption of traffic.
    pub also: Vec<AtStake>,
}

impl Impact {
    pub fn none() -> Self {
        Self::of(Disruption::None, "")
    }

    /// A risk with the impact `disruption` and the reason `why`; the affected connections are not
    /// set yet.
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
    /// Present value, as the kernel shows it, without the line end.
    pub old: String,
    /// Requested value, in the kernel's own form and unit.
    pub new: String,
    /// Unit of both; empty for names, masks and switches.
    pub unit: String,
    /// Impact of the change.
    pub impact: Impact,
    /// Another tuner that sets it and may set it again; empty where none is known.
    pub owner: String,
    /// How it is undone, and which parts cannot be undone.
    pub undo: String,
    /// The equivalent classic command, for reading and checking.
    pub command: String,
    /// Origin of the request: `argument 1`, `line 3`, `finding few_channels`.
    pub asked_by: String,
    /// Reason given by the profile; empty where none is given.
    #[serde(default)]
    pub why: String,
    /// Set where the change may reset the link of a member of a bond, team or bridge: its members
    /// are changed one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<LinkMember>,
    /// The target interface of an interface setting: another interface can have its name by the
    /// time of the write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicId>,
}

/// A member of a bond, team or bridge whose link a change may reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkMember {
    pub nic: String,
    /// The bond, team or bridge that it is a member of. **Source**: `master` link.
    pub master: String,
    /// Names of the members that were up before the first change, this one included where it was
    /// up. Each must be up again before the link of the next one is reset.
    pub up: Vec<String>,
}

/// Reason class of a refusal, by who can remedy it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RefusedAs {
    /// Unknown knob, invalid value, wrong unit, out of range.
    Usage,
    /// The value is harmful on this kernel, or reduces what the kernel allows by default.
    Harmful,
    /// The value has no effect on the purpose of the setting.
    NoEffect,
    /// The host does not support it: no such device, CPU offline, not supported.
    Environment,
    /// The privilege for the change is missing.
    Denied,
    /// Not now: something else must be resolved first.
    Postponed,
}

/// A refused change request, which is not in the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// Origin of the request, as in [`Planned::asked_by`].
    pub asked_by: String,
    /// The knob as given.
    pub knob: String,
    /// The value as given.
    pub new: String,
    /// What kind of refusal it is.
    pub kind: RefusedAs,
    pub why: String,
    /// Judgement of the value of a kernel setting, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Source of the reason: the kernel's documentation or source. Empty where none is named.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// A setting that already has the requested value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unchanged {
    /// Origin of the request, as in [`Planned::asked_by`].
    pub asked_by: String,
    pub knob: String,
    pub value: String,
}

/// Ordered changes with old and new value, impact and undo. `tune plan --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The host that the plan was made for.
    pub host: HostId,
    /// The changes, in the order of their writes.
    pub changes: Vec<Planned>,
    /// Refused requests, with the reason.
    pub refused: Vec<Refused>,
    /// Requests that need no change.
    pub unchanged: Vec<Unchanged>,
    /// Remarks on the plan as a whole.
    pub notes: Vec<PlanNote>,
}

impl Plan {
    /// The most severe impact of all changes.
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
