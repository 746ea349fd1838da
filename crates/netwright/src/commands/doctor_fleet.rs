//! `netwright doctor --fleet`: which of many hosts is limited by what, as a Prometheus knows it.

use std::{fmt::Write as _, path::Path, time::Duration};

use ::metrics::fleet::{Answers, fleet, queries};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use model::{
    Severity,
    fleet::{FleetDocument, HostState},
    measure::TlsSpec,
};
use parse::prometheus_json::{self, InstantVector, QueryError};
use probe::given;
use workloads::{Fetch, Url, fetch_http};

use super::measure::named;
use crate::{
    args::DoctorArgs,
    failure::{CommandEnd, Failure},
    fleet_args::FleetArgs,
    output::{Answer, Progress},
};

/// The largest answer to a query, bytes; 500 hosts with 20 findings each take 3 MB.
const MOST_ANSWER: usize = 64 << 20;
/// The longest time of a query. Prometheus itself gives up after two minutes.
const WITHIN: Duration = Duration::from_secs(60);
/// The largest secret, bytes.
const MOST_SECRET: u64 = 64 << 10;

/// Asks the Prometheus, and prints the hosts worst first.
///
/// # Errors
/// Wrong usage (exit code 2); the secret is refused (3); the server does not answer, is no Prometheus,
/// or knows no exporter (4).
pub fn run(args: &DoctorArgs) -> Result<CommandEnd, Failure> {
    let answer = Answer::to(&args.output)?;
    let server = Server::new(&args.fleet)?;
    let least = Severity::from(args.fleet.min_severity);
    let document = server.judge(&args.fleet, least, args.output.talk.quiet)?;
    let top = if args.output.talk.verbose { usize::MAX } else { args.fleet.top as usize };
    answer.tell(&document, |d, look| report::doctor::fleet::text(d, top, look))?;
    Ok(end(&document, args.fail_on.map(Severity::from)))
}

/// `No` where a host has a finding as severe as `--fail-on`, or where nobody knows whether it has.
fn end(document: &FleetDocument, fail_on: Option<Severity>) -> CommandEnd {
    let Some(least) = fail_on else { return CommandEnd::Yes };
    let bad = document.hosts.iter().any(|h| {
        let counts = [
            (Severity::Critical, h.critical),
            (Severity::Warning, h.warning),
            (Severity::Info, h.info),
        ];
        h.state != HostState::Judged || counts.iter().any(|(s, n)| *s >= least && *n > 0)
    });
    if bad { CommandEnd::No } else { CommandEnd::Yes }
}

/// A Prometheus, and how to log in.
struct Server {
    url: Url,
    /// The URL without a slash at its end.
    name: String,
    authorization: Option<String>,
    tls: TlsSpec,
}

impl Server {
    fn new(args: &FleetArgs) -> Result<Self, Failure> {
        let typed = args.fleet.as_deref().unwrap_or_default();
        let mut url: Url = typed.parse()?;
        if url.path.contains('?') {
            return Err(Failure::Usage(format!(
                "{typed}: a query is no part of a Prometheus' address; write \
                 http://HOST[:PORT][/PREFIX]"
            )));
        }
        if !url.tls && (args.ca.is_some() || args.insecure) {
            return Err(Failure::Usage(format!(
                "{typed}: --ca and --insecure need an https:// URL; use one, or leave them out"
            )));
        }
        url.path.truncate(url.path.trim_end_matches('/').len());
        let tls =
            TlsSpec { ca: named(args.ca.as_deref())?, insecure: args.insecure, resume: false };
        let authorization = args.fleet_secret_file.as_deref().map(authorization).transpose()?;
        let name = format!("{}{}", url.origin(), url.path);
        Ok(Self { url, name, authorization, tls })
    }

    /// Asks all queries, for one moment of the server's clock.
    fn judge(
        &self,
        args: &FleetArgs,
        least: Severity,
        quiet: bool,
    ) -> Result<FleetDocument, Failure> {
        let matchers = args.matchers.as_deref().unwrap_or_default().trim();
        if matchers.contains(['{', '}', '\n']) {
            return Err(Failure::Usage(
                "--match takes what stands between the braces of PromQL, such as 'dc=\"ams\"'"
                    .into(),
            ));
        }
        let mut progress = Progress::new(quiet, format!("asking {}", self.name));
        let queries = queries(matchers, least);
        let now = self.query("vector(1)", None)?;
        let at = now.series.first().map(|s| s.at_unix_s).ok_or_else(|| {
            let why = "it does not tell its time; is it a Prometheus?";
            Failure::Environment(format!("{}: {why}", self.name))
        })?;
        let mut answers = Answers::default();
        for (i, (part, query)) in queries.iter().enumerate() {
            progress.show(i as f64 / queries.len() as f64);
            answers.add(*part, self.query(query, Some(at))?);
        }
        if answers.is_empty() {
            let which =
                if matchers.is_empty() { String::new() } else { format!(" with {matchers}") };
            return Err(Failure::Environment(format!(
                "{}: it has scraped no netwright_build_info{which} in the last hour; does it scrape \
                 `netwright export`?",
                self.name
            )));
        }
        Ok(fleet(&self.name, at, least, &answers))
    }

    fn query(&self, query: &str, at: Option<f64>) -> Result<InstantVector, Failure> {
        let mut path = format!("{}/api/v1/query?query={}", self.url.path, escaped(query));
        if let Some(at) = at {
            let _ = write!(path, "&time={at:.3}");
        }
        let fetched = fetch_http(&Fetch {
            url: &Url { path, ..self.url.clone() },
            authorization: self.authorization.as_deref(),
            tls: &self.tls,
            most: MOST_ANSWER,
            within: WITHIN,
        })?;
        let failed = |why: String| Failure::Environment(format!("{}: {why}", self.name));
        let parsed = prometheus_json::parse(&fetched.body);
        match (fetched.status, parsed) {
            (200, Ok(vector)) => Ok(vector),
            (401 | 403, _) => Err(Failure::Denied(format!(
                "{}: it wants another login (HTTP status {}); give its token or USER:PASSWORD by \
                 --fleet-secret-file",
                self.name, fetched.status
            ))),
            // Matchers are the operator's; all else of a query is ours.
            (400, Err(QueryError::Refused(why))) if at.is_some() => Err(Failure::Usage(format!(
                "{}: it refuses the query: {why}; is --match right?",
                self.name
            ))),
            (_, Err(why @ QueryError::Refused(_))) => Err(failed(why.to_string())),
            (200, Err(why)) => Err(failed(why.to_string())),
            (404, _) => {
                Err(failed("no Prometheus is there (HTTP status 404); is the path right?".into()))
            }
            (300..400, _) => Err(failed(format!(
                "it redirects (HTTP status {}); give the address that it redirects to",
                fetched.status
            ))),
            (status, _) => Err(failed(format!("it fails with HTTP status {status}"))),
        }
    }
}

/// The header of a bearer token, or of `USER:PASSWORD`, which no token can be.
fn authorization(path: &Path) -> Result<String, Failure> {
    let text = given::text(path, MOST_SECRET).map_err(|e| Failure::io(path, &e))?;
    let secret = text.trim();
    if secret.is_empty() || secret.contains(|c: char| c.is_control() || !c.is_ascii()) {
        return Err(Failure::Usage(format!(
            "{}: a secret is one line of ASCII, a token or USER:PASSWORD",
            path.display()
        )));
    }
    Ok(match secret.contains(':') {
        true => format!("Basic {}", BASE64_STANDARD.encode(secret)),
        false => format!("Bearer {secret}"),
    })
}

/// The text as a value of a URL's query.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, b| {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            all.push(char::from(b));
        } else {
            let _ = write!(all, "%{b:02X}");
        }
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_escaped() {
        assert_eq!(escaped("up{a=\"b\"} > 1"), "up%7Ba%3D%22b%22%7D%20%3E%201");
    }
}
