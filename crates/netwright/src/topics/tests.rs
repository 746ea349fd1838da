//! Tests that each page can be reached, fits a screen, and says what the code does.

use std::collections::BTreeSet;

use clap::{CommandFactory, Parser};
use model::{Reading, units::BitsPerSec, units::Bytes, units::Nanos};

use super::*;
use crate::{
    cli::{self, Cli},
    commands::measure::counts::PerSecond,
    exit,
    failure::{CommandEnd, Failure},
};

fn page(name: &str) -> &'static str {
    PAGES.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no page {name}")).1
}

#[test]
fn each_page_is_reached_by_its_name_and_fits_a_screen() {
    for (name, page) in PAGES {
        let cli = Cli::try_parse_from(["netwright", "help", name]).unwrap();
        let cli::Command::Help(args) = cli.command else { panic!("{name} is no help") };
        assert_eq!(args.about.unwrap().page(), Some(page));
        assert!(page.lines().count() <= 40, "{name}: {} lines", page.lines().count());
        let wide: Vec<_> = page.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{name}: {wide:?}");
        assert!(page.ends_with(".\n") || page.ends_with("json\n"), "{name} ends in a sentence");
    }
    let mut command = Cli::command();
    let help = command.find_subcommand_mut("help").unwrap();
    let offered: Vec<_> = help.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    assert_eq!(offered, PAGES.map(|(name, _)| name), "`netwright help -h` lists the pages");
    let top = command.render_long_help().to_string();
    for (name, _) in PAGES {
        assert!(top.contains(name), "`netwright --help` does not name {name}");
    }
}

/// Every command line on a page is one that the parser takes.
#[test]
fn each_command_on_a_page_is_understood() {
    let mut seen = 0;
    for (name, page) in PAGES {
        for line in page.lines().filter_map(|l| l.strip_prefix("  netwright ")) {
            let words = std::iter::once("netwright").chain(line.split_whitespace());
            if let Err(e) = Cli::try_parse_from(words) {
                panic!("{name}: netwright {line}: {e}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} commands");
}

#[test]
fn the_units_are_those_of_the_parsers() {
    let rows = page("units").lines().skip(3).take_while(|l| !l.is_empty());
    let (mut units, mut kinds) = (0, vec![]);
    for row in rows {
        let cells: Vec<&str> = row.trim().split("  ").filter(|c| !c.is_empty()).collect();
        let [kind, named, example, means] = cells.as_slice() else { panic!("{row}") };
        let value = |text: &str| match *kind {
            "duration" => text.parse::<Nanos>().map(|n| n.0 as f64 / 1e9).ok(),
            "size" => text.parse::<Bytes>().map(|b| b.0 as f64).ok(),
            "bit rate" => text.parse::<BitsPerSec>().map(|b| b.0 as f64).ok(),
            "share" => crate::args::share(text).ok(),
            _ => panic!("{row}"),
        };
        for unit in named.split_whitespace() {
            assert!(value(&format!("1{unit}")).is_some(), "1{unit} is no {kind}");
            units += 1;
        }
        assert_eq!(value("1parsec"), None);
        let means = means.split_whitespace().next().unwrap().replace(',', "");
        assert_eq!(value(example.trim()), means.parse().ok(), "{row}");
        kinds.push(*kind);
    }
    assert_eq!(kinds, ["duration", "size", "bit rate", "share"]);
    assert!(units > 15, "only {units} units");
    assert_eq!(model::units::seconds("10"), model::units::seconds("10s"));
    assert_eq!("10Gbit/s".parse::<BitsPerSec>(), "10Gbit".parse());
    let rate = |text: &str| text.parse::<PerSecond>().unwrap().0;
    assert_eq!((rate("20k"), rate("2M")), (20_000, 2_000_000));
}

#[test]
fn the_exit_codes_are_those_of_the_code() {
    // A new kind of end does not compile here until it has its line.
    let ends = |end: &Result<CommandEnd, Failure>| match end {
        Ok(CommandEnd::Yes | CommandEnd::No)
        | Err(
            Failure::Usage(_)
            | Failure::Denied(_)
            | Failure::Environment(_)
            | Failure::Bug(_)
            | Failure::ClosedPipe,
        ) => exit::number(end),
    };
    let why = || "why".to_owned();
    let all = [
        Ok(CommandEnd::Yes),
        Ok(CommandEnd::No),
        Err(Failure::Usage(why())),
        Err(Failure::Denied(why())),
        Err(Failure::Environment(why())),
        Err(Failure::Bug(why())),
        Err(Failure::ClosedPipe),
    ];
    let codes: BTreeSet<u8> = all.iter().map(ends).collect();
    let rows = page("exit-codes").lines().skip(2).take_while(|l| !l.is_empty());
    let rows: Vec<(u8, &str)> = rows
        .map(|l| l.trim().split_once("  ").unwrap())
        .map(|(code, means)| (code.parse().unwrap(), means))
        .collect();
    assert_eq!(rows.iter().map(|(code, _)| *code).collect::<BTreeSet<_>>(), codes);
    // The same words as in every --help; 1 has its own meaning there.
    let help = Cli::command().render_long_help().to_string();
    for (code, means) in rows.iter().filter(|(code, _)| *code != 1) {
        let line = format!("  {code}  {means}\n");
        assert!(format!("{help}\n").contains(&line), "--help has not {line:?}");
    }
    assert_eq!(rows[3].1, "not permitted");
    assert_eq!(exit::number(&Err(Failure::Denied(why()))), 3);
}

/// Each command with a meaning of exit code 1 in its --help has it on the page, and no other.
#[test]
fn the_page_has_each_command_that_can_say_no() {
    fn every(command: clap::Command, path: &str, found: &mut BTreeSet<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if help.contains("\n  1  ") && !command.has_subcommands() {
            found.insert(path.to_owned());
        }
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name());
            every(sub.clone(), path.trim(), found);
        }
    }
    let mut says_no = BTreeSet::new();
    every(Cli::command(), "", &mut says_no);
    let page = page("exit-codes");
    let rows = page.lines().skip_while(|l| !l.starts_with("What \"no\" means")).skip(2);
    let mut listed = BTreeSet::new();
    for row in rows.take_while(|l| !l.is_empty()) {
        let names = row.trim().split("  ").next().unwrap();
        let names = names.split(" --").next().unwrap();
        let family = names.split(' ').next().unwrap();
        for (at, name) in names.split(", ").enumerate() {
            listed.insert(if at == 0 { name.to_owned() } else { format!("{family} {name}") });
        }
    }
    assert_eq!(listed, says_no, "on the page, against what --help says");
}

#[test]
fn missing_values_look_in_json_as_on_the_page() {
    let rows = page("missing-values").lines().skip(5).take_while(|l| !l.is_empty());
    let mut seen = vec![];
    for row in rows {
        let json = row[12..].split("  ").next().unwrap().trim();
        let value: Reading<u64> =
            serde_json::from_str(json).unwrap_or_else(|e| panic!("{row}: {e}"));
        let again: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_value(&value).unwrap(), again, "{row}");
        seen.push((row.split_whitespace().next().unwrap(), value));
    }
    let why = |text: &str| text.to_owned();
    let expected = [
        ("42", Reading::Known(42)),
        ("-", Reading::Absent(why("no such file"))),
        ("denied", Reading::Denied(why("run as root"))),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn secrets_come_from_where_the_page_says() {
    let text = page("secrets");
    assert!(text.contains("at least 8 characters"));
    assert!(traffic::Secret::new("1234567").is_err() && traffic::Secret::new(" 12345678 ").is_ok());
    // Each command of the table names its sources in its own help.
    let mut command = Cli::command();
    let mut help = |words: &[&str]| {
        let at = words.iter().fold(&mut command, |c, w| c.find_subcommand_mut(w).unwrap());
        at.render_long_help().to_string()
    };
    for (words, source) in [
        (&["serve"][..], "NETWRIGHT_SECRET"),
        (&["measure", "rtt"], "NETWRIGHT_SECRET"),
        (&["watch"], "NETWRIGHT_SECRET"),
        (&["measure", "pg"], "PGPASSWORD"),
        (&["measure", "redis"], "REDISCLI_AUTH"),
    ] {
        assert!(text.contains(source) && help(words).contains(source), "{words:?}: {source}");
    }
    assert!(text.contains("--secret-file") && help(&["serve"]).contains("--secret-file"));
}
