//! The list of labs, as text.

use crate::{Registry, link, state::LabState};

/// One line for each lab and its hosts, and the states that cannot be read.
pub fn text(registry: &Registry, labs: &[LabState], broken: &[String]) -> String {
    let mut text = String::new();
    for lab in labs {
        let preset = lab.preset.as_ref().map(|p| format!(", preset {p}")).unwrap_or_default();
        let state =
            if lab.complete { "" } else { "  (unfinished: `netwright lab down` removes it)" };
        text += &format!("{}  {}{preset}{state}\n", lab.name, lab.topology);
        for h in &lab.hosts {
            text += &format!("  {:<8} {:<24} {}\n", h.name, h.addresses.join(" "), h.about);
        }
        for note in &lab.notes {
            text += &format!("  {note}\n");
        }
        for line in link::lines(&registry.folder_of(&lab.name)) {
            text += &format!("  {line}\n");
        }
    }
    if labs.is_empty() {
        text += "no lab is up; `netwright lab up pair` brings one up\n";
    }
    for b in broken {
        text += &format!("unreadable: {b}\n");
    }
    text
}
