//! `boot.PARAMETER`: a parameter of the kernel cmdline that moves network work. It is read and judged,
//! and never written: the plan names the file to edit.

use model::{CpuId, CpuSet, knob::Target};
use parse::kernel_cmdline;

use crate::{
    Host, TuneError, boot_loader,
    knob::{Kind, Knob, PlanContext, Refusal, cannot, list_of, usage},
    phase::Phase,
};

/// Read from `/proc/cmdline`, where the last of several counts. **Source**:
/// `Documentation/admin-guide/kernel-parameters.txt`.
pub const KIND: Kind = Kind {
    name: "boot_parameter",
    spelling: "boot.isolcpus|nohz_full|rcu_nocbs|iommu|iommu.strict|iommu.passthrough=VALUE (advice)",
    parse: |target| match target {
        Target::Boot(name) => {
            let name = PARAMETERS.into_iter().find(|p| *p == name)?;
            Some(Box::new(BootParameter { name }))
        }
        _ => None,
    },
};

struct BootParameter {
    name: &'static str,
}

const PARAMETERS: [&str; 8] = [
    "amd_iommu",
    "intel_iommu",
    "iommu",
    "iommu.passthrough",
    "iommu.strict",
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
];
const CMDLINE: &str = "/proc/cmdline";
const NONE: &str = "none";

impl BootParameter {
    fn holds_cpus(&self) -> bool {
        matches!(self.name, "isolcpus" | "nohz_full" | "rcu_nocbs")
    }

    /// The CPUs of a value; `isolcpus` may have flags in front.
    fn cpus(&self, value: &str) -> Result<CpuSet, Refusal> {
        let is_flag =
            |w: &&str| self.name == "isolcpus" && matches!(*w, "nohz" | "domain" | "managed_irq");
        let words: Vec<&str> = value.split(',').skip_while(is_flag).collect();
        list_of(&words.join(","))
    }
}

impl Knob for BootParameter {
    fn target(&self) -> Target<'_> {
        Target::Boot(self.name)
    }

    fn phase(&self) -> Phase {
        Phase::Sysctl
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let line = host.text(CMDLINE)?;
        let params = kernel_cmdline::parse(line.as_bytes());
        // Of several the kernel takes the last.
        let last = params.into_iter().rev().find(|p| p.key == self.name);
        Ok(last.map_or_else(|| NONE.into(), |p| p.value.unwrap_or_else(|| "on".into())))
    }

    /// The refusal of every value that this boot does not have already.
    fn settable(&self, host: &Host) -> Result<(), TuneError> {
        Err(TuneError::Environment(format!(
            "the kernel cmdline is read at boot, and netwright never writes it: {}",
            boot_loader::advice(host, self.name)
        )))
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b",._-:".contains(&b);
        if wanted.is_empty() || !wanted.bytes().all(plain) {
            return usage(format!("{wanted:?} is no value of a kernel parameter"));
        }
        if !self.holds_cpus() || wanted == NONE {
            return Ok(wanted.to_owned());
        }
        let cpus = self.cpus(wanted)?;
        let here: CpuSet = context.facts.cpus.iter().map(|c| c.id).collect();
        if cpus.is_empty() {
            return usage("no CPU is named");
        }
        if !here.is_empty() && !cpus.is_subset(&here) {
            return cannot(format!("this host has no CPU {}", cpus.difference(&here)));
        }
        if !here.is_empty() && here.is_subset(&cpus) {
            return cannot("a CPU must be left for interrupts and the rest of the system");
        }
        match self.name == "nohz_full" && cpus.contains(CpuId(0)) {
            true => {
                cannot("CPU 0 boots the host and keeps the time: the kernel takes it out again")
            }
            false => Ok(wanted.to_owned()),
        }
    }

    /// Never called: [`Self::settable`] refuses.
    fn write(&self, host: &Host, _: &str) -> Result<(), TuneError> {
        self.settable(host)
    }

    fn undo_text(&self) -> String {
        "nothing is written".into()
    }

    fn sets(&self) -> &'static str {
        "kernel cmdline"
    }
}
