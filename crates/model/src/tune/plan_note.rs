//! Remarks on a plan as a whole, as values.

use std::{collections::BTreeSet, net::Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coded::coded;

/// A remark on a plan. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum PlanNote {
    #[error("the findings ask for no change: nothing to change")]
    NothingAsked,
    #[error("this process could not apply it: {why}")]
    NotPermitted { why: String },
    /// `more` is the number of knobs besides the first.
    #[error(
        "{knob} {} the whole host's, not only this network namespace's",
        match .more { 0 => "is".to_owned(), n => format!("and {n} more are") }
    )]
    BeyondNamespace { knob: String, more: usize },
    #[error(
        "your own connection from {from} may be cut: apply waits for a confirmation and undoes all \
         without one"
    )]
    MayCutConnection { from: String },
    /// A policy is computed for the existing queues.
    #[error(
        "interrupts are placed by the queues that {nic} has now: once its channels are changed, ask \
         for irq.affinity again"
    )]
    QueuesWillChange { nic: String },

    // Members of bonds, teams and bridges.
    #[error(
        "{} are members of {master}: one after the other in this order, each only when the one \
         before is up in {master} again; one that is not within {link_wait_s} s (--link-wait) has \
         all undone",
        .members.join(", ")
    )]
    OneByOne { master: String, members: Vec<String>, link_wait_s: u64 },
    #[error("no other member of {master} is up: {master} carries nothing while {nic} resets")]
    OnlyMemberUp { master: String, nic: String },
    #[error(
        "{bridge}: a bridge whose MTU was set does not follow that of its ports any more, from now \
         on; rolling back does not change that, only making {bridge} anew does"
    )]
    BridgeMtuStays { bridge: String },

    // Whether the path takes a larger MTU, in bytes.
    #[error(
        "whether the path takes {mtu} bytes is not checked: {nic} has no IPv4 neighbour now; `tune \
         apply --peer HOST` asks one"
    )]
    PathNotChecked { nic: String, mtu: usize },
    #[error(
        "`tune apply` checks with echo requests of {mtu} bytes, which must not be fragmented, that \
         the neighbours of {nic} take them ({}), or the --peer HOST that is given, and undoes all \
         where one does not",
        listed(.neighbours)
    )]
    PathIsChecked { nic: String, mtu: usize, neighbours: BTreeSet<Ipv4Addr> },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

fn listed(hosts: &BTreeSet<Ipv4Addr>) -> String {
    let all: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    all.join(", ")
}

coded!(PlanNote);
