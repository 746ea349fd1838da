//! Cloud agents and the packages of cloud images that set up NICs.

use model::tuner::Tuner;
use parse::ini;

use super::{new, running, scan::Scan};

struct Agent {
    name: &'static str,
    /// Programs or scripts of its, by short name.
    processes: &'static [&'static str],
    /// Files that show it is installed.
    files: &'static [&'static str],
    owns: &'static [&'static str],
}

/// What each does to a NIC, as its own package does it.
const AGENTS: [Agent; 6] = [
    Agent {
        name: "google-guest-agent",
        processes: &["google_guest_agent", "google_guest_agent_manager"],
        files: &["/usr/bin/google_guest_agent", "/usr/bin/google_set_multiqueue"],
        owns: &["channels", "irq affinity", "xps"],
    },
    Agent {
        name: "waagent",
        processes: &["waagent"],
        files: &["/usr/sbin/waagent", "/usr/bin/waagent"],
        owns: &["nic settings", "root device timeout"],
    },
    Agent {
        name: "amazon-ec2-net-utils",
        processes: &[],
        files: &[
            "/usr/bin/setup-policy-routes",
            "/usr/lib/udev/rules.d/99-vpc-policy-routes.rules",
            "/etc/udev/rules.d/53-ec2-network-interfaces.rules",
        ],
        owns: &["addresses and routes of NICs"],
    },
    Agent {
        name: "cloud-init",
        processes: &["cloud-init"],
        files: &["/usr/bin/cloud-init"],
        owns: &["mtu", "network files at first boot"],
    },
    Agent {
        name: "ecs_mq",
        processes: &[],
        files: &["/usr/local/sbin/ecs_mq_rps_rfs", "/etc/systemd/system/ecs_mq-service.service"],
        owns: &["channels", "irq affinity", "rps"],
    },
    Agent {
        name: "oci-utils",
        processes: &["ocid"],
        files: &["/usr/libexec/ocid"],
        owns: &["addresses of NICs"],
    },
];

pub fn find(scan: &Scan<'_>) -> Vec<Tuner> {
    AGENTS.iter().filter_map(|agent| one(scan, agent)).collect()
}

fn one(scan: &Scan<'_>, agent: &Agent) -> Option<Tuner> {
    let pid = agent.processes.iter().find_map(|name| scan.by_name_or_script(name));
    let file = scan.installed(agent.files);
    if pid.is_none() && file.is_none() {
        return None;
    }
    let mut tuner = new("cloud_agent", agent.name);
    running(scan, &mut tuner, pid);
    tuner.owns = agent.owns.iter().map(|o| (*o).to_owned()).collect();
    tuner.evidence.extend(file.map(|f| format!("{f}: installed")));
    if agent.name == "google-guest-agent" {
        google(scan, &mut tuner);
    }
    Some(tuner)
}

/// Google's settings: `set_multiqueue` spreads queues and IRQs at every boot unless off.
fn google(scan: &Scan<'_>, tuner: &mut Tuner) {
    for path in ["/etc/default/instance_configs.cfg", "/etc/default/instance_configs.cfg.template"]
    {
        let Ok(bytes) = scan.root.read(path) else { continue };
        tuner.settings_files.push(path.to_owned());
        for e in ini::parse(&bytes).entries {
            if ["set_multiqueue", "network_daemon", "setup", "mtu"].contains(&e.key.as_str()) {
                tuner
                    .evidence
                    .push(format!("{path}:{}: [{}] {}={}", e.line, e.section, e.key, e.value));
            }
        }
    }
}
