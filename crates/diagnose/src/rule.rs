//! The trait of a rule, and the forms of its answer.

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
    /// The evidence that it needs to judge.
    pub needs: &'static [&'static str],
    /// The rules that explain this rule's findings on the same CPU, NIC or setting: causes to deal
    /// with first.
    pub explained_by: &'static [&'static str],
    pub(crate) judge: fn(&Case<'_>) -> Vec<Judgement>,
}

/// A rule's answer about one subject.
pub(crate) enum Judgement {
    Found(Box<Draft>),
    /// The rule judged and found nothing wrong; only [`clear`] makes it.
    Passed(Passed),
    /// Evidence is missing, so the rule did not judge.
    SkippedRule {
        /// What it is about, empty for the whole host.
        subject: String,
        /// The missing evidence, and the reason.
        why: String,
    },
}

/// The subject that a rule found nothing wrong with. Its field is private, so that only [`clear`],
/// which demands the evidence, can make one.
pub(crate) struct Passed(String);

impl Passed {
    pub(crate) fn because(self) -> String {
        self.0
    }
}

/// A piece of evidence, read or not: a [`Reading`], or what the case returns (`case.protocol(…)`,
/// `need(…)`). A bare number is not accepted, as it does not say whether it was read.
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

/// The answer "nothing wrong". `rests_on` must name all evidence that could have led to a finding;
/// where a piece is missing the answer is "skipped" with that reason.
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
    /// The answer about `subject`.
    pub(crate) fn of(self, subject: impl Into<String>) -> Judgement {
        Judgement::SkippedRule { subject: subject.into(), why: self.0 }
    }
}

/// A change to propose, or the unknown value that prevents it: both values must be known.
pub(crate) type Proposal = Result<Change, Missing>;

/// An answer from a result: missing evidence is "skipped".
pub(crate) fn settle(subject: &str, judged: Result<Judgement, Missing>) -> Judgement {
    judged.unwrap_or_else(|missing| missing.of(subject))
}

/// How much a remedy should bring, to order findings of one severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gain {
    /// Tidiness; no measurable gain.
    Tidies,
    Improves,
    /// Removes what limits the host now.
    Unblocks,
}

/// A finding under construction: the rule fills in the evidence and changes, the engine adds rule,
/// causes and rank.
pub(crate) struct Draft {
    pub(crate) finding: Finding,
    pub(crate) gain: Gain,
    pub(crate) scope: Scope,
    pub(crate) explained_by: &'static [&'static str],
}

/// The objects of a finding, which decide whether one finding explains another.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) cpus: CpuSet,
    pub(crate) nics: Vec<String>,
    pub(crate) sysctls: Vec<String>,
    /// Explains no other finding.
    pub(crate) alone: bool,
}

impl Scope {
    /// Whether two findings have an object in common; one without objects is about the whole host.
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

    /// The lower severity and confidence of both; the lowest where there is no other finding.
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
            if !self.finding.explanation.is_empty() {
                self.finding.explanation.push(' ');
            }
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

    /// Adds a change, or the reason why there is none.
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
