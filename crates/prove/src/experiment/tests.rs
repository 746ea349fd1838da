use model::prove::Design;

use super::{Experiment, Workload, percent};
use crate::spec;

fn check(text: &str) -> Result<Experiment, String> {
    spec::parse(text).and_then(|s| Experiment::check(s, "x").map_err(|e| e.to_string()))
}

const METRIC: &str = "[[metric]]\nname = \"t\"\ntime = true\nbetter = \"lower\"\n";

#[test]
fn what_makes_no_sense_is_refused_by_its_key() {
    let factor = "[[factor]]\nname = \"v\"\nlevels = [1, 2]\n";
    for (text, why) in [
        (String::new(), "workload"),
        ("x = 1".into(), "line 1: unknown field `x`"),
        (format!("command = \"w {{v}}\"\n{factor}"), "metric: a command needs one"),
        (
            format!("command = \"w {{v}}\"\ndesign = \"one-at-a-time\"\n{factor}{METRIC}"),
            "design = \"one-at-a-time\": is for several factors",
        ),
        (
            format!(
                "command = \"w {{v}} {{u}}\"\ndesign = \"some\"\n{factor}{}{METRIC}",
                factor.replace("\"v\"", "\"u\"")
            ),
            "design = \"some\": full-factorial or one-at-a-time",
        ),
        (
            format!("command = \"w {{v}} {{y}}\"\n{factor}{METRIC}"),
            "{y} in the workload: there is no such factor; known: {v}; for the shell",
        ),
        (
            format!("workload = \"measure rtt h --flows {{v}} --cpu '{{y}}'\"\n{factor}"),
            "{y} in the workload: there is no such factor; known: {v}",
        ),
        (format!("command = \"w\"\n{factor}{METRIC}"), "changes nothing"),
        (format!("command = \"w\"\n{METRIC}"), "nothing is varied"),
        (format!("workload = \"ls\"\n{factor}"), "is no `measure"),
        (format!("command = \"w {{v}}\"\nbudget = \"60 of\"\n{factor}{METRIC}"), "budget"),
        (format!("command = \"w {{v}}\"\nruns = 0\n{factor}{METRIC}"), "runs = 0"),
        (format!("command = \"w {{v}}\"\nruns = 20\n{factor}{METRIC}"), "runs = 24 at least"),
        (format!("command = \"w {{v}}\"\nmin_effect = \"2\"\n{factor}{METRIC}"), "min_effect"),
        (
            format!("command = \"w {{v}}\"\n[[factor]]\nname = \"v\"\nlevels = [1]\n{METRIC}"),
            "two levels",
        ),
        (
            format!(
                "command = \"w\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\nset = \"s\"\n{METRIC}"
            ),
            "unset, which undoes it, is missing",
        ),
        (
            format!("command = \"w\"\n[placement]\ncpus = \"0\"\npeer_cpus = \"0-1\"\n{METRIC}"),
            "placement",
        ),
    ] {
        let said = check(&text).err().unwrap_or_default();
        assert!(said.contains(why), "{text}\nsays: {said}\nwanted: {why}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn braces_of_the_shell_are_no_names_of_factors() {
    for line in ["awk '{print}' {v}", "echo ${HOME} {v} {1..3} {a,b}", "test {v} || { exit; }"] {
        let text = format!("[[factor]]\nname = \"v\"\nlevels = [1, 2]\n{METRIC}");
        check(&format!("command = \"\"\"{line}\"\"\"\n{text}")).unwrap();
    }
}

#[test]
fn a_factor_in_braces_is_refused_where_it_is_not_filled_in() {
    let text = |before: &str, set: &str, unset: &str| {
        format!(
            "command = \"w {{n}}\"\nbefore = \"{before}\"\n[[factor]]\nname = \"n\"\n\
             levels = [1, {{ name = \"2\", args = \"-x\" }}]\nset = \"{set}\"\nunset = \"{unset}\"\n{METRIC}"
        )
    };
    let shell = "awk '{print}' ${n} {m}";
    check(&text(shell, &format!("{shell} {{level}}"), shell)).unwrap();
    for (odd, why) in [
        (text("w {n}", "s", "u"), "{n} in before: it is the same before each run"),
        (text("w {level}", "s", "u"), "{level} in before: it is the same"),
        (text("w", "echo {n} > val", "u"), "{n} in set: stands for nothing there; {level} is"),
        (text("w", "s", "echo ${n} {n}"), "{n} in unset: stands for nothing"),
        (text("w", "s", "u").replace("-x", "-x {n}"), "{n} in args: stands for nothing"),
    ] {
        let said = check(&odd).err().unwrap_or_default();
        assert!(said.starts_with(why), "{odd}\nsays: {said}\nwanted: {why}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn levels_fill_in_the_workload() {
    let text = "workload = \"measure rtt h --flows {flows}\"\n\
                [[factor]]\nname = \"flows\"\nlevels = [1, 8]\n\
                [[factor]]\nname = \"place\"\nargs = \"--cpu {level}\"\nlevels = [\"0\", \"2\"]\n";
    let e = check(text).unwrap();
    assert_eq!((e.design, e.cells.len(), e.metrics.len()), (Design::Factorial, 4, 2));
    let Workload::Ours(words) = e.cells[3].fill(&e.factors, &e.workload) else { panic!() };
    assert_eq!(words.join(" "), "measure rtt h --flows 8 --json --cpu 2");
    assert_eq!(e.cells[3].name(&e.factors), "flows 8, place 2");
    let e = check(
        "command = \"x {v}\"\n[[factor]]\nname = \"v\"\nlevels = [0.0, 0.49, 2]\n\
                   [[metric]]\nname = \"t\"\ntime = true\nbetter = \"lower\"\n",
    );
    let e = e.unwrap();
    let names: Vec<String> = e.cells.iter().map(|c| c.name(&e.factors)).collect();
    assert_eq!(names, ["0.0", "0.49", "2"]);
    let matrix = "workload = \"measure rtt h\"\n[placement]\ncpus = \"0-1\"\npeer_cpus = \"2\"\n";
    let e = check(matrix).unwrap();
    let Workload::Ours(words) = e.cells[1].fill(&e.factors, &e.workload) else { panic!() };
    assert_eq!(
        (e.design, words.join(" ").as_str()),
        (Design::Matrix, "measure rtt h --json --cpu 1 --peer-cpu 2")
    );
}

#[test]
fn a_share_is_in_per_cent() {
    assert_eq!(percent("k", "2%"), Ok(0.02));
    for bad in ["2", "-1%", "0%", "nan%", "%"] {
        assert!(percent("k", bad).is_err(), "{bad}");
    }
}
