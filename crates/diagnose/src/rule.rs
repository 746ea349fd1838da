//! What a rule is and what it answers.

use model::{Change, Confidence, CpuSet, Evidence, Finding, Reading, Severity};

use crate::Case;

pub(crate) use crate::missing::{Missing, need};

/// One rule of the catalogue; each lives in `rules/<id>.rs`.
pub struct Rule {
    /// Its name in reports, and its file's.
    pub id: &'static str,
    /// Its number in the catalogue (`docs/rules.md`).
    pub number: u32,
    /// What it looks for, in a few words.
    pub title: &'static str,
    /// The evidence without which it does not judge.
    pub needs: &'static [&'static str],
    /// Rules whose findings on the same CPU, NIC or setting explain this rule's: the causes to
    /// deal with first.
    pub explained_by: &'static [&'static str],
    pub(crate) judge: fn(&Case<'_>) -> Vec<Judgement>,
}

/// What a rule says of one subject.
pub(crate) enum Judgement {
    Found(Box<Draft>),
    /// Looked, nothing wrong; only [`clear`] makes it.
    Passed(Passed),
    /// Evidence is missing, so that the rule did not judge.
    SkippedRule {
        /// What it is about, empty for the whole host.
        subject: String,
        /// Which evidence is missing and why.
        why: String,
    },
}

/// What a rule looked at and found nothing wrong with. Its field is private, so that [`clear`]
/// with the evidence it asks for is the only way to one.
pub(crate) struct Passed(String);

impl Passed {
    pub(crate) fn because(self) -> String {
        self.0
    }
}

/// Something that was read, or not: a [`Reading`], or what the case gives (`case.protocol(…)`,
/// `need(…)`). A bare number is none: nobody can tell any more whether it was read.
pub(crate) trait Basis {
    fn missing(&self) -> Option<Missing>;
}

impl<T> Basis for Result<T, Missing> {
    fn missing(&self) -> Option<Missing> {
        self.as_ref().err().cloned()
    }
}

impl<T> Basis for Reading<T> {
    fn missing(&self) -> Option<Missing> {
        need("evidence", self).err()
    }
}

/// The answer "nothing wrong", which rests on everything in `rests_on`: all that could have
/// made it a finding. With a piece missing it is "skipped" for that reason.
pub(crate) fn clear<const N: usize>(
    because: impl Into<String>,
    rests_on: [&dyn Basis; N],
) -> Result<Judgement, Missing> {
    const { assert!(N > 0, "a clear answer rests on something that was read") };
    match rests_on.iter().find_map(|e| e.missing()) {
        Some(missing) => Err(missing),
        None => Ok(Judgement::Passed(Passed(because.into()))),
    }
}

impl Missing {
    /// Ends the judging of `subject`.
    pub(crate) fn of(self, subject: impl Into<String>) -> Judgement {
        Judgement::SkippedRule { subject: subject.into(), why: self.0 }
    }
}

/// A change to propose, or the value that it lacks: one whose old or new value is not known is none.
pub(crate) type Proposal = Result<Change, Missing>;

/// A judgement from a result: missing evidence is "skipped".
pub(crate) fn settle(subject: &str, judged: Result<Judgement, Missing>) -> Judgement {
    judged.unwrap_or_else(|missing| missing.of(subject))
}

/// How much a remedy should bring, to order findings of one severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gain {
    /// Cleans up; nothing measurable expected.
    Tidies,
    Improves,
    /// Removes what limits the host now.
    Unblocks,
}

/// A finding in the making: the rule fills in what it knows, the engine adds rule, causes, rank.
pub(crate) struct Draft {
    pub(crate) finding: Finding,
    pub(crate) gain: Gain,
    pub(crate) scope: Scope,
    pub(crate) explained_by: &'static [&'static str],
}

/// What a finding touches, to tell whether one explains another.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) cpus: CpuSet,
    pub(crate) nics: Vec<String>,
    pub(crate) sysctls: Vec<String>,
    /// Explains nothing else whatever it touches.
    pub(crate) alone: bool,
}

impl Scope {
    /// Whether two findings touch something in common; one that names nothing is about the
    /// whole host.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        if self.alone || other.alone {
            return false;
        }
        let whole = |s: &Self| s.cpus.is_empty() && s.nics.is_empty() && s.sysctls.is_empty();
        whole(self)
            || whole(other)
            || !self.cpus.intersection(&other.cpus).is_empty()
            || self.nics.iter().any(|n| other.nics.contains(n))
            || self.sysctls.iter().any(|n| other.sysctls.contains(n))
    }
}

impl Draft {
    pub(crate) fn new(subject: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            finding: Finding {
                rule: String::new(),
                number: 0,
                title: title.into(),
                severity: Severity::Info,
                confidence: Confidence::Low,
                rank: 0,
                subject: subject.into(),
                explanation: String::new(),
                expected_benefit: String::new(),
                evidence: vec![],
                changes: vec![],
                caused_by: vec![],
            },
            gain: Gain::Tidies,
            scope: Scope::default(),
            explained_by: &[],
        }
    }

    /// The rule that found it.
    pub(crate) fn of(mut self: Box<Self>, rule: &'static Rule) -> Self {
        self.finding.rule = rule.id.into();
        self.finding.number = rule.number;
        self.explained_by = rule.explained_by;
        *self
    }

    /// Whether both are of one rule and one subject.
    pub(crate) fn is_of_same(&self, other: &Self) -> bool {
        let key = |d: &Self| (d.finding.number, d.finding.subject.clone());
        key(self) == key(other)
    }

    /// Weighs no more than the other; where there is none, as little as a finding can.
    pub(crate) fn no_surer_than(&mut self, other: Option<&Self>) {
        let (severity, confidence) = other.map_or((Severity::Info, Confidence::Low), |o| {
            (o.finding.severity, o.finding.confidence)
        });
        self.finding.severity = self.finding.severity.min(severity);
        self.finding.confidence = self.finding.confidence.min(confidence);
    }

    pub(crate) fn weigh(mut self, severity: Severity, confidence: Confidence) -> Self {
        self.finding.severity = severity;
        self.finding.confidence = confidence;
        self
    }

    /// What it costs and why.
    pub(crate) fn explain(mut self, text: impl Into<String>) -> Self {
        self.finding.explanation = text.into();
        self
    }

    /// One more sentence of explanation.
    pub(crate) fn add(mut self, text: &str) -> Self {
        if !text.is_empty() {
            self.finding.explanation.push(' ');
            self.finding.explanation.push_str(text);
        }
        self
    }

    pub(crate) fn gain(mut self, gain: Gain, text: impl Into<String>) -> Self {
        self.gain = gain;
        self.finding.expected_benefit = text.into();
        self
    }

    pub(crate) fn show(
        mut self,
        what: impl Into<String>,
        value: impl Into<String>,
        source: impl Into<String>,
    ) -> Self {
        self.finding.evidence.push(Evidence {
            what: what.into(),
            value: value.into(),
            source: source.into(),
        });
        self
    }

    /// Proposes a change, or says why there is none to propose.
    pub(crate) fn change(self, proposal: Proposal) -> Self {
        self.changes([proposal])
    }

    pub(crate) fn changes(mut self, proposals: impl IntoIterator<Item = Proposal>) -> Self {
        let mut without = vec![];
        for proposal in proposals {
            match proposal {
                Ok(change) => self.finding.changes.push(change),
                Err(Missing(why)) => without.push(why),
            }
        }
        match without.as_slice() {
            [] => self,
            all => self.add(&format!("Not proposed: {}.", all.join("; "))),
        }
    }

    pub(crate) fn on_cpus(mut self, cpus: &CpuSet) -> Self {
        self.scope.cpus = self.scope.cpus.union(cpus);
        self
    }

    pub(crate) fn on_nic(mut self, nic: &str) -> Self {
        self.scope.nics.push(nic.into());
        self
    }

    pub(crate) fn on_sysctl(mut self, key: &str) -> Self {
        self.scope.sysctls.push(key.into());
        self
    }

    pub(crate) fn alone(mut self) -> Self {
        self.scope.alone = true;
        self
    }

    pub(crate) fn found(self) -> Judgement {
        Judgement::Found(Box::new(self))
    }
}
