//! Builds the document from all rounds.

use model::{
    Warning,
    explain::{
        Disturbance, Exchange, ExplainDocument, Level, Naive, OtherPath, Prediction, SideBySide,
        WhatIf,
    },
};
use stats::{
    decompose::{Decomposition, RECONNECTING, decompose},
    paired::{Centre, centre},
    predict::{Added, Known, Model, Receiving, THIS},
};

use crate::{
    disturbed,
    interleaving::{Pairs, level, of, quantiles},
    request::{Path, Request, Target},
    service::typical,
    synthetic,
    workload::{Observed, pooled},
};

pub struct Measured<'a> {
    pub request: &'a Request,
    /// When the measurement began, seconds since 1970.
    pub started_unix_s: u64,
    /// The server of the network alone.
    pub responder: &'a str,
    /// The messages and bytes of a transaction.
    pub exchange: Exchange,
    /// Whether transactions are of several kinds.
    pub mixed: bool,
    /// Pairs with one client.
    pub ones: &'a Pairs,
    /// Pairs with all clients; `None` where that is one.
    pub all: Option<&'a Pairs>,
    /// Levels of the workload.
    pub levels: Vec<Level>,
    /// What paths to other hosts add to a transaction, as far as measured.
    pub others: Vec<OtherPath>,
    /// Warnings about the measurement.
    pub notes: Vec<Warning>,
    /// Whether it ended early.
    pub interrupted: bool,
}

impl Measured<'_> {
    /// The document; `None` where too little was measured.
    pub fn document(self) -> Option<ExplainDocument> {
        let all = self.all.unwrap_or(self.ones);
        let mut parts = decompose(&self.ones.pairs, &all.pairs)?;
        if let Some(tls) = cipher(&self.ones.workload) {
            parts.split_tls(tls);
        }
        let clients = all.workload.first()?.round.clients;
        self.disturbed(all, &mut parts);
        let levels = self.curve(all);
        let reconnects = parts.components.iter().any(|c| c.name == RECONNECTING);
        let known = Known {
            levels: levels.clone(),
            network_ns: parts.network_one.value,
            service: parts.service,
            own_ns: parts.client.value + parts.tls_ns,
            client_threads: self.request.threads,
            cpus: synthetic::cpus(),
            server_threads: matches!(self.request.target, Target::Rtt(_))
                .then_some(self.request.threads),
        };
        let model = Model::new(known)?;
        let one_way = parts.network_all.value / 2.0;
        let rate = parts.sum.measured_ns;
        let mut document = ExplainDocument {
            schema_version: model::SCHEMA_VERSION,
            kind: "explain".into(),
            started_unix_s: self.started_unix_s,
            target: self.request.target.shown(),
            responder: self.responder.into(),
            exchange: self.exchange,
            clients,
            rounds: u32::try_from(self.ones.pairs.len() + self.all.map_or(0, |a| a.pairs.len()))
                .unwrap_or(u32::MAX),
            round_ns: self.request.round,
            quantiles: SideBySide {
                workload_ns: quantiles(&all.workload),
                network_ns: quantiles(&all.network),
            },
            typical: typical(self.ones).filter(|_| !self.mixed),
            naive: Naive { one_way_ns: one_way, service_ns: rate - 2.0 * one_way },
            demands: model.demands(clients),
            levels,
            knee_clients: model.knee(),
            limiting: model.limiting(),
            predictions: predictions(self.request, &model, &self.others),
            other_paths: self.others.clone(),
            what_if: self.what_if(&model, clients),
            verified: None,
            statuses: Default::default(),
            left_out: Default::default(),
            injected_service_ns: of(&self.ones.workload, |o| o.injected_ns).filter(|ns| *ns > 0.0),
            warnings: reconnects
                .then(|| anew(&all.workload))
                .into_iter()
                .chain(self.warnings(all, parts.sum.conclusive, model.is_server_reported()))
                .collect(),
            interrupted: self.interrupted,
            components: parts.components,
            sum: parts.sum,
        };
        let most = document.levels.iter().map(|l| l.clients).max().unwrap_or(0);
        if document.predictions.iter().any(|p| p.clients > most) {
            // Ended early: the capacity was not observed.
            document.predictions.retain(|p| p.clients <= most);
            document.warnings.push(Warning::ClientsNotMeasured { most });
        }
        let inconclusive = !document.sum.conclusive;
        document.predictions.iter_mut().for_each(|p| p.inconclusive |= inconclusive);
        document.what_if.iter_mut().for_each(|w| w.inconclusive = inconclusive);
        Some(document)
    }

    /// The default predictions: no network, other numbers of CPUs, and other channels where the
    /// server's host reports its own.
    fn what_if(&self, model: &Model, clients: u32) -> Vec<WhatIf> {
        let mut all = model.what_if(clients, self.request.cores).unwrap_or_default();
        if let (Some(asked), Some(now)) = (&self.request.channels, self.receiving()) {
            all.extend(model.channels(clients, now, asked).unwrap_or_default());
        }
        all
    }

    /// CPU time of receiving on the server's host: the mean, as a short round has few ticks of CPU
    /// time; and the most CPUs that received packets in any round.
    fn receiving(&self) -> Option<Receiving> {
        let pairs = self.all.unwrap_or(self.ones);
        let known: Vec<Receiving> = pairs.network.iter().filter_map(|o| o.receiving).collect();
        let cpus = known.iter().map(|r| r.cpus).max()?;
        let ns = known.iter().map(|r| r.ns).sum::<f64>() / known.len() as f64;
        // No tick fell into it: unknown, which is not 0.
        (ns > 0.0).then_some(Receiving { ns, cpus })
    }

    /// The measured levels, with those of the pairs where these have more rounds.
    fn curve(&self, all: &Pairs) -> Vec<Level> {
        let mut levels: Vec<Level> = [&self.ones.workload, &all.workload]
            .into_iter()
            .filter_map(|rounds| level(rounds))
            .chain(self.levels.iter().cloned())
            .collect();
        levels.sort_by_key(|l| l.clients);
        levels.dedup_by_key(|l| l.clients);
        levels
    }

    /// Adds the known disturbances, where the components do not add up.
    fn disturbed(&self, all: &Pairs, parts: &mut Decomposition) {
        let sum = &mut parts.sum;
        if self.ones.pairs.len() < 5 {
            sum.conclusive = false;
            sum.disturbed.push(Disturbance::FewPairs { pairs: self.ones.pairs.len() });
        }
        if sum.conclusive {
            return;
        }
        sum.disturbed.extend(disturbed::by(all));
        sum.disturbed.extend(disturbing(all).into_iter().map(Disturbance::Warned));
        if sum.disturbed.is_empty() {
            sum.disturbed.push(Disturbance::Unexplained);
        }
    }

    fn warnings(&self, pairs: &Pairs, conclusive: bool, reported: bool) -> Vec<Warning> {
        let named = if conclusive { vec![] } else { disturbing(pairs) };
        let mut all = standing(pairs, &named);
        if self.request.channels.is_some() && self.receiving().is_none() {
            all.push(Warning::ReceivingNotKnown);
        }
        all.extend(self.others.iter().filter_map(synthetic::doubt));
        all.extend(others(&pairs.workload));
        all.extend(self.notes.iter().cloned());
        if self.request.cores.is_some() && !reported {
            all.push(Warning::CoresNotPredicted);
        }
        let unknown = self.request.paths.iter().map(Path::name);
        let unknown = unknown.filter(|name| self.others.iter().all(|o| o.path != *name));
        all.extend(unknown.map(|path| Warning::PathNotMeasured { path }));
        all
    }
}

/// Warns of a server that does not keep its connections.
fn anew(rounds: &[Observed]) -> Warning {
    let Exchange { new_connections, connect_round_trips, .. } = pooled(rounds.iter());
    Warning::ConnectionsNotKept { per_request: new_connections, round_trips: connect_round_trips }
}

/// How many CPUs others must keep busy to be mentioned.
const OTHERS: f64 = 0.25;

/// A disturbance by other processes of this host; not part of the server's time.
fn others(rounds: &[Observed]) -> Option<Warning> {
    let cpus = of(rounds, |o| o.others_cpus).filter(|cpus| *cpus >= OTHERS)?;
    Some(Warning::OthersBusy { cpus })
}

/// The time of encryption here, over all rounds.
fn cipher(rounds: &[Observed]) -> Option<Centre> {
    centre(&rounds.iter().map(|o| o.tls_ns).collect::<Option<Vec<f64>>>()?)
}

/// Warnings of more than half of all rounds. Those of the workload alone, such as TLS, are
/// excluded.
fn disturbing(pairs: &Pairs) -> Vec<Warning> {
    frequent(pairs.workload.iter().chain(&pairs.network), pairs.pairs.len())
}

/// Warnings of more than half of the workload's or of the network's rounds that are not reported
/// already.
fn standing(pairs: &Pairs, reported: &[Warning]) -> Vec<Warning> {
    let rounds = pairs.workload.iter().chain(&pairs.network);
    let mut all = frequent(rounds, pairs.pairs.len() / 2);
    all.retain(|warning| !reported.contains(warning));
    all
}

/// Warnings of more than this many rounds, each once. Short rounds always warn about their own
/// intervals, which are not used here.
fn frequent<'a>(rounds: impl Iterator<Item = &'a Observed>, more_than: usize) -> Vec<Warning> {
    let mut seen: Vec<(&Warning, usize)> = vec![];
    for warning in rounds.flat_map(|o| &o.warnings) {
        match seen.iter_mut().find(|(w, _)| *w == warning) {
            _ if warning.doubts_interval() => {}
            Some((_, n)) => *n += 1,
            None => seen.push((warning, 1)),
        }
    }
    seen.into_iter().filter(|(_, n)| *n > more_than).map(|(w, _)| w.clone()).collect()
}

fn predictions(request: &Request, model: &Model, others: &[OtherPath]) -> Vec<Prediction> {
    let here = Added::default();
    let asked = request.flows.iter().filter_map(|n| model.predict(THIS, here, *n).ok());
    let between = if request.verify { between(&request.flows) } else { vec![] };
    let between = between.iter().filter_map(|n| model.predict(THIS, here, *n).ok());
    let mut all: Vec<Prediction> = asked.chain(between).collect();
    all.sort_by_key(|p| p.clients);
    all.dedup_by_key(|p| p.clients);
    for path in others {
        all.extend(request.flows.iter().filter_map(|n| {
            let (cpu_ns, cpu_bounded) = synthetic::cpu_ns(path, *n);
            let unseen_ns = path.idle_ns + path.reconnecting_ns.unwrap_or(0.0);
            let added = Added { ns: path.added_ns + unseen_ns, unseen_ns, cpu_ns };
            let predicted =
                model.predict_by(&path.path, added, *n, &synthetic::evidence(path, *n)).ok()?;
            Some(Prediction { cpu_bounded, ..predicted })
        }));
    }
    all
}

/// Numbers of clients between those of the curve: 3, 6, 12… below the most.
fn between(clients: &[u32]) -> Vec<u32> {
    let most = clients.iter().copied().max().unwrap_or(1);
    (0..).map(|i| 3 << i).take_while(|n| *n < most).collect()
}

/// The numbers of clients that were predicted for this path.
pub fn asked(document: &ExplainDocument) -> Vec<u32> {
    document.predictions.iter().filter(|p| p.path == THIS).map(|p| p.clients).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbed_and_what_stands_are_each_reported_once() {
        let saying = |warnings: &[&Warning]| Observed {
            warnings: warnings.iter().map(|w| (*w).clone()).collect(),
            ..Observed::nothing()
        };
        let (tls, others) =
            (Warning::UnderTls { sslmode: true }, Warning::OthersBusy { cpus: 1.0 });
        let drifts = Warning::MedianDrifts { trend: 0.1 };
        let mut pairs = Pairs::default();
        for _ in 0..6 {
            pairs.workload.push(saying(&[&tls, &others, &drifts]));
            pairs.network.push(saying(&[&others, &drifts]));
            let round = Observed::nothing().round;
            pairs.pairs.push(stats::decompose::Pair { workload: round, network: round });
        }
        let disturbed = disturbing(&pairs);
        assert_eq!(disturbed, [others]);
        assert_eq!(standing(&pairs, &disturbed), [tls]);
        assert_eq!(standing(&pairs, &[]).len(), 2, "where nothing was disturbed");
    }
}
