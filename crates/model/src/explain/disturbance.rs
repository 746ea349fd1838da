//! Disturbances of an explanation, as values: why its components do not add up.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Warning, coded::coded};

/// A disturbance of an explanation. In JSON `{code, data, message}`, as a [`Warning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum Disturbance {
    #[error("only {pairs} pairs of rounds")]
    FewPairs { pairs: usize },
    /// Rounds whose time differs from the median by more than `over`; the largest difference is
    /// `most`. Both are shares.
    #[error(
        "{count} of {rounds} rounds were over {:.0}% {side} than the median, the {} {:.0}%",
        .over * 100.0, .side.farthest(), .most * 100.0
    )]
    RoundsApart { side: RoundSide, count: usize, rounds: usize, over: f64, most: f64 },
    /// `change` is a share of the first half's time.
    #[error("the second half was {:+.0}% against the first", .change * 100.0)]
    Drifted { change: f64 },
    #[error(
        "the service came out below zero: the network alone was slower than the workload over it"
    )]
    ServiceBelowNothing,
    #[error(
        "the server queueing came out below zero: with all clients less time was left after the \
         network than with one"
    )]
    QueueingBelowNothing,
    #[error("the hypervisor took {:.1}% of a CPU", .share * 100.0)]
    Steal { share: f64 },
    #[error(
        "in the {side} rounds {cpus:.1} CPUs of this host were busy, in the others {others_cpus:.1}: \
         something else ran{}",
        match .side { RoundSide::Slower => "", RoundSide::Faster => " in the others" }
    )]
    BusyCpus { side: RoundSide, cpus: f64, others_cpus: f64 },
    /// The network alone during the outlier rounds: `share` is its part of their difference from
    /// the other rounds.
    #[error("the network alone in the turns beside the {side} rounds {}", beside(*.side, *.network))]
    NetworkBeside { side: RoundSide, network: NetworkBeside, share: f64 },
    #[error(
        "{:.1}% of the requests failed, so what so many clients take is not reported by the others; \
         ask for fewer --flows, or have the server admit more (nginx: worker_connections)",
        .share * 100.0
    )]
    RequestsFailed { share: f64 },
    #[error("{0}")]
    Warned(Warning),
    #[error("rounds lie apart, and nothing says why")]
    Unexplained,

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

/// The side of the median on which rounds are outliers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoundSide {
    Slower,
    Faster,
}

impl RoundSide {
    fn farthest(self) -> &'static str {
        match self {
            Self::Slower => "slowest",
            Self::Faster => "fastest",
        }
    }
}

impl fmt::Display for RoundSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
        })
    }
}

/// How much of the difference the network alone shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkBeside {
    /// Hardly any of it, which points to the server.
    Hardly,
    Partly,
    /// All of it, which does not point to the server.
    AsMuch,
}

fn beside(side: RoundSide, network: NetworkBeside) -> String {
    match network {
        NetworkBeside::Hardly => format!("was hardly {side}, which points to the server"),
        NetworkBeside::Partly => format!("was {side}, too"),
        NetworkBeside::AsMuch => format!("was as much {side}, which does not point to the server"),
    }
}

coded!(Disturbance);
