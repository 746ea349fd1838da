//! `/proc/cpuinfo`, which differs by architecture: the name of the CPUs, and whether they are
//! virtual.
//!
//! **Source**: `arch/*/kernel/{setup,cpu/proc,cpuinfo}.c` of the kernel.

use model::{CpuId, CpuSet, cpuset::MAX_ID};

/// The machine according to `/proc/cpuinfo`. One CPU represents all: the kernel prints the same
/// vendor and model for each, except on asymmetric arm boards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// The CPU's name for people: `AMD EPYC 7451 24-Core Processor`, `Neoverse-N1`,
    /// `POWER9, altivec supported`, `IBM/S390`. Several kinds are joined with `+`.
    pub model: Option<String>,
    /// `GenuineIntel`, `AuthenticAMD`, `HygonGenuine`, `IBM/S390`.
    pub vendor: Option<String>,
    /// The architecture that prints such a file, as `uname -m` names it.
    pub arch: Option<&'static str>,
    /// x86 only: whether the CPU says it is a guest's.
    pub hypervisor_flag: Option<bool>,
    /// ppc64 only: the line `platform`, `pSeries` or `PowerNV`.
    pub platform: Option<String>,
    /// ppc64 and others: the machine's own name.
    pub machine: Option<String>,
    /// The CPUs that run: the file has a block for each. Empty where it does not number them.
    pub online: CpuSet,
}

/// Parses the file; what it does not know it passes over.
pub fn parse(bytes: &[u8]) -> CpuInfo {
    let text = String::from_utf8_lossy(bytes);
    let mut info = CpuInfo::default();
    let mut parts = Parts::default();
    let mut arm_implementer = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        // `processor : 3`, on s390 `processor 3: version = FF, …`.
        let number =
            key.strip_prefix("processor").map(|rest| if rest.is_empty() { value } else { rest });
        if let Some(id) = number.and_then(|n| crate::text::id(n.trim())).filter(|id| *id <= MAX_ID)
        {
            info.online.insert(CpuId(id));
        }
        match key {
            "CPU implementer" => arm_implementer = hex(value),
            "CPU part" => {
                if let Some(name) = arm_name(arm_implementer, value) {
                    parts.add(name);
                }
            }
            // A kernel prints these once per CPU, a thousand times on a large machine.
            "flags" if info.hypervisor_flag.is_none() => {
                info.hypervisor_flag = Some(value.split(' ').any(|f| f == "hypervisor"));
                let long = value.split(' ').any(|f| f == "lm");
                info.arch = Some(if long { "x86_64" } else { "i686" });
            }
            "vendor_id" => set(&mut info.vendor, value),
            "model name" | "cpu" | "cpu model" | "Model Name" | "uarch" => {
                set(&mut info.model, value);
            }
            "platform" => set(&mut info.platform, value),
            "machine" => set(&mut info.machine, value),
            _ => {}
        }
    }
    if let Some(arch) = other_arch(&text, &info) {
        info.arch = Some(arch);
    }
    if info.arch == Some("aarch64") || info.model.is_none() {
        info.model = parts.joined().or(info.model);
    }
    if info.arch == Some("s390x") && info.model.is_none() {
        info.model = info.vendor.clone();
    }
    info
}

fn set(slot: &mut Option<String>, value: &str) {
    if slot.is_none() && !value.is_empty() {
        *slot = Some(value.to_owned());
    }
}

/// Architectures other than x86, by keys that only they print.
fn other_arch(text: &str, info: &CpuInfo) -> Option<&'static str> {
    let has =
        |key: &str| text.lines().any(|l| l.split_once(':').is_some_and(|(k, _)| k.trim() == key));
    if info.arch.is_some() {
        return None;
    }
    // "CPU architecture: 8" is arm64; 32-bit kernels on the same CPU print "7" or a name.
    let arm64 = |l: &str| {
        l.split_once(':').is_some_and(|(k, v)| {
            k.trim() == "CPU architecture" && matches!(v.trim(), "8" | "AArch64")
        })
    };
    if has("CPU implementer") {
        return Some(if text.lines().any(arm64) { "aarch64" } else { "armv7l" });
    }
    if info.vendor.as_deref() == Some("IBM/S390") {
        return Some("s390x");
    }
    if has("hart") {
        return Some("riscv64");
    }
    let server = matches!(info.platform.as_deref(), Some("PowerNV" | "pSeries"));
    let power =
        |m: &str| m.starts_with("POWER") || m.starts_with("PPC970") || m.starts_with("Cell");
    if server || info.model.as_deref().is_some_and(power) {
        // The endianness is not in this file; only uname has it.
        return Some("ppc64");
    }
    has("timebase").then_some("ppc")
}

/// Distinct names in the order of their first CPU.
#[derive(Default)]
struct Parts(Vec<String>);

impl Parts {
    fn add(&mut self, name: String) {
        // Bounded: a machine has a handful of kinds, a hostile file may have any number.
        if self.0.len() < 8 && !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    fn joined(self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.join(" + "))
    }
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// The name of an arm core by its `MIDR_EL1` implementer and part number: those found in
/// servers and common boards; any other by its numbers.
fn arm_name(implementer: Option<u32>, part: &str) -> Option<String> {
    let (implementer, part) = (implementer?, hex(part)?);
    let name = match (implementer, part) {
        (0x41, 0xd03) => "Cortex-A53",
        (0x41, 0xd04) => "Cortex-A35",
        (0x41, 0xd05) => "Cortex-A55",
        (0x41, 0xd07) => "Cortex-A57",
        (0x41, 0xd08) => "Cortex-A72",
        (0x41, 0xd09) => "Cortex-A73",
        (0x41, 0xd0a) => "Cortex-A75",
        (0x41, 0xd0b) => "Cortex-A76",
        (0x41, 0xd0c) => "Neoverse-N1",
        (0x41, 0xd0d) => "Cortex-A77",
        (0x41, 0xd40) => "Neoverse-V1",
        (0x41, 0xd41) => "Cortex-A78",
        (0x41, 0xd44) => "Cortex-X1",
        (0x41, 0xd46) => "Cortex-A510",
        (0x41, 0xd47) => "Cortex-A710",
        (0x41, 0xd48) => "Cortex-X2",
        (0x41, 0xd49) => "Neoverse-N2",
        (0x41, 0xd4a) => "Neoverse-E1",
        (0x41, 0xd4d) => "Cortex-A715",
        (0x41, 0xd4e) => "Cortex-X3",
        (0x41, 0xd4f) => "Neoverse-V2",
        (0x41, 0xd83) => "Neoverse-V3AE",
        (0x41, 0xd84) => "Neoverse-V3",
        (0x41, 0xd8e) => "Neoverse-N3",
        (0x42, 0x516) | (0x43, 0x0af) => "ThunderX2",
        (0x43, 0x0a1) => "ThunderX-88XX",
        (0x46, 0x001) => "A64FX",
        (0x48, 0xd01) => "Kunpeng-920",
        (0x48, 0xd02) => "TaiShan-v120",
        (0x51, 0xc00) => "Falkor",
        (0x6d, 0xd49) => "Azure-Cobalt-100",
        (0xc0, 0xac3) => "Ampere-1",
        (0xc0, 0xac4) => "Ampere-1a",
        (0xc0, 0xac5) => "Ampere-1b",
        (0x50, 0x000) => "X-Gene",
        _ => return Some(format!("arm implementer {implementer:#04x} part {part:#05x}")),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_has_model_vendor_and_hypervisor_flag() {
        let info = parse(
            b"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6142 CPU @ 2.60GHz\n\
              flags\t\t: fpu lm hypervisor lahf_lm\n\nprocessor\t: 1\nvendor_id\t: x\n",
        );
        assert_eq!(info.model.as_deref(), Some("Intel(R) Xeon(R) Gold 6142 CPU @ 2.60GHz"));
        assert_eq!(info.vendor.as_deref(), Some("GenuineIntel"));
        assert_eq!((info.arch, info.hypervisor_flag), (Some("x86_64"), Some(true)));
        let metal = parse(b"flags\t\t: fpu lm lahf_lm\n");
        assert_eq!(metal.hypervisor_flag, Some(false));
    }

    #[test]
    fn aarch64_by_part_number() {
        let one = "BogoMIPS\t: 200.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x48\nCPU architecture: 8\n\
                   CPU variant\t: 0x1\nCPU part\t: 0xd01\nCPU revision\t: 0\n\n";
        let info = parse(format!("processor\t: 0\n{one}processor\t: 1\n{one}").as_bytes());
        assert_eq!((info.model.as_deref(), info.arch), (Some("Kunpeng-920"), Some("aarch64")));
        assert_eq!(info.hypervisor_flag, None, "arm has no such flag: not known rather than no");
        let other = parse(b"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xfff\n");
        assert_eq!(other.model.as_deref(), Some("arm implementer 0x41 part 0xfff"));
    }

    #[test]
    fn power_and_mainframe() {
        let p = parse(
            b"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3000.000000MHz\n\n\
              timebase\t: 512000000\nplatform\t: PowerNV\nmodel\t\t: 8335-GTH\nmachine\t\t: PowerNV 8335-GTH\n",
        );
        assert_eq!(p.model.as_deref(), Some("POWER9, altivec supported"));
        assert_eq!((p.arch, p.platform.as_deref()), (Some("ppc64"), Some("PowerNV")));
        let s = parse(b"vendor_id       : IBM/S390\n# processors    : 4\nprocessor 0: version = FF,  identification = 1, machine = 2817\n");
        assert_eq!((s.arch, s.model.as_deref()), (Some("s390x"), Some("IBM/S390")));
    }

    #[test]
    fn power_of_32_bits() {
        let mac = parse(
            b"processor\t: 0\ncpu\t\t: 740/750\ntimebase\t: 16600000\nplatform\t: PowerMac\n",
        );
        assert_eq!((mac.arch, mac.model.as_deref()), (Some("ppc"), Some("740/750")));
    }

    #[test]
    fn an_empty_file_says_nothing() {
        assert_eq!(parse(b""), CpuInfo::default());
    }
}
