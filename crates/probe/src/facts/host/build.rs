//! The kernel's build options.

use std::io::Read;

use model::{Reading, facts::NoAccess, host::KernelBuild};
use parse::kconfig::KernelConfig;

use crate::{ReadError, Root, error::reading};

/// The largest configuration that is unpacked; Debian's is 300 kB.
const MAX_CONFIG_BYTES: u64 = 8 << 20;

/// Reads the build options of the running kernel, `release`.
pub(super) fn read(
    root: &Root,
    release: Option<&str>,
    no_access: &mut Vec<NoAccess>,
) -> KernelBuild {
    let config = config(root, release);
    if let Some(why) = config.why_not() {
        no_access.push(NoAccess {
            what: "kernel build options".into(),
            why: why.to_owned(),
            remedy: "modprobe configs, or install the kernel's own /boot/config-RELEASE".into(),
        });
    }
    KernelBuild {
        hz: config.as_ref().and_then(|c| match c.get("HZ").and_then(|v| v.parse().ok()) {
            Some(hz) => Reading::Known(hz),
            None => Reading::absent("kernel configuration: no CONFIG_HZ"),
        }),
        cpu_accounting: config.as_ref().and_then(cpu_accounting),
        irq_time_accounting: config.as_ref().map(|c| c.yes("IRQ_TIME_ACCOUNTING")),
        btf: btf(root, &config),
        preempt: preempt(root, &config),
    }
}

/// The configuration, from the first place that has it.
pub(crate) fn config(root: &Root, release: Option<&str>) -> Reading<KernelConfig> {
    const LIVE: &str = "/proc/config.gz";
    let live = reading(root.read(LIVE).and_then(|b| gunzip(LIVE, &b)).and_then(|text| {
        parse::kconfig::parse(&text)
            .map_err(|error| ReadError::Unparsable { path: LIVE.to_owned(), error })
    }));
    let Some(release) = release.filter(|r| !live.is_known() && !r.contains('/')) else {
        return live;
    };
    let file = |path: String| root.parsed(&path, parse::kconfig::parse);
    file(format!("/boot/config-{release}"))
        .or_else(|| file(format!("/lib/modules/{release}/config")))
        .or_else(|| file(format!("/usr/lib/modules/{release}/config")))
        .or_else(|| {
            Reading::Absent(format!(
                "{LIVE}, /boot/config-{release}, /lib/modules/{release}/config: not readable"
            ))
        })
}

fn gunzip(path: &str, packed: &[u8]) -> Result<Vec<u8>, ReadError> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed).take(MAX_CONFIG_BYTES).read_to_end(&mut text).map_err(
        |_| ReadError::Unparsable {
            path: path.to_owned(),
            error: parse::ParseError::new(1, "a whole gzip file", b"a damaged one"),
        },
    )?;
    Ok(text)
}

fn cpu_accounting(config: &KernelConfig) -> Reading<String> {
    let by = [
        ("VIRT_CPU_ACCOUNTING_NATIVE", "virt_native"),
        ("VIRT_CPU_ACCOUNTING_GEN", "virt_gen"),
        ("TICK_CPU_ACCOUNTING", "tick"),
    ];
    by.iter().find(|(option, _)| config.yes(option)).map_or_else(
        || Reading::absent("kernel configuration: no accounting mode is set"),
        |(_, name)| Reading::Known((*name).to_owned()),
    )
}

/// A copied tree rarely holds so large a file: without it the configuration says whether the kernel has one.
fn btf(root: &Root, config: &Reading<KernelConfig>) -> Reading<bool> {
    const FILE: &str = "/sys/kernel/btf/vmlinux";
    if root.exists(FILE) {
        return Reading::Known(true);
    }
    if root.is_whole() && root.exists("/sys/kernel") {
        return Reading::Known(false);
    }
    let configured = config.as_ref().map(|c| c.yes("DEBUG_INFO_BTF"));
    configured.or_else(|| Reading::Absent(format!("{FILE}: not there")))
}

/// The built-in model. Where it is chosen at boot (`CONFIG_PREEMPT_DYNAMIC`, since 5.12) that is
/// `dynamic`. The kernel's version line names some models for who has no configuration.
fn preempt(root: &Root, config: &Reading<KernelConfig>) -> Reading<String> {
    let by_option = [
        ("PREEMPT_RT", "rt"),
        ("PREEMPT_DYNAMIC", "dynamic"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ];
    match config {
        Reading::Known(c) => by_option.iter().find(|(option, _)| c.yes(option)).map_or_else(
            || Reading::absent("kernel configuration: no preemption model is set"),
            |(_, name)| Reading::Known((*name).to_owned()),
        ),
        missing => {
            let version = root.word("/proc/sys/kernel/version").into_known().unwrap_or_default();
            let by_word = [
                ("PREEMPT_RT", "rt"),
                ("PREEMPT_DYNAMIC", "dynamic"),
                ("PREEMPT_LAZY", "lazy"),
                ("PREEMPT", "full"),
            ];
            let word = |w: &str| version.split_whitespace().any(|v| v == w);
            by_word.iter().find(|(w, _)| word(w)).map_or_else(
                || missing.as_ref().and_then(|_| Reading::absent("not reached")),
                |(_, name)| Reading::Known((*name).to_owned()),
            )
        }
    }
}
