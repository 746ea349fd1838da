//! Knobs backed by one sysfs file of a CPU.

use model::{CpuId, knob::Target};

use crate::{
    Host, TuneError,
    knob::{Knob, PlanContext, Refusal, cannot, cpu},
    need::Need,
    phase::Phase,
};

/// One such file, and the functions that judge its values. `cpu.SUFFIX` means every CPU
/// ([`crate::change_request::split`]).
pub struct CpuAttribute {
    /// Last part of the knob's full name. [`Target::file`] maps it to the file.
    pub setting: &'static str,
    /// Below `/sys/devices/system/cpu/cpuN/`: the cpulist of CPUs that share one value; `None` if
    /// each CPU has its own.
    pub shared: Option<&'static str>,
    /// Suffix of another knob that a write may change.
    pub disturbs: Option<&'static str>,
    /// Topic for tuner conflicts, as in [`Knob::sets`]; empty if none fits.
    pub sets: &'static str,
    /// Unit of its values.
    pub unit: &'static str,
    pub judge: fn(&PlanContext<'_>, CpuId, &str) -> Result<String, Refusal>,
    /// Turns an exact value into the form shown to the user.
    pub show: fn(&str) -> &str,
    /// Turns a shown or exact value into the kernel's form.
    pub kernel: fn(&str) -> &str,
}

impl CpuAttribute {
    /// The knob for this target, if its setting is this attribute.
    pub fn at<'k>(&'static self, target: Target<'k>) -> Option<Box<dyn Knob + 'k>> {
        match target {
            Target::Cpu(id, setting) if setting == self.setting => {
                Some(Box::new(CpuAttributeKnob { attribute: self, cpu: CpuId(id) }))
            }
            _ => None,
        }
    }
}

/// The file of one CPU.
struct CpuAttributeKnob {
    attribute: &'static CpuAttribute,
    cpu: CpuId,
}

impl CpuAttributeKnob {
    fn file(&self) -> String {
        self.target().file().unwrap_or_default()
    }
}

impl Knob for CpuAttributeKnob {
    fn target(&self) -> Target<'_> {
        Target::Cpu(self.cpu.0, self.attribute.setting)
    }

    fn phase(&self) -> Phase {
        Phase::Cpu
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        host.text(&self.file())
    }

    fn show(&self, exact: &str) -> String {
        (self.attribute.show)(exact.trim()).to_owned()
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        context.online(&cpu(self.cpu.0))?;
        (self.attribute.judge)(context, self.cpu, wanted)
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::File(self.file())]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let path = self.file();
        let value = (self.attribute.kernel)(value);
        match host.write(&path, value) {
            Err(TuneError::Kernel { errno: libc::EINVAL, .. }) => cannot_take(host, &path, value),
            other => other,
        }
    }

    fn unit(&self) -> &'static str {
        self.attribute.unit
    }

    fn sets(&self) -> &'static str {
        self.attribute.sets
    }

    fn coupled_settings(&self, host: &Host) -> Vec<String> {
        let Self { attribute, cpu: own } = self;
        let mut all = Vec::new();
        if let Some(shared) = attribute.shared
            && let Ok(text) = host.text(&format!("/sys/devices/system/cpu/cpu{own}/{shared}"))
        {
            let cpus = text.split_whitespace().filter_map(|w| w.parse::<model::CpuSet>().ok());
            let others = cpus.flat_map(|s| s.iter().collect::<Vec<_>>()).filter(|c| c != own);
            all.extend(others.map(|c| format!("cpu.{c}.{}", attribute.setting)));
        }
        all.extend(attribute.disturbs.map(|other| format!("cpu.{own}.{other}")));
        all
    }
}

/// Checks a value against the kernel's list of accepted ones, where the kernel has such a list.
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

/// Identity, for values that are shown as the kernel spells them.
pub fn as_is(value: &str) -> &str {
    value
}

/// A single word; the kernel decides whether it offers it.
///
/// # Errors
/// The value is not a single word.
pub fn word(wanted: &str) -> Result<String, Refusal> {
    let fine = !wanted.is_empty() && wanted.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if fine { Ok(wanted.into()) } else { cannot(format!("{wanted:?} is no name")) }
}
