//! The remote end: plans, tries and reverts changes for one client at a time, in the same journal
//! as `netwright tune`.

use diagnose::{Case, diagnose};
use model::{
    Nanos,
    tune::{Plan, Refused, RefusedAs},
};
use probe::{
    Root,
    error::reading,
    facts::{self, Request as FactsRequest},
    samples::Options,
    watch::OverWindow,
};
use tune::{
    Host, Store, TuneError, change_request::ChangeRequests, netns, operator::Operator, planner,
    trial::TrialHost, trial_setup,
};

use crate::{Answer, PeerRequest, Request};

/// The longest observation for a client.
const LONGEST: Nanos = Nanos(60_000_000_000);
/// The most change requests in one plan.
const MOST_CHANGE_REQUESTS: usize = 256;
/// The most plans of one client; `fix` makes one or two for each candidate.
const MOST_PLANS: usize = 4096;

/// This host, in use by one client. Dropping it reverts what is on trial.
pub struct ClientSession<'a> {
    operator: &'a dyn Operator,
    /// The client's address from `SSH_CONNECTION`, or `another host`.
    client: String,
    /// The client's connection, in the format of `SSH_CONNECTION`; `None` where it is not set.
    connection: Option<String>,
    trial_host: Option<TrialHost>,
    /// The plans made, which the client tries by number. A plan sent by the client is not accepted.
    plans: Vec<Plan>,
    /// This client's change sets that are on trial.
    tried: Vec<u64>,
}

impl<'a> ClientSession<'a> {
    /// `connection` is sshd's `SSH_CONNECTION`: the client's address and port, and this host's.
    pub fn new(connection: Option<String>, operator: &'a dyn Operator) -> Self {
        let connection = connection.filter(|c| !c.is_empty());
        let client = connection.as_deref().and_then(|c| c.split(' ').next());
        Self {
            operator,
            client: client.unwrap_or("another host").to_owned(),
            connection,
            trial_host: None,
            plans: Vec::new(),
            tried: Vec::new(),
        }
    }

    /// The answer to one line of input.
    pub fn answer(&mut self, line: &str) -> Answer {
        match model::json::read::<Request>(line) {
            Ok(request) => self.one(request).unwrap_or_else(|e| Answer::failed(&e)),
            Err(e) => Answer::failed(&TuneError::Usage(format!("is no request: {e}"))),
        }
    }

    fn one(&mut self, request: Request) -> Result<Answer, TuneError> {
        match request {
            Request::Alive => Ok(Answer::Done),
            Request::Begin => self.begin(),
            Request::Look { window_ns, goal } => self.look(window_ns, goal),
            // The program answers these itself, as this crate makes no document and serves nothing.
            Request::Judge { .. } | Request::Serve => {
                Err(TuneError::Usage("is answered by the program alone".into()))
            }
            Request::Plan { change_requests, own_connection } => {
                self.plan(change_requests, own_connection)
            }
            Request::Try { plan } => {
                let none = || TuneError::Usage(format!("there is no plan {plan}"));
                let plan = self.plans.get(plan).ok_or_else(none)?;
                if let Some(r) = plan.refused.first() {
                    return Err(TuneError::Usage(format!("{}: {}", r.knob, r.why)));
                }
                let id = self.trial_host()?.try_out(plan)?;
                self.tried.push(id);
                Ok(Answer::Made { id })
            }
            Request::Holds { id } => {
                self.own(id)?;
                self.trial_host()?.holds(id).map(|()| Answer::Done)
            }
            Request::TakeBack { id } => {
                self.own(id)?;
                self.trial_host()?.take_back(id)?;
                self.tried.retain(|t| *t != id);
                Ok(Answer::Done)
            }
            Request::Keep { id } => {
                self.own(id)?;
                self.trial_host()?.keep(id)?;
                self.tried.retain(|t| *t != id);
                Ok(Answer::Done)
            }
            Request::Rollback { id } => {
                let rolled_back = self.trial_host()?.roll_back(id, trial_setup::REMOTE_CLIENT);
                let left = match rolled_back {
                    Err(TuneError::Changed(why)) => Some(why),
                    done => done.map(|()| None)?,
                };
                self.tried.retain(|t| *t != id);
                Ok(left.map_or(Answer::Done, |why| Answer::Left { why }))
            }
            Request::Status => {
                let store = Store::of(None);
                let status = tune::status::status(&Host::live(), &store, None)?;
                Ok(Answer::Standing(Box::new(status)))
            }
        }
    }

    fn begin(&mut self) -> Result<Answer, TuneError> {
        if self.trial_host.is_none() {
            self.trial_host = Some(trial_setup::open_for_client(&self.client)?);
        }
        Ok(Answer::Done)
    }

    fn trial_host(&self) -> Result<&TrialHost, TuneError> {
        self.trial_host.as_ref().ok_or_else(|| TuneError::Usage("`begin` comes first".into()))
    }

    fn own(&self, id: u64) -> Result<(), TuneError> {
        match self.tried.contains(&id) {
            true => Ok(()),
            false => Err(TuneError::Denied(format!("change {id} is not on trial for this client"))),
        }
    }

    /// A client cannot give `--i-understand`, so changes that need it are refused.
    fn plan(
        &mut self,
        change_requests: Vec<PeerRequest>,
        own_connection: bool,
    ) -> Result<Answer, TuneError> {
        if change_requests.len() > MOST_CHANGE_REQUESTS || self.plans.len() >= MOST_PLANS {
            let most = format!(
                "{MOST_CHANGE_REQUESTS} change requests in a plan and {MOST_PLANS} plans at most"
            );
            return Err(TuneError::Usage(most));
        }
        let host = Host::live();
        let mut change_requests = ChangeRequests {
            change_requests: change_requests.into_iter().map(PeerRequest::change_request).collect(),
            trial: true,
            ..ChangeRequests::default()
        };
        if !netns::is_first(host.root()) {
            let why = "is the whole host's, and netwright was started in a namespace of it";
            change_requests.only_of_namespace(RefusedAs::Denied, why);
        }
        let facts = planner::facts(&host, &change_requests);
        let mut plan =
            planner::of_session(&host, &facts, change_requests, self.connection.as_deref())?;
        if let Some(why) = trial_setup::cuts_connection(&plan).filter(|_| !own_connection) {
            plan.refused.extend(plan.changes.drain(..).map(|c| Refused {
                asked_by: c.asked_by,
                knob: c.knob,
                new: c.new,
                kind: RefusedAs::Denied,
                why: why.clone(),
                verdict: None,
                source: String::new(),
            }));
        }
        let number = self.plans.len();
        self.plans.push(plan.clone());
        Ok(Answer::Planned { number, plan: Box::new(plan) })
    }

    /// `doctor` on this host, requested by a client.
    fn look(&self, window: Nanos, goal: model::Goal) -> Result<Answer, TuneError> {
        if window > LONGEST {
            return Err(TuneError::Usage(format!("a window of {window}; at most {LONGEST}")));
        }
        let root = Root::live();
        let facts = facts::collect(&root, &FactsRequest { processes: vec![] });
        let options = Options::over(window);
        let mut programs = OverWindow::begin(&root, true);
        let samples = reading(programs.take(&root, &options, self.operator.stop(), &mut |_| {}));
        let findings = diagnose(&Case { facts: &facts, samples: &samples, goal }).findings;
        Ok(Answer::Found { findings })
    }
}

impl Drop for ClientSession<'_> {
    fn drop(&mut self) {
        let Some(trial_host) = self.trial_host.take() else { return };
        while let Some(id) = self.tried.pop() {
            if let Err(e) = trial_host.take_back(id) {
                self.operator.warn(&format!("change {id}: {e}"));
            }
        }
    }
}
