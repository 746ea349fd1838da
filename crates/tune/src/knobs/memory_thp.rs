//! `memory.thp` and `memory.thp_defrag`: transparent huge pages of the whole host.

use model::knob::Target;

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, usage},
    need::Need,
    phase::Phase,
};

/// **Source**: `/sys/kernel/mm/transparent_hugepage/{enabled,defrag}`, of which the file shows all
/// words and brackets one.
pub const KIND: Kind = Kind {
    name: "memory_thp",
    spelling: "memory.thp|thp_defrag=always|madvise|never",
    parse: |target| match target {
        Target::Memory("thp") => Some(Box::new(MemoryThp { setting: "thp" })),
        Target::Memory("thp_defrag") => Some(Box::new(MemoryThp { setting: "thp_defrag" })),
        _ => None,
    },
};

struct MemoryThp {
    setting: &'static str,
}

/// Words that the kernel takes, ascending. **Source**: `Documentation/admin-guide/mm/transhuge.rst`.
const ENABLED: &[&str] = &["always", "madvise", "never"];
const DEFRAG: &[&str] = &["always", "defer", "defer+madvise", "madvise", "never"];

/// The word in brackets; a file of a copied tree, and a value that is asked for, may be one word alone.
fn chosen(text: &str) -> Option<String> {
    parse::text::chosen(text.as_bytes()).or_else(|| {
        let mut words = text.split_whitespace();
        let first = words.next()?;
        words.next().is_none().then(|| first.to_owned())
    })
}

impl MemoryThp {
    fn file(&self) -> String {
        self.target().file().unwrap_or_default()
    }
}

impl Knob for MemoryThp {
    fn target(&self) -> Target<'_> {
        Target::Memory(self.setting)
    }

    fn phase(&self) -> Phase {
        Phase::Memory
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let text = host.text(&self.file())?;
        match chosen(&text) {
            Some(_) => Ok(text),
            None => Err(TuneError::Environment(format!(
                "{}: no word in brackets: {:?}",
                self.file(),
                text.trim()
            ))),
        }
    }

    fn show(&self, exact: &str) -> String {
        chosen(exact).unwrap_or_else(|| exact.trim().to_owned())
    }

    fn validate(&self, _: &PlanContext<'_>, _: &str, wanted: &str) -> Result<String, Refusal> {
        let words = if self.setting == "thp" { ENABLED } else { DEFRAG };
        match words.contains(&wanted) {
            true => Ok(wanted.to_owned()),
            false => usage(format!("{wanted:?} is none of {}", words.join(", "))),
        }
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::File(self.file())]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        // The kernel takes the word alone; a directory tree gets the file back as it was.
        let word = self.show(value);
        host.write(&self.file(), if host.is_live() { &word } else { value })
    }

    fn undo_text(&self) -> String {
        match self.setting {
            "thp" => "the old value is written back; memory keeps the pages that it has got".into(),
            _ => "the old value is written back".into(),
        }
    }

    /// The kernel raises the reserve of free memory for huge pages, and computes it anew without them.
    ///
    /// **Source**: `set_recommended_min_free_kbytes` in `mm/khugepaged.c`, which each write of `enabled`
    /// calls.
    fn coupled_settings(&self, _: &Host) -> Vec<String> {
        match self.setting {
            "thp" => vec!["sysctl.vm.min_free_kbytes".into()],
            _ => vec![],
        }
    }

    fn sets(&self) -> &'static str {
        "transparent huge pages"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_the_value() {
        for (text, word) in [
            ("always [madvise] never\n", Some("madvise")),
            ("always defer defer+madvise [madvise] never\n", Some("madvise")),
            ("[always] madvise never", Some("always")),
            ("never\n", Some("never")),
            ("always madvise never", None),
            ("", None),
            ("[", Some("[")),
        ] {
            assert_eq!(chosen(text).as_deref(), word, "{text:?}");
        }
    }
}
