//! Why the kernel refuses a program, by what the operator can do about it.

use std::{error::Error, io};

use aya::programs::ProgramError;
use model::Reading;

/// A program, or a whole object, that the kernel did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A right is missing: a capability, or lockdown or a security module forbids it.
    NotPermitted(String),
    /// The kernel's verifier read the program and rejected it: a defect of ours on this kernel,
    /// which no right mends.
    Rejected {
        program: String,
        /// The error of `bpf(2)`.
        errno: Option<i32>,
        /// The last lines of the verifier's log that say why, joined by `; `.
        log: String,
    },
    /// This kernel lacks the tracepoint, or the feature.
    Missing(String),
}

/// The most lines of the verifier's log that a reader gets.
const TELLING: usize = 3;
/// The most characters of them: a person reads them in one line.
const LONGEST: usize = 300;

impl Refusal {
    /// The refusal of an object without its maps.
    pub fn of_object(e: &(dyn Error + 'static)) -> Self {
        sorted(&chain(e), errno_of(e))
    }

    pub fn of_program(name: &str, e: &ProgramError) -> Self {
        match e {
            // The type of a tracepoint that there is not.
            ProgramError::Btf(_) => {
                Self::Missing(format!("{name}: this kernel has no such tracepoint"))
            }
            ProgramError::LoadError { io_error, verifier_log } => {
                Self::of_load(name, io_error, &verifier_log.to_string())
            }
            _ => sorted(&format!("{name}: {}", chain(e)), errno_of(e)),
        }
    }

    /// Of loading one program, with what the verifier wrote meanwhile.
    fn of_load(name: &str, e: &io::Error, log: &str) -> Self {
        let (errno, log) = (e.raw_os_error(), telling(log));
        // EPERM is a missing right even where the verifier gives it, for a program that it takes
        // from those who have the right.
        match log.is_empty() || errno == Some(libc::EPERM) {
            true => sorted(&format!("{name}: loading it: {e}"), errno),
            false => Self::Rejected { program: name.into(), errno, log },
        }
    }
}

impl From<Refusal> for Reading<()> {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotPermitted(text) => Self::denied(format!(
                "{text}; it takes root, or the capabilities CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), and a kernel whose lockdown allows it"
            )),
            Refusal::Rejected { program, errno, log } => {
                let errno = errno.map_or_else(String::new, |n| {
                    format!(" ({})", io::Error::from_raw_os_error(n))
                });
                Self::absent(format!(
                    "{program}: this kernel's verifier rejected the program{errno}: {log}; report this with the kernel's version"
                ))
            }
            Refusal::Missing(text) => Self::absent(text),
        }
    }
}

/// By the error number alone.
fn sorted(text: &str, errno: Option<i32>) -> Refusal {
    match errno {
        Some(libc::EPERM | libc::EACCES) => Refusal::NotPermitted(text.into()),
        Some(libc::ENOENT) => {
            Refusal::Missing(format!("{text}: this kernel has no such tracepoint"))
        }
        _ => Refusal::Missing(text.into()),
    }
}

/// The last lines of a verifier's log that say why: without its statistics at the end, and without
/// the register states and source lines that stand before the reason.
fn telling(log: &str) -> String {
    const STATISTICS: [&str; 3] = ["processed ", "verification time", "stack depth"];
    let says = |line: &&str| !line.is_empty() && !STATISTICS.iter().any(|s| line.starts_with(s));
    let mut last: Vec<&str> = log.lines().map(str::trim).filter(says).rev().take(TELLING).collect();
    last.reverse();
    last.join("; ").chars().take(LONGEST).collect()
}

/// An error with what caused it, in a line. The verifier's log is left out.
fn chain(e: &(dyn Error + 'static)) -> String {
    let mut text = e.to_string();
    let mut source = e.source();
    while let Some(e) = source {
        let more = e.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = e.source();
    }
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}

/// The errno at the bottom of an error's causes.
fn errno_of(e: &(dyn Error + 'static)) -> Option<i32> {
    let mut at = Some(e);
    let mut errno = None;
    while let Some(e) = at {
        if let Some(io) = e.downcast_ref::<io::Error>() {
            errno = io.raw_os_error().or(errno);
        }
        at = e.source();
    }
    errno
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(errno: i32, log: &str) -> Refusal {
        Refusal::of_load("p", &io::Error::from_raw_os_error(errno), log)
    }

    const LOG: &str = "0: R1=ctx(off=0,imm=0) R10=fp0\n; int p(u64 *ctx)\n0: (bf) r6 = r1\n\
        7: (79) r1 = *(u64 *)(r6 +0)\nR6 invalid mem access 'scalar'\n\
        verification time 65 usec\nstack depth 0\n\
        processed 8 insns (limit 1000000) max_states_per_insn 0\n";

    #[test]
    fn a_program_that_the_verifier_rejects_is_no_missing_right() {
        for errno in [libc::EACCES, libc::EINVAL, libc::E2BIG] {
            let refusal = of(errno, LOG);
            let Refusal::Rejected { program, errno: said, log } = &refusal else {
                panic!("{refusal:?}")
            };
            assert_eq!((program.as_str(), *said), ("p", Some(errno)));
            assert!(log.ends_with("; R6 invalid mem access 'scalar'"), "{log}");
            let reported = Reading::<()>::from(refusal);
            let Reading::Absent(why) = reported else { panic!("{reported:?}") };
            assert!(why.contains("verifier rejected") && !why.contains("CAP_BPF"), "{why}");
            assert!(why.contains("R6 invalid mem access 'scalar'"), "{why}");
        }
    }

    #[test]
    fn a_missing_right_is_one_with_and_without_a_log() {
        for (errno, log) in [(libc::EPERM, ""), (libc::EACCES, ""), (libc::EPERM, LOG)] {
            let refusal = of(errno, log);
            assert!(matches!(refusal, Refusal::NotPermitted(_)), "{refusal:?}");
            let reported = Reading::<()>::from(refusal);
            assert!(
                matches!(&reported, Reading::Denied(why) if why.contains("CAP_BPF")),
                "{reported:?}"
            );
        }
        assert!(matches!(of(libc::EINVAL, ""), Refusal::Missing(_)));
    }
}
