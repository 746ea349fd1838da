//! Tests that the man pages under `share` are printed without a warning, and that each shell takes
//! its completions and offers commands, flags and values by them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::output;

fn share() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../share").canonicalize().unwrap()
}

/// Standard output of a program that ends well and without a word on standard error.
fn silent(program: &str, args: &[&str]) -> String {
    let out = output(program, args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.is_empty(), "{program} {args:?}: {}: {said}", out.status);
    String::from_utf8(out.stdout).unwrap()
}

fn pages() -> Vec<PathBuf> {
    let folders = ["man1", "man7"].map(|f| share().join("man").join(f));
    let mut all: Vec<PathBuf> =
        folders.iter().flat_map(|f| fs::read_dir(f).unwrap()).map(|e| e.unwrap().path()).collect();
    all.sort();
    assert!(all.len() > 45, "only {} pages", all.len());
    all
}

/// One page as groff formats it for a terminal of 80 columns, as `man` calls it.
fn formatted(page: &Path) -> Output {
    let line = r#"preconv -e utf-8 "$1" | tbl | groff -ww -rLL=80n -man -Tutf8 -P-cbou"#;
    let mut command = Command::new("sh");
    command.args(["-c", line, "sh"]).arg(page).output().unwrap()
}

#[test]
fn the_man_pages_are_formatted_without_a_warning() {
    for page in pages() {
        let out = formatted(&page);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && said.is_empty(), "{}: {said}", page.display());
        let text = String::from_utf8(out.stdout).unwrap();
        let name = page.file_stem().unwrap().to_str().unwrap();
        for part in [format!("\n       {name} "), "\nDESCRIPTION\n".into(), "\nSEE ALSO\n".into()] {
            assert!(text.contains(&part), "{}: no {part:?} in {text}", page.display());
        }
    }
    // Groff complains where there is something to complain about.
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.1");
    fs::write(&wrong, ".TH WRONG 1\n.SH NAME\n\\[nosuchglyph] .\n.nosuchrequest\n").unwrap();
    assert!(!formatted(&wrong).stderr.is_empty(), "groff has no warnings here");
}

#[test]
fn man_finds_the_pages() {
    let man = share().join("man");
    let run = Command::new("man")
        .args(["-M", man.to_str().unwrap(), "netwright-tune-plan"])
        .env("MANPAGER", "cat")
        .env("MANWIDTH", "80")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    // An example keeps its line, and an exit code its meaning.
    assert!(text.contains("netwright tune plan irq.38.affinity=2"), "{text}");
    assert!(text.contains("EXIT STATUS\n       0      done\n"), "{text}");
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let file = share().join("bash-completion/completions/netwright");
    let offers = |typed: &[&str]| {
        let words = typed.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" ");
        let script = format!(
            "set -eu; source '{}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             COMPREPLY=(); _netwright netwright '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display(),
            typed[typed.len() - 1],
            typed[typed.len() - 2],
        );
        let text = silent("bash", &["--norc", "-c", &script]);
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(offers(&["netwright", "doc"]), ["doctor"]);
    assert_eq!(offers(&["netwright", "tune", "ro"]), ["rollback"]);
    assert_eq!(offers(&["netwright", "doctor", "--fail"]), ["--fail-on"]);
    let severities = offers(&["netwright", "doctor", "--fail-on", ""]);
    assert_eq!(severities, ["info", "warning", "critical"]);
    assert_eq!(offers(&["netwright", "help", "mis"]), ["missing-values"]);
    assert!(!offers(&["netwright", ""]).contains(&"remote".into()), "a hidden command");
}

#[test]
fn fish_and_zsh_take_their_completions() {
    let fish = share().join("fish/vendor_completions.d/netwright.fish");
    silent("fish", &["--no-config", "--no-execute", fish.to_str().unwrap()]);
    let script = format!("source '{}'; complete -C 'netwright tun'", fish.display());
    let home = tempfile::tempdir().unwrap();
    let out = Command::new("fish")
        .args(["--no-config", "-c", &script])
        .env("HOME", home.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.starts_with("tune\tChange the host"), "{text}");
    let zsh = share().join("zsh/site-functions/_netwright");
    silent("zsh", &["-f", "-n", zsh.to_str().unwrap()]);
    // compinit takes the file by its first line, and loads it without an error.
    let folder = zsh.parent().unwrap().display().to_string();
    let script = format!(
        "fpath=('{folder}' $fpath); autoload -Uz compinit; compinit -D -u; \
         print $_comps[netwright]; autoload +X _netwright; print ${{+functions[_netwright]}}"
    );
    assert_eq!(silent("zsh", &["-f", "-c", &script]), "_netwright\n1\n");
}
