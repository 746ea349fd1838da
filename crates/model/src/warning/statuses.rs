//! Responses with an unexpected status, which are measured like others.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::grouped;

/// Meaning of such statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusKind {
    Errors,
    Redirects,
}

pub(super) fn line(kind: StatusKind, by_status: &BTreeMap<u16, u64>, responses: u64) -> String {
    let each: Vec<String> =
        by_status.iter().map(|(status, n)| format!("{} × {status}", grouped(*n))).collect();
    let (n, each) = (by_status.values().sum::<u64>(), each.join(", "));
    let (one, several, fast, next) = match kind {
        StatusKind::Errors => {
            ("says that something is wrong", "say that something is wrong", "says so", "")
        }
        StatusKind::Redirects => (
            "leads elsewhere",
            "lead elsewhere",
            "redirects",
            "; a redirect is not the page, and none is followed: give the URL that it leads to (curl \
             -sI URL has it as Location)",
        ),
    };
    match n == responses {
        true => format!(
            "every response {one} ({each}): what was measured is how fast the server {fast}{next}"
        ),
        false => format!(
            "{:.1}% of the responses {several} ({each}), and the times are of all of them{next}",
            n as f64 * 100.0 / responses as f64
        ),
    }
}
