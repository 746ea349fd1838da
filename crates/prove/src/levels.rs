//! Factors, their levels, and every combination of levels.

use std::collections::BTreeMap;

use model::prove::Design;
use tune::change_request::ChangeRequest;

use crate::{
    command_line,
    spec::{FactorSpec, FullLevelSpec, LevelSpec, PlacementSpec, Spec, cpus},
    workload::Workload,
};

/// Placeholder for the level in `set`, `unset` and `args`.
pub(crate) const LEVEL: &str = "{level}";

/// A command that sets a level, and the command that undoes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) set: String,
    pub(crate) unset: String,
}

/// A level of a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) name: String,
    /// What placeholders of it stand for.
    pub(crate) text: String,
    pub(crate) args: Vec<String>,
    pub(crate) set: Option<Setting>,
    /// Knobs of `tune`, with their values.
    pub(crate) knobs: Vec<(String, String)>,
}

/// A factor of the experiment and its levels, the first of which is the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Factor {
    pub(crate) name: String,
    pub(crate) levels: Vec<Level>,
}

/// A combination: the index of each factor's level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) levels: Vec<usize>,
    /// The workload's CPU in a placement by class; `None` otherwise.
    pub(crate) cpu: Option<u32>,
}

impl Cell {
    /// Each factor with its level.
    pub(crate) fn of<'a>(
        &'a self,
        factors: &'a [Factor],
    ) -> impl Iterator<Item = (&'a Factor, &'a Level)> {
        factors.iter().zip(&self.levels).filter_map(|(f, l)| Some((f, f.levels.get(*l)?)))
    }

    /// The combination's name: `cpu 0, ring 512`; the level alone where there is one factor.
    pub(crate) fn name(&self, factors: &[Factor]) -> String {
        let each = self.of(factors).map(|(f, l)| match factors.len() {
            1 => l.name.clone(),
            _ => match self.cpu.filter(|_| f.name == CPU) {
                Some(cpu) => format!("{} {cpu} ({})", f.name, l.name),
                None => format!("{} {}", f.name, l.name),
            },
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// The knobs that `tune` must set for this combination.
    pub(crate) fn change_requests(&self, factors: &[Factor]) -> Vec<ChangeRequest> {
        let each = self.of(factors).flat_map(|(f, l)| l.knobs.iter().map(move |k| (f, l, k)));
        each.map(|(f, l, (knob, value))| ChangeRequest {
            knob: knob.clone(),
            value: value.clone(),
            asked_by: format!("factor {}, level {}", f.name, l.name),
            ..ChangeRequest::default()
        })
        .collect()
    }

    /// Each factor's level by name.
    pub(crate) fn settings(&self, factors: &[Factor]) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> =
            self.of(factors).map(|(f, l)| (f.name.clone(), l.name.clone())).collect();
        if let Some(cpu) = self.cpu
            && let Some(class) = all.insert(CPU.to_owned(), cpu.to_string())
        {
            all.insert("class".to_owned(), class);
        }
        all
    }

    /// The workload with this combination's levels filled in.
    pub(crate) fn fill(&self, factors: &[Factor], workload: &Workload) -> Workload {
        let cpu = self.cpu.map(|c| c.to_string());
        let filled = |text: &str| {
            self.of(factors).fold(text.to_owned(), |text, (f, l)| {
                let own = cpu.as_ref().filter(|_| f.name == CPU).unwrap_or(&l.text);
                text.replace(&format!("{{{}}}", f.name), own)
            })
        };
        let cpu_args = || cpu.iter().flat_map(|c| ["--cpu".to_owned(), c.clone()]);
        let cpu_args = || cpu_args().filter(|_| matches!(workload, Workload::Ours(_)));
        let args = || cpu_args().chain(self.of(factors).flat_map(|(_, l)| l.args.clone()));
        match workload {
            Workload::Ours(words) => {
                Workload::Ours(words.iter().map(|w| filled(w)).chain(args()).collect())
            }
            Workload::Shell(line) => {
                let mut line = filled(line);
                args().for_each(|a| line += &format!(" '{}'", a.replace('\'', r"'\''")));
                Workload::Shell(line)
            }
        }
    }
}

/// Name of the factor that places the workload in a placement.
const CPU: &str = "cpu";

/// Every combination, the first factor changing slowest. A placement by class has only those that
/// the host has.
pub(crate) fn cells(spec: &Spec, factors: &[Factor]) -> Vec<Cell> {
    let cells = match spec.design.as_deref() {
        Some(ONE_AT_A_TIME) => one_at_a_time(factors),
        _ => product(factors),
    };
    let assignments = spec.placement.as_ref().map(|p| p.assignments.as_slice()).unwrap_or_default();
    if assignments.is_empty() {
        return cells;
    }
    let sat = |mut cell: Cell| {
        let at = |name: &str| cell.of(factors).find(|(f, _)| f.name == name).map(|(_, l)| &l.name);
        let beside = cell.of(factors).find(|(f, _)| f.name != CPU).map(|(_, l)| &l.name);
        let class = at(CPU);
        let assignment = assignments
            .iter()
            .find(|s| Some(&s.class) == class && beside.is_none_or(|beside| s.beside == *beside))?;
        cell.cpu = Some(assignment.cpu);
        Some(cell)
    };
    cells.into_iter().filter_map(sat).collect()
}

/// The combination of all first levels, then each other level with the first levels of the other
/// factors.
fn one_at_a_time(factors: &[Factor]) -> Vec<Cell> {
    let first = Cell { levels: vec![0; factors.len()], cpu: None };
    let others = factors
        .iter()
        .enumerate()
        .flat_map(|(at, factor)| (1..factor.levels.len()).map(move |level| (at, level)));
    let of = |(at, level): (usize, usize)| {
        let mut cell = first.clone();
        if let Some(own) = cell.levels.get_mut(at) {
            *own = level;
        }
        cell
    };
    let others: Vec<Cell> = others.map(of).collect();
    [vec![first], others].concat()
}

fn product(factors: &[Factor]) -> Vec<Cell> {
    let mut cells = vec![Cell { levels: vec![], cpu: None }];
    for factor in factors {
        let longer = |cell: &Cell| {
            let begun = cell.levels.clone();
            (0..factor.levels.len()).map(move |l| {
                let mut levels = begun.clone();
                levels.push(l);
                Cell { levels, cpu: None }
            })
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    cells
}

/// The factors, and how they are compared.
pub(crate) fn factors(spec: &Spec, workload: &Workload) -> Result<(Vec<Factor>, Design), String> {
    let several = spec.placement.is_none() && spec.factors.len() > 1;
    if let Some(design) = spec.design.as_deref().filter(|_| !several) {
        return Err(format!("design = \"{design}\": is for several factors"));
    }
    if let Some(placement) = &spec.placement {
        return match spec.factors.is_empty() {
            false => Err("placement and factor: only one of the two".into()),
            true => Ok((matrix(placement, workload)?, Design::Matrix)),
        };
    }
    let factors: Vec<Factor> = spec.factors.iter().map(factor).collect::<Result<_, _>>()?;
    for (i, f) in factors.iter().enumerate() {
        if factors.iter().skip(i + 1).any(|g| g.name == f.name) {
            return Err(format!("factor {}: is there twice", f.name));
        }
        let nothing = |l: &Level| l.args.is_empty() && l.set.is_none() && l.knobs.is_empty();
        if f.levels.iter().all(nothing) && !used(f, workload) {
            return Err(format!(
                "factor {}: changes nothing: name it as {{{}}} in the workload, or give knob, args \
                 or set",
                f.name, f.name
            ));
        }
    }
    match factors.as_slice() {
        [] => Err("factor: nothing is varied".into()),
        [one] if one.levels.len() == 2 => Ok((factors, Design::Ab)),
        [_] => Ok((factors, Design::Sweep)),
        _ => several_factors(spec).map(|design| (factors, design)),
    }
}

/// The value of `design` for each level beside the first levels of the others.
const ONE_AT_A_TIME: &str = "one-at-a-time";
/// The value of `design` for every combination.
const FULL_FACTORIAL: &str = "full-factorial";

fn several_factors(spec: &Spec) -> Result<Design, String> {
    match spec.design.as_deref() {
        None | Some(FULL_FACTORIAL) => Ok(Design::Factorial),
        Some(ONE_AT_A_TIME) => Ok(Design::OneAtATime),
        Some(other) => Err(format!("design = \"{other}\": {FULL_FACTORIAL} or {ONE_AT_A_TIME}")),
    }
}

fn used(factor: &Factor, workload: &Workload) -> bool {
    let mark = format!("{{{}}}", factor.name);
    match workload {
        Workload::Ours(words) => words.iter().any(|w| w.contains(&mark)),
        Workload::Shell(line) => line.contains(&mark),
    }
}

fn factor(spec: &FactorSpec) -> Result<Factor, String> {
    let name = match (spec.name.as_str(), &spec.knob) {
        ("", Some(knob)) => knob.clone(),
        ("", None) => return Err("factor: name or knob is missing".into()),
        (name, _) => name.to_owned(),
    };
    let whose = |e: String| format!("factor {name}: {e}");
    let levels: Vec<Level> =
        spec.levels.iter().map(|l| level(spec, l)).collect::<Result<_, _>>().map_err(whose)?;
    if levels.len() < 2 {
        return Err(whose("two levels at least".into()));
    }
    for (i, l) in levels.iter().enumerate() {
        if levels.iter().skip(i + 1).any(|m| m.name == l.name) {
            return Err(whose(format!("the level {} is there twice", l.name)));
        }
    }
    Ok(Factor { name, levels })
}

fn level(factor: &FactorSpec, spec: &LevelSpec) -> Result<Level, String> {
    let (name, own) = match spec {
        LevelSpec::Name(name) => (name.clone(), None),
        LevelSpec::Number(n) => (n.to_string(), None),
        LevelSpec::Fraction(n) if !n.is_finite() => return Err(format!("{n} is no level")),
        LevelSpec::Fraction(n) => (format!("{n:?}"), None),
        LevelSpec::Full(full) => (full.name.clone(), Some(full)),
    };
    let own_text = own.and_then(|o| o.text.as_ref());
    let text = own_text.unwrap_or(&name).clone();
    let pick = |own: Option<&String>, common: &Option<String>| {
        own.or(common.as_ref()).map(|line| line.replace(LEVEL, &text))
    };
    let set = pick(own.and_then(|o| o.set.as_ref()), &factor.set);
    let unset = pick(own.and_then(|o| o.unset.as_ref()), &factor.unset);
    let set = match (set, unset) {
        (None, None) => None,
        (Some(set), Some(unset)) => Some(Setting { set, unset }),
        // A level that cannot be undone is refused.
        (Some(set), None) => return Err(format!("`{set}`: unset, which undoes it, is missing")),
        (None, Some(unset)) => return Err(format!("`{unset}`: undoes what nothing sets")),
    };
    let args = pick(own.and_then(|o| o.args.as_ref()), &factor.args);
    let args = args.as_deref().map(command_line::split).transpose()?.unwrap_or_default();
    let knobs = knobs(factor, own, &name)?;
    Ok(Level { name, text, args, set, knobs })
}

/// The level that leaves a knob unchanged.
const NOW: &str = "now";

fn knobs(
    factor: &FactorSpec,
    own: Option<&FullLevelSpec>,
    name: &str,
) -> Result<Vec<(String, String)>, String> {
    let own = own.map(|o| o.change.as_slice()).unwrap_or_default();
    let common = factor.knob.iter().filter(|_| name != NOW && own.is_empty());
    let mut all: Vec<_> = common.map(|k| (k.clone(), name.to_owned())).collect();
    for text in own {
        let change_request =
            tune::change_request::pair(text, "change").map_err(|e| e.to_string())?;
        all.push((change_request.knob, change_request.value));
    }
    Ok(all)
}

fn matrix(placement: &PlacementSpec, workload: &Workload) -> Result<Vec<Factor>, String> {
    let LevelGrid { here, there, option } = shape(placement)?;
    let ours = matches!(workload, Workload::Ours(_));
    let marks = [Some(CPU), there.as_ref().map(|t| t.0).filter(|_| option.is_some())];
    for name in marks.into_iter().flatten().filter(|_| !ours) {
        if !used(&Factor { name: name.to_owned(), levels: vec![] }, workload) {
            return Err(format!(
                "placement: the command must name {{{name}}}, as in `taskset -c {{cpu}} …`; a \
                 workload of ours has --cpu and --peer-cpu"
            ));
        }
    }
    let level = |name: String, option: Option<&str>, knobs| Level {
        args: option.filter(|_| ours).map_or(vec![], |o| vec![o.to_owned(), name.clone()]),
        text: name.clone(),
        name,
        set: None,
        knobs,
    };
    // An assigned class's CPU depends on the combination.
    let own = placement.assignments.is_empty().then_some("--cpu");
    let here = here.into_iter().map(|name| level(name, own, vec![])).collect();
    let mut factors = vec![Factor { name: CPU.to_owned(), levels: here }];
    if let Some((name, cpus)) = there {
        let knobs = |cpu: &String| match (&placement.irq_cpus, &placement.nic) {
            (Some(_), Some(nic)) => vec![("irq.affinity".to_owned(), format!("{cpu}:{nic}"))],
            _ => vec![],
        };
        let levels = cpus.into_iter().map(|cpu| {
            let knobs = knobs(&cpu);
            level(cpu, option, knobs)
        });
        factors.push(Factor { name: name.to_owned(), levels: levels.collect() });
    }
    match factors.iter().map(|f| f.levels.len()).product() {
        1 => Err("placement: one placement cannot be compared with itself".into()),
        _ => Ok(factors),
    }
}

/// The levels of a placement: the workload's, the other end's with its factor's name, and our
/// option that places the other end.
struct LevelGrid {
    here: Vec<String>,
    there: Option<(&'static str, Vec<String>)>,
    option: Option<&'static str>,
}

fn shape(p: &PlacementSpec) -> Result<LevelGrid, String> {
    if p.by_class() && p.assignments.is_empty() {
        return Err("placement: classes are chosen on the host that makes the experiment".into());
    }
    let mut here: Vec<String> = Vec::new();
    for assignment in &p.assignments {
        if !here.contains(&assignment.class) {
            here.push(assignment.class.clone());
        }
    }
    if p.assignments.is_empty() {
        here = cpus("cpus", &p.cpus)?;
    }
    let (there, option) = match (&p.peer_cpus, &p.irq_cpus, &p.nic) {
        (Some(_), Some(_), _) => {
            return Err("placement: peer_cpus and irq_cpus: only one of the two".into());
        }
        (None, Some(_), None) => {
            return Err("placement.irq_cpus: of which NIC? nic = \"eth0\" is missing".into());
        }
        (Some(_), None, Some(_)) => {
            return Err("placement: peer_cpus and nic: only one of the two".into());
        }
        (Some(list), None, None) => {
            (Some(("peer_cpu", cpus("peer_cpus", list)?)), Some("--peer-cpu"))
        }
        (None, Some(list), Some(_)) => (Some(("irq_cpu", cpus("irq_cpus", list)?)), None),
        (None, None, _) => (None, None),
    };
    Ok(LevelGrid { here, there, option })
}
