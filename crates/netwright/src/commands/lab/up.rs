//! `netwright lab up`: turns the flags into a lab and brings it up.

use std::{
    path::{Path, PathBuf, absolute},
    time::Instant,
};

use lab::{
    Lab, LabError, Registry,
    arch::Arch,
    containers::{self, ContainersSpec},
    image,
    pair::{self, PairSpec},
    preset,
    server::{self, DiskModel, Emulation, NicModel, ServerSpec},
};
use model::{Bytes, Nanos};
use tune::watchdog::maker::{self, Residue};

use super::{
    args::{
        ArchKind, DiskKind, EmulationKind, KnownTopology, LabTopology, NameArgs, NicKind, PairArgs,
        Preset, ServerArgs, UpArgs,
    },
    failure,
};
use crate::failure::{CommandEnd, Failure};

/// Brings a lab up, applies its preset, and prints how to use it.
pub fn run(args: UpArgs) -> Result<CommandEnd, Failure> {
    bring_up(args).map_err(failure)
}

fn bring_up(args: UpArgs) -> Result<CommandEnd, LabError> {
    let begun = Instant::now();
    let registry = Registry::default();
    lab::tool::needs_root()?;
    let (common, topology) = match &args.topology {
        LabTopology::Pair(a) => (&a.common, "pair"),
        LabTopology::Containers(a) => (&a.common, "containers"),
        LabTopology::Server(a) => (&a.common, "server"),
    };
    let chosen = preset_for(common, topology)?;
    let name = common
        .name
        .clone()
        .unwrap_or_else(|| chosen.map_or(topology, preset::Preset::name).to_owned());
    let quiet = common.quiet;
    maker::restore_after_exit(Residue::Labs(lab::state::DEFAULT_FOLDER.into())).map_err(|e| {
        LabError::failed("starting a watchdog that removes the lab if we are killed", e)
    })?;
    let mut lab = {
        let _lock = registry.lock()?;
        for name in registry.remove_unfinished(None)? {
            crate::output::note(&format!("removed {name}, left unfinished by a killed run"));
        }
        let asked = format!("{:?}", args.topology);
        if registry.standing(&name).is_some_and(|l| l.asked == asked) {
            crate::output::note(&format!("{name} is up already, as asked for"));
            return Ok(CommandEnd::Yes);
        }
        registry.begin(&name, topology, chosen.map(preset::Preset::name), &asked)?
    };
    let mut progress = |line: &str| {
        if !quiet {
            crate::output::note(line);
        }
    };
    let mut guest = None;
    match args.topology {
        LabTopology::Pair(a) => match guest_of_pair(&a, chosen)? {
            Some(spec) => server::up(&mut lab, guest.insert(spec), &mut progress)?,
            None => pair::up(&mut lab, &pair_spec(a, chosen)?)?,
        },
        LabTopology::Containers(a) => {
            let spec = ContainersSpec { count: a.count, cpus: a.cpus, mtu: a.mtu };
            containers::up(&mut lab, &spec)?;
        }
        LabTopology::Server(a) => {
            server::up(&mut lab, guest.insert(server_spec(a, chosen)?), &mut progress)?;
        }
    }
    if let Some(preset) = chosen {
        preset.apply(&mut lab)?;
        if guest.is_some_and(|g| g.emulation == Some(Emulation::Each)) {
            preset.apply_side_by_side(&mut lab)?;
        }
    }
    finish(lab, begun, quiet)
}

fn finish(lab: Lab, begun: Instant, quiet: bool) -> Result<CommandEnd, LabError> {
    let state = lab.complete()?;
    if !quiet {
        let took = Nanos(begun.elapsed().as_nanos() as u64);
        let hosts: Vec<&str> = state.hosts.iter().map(|h| h.name.as_str()).collect();
        crate::output::note(&format!("{} is up after {took}: {}", state.name, hosts.join(", ")));
        if let Some(h) = hosts.first() {
            crate::output::note(&format!(
                "try: netwright lab exec {name}/{h} -- ip -br addr; when done: netwright lab down {name}",
                name = state.name
            ));
        }
    }
    Ok(CommandEnd::Yes)
}

fn preset_for(common: &NameArgs, topology: &str) -> Result<Option<preset::Preset>, LabError> {
    let Some(typed) = common.preset else { return Ok(None) };
    let chosen = match typed {
        Preset::Queues => preset::Preset::Queues,
        Preset::Softirq => preset::Preset::Softirq,
        Preset::Latency => preset::Preset::Latency,
        Preset::Migration => preset::Preset::Migration,
        Preset::Tengig => preset::Preset::Tengig,
    };
    if chosen.topology() != topology && !(topology == "pair" && chosen.is_a_pair()) {
        return Err(LabError::Usage(format!(
            "the preset {name} is a {right}: netwright lab up {right} --preset {name}",
            name = chosen.name(),
            right = chosen.topology()
        )));
    }
    Ok(Some(chosen))
}

/// The guest that takes the place of a pair's remote host, where the preset needs features of a
/// guest. The other host stays a namespace. Refuses the link's options, which do not apply to the
/// guest's tap device.
fn guest_of_pair(
    a: &PairArgs,
    chosen: Option<preset::Preset>,
) -> Result<Option<ServerSpec>, LabError> {
    let Some(preset) = chosen.filter(|p| p.topology() == "server") else { return Ok(None) };
    let PairArgs { common: _, queues, links, rate, spin, delay, loss, mtu, rps } = a;
    let typed = [
        ("--queues", queues.is_some()),
        ("--links", links.is_some()),
        ("--rate", rate.is_some()),
        ("--spin", spin.is_some()),
        ("--delay", delay.is_some()),
        ("--loss", loss.is_some()),
        ("--mtu", mtu.is_some()),
        ("--rps", rps.is_some()),
    ];
    if let Some((option, _)) = typed.iter().find(|(_, typed)| *typed) {
        let name = preset.name();
        return Err(LabError::Usage(format!(
            "{option} is not for the preset {name}, whose server is a guest; `netwright lab up server --preset {name}` takes a guest's options"
        )));
    }
    let base = ServerSpec::new(program()?);
    if base.arch == Arch::Aarch64 {
        return Err(LabError::Usage(needs_x86_64(preset)));
    }
    Ok(Some(ServerSpec { emulation: preset.emulation_of_pair(), ..base }))
}

fn needs_x86_64(preset: preset::Preset) -> String {
    format!(
        "the preset {} needs ethtool in the guest and a NIC on a node; an aarch64 guest has neither",
        preset.name()
    )
}

fn pair_spec(a: PairArgs, chosen: Option<preset::Preset>) -> Result<PairSpec, LabError> {
    let base = chosen.map_or_else(PairSpec::default, preset::Preset::pair);
    Ok(PairSpec {
        queues: a.queues.unwrap_or(base.queues),
        links: a.links.unwrap_or(base.links),
        rate: a.rate.or(base.rate),
        delay: a.delay.or(base.delay),
        spin: a.spin.unwrap_or(base.spin),
        loss: a.loss.map_or(Ok(base.loss), |l| share(&l))?,
        mtu: a.mtu.or(base.mtu),
        rps: a.rps.or(base.rps),
        program: Some(program()?),
    })
}

fn server_spec(a: ServerArgs, chosen: Option<preset::Preset>) -> Result<ServerSpec, LabError> {
    let mib = u32::try_from(a.memory.0 >> 20)
        .map_err(|_| LabError::Usage(format!("--memory {} is too much", Bytes(a.memory.0))))?;
    let base = machine(&a)?;
    if base.arch == Arch::Aarch64 {
        refuse_on_aarch64(&a, chosen)?;
    }
    Ok(ServerSpec {
        memory_mib: mib,
        emulation: a.emulation_threads.map(|threads| match threads {
            EmulationKind::One => Emulation::One,
            EmulationKind::Each => Emulation::Each,
        }),
        queues: a.queues,
        nics: a.nics.unwrap_or_else(|| u32::try_from(a.nic.len()).unwrap_or(u32::MAX)),
        nic_node: a.nic_node.unwrap_or_else(|| base.nodes.saturating_sub(1)),
        models: a.nic.iter().map(|k| model(*k)).collect(),
        disk: match a.disk {
            DiskKind::None => DiskModel::None,
            DiskKind::Virtio => DiskModel::Virtio,
            DiskKind::Nvme => DiskModel::Nvme,
        },
        image: a.image.map(|file| whole(&file)).transpose()?,
        virtual_time: a.virtual_time,
        // The guest is given the path, and QEMU runs in another folder.
        cache: a.cache.map_or_else(|| image::DEFAULT_CACHE.into(), |c| absolute(&c).unwrap_or(c)),
        ..base
    })
}

/// The absolute path of an image, as QEMU runs in another folder.
fn whole(image: &Path) -> Result<PathBuf, LabError> {
    let found = image.canonicalize().ok().filter(|f| f.is_file());
    found.ok_or_else(|| {
        LabError::Usage(format!(
            "--image {}: no such file; `truncate -s 64M FILE && mkfs.ext4 FILE` makes one",
            image.display()
        ))
    })
}

/// The guest's processors, and the binary that runs inside.
fn machine(a: &ServerArgs) -> Result<ServerSpec, LabError> {
    let arch = match (a.topology, a.arch) {
        (Some(KnownTopology::Kunpeng), _) | (None, Some(ArchKind::Aarch64)) => Arch::Aarch64,
        (None, Some(ArchKind::X86_64)) => Arch::X86_64,
        (None, None) => Arch::here(),
    };
    let binary = match (&a.binary, arch) {
        (Some(file), _) => file.clone(),
        (None, Arch::X86_64) => program()?,
        (None, Arch::Aarch64) => lab::arch::cross_built(&program()?),
    };
    let spec = match a.topology {
        Some(KnownTopology::Kunpeng) => ServerSpec::kunpeng(binary),
        None => ServerSpec {
            arch,
            threads: a.threads,
            nodes: a.nodes,
            packages: a.packages,
            cluster: a.cluster,
            ..ServerSpec::new(binary)
        },
    };
    Ok(ServerSpec { cpus: a.cpus.unwrap_or(spec.cpus), ..spec })
}

/// Refuses options that an aarch64 guest does not support.
fn refuse_on_aarch64(a: &ServerArgs, chosen: Option<preset::Preset>) -> Result<(), LabError> {
    if a.nic_node.is_some() {
        return Err(LabError::Usage(
            "--nic-node cannot be had with aarch64: QEMU's board tells a NIC's node by ACPI only, which needs firmware; leave it out"
                .into(),
        ));
    }
    match chosen {
        Some(p) => Err(LabError::Usage(needs_x86_64(p))),
        None => Ok(()),
    }
}

/// The path of this binary, which also runs the link and inside the guest.
fn program() -> Result<std::path::PathBuf, LabError> {
    std::env::current_exe().map_err(|e| LabError::failed("finding this program's own file", e))
}

/// Parses a percentage: `0.1%` is 0.001.
///
/// # Errors
/// Text that is no percentage from 0 to 100.
fn share(text: &str) -> Result<f64, LabError> {
    text.strip_suffix('%')
        .and_then(|n| n.trim().parse::<f64>().ok())
        .filter(|n| (0.0..=100.0).contains(n))
        .map(|n| n / 100.0)
        .ok_or_else(|| LabError::Usage(format!("--loss {text:?} is no share; write it like 0.1%")))
}

const fn model(kind: NicKind) -> NicModel {
    match kind {
        NicKind::Virtio => NicModel::Virtio,
        NicKind::VirtioRss => NicModel::VirtioRss,
        NicKind::Vmxnet3 => NicModel::Vmxnet3,
        NicKind::E1000e => NicModel::E1000e,
        NicKind::E1000 => NicModel::E1000,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
    use clap::Parser;

    use super::*;
    use crate::commands::lab::args::{LabArgs, LabCommand};

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        lab: LabArgs,
    }

    fn typed(line: &str) -> LabTopology {
        let args = Typed::try_parse_from(line.split(' ')).unwrap().lab;
        let LabCommand::Up(up) = args.command else { panic!("{line}") };
        up.topology
    }

    fn guest(line: &str) -> Result<Option<Option<Emulation>>, LabError> {
        let spec = match typed(line) {
            LabTopology::Pair(a) => {
                let chosen = preset_for(&a.common, "pair")?;
                guest_of_pair(&a, chosen)?
            }
            LabTopology::Server(a) => {
                let chosen = preset_for(&a.common, "server")?;
                Some(server_spec(a, chosen)?)
            }
            LabTopology::Containers(_) => None,
        };
        Ok(spec.map(|s| s.emulation))
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_preset_queues_as_a_pair_is_a_guest_whose_cpus_run_side_by_side() {
        let each = Some(Some(Emulation::Each));
        assert_eq!(guest("lab up pair --preset queues").unwrap(), each);
        assert_eq!(guest("lab up server --preset queues").unwrap(), Some(None));
        assert_eq!(guest("lab up server --emulation-threads each").unwrap(), each);
        let one = guest("lab up server --preset queues --emulation-threads one").unwrap();
        assert_eq!(one, Some(Some(Emulation::One)));
        assert_eq!(guest("lab up server").unwrap(), Some(None));
        assert_eq!(guest("lab up pair --preset tengig").unwrap(), None);
        let said = guest("lab up pair --preset queues --rate 1Gbit").unwrap_err().to_string();
        assert!(said.starts_with("--rate is not for the preset queues"), "{said}");
        assert!(guest("lab up pair --preset softirq").is_err());
    }

    #[test]
    fn a_relative_cache_is_the_same_folder_for_the_guest() {
        let LabTopology::Server(a) = typed("lab up server --cache kernels") else { panic!() };
        let cache = server_spec(a, None).unwrap().cache;
        assert_eq!(cache, std::env::current_dir().unwrap().join("kernels"));
    }
}
