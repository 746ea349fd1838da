//! Practice hosts for tests: removed when dropped, also after a panic. Those of killed test
//! processes are removed by the next one.

use std::{
    fs::File,
    path::PathBuf,
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::{
    LabError, Registry,
    channel::{Channel, CommandOutput},
    containers::{self, ContainersSpec},
    host,
    pair::{self, PairSpec},
    preset::Preset,
    server::{self, ServerSpec},
    state::{LabState, NodeAccess, start_ticks},
};

/// A lab that is removed when this is dropped.
pub struct TestLab {
    registry: Registry,
    pub state: LabState,
    /// Locked as long as this test lives.
    _owner: File,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl TestLab {
    /// Two hosts, `left` and `right`.
    ///
    /// # Errors
    /// As [`pair::up`].
    pub fn pair(spec: &PairSpec) -> Result<Self, LabError> {
        Self::up("pair", |lab| pair::up(lab, spec))
    }

    /// Containers `c1`, `c2`, ….
    ///
    /// # Errors
    /// As [`containers::up`].
    pub fn containers(spec: &ContainersSpec) -> Result<Self, LabError> {
        Self::up("containers", |lab| containers::up(lab, spec))
    }

    /// A guest `server` and the namespace `client`. Guests are slow to start: share one among many
    /// tests.
    ///
    /// # Errors
    /// As [`server::up`].
    pub fn server(spec: &ServerSpec) -> Result<Self, LabError> {
        Self::up("server", |lab| server::up(lab, spec, &mut |_| ()))
    }

    /// As [`TestLab::server`], with a preset applied.
    ///
    /// # Errors
    /// As [`server::up`] and [`Preset::apply`].
    pub fn server_with(spec: &ServerSpec, preset: Preset) -> Result<Self, LabError> {
        Self::up("server", |lab| {
            server::up(lab, spec, &mut |_| ())?;
            preset.apply(lab)
        })
    }

    fn up(
        topology: &str,
        make: impl FnOnce(&mut crate::Lab) -> Result<(), LabError>,
    ) -> Result<Self, LabError> {
        let registry = Registry::default();
        let name = format!("t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut lab = {
            let _lock = registry.lock()?;
            sweep(&registry)?;
            registry.begin(&name, topology, None, "a test's")?
        };
        make(&mut lab)?;
        let owner = lab.owner.try_clone().map_err(|e| LabError::failed("keeping the lab", e))?;
        Ok(Self { registry, state: lab.complete()?, _owner: owner })
    }

    /// Directory of the lab, with its logs.
    pub fn folder(&self) -> PathBuf {
        self.registry.folder_of(&self.state.name)
    }

    /// The namespace of a host; `None` for a guest.
    pub fn namespace(&self, name: &str) -> Option<&str> {
        self.state.hosts.iter().find(|h| h.name == name).and_then(|h| match &h.reach {
            NodeAccess::Namespace { namespace, .. } => Some(namespace.as_str()),
            NodeAccess::Guest { .. } => None,
        })
    }

    /// A command on a namespace host.
    ///
    /// # Errors
    /// There is no such host, or it is a guest.
    pub fn command(&self, name: &str, argv: &[&str]) -> Result<Command, LabError> {
        let argv: Vec<String> = argv.iter().map(|&a| a.to_owned()).collect();
        host::command(self.find(name)?, &argv)
    }

    /// Runs a command on any host to its end; in a guest, with a timeout of two minutes.
    ///
    /// # Errors
    /// The host does not exist or does not answer; a failure of the command is in the outcome.
    pub fn output(&self, name: &str, argv: &[&str]) -> Result<CommandOutput, LabError> {
        self.output_within(name, argv, Duration::from_secs(120))
    }

    /// As [`TestLab::output`], with another timeout in a guest.
    ///
    /// # Errors
    /// As [`TestLab::output`].
    pub fn output_within(
        &self,
        name: &str,
        argv: &[&str],
        patience: Duration,
    ) -> Result<CommandOutput, LabError> {
        match &self.find(name)?.reach {
            NodeAccess::Guest { ports } => {
                // The environment of the tests is not that of the guest, whose CPUs are slow.
                let keeps_nothing = ["env", "NETWRIGHT_STORE=off"];
                let owned =
                    keeps_nothing.iter().chain(argv).map(|&a| a.to_owned()).collect::<Vec<_>>();
                Channel::open(ports, Duration::from_secs(20))?.output(&owned, patience)
            }
            NodeAccess::Namespace { .. } => {
                let out: Output = self
                    .command(name, argv)?
                    .stdin(std::process::Stdio::null())
                    .output()
                    .map_err(|e| LabError::failed(format!("running on {name}"), e))?;
                let code = host::exit_code(out.status);
                Ok(CommandOutput { code, stdout: out.stdout, stderr: out.stderr })
            }
        }
    }

    fn find(&self, name: &str) -> Result<&crate::state::HostState, LabError> {
        self.state.hosts.iter().find(|h| h.name == name).ok_or_else(|| LabError::Unknown {
            what: format!("there is no host {name:?} in this lab"),
            hint: "see its shape".into(),
        })
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        if let Err(e) = self.registry.down(&self.state.name) {
            eprintln!("removing a test's lab: {e}");
        }
    }
}

/// Removes labs of test processes that have ended: `tPID-NAME`. A test that makes its lab by the program
/// is no owner of it, but runs.
fn sweep(registry: &Registry) -> Result<(), LabError> {
    for lab in registry.labs().0 {
        let number = lab.name.strip_prefix('t').and_then(|r| r.split('-').next());
        let pid = number.and_then(|n| n.parse::<u32>().ok());
        let has_ended = pid.is_some_and(|pid| start_ticks(pid).is_none());
        if has_ended && !registry.is_owned(&lab.name) {
            registry.down(&lab.name)?;
        }
    }
    Ok(())
}
