//! One compiled object: its maps, and its programs, each attached separately.

use std::{
    collections::BTreeMap,
    io,
    os::fd::AsRawFd,
    sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError},
};

use aya::{
    Btf, Ebpf, EbpfLoader, Pod,
    maps::{MapData, PerCpuArray},
    programs::{Program, raw_trace_point::RawTracePointLinkId, tp_btf::BtfTracePointLinkId},
};
use model::{
    CpuId, Reading,
    watch::{ProgramStatus, Ran},
};

use super::{
    refusal::Refusal,
    run_stats::{self, RunStats},
};

/// A program of an object; its name is the tracepoint's.
#[derive(Debug, Clone, Copy)]
pub struct ProgramSpec {
    /// The name of the function, and of the tracepoint.
    pub program: &'static str,
    /// Figures that rest on it, in words.
    pub gives: &'static str,
}

#[derive(Debug)]
struct AttachedProgram {
    wanted: ProgramSpec,
    /// The attachment; `None` while paused or not attachable.
    link: Option<Link>,
    /// Why it cannot be attached.
    refused: Option<Reading<()>>,
    /// What the kernel's statistics said, all short looks together.
    seen: RunStats,
    /// At the beginning of the look that is open.
    before: Option<RunStats>,
}

/// What holds a program to its tracepoint.
#[derive(Debug)]
enum Link {
    Raw(RawTracePointLinkId),
    Btf(BtfTracePointLinkId),
}

/// A loaded object; dropping it detaches all.
#[derive(Debug)]
pub struct Object {
    name: &'static str,
    ebpf: Ebpf,
    programs: Vec<AttachedProgram>,
    /// The kernel's possible CPUs in its order, which is that of the values of a map.
    possible: Vec<CpuId>,
}

impl Object {
    /// Loads the maps and attaches what can be attached. `possible` are the kernel's possible
    /// CPUs, ascending.
    ///
    /// # Errors
    /// The maps cannot be made: no permission (`CAP_BPF` and `CAP_PERFMON`, or root), lockdown,
    /// a kernel without BPF. The reason says which.
    pub fn load(
        name: &'static str,
        bytes: &[u8],
        wanted: &[ProgramSpec],
        possible: Vec<CpuId>,
    ) -> Result<Self, Reading<()>> {
        let ebpf = loader().load(bytes).map_err(|e| Refusal::of_object(&e))?;
        let mut object = Self { name, ebpf, programs: Vec::new(), possible };
        wanted.iter().for_each(|w| object.hold(w, kernel_types()));
        Ok(object)
    }

    /// Attaches one more program, that is wanted because another one is not to be had.
    pub fn add(&mut self, wanted: &ProgramSpec) {
        self.hold(wanted, kernel_types());
    }

    /// A program that is not attached, for this reason.
    pub fn leave_out(&mut self, wanted: &ProgramSpec, why: Reading<()>) {
        let (seen, refused) = (RunStats::default(), Some(why));
        self.programs.push(AttachedProgram {
            wanted: *wanted,
            link: None,
            refused,
            seen,
            before: None,
        });
    }

    fn hold(&mut self, wanted: &ProgramSpec, btf: Option<&Btf>) {
        let (link, refused) = match load_one(&mut self.ebpf, wanted.program, btf)
            .and_then(|()| attach(&mut self.ebpf, wanted.program))
        {
            Ok(link) => (Some(link), None),
            Err(why) => (None, Some(why)),
        };
        let seen = RunStats::default();
        self.programs.push(AttachedProgram { wanted: *wanted, link, refused, seen, before: None });
    }

    /// Detaches these until [`Self::resume`], the last first: it is those at the end that count,
    /// and each takes the kernel its time. What was counted stays.
    pub fn pause(&mut self, programs: &[&str]) {
        let these = self.programs.iter_mut().filter(|p| programs.contains(&p.wanted.program));
        for held in these.rev() {
            let program = self.ebpf.program_mut(held.wanted.program);
            // A program that cannot be detached keeps running; its counts are still correct.
            let _ = match (program, held.link.take()) {
                (Some(Program::RawTracePoint(p)), Some(Link::Raw(link))) => p.detach(link),
                (Some(Program::BtfTracePoint(p)), Some(Link::Btf(link))) => p.detach(link),
                _ => Ok(()),
            };
        }
    }

    /// Attaches the detached programs again; a program that is refused now has the reason from now
    /// on.
    pub fn resume(&mut self) {
        for held in &mut self.programs {
            if held.link.is_some() || held.refused.is_some() {
                continue;
            }
            match attach(&mut self.ebpf, held.wanted.program) {
                Ok(link) => held.link = Some(link),
                Err(why) => held.refused = Some(why),
            }
        }
    }

    /// Whether this program is attached.
    pub fn runs(&self, program: &str) -> bool {
        self.programs.iter().any(|p| p.wanted.program == program && p.refused.is_none())
    }

    /// The time of one run of this program in nanoseconds, including the kernel's measurement;
    /// `None` until it was measured.
    pub fn ns_per_run(&self, program: &str) -> Option<f64> {
        let held = self.programs.iter().find(|p| p.wanted.program == program)?;
        (held.seen.runs > 0).then(|| held.seen.time_ns as f64 / held.seen.runs as f64)
    }

    /// Why it is not.
    pub fn refused(&self, program: &str) -> Reading<()> {
        let held = self.programs.iter().find(|p| p.wanted.program == program);
        held.and_then(|p| p.refused.clone()).unwrap_or(Reading::Known(()))
    }

    /// That all of these are attached.
    ///
    /// # Errors
    /// Why the first that is not is not.
    pub fn needs(&self, programs: &[&str]) -> Result<(), Reading<()>> {
        match programs.iter().find(|p| !self.runs(p)) {
            Some(missing) => Err(self.refused(missing)),
            None => Ok(()),
        }
    }

    /// A map by its name in the program.
    ///
    /// # Errors
    /// There is none, or it is of another kind.
    pub fn map<'a, M: TryFrom<&'a aya::maps::Map>>(&'a self, name: &str) -> io::Result<M> {
        let map = self.ebpf.map(name).ok_or_else(|| io::Error::other(format!("no map {name}")))?;
        M::try_from(map).map_err(|_| io::Error::other(format!("map {name} is of another kind")))
    }

    /// The same, for writing.
    ///
    /// # Errors
    /// There is none, or it is of another kind.
    pub fn map_mut<'a, M: TryFrom<&'a mut aya::maps::Map>>(
        &'a mut self,
        name: &str,
    ) -> io::Result<M> {
        let map =
            self.ebpf.map_mut(name).ok_or_else(|| io::Error::other(format!("no map {name}")))?;
        M::try_from(map).map_err(|_| io::Error::other(format!("map {name} is of another kind")))
    }

    /// A map as it was loaded.
    pub fn any_map(&self, name: &str) -> Option<&aya::maps::Map> {
        self.ebpf.map(name)
    }

    /// The one element of a per-CPU array, by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn of_cpus<T: Pod>(&self, name: &str) -> io::Result<Vec<(CpuId, T)>> {
        let map: PerCpuArray<&MapData, T> = self.map(name)?;
        let values = map.get(&0, 0).map_err(io::Error::other)?;
        Ok(self.possible.iter().copied().zip(values.iter().copied()).collect())
    }

    pub fn possible(&self) -> &[CpuId] {
        &self.possible
    }

    /// Begins a look at what a run costs; the kernel's statistics must be on
    /// ([`run_stats::on`]) from before until after.
    pub fn begin_look(&mut self) {
        for held in self.programs.iter_mut().filter(|p| p.refused.is_none()) {
            held.before = run_stats_of(&self.ebpf, held.wanted.program);
        }
    }

    pub fn end_look(&mut self) {
        for held in self.programs.iter_mut().filter(|p| p.refused.is_none()) {
            let after = run_stats_of(&self.ebpf, held.wanted.program);
            if let (Some(before), Some(after)) = (held.before.take(), after) {
                held.seen.runs += after.runs.saturating_sub(before.runs);
                held.seen.time_ns += after.time_ns.saturating_sub(before.time_ns);
            }
        }
    }

    /// Every program's state for one interval; `runs` has the number of its runs, where its own
    /// counters have it.
    pub fn status(&self, runs: &BTreeMap<&str, u64>) -> Vec<ProgramStatus> {
        self.programs.iter().map(|held| self.one(held, runs)).collect()
    }

    fn one(&self, held: &AttachedProgram, runs: &BTreeMap<&str, u64>) -> ProgramStatus {
        let runs = match runs.get(held.wanted.program) {
            Some(n) => Reading::Known(*n),
            None => Reading::absent("this program does not count its runs"),
        };
        let ns_per_run = match (held.seen.runs, runs.known()) {
            (0, Some(0)) => Reading::absent("it has not run"),
            (0, _) => Reading::absent("it did not run while the kernel's statistics were on"),
            (n, _) => Reading::Known(held.seen.time_ns as f64 / n as f64),
        };
        let time_ns = match (runs.known(), ns_per_run.known()) {
            (Some(0), _) => Reading::Known(0),
            (Some(runs), Some(ns)) => Reading::Known((*runs as f64 * ns) as u64),
            _ => Reading::absent("runs or their cost are not known"),
        };
        let ran = match &held.refused {
            Some(Reading::Denied(why)) => Reading::Denied(why.clone()),
            Some(Reading::Absent(why)) => Reading::Absent(why.clone()),
            _ => Reading::Known(Ran { runs, ns_per_run, time_ns }),
        };
        ProgramStatus {
            object: self.name.to_owned(),
            program: held.wanted.program.to_owned(),
            gives: held.wanted.gives.to_owned(),
            ran,
        }
    }
}

/// The state of programs of an object that could not even be loaded.
pub fn unloaded(name: &str, wanted: &[ProgramSpec], why: &Reading<()>) -> Vec<ProgramStatus> {
    let ran = || match why {
        Reading::Denied(why) => Reading::Denied(why.clone()),
        Reading::Absent(why) => Reading::Absent(why.clone()),
        Reading::Known(()) => Reading::absent("not loaded"),
    };
    wanted
        .iter()
        .map(|w| ProgramStatus {
            object: name.to_owned(),
            program: w.program.to_owned(),
            gives: w.gives.to_owned(),
            ran: ran(),
        })
        .collect()
}

fn run_stats_of(ebpf: &Ebpf, program: &str) -> Option<RunStats> {
    let info = ebpf.program(program)?.info().ok()?;
    run_stats::of(info.fd().ok()?.as_fd_raw())
}

/// The raw number of a program's descriptor.
trait AsFdRaw {
    fn as_fd_raw(&self) -> i32;
}

impl<T: std::os::fd::AsFd> AsFdRaw for T {
    fn as_fd_raw(&self) -> i32 {
        self.as_fd().as_raw_fd()
    }
}

/// Has the kernel check one program, by its kind.
fn load_one(ebpf: &mut Ebpf, name: &str, btf: Option<&Btf>) -> Result<(), Reading<()>> {
    match (ebpf.program_mut(name), btf) {
        (Some(Program::RawTracePoint(p)), _) => {
            p.load().map_err(|e| Refusal::of_program(name, &e).into())
        }
        (Some(Program::BtfTracePoint(_)), None) => Err(Reading::absent(format!(
            "{name}: this kernel has no type information (no /sys/kernel/btf/vmlinux)"
        ))),
        (Some(Program::BtfTracePoint(p)), Some(btf)) => {
            p.load(name, btf).map_err(|e| Refusal::of_program(name, &e).into())
        }
        (Some(_), _) => Err(Reading::absent(format!("{name}: of a kind that is not attached"))),
        (None, _) => Err(Reading::absent(format!("{name}: no such program in the object"))),
    }
}

/// Attaches a program that is loaded.
fn attach(ebpf: &mut Ebpf, name: &str) -> Result<Link, Reading<()>> {
    match ebpf.program_mut(name) {
        Some(Program::RawTracePoint(p)) => p.attach(name).map(Link::Raw),
        Some(Program::BtfTracePoint(p)) => p.attach().map(Link::Btf),
        _ => return Err(Reading::absent(format!("{name}: of a kind that is not attached"))),
    }
    .map_err(|e| Refusal::of_program(name, &e).into())
}

/// One loader for all objects: each new one reads the kernel's BTF by itself.
fn loader() -> MutexGuard<'static, EbpfLoader<'static>> {
    static LOADER: LazyLock<Mutex<EbpfLoader<'static>>> = LazyLock::new(|| {
        let mut loader = EbpfLoader::new();
        loader.btf(kernel_types());
        Mutex::new(loader)
    });
    LOADER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel's BTF; read once, as it takes a tenth of a second or more.
fn kernel_types() -> Option<&'static Btf> {
    static TYPES: OnceLock<Option<Btf>> = OnceLock::new();
    TYPES.get_or_init(|| Btf::from_sys_fs().ok()).as_ref()
}
