//! Two hosts on one or more links: `left` and `right`.

use std::{
    io::{BufRead, BufReader},
    net::Ipv6Addr,
    path::PathBuf,
    process::Stdio,
};

use model::{BitsPerSec, Bytes, Nanos};
use rustix::process::setsid;

use crate::{
    LabError,
    link::{LinkSpec, SPIN},
    netns,
    state::{HostState, Lab, NodeAccess},
    tool,
};

/// Parameters of a pair.
#[derive(Debug, Clone)]
pub struct PairSpec {
    /// Number of queues at each end.
    pub queues: u32,
    /// Number of links (`eth0`, `eth1`, …).
    pub links: u32,
    /// Rate limit in each direction (TBF).
    pub rate: Option<BitsPerSec>,
    /// Added delay in each direction.
    pub delay: Option<Nanos>,
    /// Our user-space link spins instead of sleeping when a frame is due within this time; 0 leaves
    /// the CPU to others. Unused with the kernel's netem.
    pub spin: Nanos,
    /// Share of packets lost in each direction, 0 to 1.
    pub loss: f64,
    pub mtu: Option<u32>,
    /// `rps_cpus` mask for all receive queues of both hosts.
    pub rps: Option<String>,
    /// The binary that runs the user-space link if this kernel has no netem.
    pub program: Option<PathBuf>,
}

impl Default for PairSpec {
    fn default() -> Self {
        Self {
            queues: 4,
            links: 1,
            rate: None,
            delay: None,
            spin: SPIN,
            loss: 0.0,
            mtu: None,
            rps: None,
            program: None,
        }
    }
}

/// Names of the two hosts.
pub const HOSTS: [&str; 2] = ["left", "right"];

/// Creates both hosts and their links.
///
/// # Errors
/// Errors of the tools; the lab removes itself when dropped.
pub fn up(lab: &mut Lab, spec: &PairSpec) -> Result<(), LabError> {
    check(spec)?;
    let spaces = [netns::make(lab, HOSTS[0])?, netns::make(lab, HOSTS[1])?];
    let mut addresses = [Vec::new(), Vec::new()];
    let impaired = spec.delay.is_some() || spec.loss > 0.0;
    let netem = impaired && has_netem(&spaces[0]);
    let carried = impaired && !netem;
    for index in 0..spec.links {
        let link = format!("eth{index}");
        if carried {
            start_link(lab, spec, &spaces, &link)?;
        } else {
            tool::ip(&format!(
                "-n {} link add {link} numtxqueues {q} numrxqueues {q} type veth peer name {link} numtxqueues {q} numrxqueues {q} netns {}",
                spaces[0],
                spaces[1],
                q = spec.queues
            ))?;
        }
        for (side, space) in spaces.iter().enumerate() {
            let v4 = format!("10.99.{index}.{}", side + 1);
            let v6 =
                Ipv6Addr::new(0xfd99, 0, 0, index as u16, 0, 0, 0, side as u16 + 1).to_string();
            if let Some(mtu) = spec.mtu {
                tool::ip(&format!("-n {space} link set {link} mtu {mtu}"))?;
            }
            netns::address(space, &link, &[&format!("{v4}/24"), &format!("{v6}/64")])?;
            configure_end(space, &link, spec, netem)?;
            if let Some(list) = addresses.get_mut(side) {
                list.extend([v4, v6]);
            }
        }
    }
    for ((name, space), addresses) in HOSTS.iter().zip(&spaces).zip(addresses) {
        lab.add_host(HostState {
            name: (*name).to_owned(),
            reach: NodeAccess::Namespace { namespace: space.clone(), cgroups: Vec::new() },
            addresses,
            about: format!(
                "namespace, {}, {} each",
                many(spec.links, if carried { "tap" } else { "veth" }),
                many(spec.queues, "queue")
            ),
        });
    }
    Ok(())
}

fn check(spec: &PairSpec) -> Result<(), LabError> {
    let within = |what: &str, n: u32, low: u32, high: u32| {
        if (low..=high).contains(&n) {
            Ok(())
        } else {
            Err(LabError::Usage(format!("{what} must be {low} to {high}, not {n}")))
        }
    };
    within("--queues", spec.queues, 1, 64)?;
    within("--links", spec.links, 1, 8)?;
    if let Some(mtu) = spec.mtu {
        within("--mtu", mtu, 68, 65_535)?;
    }
    if let Some(mask) = spec.rps.as_ref().filter(|m| !is_mask(m)) {
        return Err(LabError::Usage(format!(
            "--rps {mask:?} is no mask of CPUs; write it in hexadecimal, like 3 or f0 or 1,00000000"
        )));
    }
    if !(0.0..=1.0).contains(&spec.loss) {
        return Err(LabError::Usage("--loss must be 0% to 100%".into()));
    }
    Ok(())
}

/// Whether sysfs accepts it as a CPU mask: groups of at most eight hexadecimal digits.
fn is_mask(text: &str) -> bool {
    text.split(',').all(|g| (1..=8).contains(&g.len()) && g.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Text such as `1 veth` or `2 veths`.
fn many(n: u32, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Whether this kernel has netem, tested on the loopback of a namespace.
fn has_netem(space: &str) -> bool {
    let lo = |verb: &str| {
        let words = format!("qdisc {verb} dev lo root netem delay 1ms");
        netns::run(space, "tc", &words.split(' ').collect::<Vec<_>>())
    };
    lo("add").is_ok() && lo("del").is_ok()
}

/// Starts the user-space link between two taps and waits until both exist.
fn start_link(
    lab: &mut Lab,
    spec: &PairSpec,
    spaces: &[String; 2],
    link: &str,
) -> Result<(), LabError> {
    let Some(program) = &spec.program else {
        return Err(LabError::failed("delaying packets", "this kernel has no netem (sch_netem)"));
    };
    let carrier = LinkSpec {
        namespaces: spaces.clone(),
        link: link.to_owned(),
        queues: spec.queues,
        delay: spec.delay.unwrap_or_default(),
        spin: spec.spin,
        loss: spec.loss,
        seed: 1,
        stats: lab.folder.join(format!("link-{link}.json")),
    };
    let failed = |e: std::io::Error| LabError::failed("starting the link", e);
    let json = serde_json::to_string(&carrier).map_err(|e| failed(e.into()))?;
    let log = std::fs::File::create(lab.folder.join(format!("link-{link}.log"))).map_err(failed)?;
    let mut command = tool::command_after_release(&program.to_string_lossy());
    command.args(["lab", "pair-link", &json]).stdout(Stdio::piped()).stderr(log);
    // SAFETY: only setsid is called between fork and exec; the terminal's Ctrl-C and hang-up
    // are not the link's.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            setsid().map(drop).map_err(Into::into)
        })
    };
    let mut child = command.spawn().map_err(failed)?;
    lab.release(&mut child, "the link")?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(failed)?;
    }
    if line.trim() != "ready" {
        let said = std::fs::read_to_string(lab.folder.join(format!("link-{link}.log")))
            .unwrap_or_default();
        return Err(LabError::failed("starting the link", said.trim()));
    }
    lab.note(format!("{link}: this kernel has no netem, so a process carries the frames"));
    Ok(())
}

/// Sets rate, delay, loss and RPS of one end.
fn configure_end(space: &str, link: &str, spec: &PairSpec, netem: bool) -> Result<(), LabError> {
    if let Some(BitsPerSec(rate)) = spec.rate {
        // The bucket holds 1 ms or 10 full frames, so that TCP reaches the rate without long
        // bursts.
        let burst = Bytes((rate / 8 / 1000).max(15_140));
        netns::run(
            space,
            "tc",
            &[
                "qdisc",
                "add",
                "dev",
                link,
                "root",
                "handle",
                "1:",
                "tbf",
                "rate",
                &format!("{rate}bit"),
                "burst",
                &format!("{}", burst.0),
                "latency",
                "50ms",
            ],
        )?;
    }
    if netem {
        let delay = spec.delay.unwrap_or_default().0;
        let mut words = vec!["qdisc".to_owned(), "add".into(), "dev".into(), link.into()];
        // Attached below the rate limit, if there is one.
        words.extend(if spec.rate.is_some() {
            vec!["parent".into(), "1:1".into()]
        } else {
            vec!["root".into()]
        });
        words.extend([
            "netem".into(),
            "limit".into(),
            "16384".into(),
            "delay".into(),
            format!("{}us", delay as f64 / 1e3),
        ]);
        if spec.loss > 0.0 {
            words.extend(["loss".into(), format!("{}%", spec.loss * 100.0)]);
        }
        netns::run(space, "tc", &words.iter().map(String::as_str).collect::<Vec<_>>())?;
    }
    if let Some(mask) = &spec.rps {
        for q in 0..spec.queues {
            netns::write(space, &format!("/sys/class/net/{link}/queues/rx-{q}/rps_cpus"), mask)?;
        }
    }
    Ok(())
}
