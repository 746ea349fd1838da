//! `netwright lab`: practice hosts on one machine.

pub mod args;
mod up;

use std::path::Path;

use lab::{
    LabError, Registry,
    channel::Channel,
    host,
    link::LinkSpec,
    state::{HostState, LabState, NodeAccess},
};
use report::lab::{ShownHost, ShownLab};

use crate::failure::{CommandEnd, Failure};
use args::{DownArgs, ExecArgs, LabArgs, LabCommand, ListArgs};

/// Runs one lab command.
pub fn run(args: LabArgs) -> Result<CommandEnd, Failure> {
    match args.command {
        LabCommand::Up(a) => up::run(a),
        LabCommand::Exec(a) => exec(&a),
        LabCommand::List(a) => list(&a),
        LabCommand::Down(a) => down(a),
        LabCommand::PairLink { spec } => link(&spec),
        LabCommand::Wander { folders } => {
            lab::thread_migration::run(&folders).map(|()| CommandEnd::Yes).map_err(failure)
        }
        LabCommand::Agent => lab::agent::serve().map(|()| CommandEnd::Yes).map_err(failure),
    }
}

/// Removes the labs in this folder whose `up`, this process, was killed: the work of its watchdog.
pub fn remove_unfinished(folder: &Path, maker: u32) -> Result<(), Failure> {
    let registry = Registry::at(folder);
    let _lock = registry.lock().map_err(failure)?;
    registry.remove_unfinished(Some(maker)).map(drop).map_err(failure)
}

/// The exit code that a lab's failure deserves.
fn failure(e: LabError) -> Failure {
    match e {
        LabError::NeedsRoot => Failure::Denied(e.to_string()),
        LabError::Usage(_) | LabError::Exists(_) => Failure::Usage(e.to_string()),
        _ => Failure::Environment(e.to_string()),
    }
}

/// Replaces this process by the command, which keeps its streams and exit code.
fn exec(args: &ExecArgs) -> Result<CommandEnd, Failure> {
    lab::tool::needs_root().map_err(failure)?;
    let (lab, host) = Registry::default().host(&args.host).map_err(failure)?;
    let code = match &host.reach {
        NodeAccess::Namespace { .. } => {
            let status = host::command(&host, &args.command)
                .map_err(failure)?
                .status()
                .map_err(|e| failure(LabError::failed(format!("running on {}", host.name), e)))?;
            host::exit_code(status)
        }
        NodeAccess::Guest { ports } => {
            let channel =
                Channel::open(ports, std::time::Duration::from_secs(10)).map_err(|e| {
                    Failure::Environment(format!(
                        "{}/{}: {e}: the guest hangs, or this machine is very busy; `netwright lab down {}` removes it",
                        lab.name, host.name, lab.name
                    ))
                })?;
            let stdin = Box::new(std::io::stdin());
            channel
                .run(&args.command, Some(stdin), std::io::stdout(), std::io::stderr(), None)
                .map_err(failure)?
        }
    };
    std::process::exit(code);
}

fn list(args: &ListArgs) -> Result<CommandEnd, Failure> {
    let registry = Registry::default();
    let (labs, broken) = registry.labs();
    let sink = crate::output::Sink::Stdout;
    if args.json {
        let document = serde_json::json!({
            "schema_version": model::SCHEMA_VERSION, "labs": labs, "broken": broken
        });
        sink.json(&document)?;
        return Ok(CommandEnd::Yes);
    }
    let labs: Vec<ShownLab> = labs.into_iter().map(|lab| shown(&registry, lab)).collect();
    sink.text(&report::lab::text(&labs, &broken, sink.look(false)))?;
    Ok(CommandEnd::Yes)
}

/// A lab with what its links count now.
fn shown(registry: &Registry, lab: LabState) -> ShownLab {
    let links = lab::link::lines(&registry.folder_of(&lab.name));
    let host = |h: HostState| ShownHost { name: h.name, addresses: h.addresses, about: h.about };
    ShownLab {
        name: lab.name,
        topology: lab.topology,
        preset: lab.preset,
        complete: lab.complete,
        hosts: lab.hosts.into_iter().map(host).collect(),
        notes: lab.notes.into_iter().chain(links).collect(),
    }
}

fn down(args: DownArgs) -> Result<CommandEnd, Failure> {
    lab::tool::needs_root().map_err(failure)?;
    let registry = Registry::default();
    let _lock = registry.lock().map_err(failure)?;
    let up: Vec<String> = registry.labs().0.into_iter().map(|l| l.name).collect();
    let names = match (args.all, args.names.is_empty(), up.len()) {
        (true, ..) => up,
        (false, false, _) => args.names,
        (false, true, 0 | 1) => up,
        (false, true, _) => {
            let list = up.join(", ");
            return Err(Failure::Usage(format!(
                "several labs are up ({list}); say which, or --all"
            )));
        }
    };
    if names.is_empty() {
        crate::output::note("no lab is up");
    }
    for name in names {
        let was = registry.down(&name).map_err(failure)?;
        crate::output::note(&if was {
            format!("removed {name}")
        } else {
            format!("no lab {name:?} is up")
        });
    }
    Ok(CommandEnd::Yes)
}

fn link(spec: &str) -> Result<CommandEnd, Failure> {
    let spec: LinkSpec = model::json::read(spec).map_err(|e| Failure::Usage(e.to_string()))?;
    lab::link::run_until_signal(&spec, &mut std::io::stdout()).map_err(failure)?;
    Ok(CommandEnd::Yes)
}
