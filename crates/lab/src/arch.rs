//! Architectures of a guest: QEMU's program and board, Debian's names, and the source of the
//! guest's programs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::LabError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// QEMU's `q35`. The guest uses this machine's root, so this machine must be x86-64 too.
    X86_64,
    /// QEMU's `virt` with a GICv3 and its ITS. The guest's root is its initramfs: busybox and a
    /// `netwright` built for aarch64.
    Aarch64,
}

impl Arch {
    /// This machine's architecture; x86-64 if guests cannot have this machine's.
    pub const fn here() -> Self {
        if cfg!(target_arch = "aarch64") { Self::Aarch64 } else { Self::X86_64 }
    }

    /// The kernel's name of the architecture, as `uname -m` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub const fn qemu(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// Debian's name of the architecture.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Debian's metapackage of the newest kernel.
    pub const fn kernel_package(self) -> &'static str {
        match self {
            Self::X86_64 => "linux-image-amd64",
            Self::Aarch64 => "linux-image-arm64",
        }
    }

    /// Whether the guest runs this machine's programs from this machine's root.
    pub const fn shares_root(self) -> bool {
        matches!(self, Self::X86_64)
    }

    /// QEMU's board and CPU. Pointer authentication uses QEMU's own algorithm, which is cheaper to
    /// emulate than the architecture's.
    pub(crate) const fn board(self, threads: u32) -> &'static str {
        match self {
            // Emulated AMD CPUs, the default, cannot describe SMT threads (no TOPOEXT).
            Self::X86_64 if threads > 1 => "-M q35 -cpu max,vendor=GenuineIntel",
            Self::X86_64 => "-M q35 -cpu max",
            Self::Aarch64 => "-M virt,gic-version=3 -cpu max,pauth-impdef=on",
        }
    }

    /// The architecture's part of the kernel cmdline. An aarch64 kernel reads its timer's frequency
    /// from the timer, so it needs no calibration or check.
    pub(crate) const fn kernel_cmdline(self) -> &'static str {
        match self {
            Self::X86_64 => {
                "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check lpj=4000000"
            }
            Self::Aarch64 => "console=ttyAMA0 quiet panic=-1 mitigations=off",
        }
    }
}

/// Path of the guest's netwright built by `make aarch64`, derived from the path of this program:
/// next to it in the build directory, the release build before the debug build. The file may not
/// exist.
pub fn cross_built(own: &Path) -> PathBuf {
    // target/release/netwright; test programs are one level deeper.
    let builds = own.ancestors().find(|a| a.join(TARGET).is_dir());
    let builds = builds.or_else(|| own.parent()?.parent()).unwrap_or(Path::new("target"));
    let file = |profile: &str| builds.join(TARGET).join(profile).join("netwright");
    let (release, debug) = (file("release"), file("debug"));
    if !release.exists() && debug.exists() { debug } else { release }
}

/// Rust's target name of the guest.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Checks that a file is a program that an aarch64 guest can run without libraries.
///
/// # Errors
/// The file is missing or another kind; the text says what to do.
pub fn check_guest_program(path: &Path) -> Result<(), LabError> {
    let refuse = |what: &str| {
        Err(LabError::failed(
            "choosing the guest's netwright",
            format!("{} {what}; `make aarch64` builds one, --binary names another", path.display()),
        ))
    };
    match fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => refuse("is missing"),
        Err(e) => refuse(&format!("cannot be read ({e})")),
        Ok(bytes) => match wrong_with(&bytes) {
            Some(what) => refuse(what),
            None => Ok(()),
        },
    }
}

/// Why a file is not a static aarch64 program. **Source**: the ELF-64 object file format, file
/// header and program headers.
fn wrong_with(elf: &[u8]) -> Option<&'static str> {
    const AARCH64: u64 = 183;
    const INTERPRETER: u64 = 3;
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = elf.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    };
    // 64 bits, little-endian.
    if !elf.starts_with(b"\x7fELF\x02\x01") || number(18, 2) != Some(AARCH64) {
        return Some("is no aarch64 program");
    }
    let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let interpreted = (0..count).any(|n| {
        let at = first.checked_add(n * size).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| number(at, 4)) == Some(INTERPRETER)
    });
    interpreted.then_some("needs libraries, of which the guest has none")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with one program header of the given type.
    fn elf(machine: u8, segment: u8) -> Vec<u8> {
        let mut e = vec![0; 64 + 56];
        e[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (e[18], e[32], e[54], e[56], e[64]) = (machine, 64, 56, 1, segment);
        e
    }

    #[test]
    fn only_a_static_aarch64_program_will_do() {
        assert_eq!(wrong_with(&elf(183, 1)), None);
        assert_eq!(wrong_with(&elf(62, 1)), Some("is no aarch64 program"));
        assert_eq!(wrong_with(b""), Some("is no aarch64 program"));
        assert_eq!(wrong_with(b"#!/bin/sh\n"), Some("is no aarch64 program"));
        assert!(wrong_with(&elf(183, 3)).is_some_and(|w| w.contains("libraries")));
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(wrong_with(&own).is_some(), "a test on this machine is dynamic");
    }

    #[test]
    fn the_cross_built_program_is_sought_beside_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let (own, debug) = (
            folder.path().join("target/release/netwright"),
            folder.path().join("target/aarch64-unknown-linux-gnu/debug/netwright"),
        );
        let release = folder.path().join("target/aarch64-unknown-linux-gnu/release/netwright");
        assert_eq!(cross_built(&own), release);
        for (made, expected) in [(&debug, &debug), (&release, &release)] {
            fs::create_dir_all(made.parent().unwrap()).unwrap();
            fs::write(made, b"").unwrap();
            assert_eq!(&cross_built(&own), expected);
        }
    }

    #[test]
    fn a_missing_program_is_named_with_what_builds_it() {
        let e = check_guest_program(Path::new("/nowhere/netwright")).unwrap_err().to_string();
        assert!(e.contains("/nowhere/netwright is missing") && e.contains("make aarch64"), "{e}");
        assert_eq!(e.lines().count(), 1);
    }
}
