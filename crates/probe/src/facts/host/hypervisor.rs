//! The hypervisor of this guest.
//!
//! No single source has it. The firmware's tables name the most specific product, the CPU's own
//! leaf names the technology, and the cpuinfo flag only shows that there is one.

use model::{Reading, facts::NoAccess};
use parse::cpuinfo::CpuInfo;

use crate::{ReadError, Root};

/// What the sources said; `None` where one is silent.
#[derive(Debug, Default, Clone)]
struct Evidence {
    /// Text of `/sys/hypervisor/type`; Xen has it.
    sys_hypervisor: Option<String>,
    /// Vendor and product strings of the firmware, product first.
    dmi: Vec<String>,
    /// Maker of the ACPI tables, where there are any.
    acpi: Option<Reading<String>>,
    /// Signature in CPUID leaf 0x40000000.
    cpuid: Option<String>,
    /// x86: the cpuinfo flag.
    flag: Option<bool>,
    /// `compatible` of the device tree's hypervisor node.
    device_tree: Option<String>,
    /// `compatible` of the device tree's root.
    board: Option<String>,
    /// The device tree has an LPAR's name.
    partition: bool,
    /// ppc64: `platform` of cpuinfo, `PowerNV` or `pSeries`.
    platform: Option<String>,
    /// ppc64: the machine's name.
    machine: Option<String>,
    /// s390: the program above.
    control_program: Option<String>,
    /// The architecture is s390 or s390x.
    mainframe: bool,
}

/// The hypervisor by name, `none` on bare metal, `unknown` where there is one that does not
/// say its name.
pub(super) fn read(
    root: &Root,
    cpuinfo: Option<&CpuInfo>,
    no_access: &mut Vec<NoAccess>,
) -> Reading<String> {
    let evidence = gather(root, cpuinfo);
    let name = decide(&evidence);
    if let (Some("kvm" | "qemu" | "unknown"), Some(Reading::Denied(why))) = (name, &evidence.acpi) {
        no_access.push(NoAccess {
            what: "which product the hypervisor is".into(),
            why: why.clone(),
            remedy: "run as root: only root may read the firmware's tables".into(),
        });
    }
    match name {
        Some(name) => Reading::Known(name.to_owned()),
        None => Reading::absent(
            "/sys/hypervisor, /sys/class/dmi, /proc/device-tree: not there, and not known from \
             /proc/cpuinfo",
        ),
    }
}

fn gather(root: &Root, cpuinfo: Option<&CpuInfo>) -> Evidence {
    let word = |path: &str| root.word(path).into_known();
    let flag = cpuinfo.and_then(|i| i.hypervisor_flag);
    let sysinfo = root.read("/proc/sysinfo").ok();
    Evidence {
        sys_hypervisor: word("/sys/hypervisor/type"),
        dmi: ["product_name", "sys_vendor", "board_vendor", "bios_vendor", "product_version"]
            .iter()
            .filter_map(|f| word(&format!("/sys/class/dmi/id/{f}")))
            .collect(),
        // Only a guest's tables are worth reading, and only root may.
        acpi: (flag != Some(false)).then(|| acpi_oem(root)),
        cpuid: (flag == Some(true)).then(|| root.ask("cpuid/40000000", ask_cpuid).ok()).flatten(),
        flag,
        device_tree: word("/proc/device-tree/hypervisor/compatible"),
        board: word("/proc/device-tree/compatible"),
        partition: root.exists("/proc/device-tree/ibm,partition-name"),
        platform: cpuinfo.and_then(|i| i.platform.clone()),
        machine: cpuinfo.and_then(|i| i.machine.clone()),
        control_program: sysinfo.as_deref().and_then(parse::sysinfo_s390::control_program),
        mainframe: sysinfo.is_some(),
    }
}

fn acpi_oem(root: &Root) -> Reading<String> {
    root.parsed("/sys/firmware/acpi/tables/FACP", parse::acpi::header).map(|h| h.oem_id)
}

impl Evidence {
    fn acpi_oem(&self) -> Option<&str> {
        self.acpi.as_ref()?.known().map(String::as_str)
    }
}

fn decide(e: &Evidence) -> Option<&'static str> {
    if e.mainframe {
        return Some(match e.control_program.as_deref() {
            Some(p) if p.contains("KVM") => "kvm",
            Some(p) if p.contains("z/VM") => "zvm",
            Some(_) => "unknown",
            // Every Linux on IBM Z runs in a logical partition.
            None => "pr/sm",
        });
    }
    if e.sys_hypervisor.as_deref() == Some("xen") {
        return Some("xen");
    }
    // Every x86 hypervisor sets the flag (Xen's own guests were caught above); vendors of both
    // clouds and hardware put the same strings in the firmware of their bare machines.
    let metal = e.dmi.first().is_some_and(|p| p.ends_with(".metal"));
    if e.flag == Some(false) || metal {
        return Some("none");
    }
    by_firmware(e).or_else(|| by_cpuid(e.cpuid.as_deref()?)).or_else(|| by_device_tree(e)).or(
        match e.flag {
            Some(true) => Some("unknown"),
            _ if !e.dmi.is_empty() || e.board.is_some() => Some("none"),
            _ => None,
        },
    )
}

fn by_firmware(e: &Evidence) -> Option<&'static str> {
    match e.acpi_oem() {
        Some("FIRECK") => return Some("firecracker"),
        Some("CLOUDH") => return Some("cloud-hypervisor"),
        Some("AMAZON") => return Some("amazon"),
        _ => {}
    }
    // In order: a cloud's name before the technology it is built on.
    const BY_STRING: [(&str, &str); 20] = [
        ("Amazon EC2", "amazon"),
        ("Google Compute Engine", "google"),
        ("Alibaba Cloud ECS", "alibaba"),
        ("DigitalOcean", "kvm"),
        ("OpenStack", "kvm"),
        ("KubeVirt", "kvm"),
        ("RHEV Hypervisor", "kvm"),
        ("oVirt", "kvm"),
        ("VMware", "vmware"),
        ("VMW", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("innotek GmbH", "virtualbox"),
        ("HVM domU", "xen"),
        ("Virtual Machine", "microsoft"),
        ("Parallels", "parallels"),
        ("BHYVE", "bhyve"),
        ("Apple Virtualization", "apple"),
        ("Cloud Hypervisor", "cloud-hypervisor"),
        ("Bochs", "bochs"),
        ("KVM", "kvm"),
    ];
    let dmi = |prefix: &str| e.dmi.iter().any(|s| s.starts_with(prefix));
    if let Some((_, name)) = BY_STRING.iter().find(|(prefix, _)| dmi(prefix)) {
        return Some(name);
    }
    // QEMU runs with KVM or by emulation: the CPU knows which.
    (dmi("QEMU") || e.acpi_oem() == Some("BOCHS"))
        .then(|| e.cpuid.as_deref().and_then(by_cpuid).unwrap_or("qemu"))
}

fn by_cpuid(signature: &str) -> Option<&'static str> {
    Some(match signature {
        "KVMKVMKVM" | "Linux KVM Hv" => "kvm",
        "VMwareVMware" => "vmware",
        "Microsoft Hv" => "microsoft",
        "XenVMMXenVMM" => "xen",
        "TCGTCGTCGTCG" => "qemu",
        "VBoxVBoxVBox" => "virtualbox",
        "bhyve bhyve" => "bhyve",
        "ACRNACRNACRN" => "acrn",
        "prl hyperv" | "lrpepyh  vr" => "parallels",
        "SRESRESRESRE" => "lmhs",
        _ => return None,
    })
}

fn by_device_tree(e: &Evidence) -> Option<&'static str> {
    match e.device_tree.as_deref() {
        Some(c) if c.contains("linux,kvm") => return Some("kvm"),
        Some(c) if c.contains("xen") => return Some("xen"),
        Some(c) if c.contains("vmware") => return Some("vmware"),
        Some(_) => return Some("unknown"),
        None => {}
    }
    if e.machine.as_deref().is_some_and(|m| m.contains("qemu")) {
        return Some("qemu");
    }
    if e.partition {
        return Some("powervm");
    }
    match (e.platform.as_deref(), e.board.as_deref()) {
        (Some("PowerNV"), _) => Some("none"),
        (Some("pSeries"), _) => Some("unknown"),
        // The board that only virtual machines have (QEMU, Firecracker, crosvm on arm).
        (_, Some(b)) if b.contains("linux,dummy-virt") => Some("unknown"),
        _ => None,
    }
}

/// The signature in CPUID leaf 0x40000000, twelve characters.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "some compilers hold the call to be safe, others do not")]
fn ask_cpuid() -> Result<String, ReadError> {
    // SAFETY: every x86-64 CPU has the instruction; leaf 0x40000000 is reserved for hypervisors.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0x4000_0000) };
    let bytes: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|r| r.to_le_bytes()).collect();
    Ok(parse::text::word(&bytes))
}

#[cfg(not(target_arch = "x86_64"))]
fn ask_cpuid() -> Result<String, ReadError> {
    Err(ReadError::Absent { path: "cpuid".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dmi(strings: &[&str]) -> Evidence {
        Evidence {
            dmi: strings.iter().map(|s| (*s).to_owned()).collect(),
            flag: Some(true),
            ..Evidence::default()
        }
    }

    #[test]
    fn guests_by_firmware_then_by_cpu() {
        assert_eq!(decide(&dmi(&["m5.large", "Amazon EC2"])), Some("amazon"));
        assert_eq!(decide(&dmi(&["VMware Virtual Platform", "VMware, Inc."])), Some("vmware"));
        assert_eq!(decide(&dmi(&["Virtual Machine", "Microsoft Corporation"])), Some("microsoft"));
        let mut qemu = dmi(&["Standard PC (Q35 + ICH9, 2009)", "QEMU"]);
        assert_eq!(decide(&qemu), Some("qemu"));
        qemu.cpuid = Some("KVMKVMKVM".into());
        assert_eq!(decide(&qemu), Some("kvm"));
        let firecracker = Evidence {
            acpi: Some(Reading::Known("FIRECK".into())),
            cpuid: Some("KVMKVMKVM".into()),
            flag: Some(true),
            ..Evidence::default()
        };
        assert_eq!(decide(&firecracker), Some("firecracker"));
        let without_root = Evidence { acpi: Some(Reading::denied("root")), ..firecracker };
        assert_eq!(decide(&without_root), Some("kvm"));
        assert_eq!(decide(&dmi(&[])), Some("unknown"), "the flag alone");
    }

    #[test]
    fn bare_machines_of_vendors_who_also_sell_guests() {
        let metal = |strings| Evidence { flag: Some(false), ..dmi(strings) };
        assert_eq!(decide(&metal(&["Sun Fire X4170", "Oracle Corporation"])), Some("none"));
        assert_eq!(decide(&metal(&["c5n.metal", "Amazon EC2"])), Some("none"));
        let graviton = Evidence { flag: None, ..dmi(&["c6g.metal", "Amazon EC2"]) };
        assert_eq!(decide(&graviton), Some("none"));
        let arm = Evidence { flag: None, ..dmi(&["TaiShan 200", "Huawei"]) };
        assert_eq!(decide(&arm), Some("none"));
    }

    #[test]
    fn power_mainframe_and_boards() {
        let platform = |p: &str| Evidence { platform: Some(p.into()), ..Evidence::default() };
        assert_eq!(decide(&platform("PowerNV")), Some("none"));
        assert_eq!(decide(&Evidence { partition: true, ..platform("pSeries") }), Some("powervm"));
        let zvm = Evidence {
            mainframe: true,
            control_program: Some("z/VM 6.1.0".into()),
            ..Evidence::default()
        };
        assert_eq!(decide(&zvm), Some("zvm"));
        let board = |b: &str| Evidence { board: Some(b.into()), ..Evidence::default() };
        assert_eq!(decide(&board("raspberrypi,4-model-b")), Some("none"));
        assert_eq!(decide(&board("linux,dummy-virt")), Some("unknown"));
        assert_eq!(decide(&Evidence::default()), None, "nothing says nothing");
    }
}
