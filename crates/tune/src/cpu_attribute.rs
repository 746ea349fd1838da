//! Knobs that are one file of a CPU in sysfs.

use model::{CpuId, tune::Impact};

use crate::{
    Host, TuneError,
    knob::{Case, Knob, Refusal, cannot, cpu},
    phase::Phase,
    privilege::Need,
};

/// One such file, and how its values are judged. `cpu.SUFFIX` stands for every CPU
/// ([`crate::change_request::split`]).
pub struct CpuAttribute {
    pub name: &'static str,
    /// For help: `cpu.N.governor=NAME`.
    pub spelling: &'static str,
    /// The last part of its full names.
    pub suffix: &'static str,
    /// The file below `/sys/devices/system/cpu/cpuN/`.
    pub file: &'static str,
    /// Below the same: the CPUs that share one value (cpulist); none where each has its own.
    pub shared: Option<&'static str>,
    /// Another file that a write may change, by the suffix of its knob.
    pub disturbs: Option<&'static str>,
    /// See [`Knob::sets`].
    pub sets: &'static str,
    /// Unit of its values.
    pub unit: &'static str,
    pub judge: fn(&Case<'_>, CpuId, &str) -> Result<String, Refusal>,
    /// An exact value for people, and as it is spelled.
    pub show: fn(&str) -> &str,
    /// A spelled or exact value as the kernel takes it.
    pub kernel: fn(&str) -> &str,
}

impl CpuAttribute {
    fn cpu(&self, knob: &str) -> Option<CpuId> {
        let id = knob.strip_prefix("cpu.")?.strip_suffix(self.suffix)?.strip_suffix('.')?;
        let id = CpuId(id.parse().ok()?);
        (knob == format!("cpu.{id}.{}", self.suffix)).then_some(id)
    }

    fn path(&self, knob: &str, file: &str) -> String {
        let id = self.cpu(knob).unwrap_or(CpuId(0));
        format!("/sys/devices/system/cpu/cpu{id}/{file}")
    }
}

impl Knob for CpuAttribute {
    fn name(&self) -> &'static str {
        self.name
    }

    fn spelling(&self) -> &'static str {
        self.spelling
    }

    fn phase(&self, _: &str) -> Phase {
        Phase::Cpu
    }

    fn takes(&self, knob: &str) -> bool {
        self.cpu(knob).is_some()
    }

    fn read(&self, host: &Host, knob: &str) -> Result<String, TuneError> {
        host.text(&self.path(knob, self.file))
    }

    fn show(&self, exact: &str) -> String {
        (self.show)(exact.trim()).to_owned()
    }

    fn validate(
        &self,
        case: &Case<'_>,
        knob: &str,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let id = self.cpu(knob).unwrap_or(CpuId(0));
        case.online(&cpu(id.0))?;
        (self.judge)(case, id, wanted)
    }

    fn needs(&self, _: &Host, knob: &str) -> Vec<Need> {
        vec![Need::File(self.path(knob, self.file))]
    }

    fn write(&self, host: &Host, knob: &str, value: &str) -> Result<(), TuneError> {
        let path = self.path(knob, self.file);
        let value = (self.kernel)(value);
        match host.write(&path, value) {
            Err(TuneError::Kernel { errno: libc::EINVAL, .. }) => cannot_take(host, &path, value),
            other => other,
        }
    }

    fn impact(&self, _: &Case<'_>, _: &str, _: &str, _: &str) -> Impact {
        Impact::none()
    }

    fn unit(&self, _: &Case<'_>, _: &str) -> String {
        self.unit.into()
    }

    fn sets(&self, _: &str) -> &'static str {
        self.sets
    }

    fn coupled_settings(&self, host: &Host, knob: &str) -> Vec<String> {
        let mut all = Vec::new();
        let own = self.cpu(knob);
        if let Some(shared) = self.shared
            && let Ok(text) = host.text(&self.path(knob, shared))
        {
            let cpus = text.split_whitespace().filter_map(|w| w.parse::<model::CpuSet>().ok());
            let others =
                cpus.flat_map(|s| s.iter().collect::<Vec<_>>()).filter(|c| Some(*c) != own);
            all.extend(others.map(|c| format!("cpu.{c}.{}", self.suffix)));
        }
        if let (Some(other), Some(own)) = (self.disturbs, own) {
            all.push(format!("cpu.{own}.{other}"));
        }
        all
    }
}

/// What the kernel lists beside the file, where it has a list.
fn cannot_take(host: &Host, path: &str, value: &str) -> Result<(), TuneError> {
    let list = path
        .replace("scaling_governor", "scaling_available_governors")
        .replace("energy_performance_preference", "energy_performance_available_preferences");
    let has = (list != path).then(|| host.text(&list).ok()).flatten().unwrap_or_default();
    Err(TuneError::Environment(match has.trim() {
        "" => format!("{path}: the kernel refuses {value} (EINVAL)"),
        has => format!("{path}: the kernel refuses {value}; it offers {has}"),
    }))
}

/// Values that are spelled as the kernel has them.
pub fn as_is(value: &str) -> &str {
    value
}

/// A name, which the kernel judges by what it offers.
///
/// # Errors
/// When it is no single word.
pub fn word(wanted: &str) -> Result<String, Refusal> {
    let fine = !wanted.is_empty() && wanted.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fine { Ok(wanted.into()) } else { cannot(format!("{wanted:?} is no name")) }
}
