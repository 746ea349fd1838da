//! Names of levels in tables: the names themselves, or letters with a legend where a name is too
//! long.

use model::prove::ProveDocument;

use crate::text::{Ink, Line, Page};

/// The longest name that a column can hold.
const WIDEST: usize = 28;

const LETTERS: usize = 26;

/// Names with their letters; empty where the names themselves are used.
pub(super) struct Labels<'d>(Vec<(&'d str, String)>);

impl<'d> Labels<'d> {
    pub(super) fn of(d: &'d ProveDocument) -> Self {
        let names = d.levels.iter().map(|l| l.level.as_str());
        let long = names.clone().any(|n| n.chars().count() > WIDEST);
        if !long || d.levels.len() > LETTERS {
            return Self(vec![]);
        }
        Self(names.zip('A'..='Z').map(|(name, letter)| (name, letter.to_string())).collect())
    }

    /// A level's letter where it has one, else its name.
    pub(super) fn label<'s>(&'s self, name: &'s str) -> &'s str {
        self.0.iter().find(|(n, _)| *n == name).map_or(name, |(_, letter)| letter)
    }

    /// The legend of the letters.
    pub(super) fn legend(&self, page: &mut Page) {
        for (name, letter) in &self.0 {
            page.line(Line::new().ink(Ink::Strong, letter).text(format!(": {name}")), 3);
        }
    }
}
