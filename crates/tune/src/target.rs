//! The host and its journals, as selected by options of `tune`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use model::tune::{ChangeSet, ChangeState, HostId};
use probe::{
    Root,
    facts::{self, Request, Selector},
};

use crate::{
    Host, Store, TuneError,
    journal::{DEFAULT_STATE, JournaledSet},
    lock::Lock,
    netns::{self, Namespace, NamespaceSearch},
    operator::Operator,
    status::{self, Standing},
};

/// Options that select the host and its journals.
#[derive(Debug, Clone, Default)]
pub struct TargetNames {
    /// State directory; `None` for the default.
    pub state_dir: Option<PathBuf>,
    /// A directory tree laid out like a host's root, instead of the running host.
    pub root: Option<PathBuf>,
    /// A network namespace, by its `ip netns` name or a path.
    pub netns: Option<String>,
    /// The network namespace of this container or process.
    pub container: Option<String>,
}

/// The options that make another command find the same journal and tree, each after a blank.
pub fn options(names: &TargetNames) -> String {
    let mut text = String::new();
    for (name, path) in [("--root", &names.root), ("--state-dir", &names.state_dir)] {
        if let Some(path) = path {
            // The next command may run in another directory.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            text += &format!(" {name} {}", model::quote::shell(&path.to_string_lossy()));
        }
    }
    text
}

/// The host and its journals. A directory tree keeps its journal inside, unless another is given:
/// its changes are not changes of this host.
pub struct JournalTarget {
    pub host: Host,
    pub store: Store,
    /// The directory tree; `None` for a running host.
    pub tree: Option<PathBuf>,
    /// Options for commands in messages; see [`options`].
    pub options: String,
}

impl JournalTarget {
    /// Opens the host. Must be called before other threads start: it may move this thread to
    /// another namespace.
    ///
    /// # Errors
    /// There is no such directory, namespace or container.
    pub fn open(names: TargetNames) -> Result<Self, TuneError> {
        let options = options(&names);
        let Some(root) = names.root.clone() else {
            let host = live(&names)?;
            return Ok(Self { host, store: Store::of(names.state_dir), tree: None, options });
        };
        let tree = std::path::absolute(&root).unwrap_or(root);
        let host = Host::tree(&tree)?;
        let inside = || Some(tree.join(DEFAULT_STATE.trim_start_matches('/')));
        let store = Store::of(names.state_dir.or_else(inside));
        Ok(Self { host, store, tree: Some(tree), options })
    }

    /// Takes the lock. `operator` is notified once of the current holder.
    ///
    /// # Errors
    /// The journal's directory cannot be created, or another process has the lock and `no_wait` is
    /// set.
    pub fn lock(&self, no_wait: bool, operator: &dyn Operator) -> Result<Lock, TuneError> {
        let mut waiting = |text: &str| operator.note(text);
        self.store.lock(no_wait.then_some(Duration::ZERO), &mut waiting)
    }

    /// Checks that this is the set's network namespace: a set is undone where it was made.
    ///
    /// # Errors
    /// The set was made on another host or in another network namespace.
    pub fn same_place(&self, set: &JournaledSet) -> Result<(), TuneError> {
        let here = self.host.id();
        if set.host.machine_id.known() != here.machine_id.known() {
            return Err(TuneError::Environment(format!(
                "change {} was made on another host",
                set.id
            )));
        }
        if set.is_of(&here) {
            return Ok(());
        }
        let number = |id: &HostId| id.net_namespace.known().map(u64::to_string).unwrap_or_default();
        Err(TuneError::Environment(format!(
            "change {} was made in network namespace {}, and this is {}: run it there (ip netns exec, \
             nsenter --net)",
            set.id,
            number(&set.host),
            number(&here)
        )))
    }

    /// Enters the network namespace of a set; returns whether that is gone.
    ///
    /// # Errors
    /// The set was made on another host, or its namespace cannot be found or entered.
    pub fn go_there(&mut self, set: &JournaledSet) -> Result<bool, TuneError> {
        let here = self.host.id();
        let away = !netns::same(&set.host, &here);
        let machine = set.host.machine_id.known() == here.machine_id.known();
        // Includes changes not begun yet: the set may be completed later.
        let needs = set.changes.iter().any(|c| netns::is_of_namespace(&c.knob));
        let Some(then) = set.host.net_namespace.get().filter(|_| away && machine && needs) else {
            // Host-wide settings can be restored from any namespace.
            return if machine && !needs {
                Ok(false)
            } else {
                self.same_place(set).map(|()| false)
            };
        };
        match netns::again(then, set.host.net_cookie.get()) {
            NamespaceSearch::There(namespace) => {
                self.host = Host::from(&namespace)?;
                Ok(false)
            }
            NamespaceSearch::Gone => Ok(true),
            NamespaceSearch::Unknown => self.same_place(set).map(|()| false),
        }
    }

    /// Sets with their states, while we hold the lock, so no set counts as in progress. The second
    /// list holds messages on damaged journals.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub fn sets(&self) -> Result<Standing, TuneError> {
        let boot = self.host.id().boot_id;
        let (sets, damaged) = self.store.sets()?;
        let state = |s: JournaledSet| {
            let state = s.state(boot.known(), false);
            (s, state)
        };
        Ok((sets.into_iter().map(state).collect(), damaged))
    }

    /// The same, with messages on damaged journals sent to `operator`.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub fn readable(
        &self,
        operator: &dyn Operator,
    ) -> Result<Vec<(JournaledSet, ChangeState)>, TuneError> {
        let (sets, damaged) = self.sets()?;
        damaged.iter().for_each(|d| operator.warn(&d.to_string()));
        Ok(sets)
    }

    /// Error for a number without a readable change.
    pub fn no_change(&self, id: u64) -> TuneError {
        match self.store.ids().map(|ids| (ids.contains(&id), self.store.set(id))) {
            Ok((true, Err(why))) | Err(why) => why,
            Ok(_) => TuneError::Usage(format!("there is no change {id}")),
        }
    }

    /// A change set as it stands now.
    pub fn standing(&self, id: u64) -> Option<ChangeSet> {
        let (sets, _) = status::standing(&self.host, &self.store).ok()?;
        let (set, state) = sets.iter().find(|(s, _)| s.id == id)?;
        Some(self.with_options(status::document(&self.host, set, *state)))
    }

    /// Adds our options to the commands that a change set names.
    pub fn with_options(&self, mut set: ChangeSet) -> ChangeSet {
        set.remedies.iter_mut().for_each(|r| r.push_str(&self.options));
        set
    }
}

/// The running host, seen from the selected network namespace. Must be called before other threads
/// start: it moves this thread.
///
/// # Errors
/// There is no such namespace or container.
pub fn live(names: &TargetNames) -> Result<Host, TuneError> {
    let namespace = match (&names.netns, &names.container) {
        (Some(name), _) => Namespace::named(name),
        (None, Some(name)) => container(name),
        (None, None) => return Ok(Host::live()),
    };
    Host::from(&namespace?)
}

fn container(name: &str) -> Result<Namespace, TuneError> {
    if let Ok(pid) = name.parse::<u32>()
        && Path::new(&format!("/proc/{pid}")).exists()
    {
        return Namespace::of_process(pid, &format!("of process {pid}"));
    }
    let request = Request { processes: vec![Selector::Container(name.to_owned())] };
    let facts = facts::collect(&Root::live(), &request);
    match facts.processes.first() {
        Some(first) => Namespace::of_process(first.pid, &format!("of container {name}")),
        None => Err(TuneError::Absent(format!(
            "there is no container {name:?} (by name or the beginning of its id), nor a process"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_printed_with_the_options_that_find_the_journal() {
        let args = |state: &str, root: Option<&str>| TargetNames {
            state_dir: Some(state.into()),
            root: root.map(Into::into),
            ..TargetNames::default()
        };
        assert_eq!(options(&TargetNames::default()), "");
        assert_eq!(options(&args("/a b/it's", None)), r" --state-dir '/a b/it'\''s'");
        assert_eq!(options(&args("/s", Some("/r"))), " --root /r --state-dir /s");
        assert!(options(&args("here", None)).starts_with(" --state-dir /"));
    }
}
