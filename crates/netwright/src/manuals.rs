//! Man pages and completions, made from the definition of the flags.
//!
//! This code is in no program that ships. The test below holds the files under `share` against the
//! flags, and `UPDATE=1` writes them: docs/decisions/0019-manuals.md.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{cli::Cli, topics::PAGES};

/// Where each shell looks below `PREFIX/share`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/netwright"),
    (Shell::Zsh, "zsh/site-functions/_netwright"),
    (Shell::Fish, "fish/vendor_completions.d/netwright.fish"),
];

/// Every file below `share`, with its text.
fn files() -> BTreeMap<PathBuf, String> {
    let mut command = Cli::command();
    command.build();
    let mut files = BTreeMap::new();
    for page in pages(&command) {
        files.insert(format!("man/man1/{}.1", page.name).into(), page.text);
    }
    for (name, text) in PAGES {
        files.insert(format!("man/man7/netwright-{name}.7").into(), concept(name, text));
    }
    for (shell, path) in COMPLETIONS {
        let mut text = vec![];
        clap_complete::generate(shell, &mut offered(&Cli::command()), "netwright", &mut text);
        files.insert(path.into(), String::from_utf8(text).expect("UTF-8"));
    }
    files
}

/// A command as shells complete it: without hidden commands, and without the `help` that clap adds
/// to each family.
fn offered(command: &Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let below = command.get_subcommands().filter(|c| !c.is_hide_set()).map(offered);
    // clap takes names that live for ever; this is a test.
    let name: &'static str = command.get_name().to_owned().leak();
    Command::new(name)
        .about(about)
        .args(command.get_arguments().filter(|a| !a.is_hide_set()))
        .subcommands(below)
        .disable_help_subcommand(true)
}

struct Page {
    /// The file's name without its section, such as `netwright-tune-plan`.
    name: String,
    text: String,
}

/// The page of a command, and those below it. Hidden commands have none.
fn pages(command: &Command) -> Vec<Page> {
    let mut pages = vec![];
    // clap adds a `help` to each family, and `netwright help` names its topics itself.
    let help = command.get_name() == "help";
    let below = command.get_subcommands().filter(|c| !c.is_hide_set() && !help);
    for sub in below.filter(|c| c.get_name() != "help" || command.get_name() == "netwright") {
        pages.extend(self::pages(sub));
    }
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let text = page(command, &name, pages.iter().map(|p| p.name.as_str()));
    pages.push(Page { name, text });
    pages
}

/// One page of section 1, with the examples and exit codes in sections of their own.
fn page<'a>(command: &Command, name: &str, below: impl Iterator<Item = &'a str>) -> String {
    let man = Man::new(command.clone());
    let mut out = title(name, 1).into_bytes();
    let sections = [
        Man::render_name_section,
        Man::render_synopsis_section,
        Man::render_description_section,
        Man::render_options_section,
    ];
    let made = sections.into_iter().try_for_each(|section| section(&man, &mut out));
    made.expect("memory takes all");
    if command.get_subcommands().any(|c| !c.is_hide_set() && c.get_name() != "help") {
        man.render_subcommands_section(&mut out).expect("memory takes all");
    }
    let mut text = String::from_utf8(out).expect("UTF-8");
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, codes) = after.split_once("Exit codes:\n").unwrap_or((&after, ""));
    let examples = examples.trim_start_matches("Examples:\n").trim_end();
    if !examples.is_empty() {
        text.push_str(&format!(".SH EXAMPLES\n{}", as_is(examples)));
    }
    if !codes.is_empty() {
        text.push_str(".SH \"EXIT STATUS\"\n");
        for (code, means) in codes.lines().filter_map(|l| l.trim().split_once("  ")) {
            text.push_str(&format!(".TP\n{code}\n{}\n", escaped(means)));
        }
    }
    let concepts = PAGES.map(|(name, _)| format!("netwright-{name}(7)"));
    let others = std::iter::once("netwright").chain(below).filter(|n| *n != name);
    let see: Vec<String> = others.map(|n| format!("{n}(1)")).chain(concepts).collect();
    text.push_str(&format!(".SH \"SEE ALSO\"\n{}\n", escaped(&see.join(", "))));
    text
}

/// The head of a page, without a date: the same flags make the same bytes.
fn title(name: &str, section: u8) -> String {
    let (name, version) = (name.to_uppercase(), env!("CARGO_PKG_VERSION"));
    format!(".TH {name} {section} \"\" \"netwright {version}\" Netwright\n")
}

/// The page of a concept, section 7: `netwright help NAME`, as it is.
fn concept(name: &str, text: &str) -> String {
    let (first, rest) = text.split_once("\n\n").expect("a heading");
    let title = title(&format!("netwright-{name}"), 7);
    format!(
        "{title}.SH NAME\nnetwright\\-{} \\- {}\n.SH DESCRIPTION\n{}.SH \"SEE ALSO\"\nnetwright(1)\n",
        escaped(name),
        escaped(first.split_once(": ").map_or(first, |(_, about)| about)),
        as_is(rest)
    )
}

/// Lines that the formatter neither fills nor breaks.
fn as_is(text: &str) -> String {
    format!(".nf\n{}\n.fi\n", escaped(text.trim_end()))
}

/// The text with roff's control characters escaped.
fn escaped(text: &str) -> String {
    let line = |l: &str| {
        let plain = l.replace('\\', "\\e").replace('-', "\\-");
        if plain.starts_with(['.', '\'']) { format!("\\&{plain}") } else { plain }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn share() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../share")
}

/// Every file below a folder, relative to it.
fn below(folder: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut open) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => open.push(path),
                false => drop(found.insert(path.strip_prefix(folder).expect("below").to_owned())),
            }
        }
    }
    found
}

#[test]
fn the_committed_manuals_are_what_the_flags_say() {
    let (share, files) = (share(), files());
    if std::env::var_os("UPDATE").is_some() {
        for old in below(&share).iter().filter(|f| !files.contains_key(*f)) {
            fs::remove_file(share.join(old)).expect("share is writable");
        }
        for (name, text) in &files {
            fs::create_dir_all(share.join(name).parent().expect("a folder")).expect("a folder");
            fs::write(share.join(name), text).expect("share is writable");
        }
    }
    let mut wrong: BTreeSet<PathBuf> = below(&share);
    wrong.retain(|name| !files.contains_key(name));
    let committed = |name: &PathBuf| fs::read_to_string(share.join(name)).unwrap_or_default();
    wrong.extend(files.iter().filter(|(n, text)| committed(n) != **text).map(|(n, _)| n.clone()));
    assert!(
        wrong.is_empty(),
        "share differs from the flags in {wrong:?}; run \
         `UPDATE=1 cargo test -p netwright --bin netwright manuals::` and commit it"
    );
}

#[test]
fn every_command_and_flag_has_its_place_in_a_page() {
    let files = files();
    let mut open = vec![{
        let mut command = Cli::command();
        command.build();
        command
    }];
    let mut seen = 0;
    while let Some(command) = open.pop() {
        let name = command.get_display_name().unwrap_or("netwright");
        let page = &files[Path::new(&format!("man/man1/{name}.1"))];
        for flag in command.get_arguments().filter(|a| !a.is_hide_set()) {
            let Some(long) = flag.get_long() else { continue };
            let header = format!("\\fB\\-\\-{}\\fR", long.replace('-', "\\-"));
            let section = page.split("\n.SH DESCRIPTION").nth(1).expect("a description");
            assert!(section.contains(&header), "{name}: no {header}");
            seen += 1;
        }
        let help = name == "netwright-help";
        let below = command.get_subcommands().filter(|c| !c.is_hide_set() && !help);
        open.extend(below.filter(|c| c.get_name() != "help" || name == "netwright").cloned());
    }
    assert!(seen > 300, "only {seen} flags");
}
