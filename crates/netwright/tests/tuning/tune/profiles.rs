//! Tests of profiles, and of a file of settings that is refused.

use super::json;
use crate::support::{
    run,
    tuned::{on_a_host, same},
};

#[test]
fn a_profile_raises_what_is_low_leaves_what_is_high_and_skips_what_is_not_here() {
    on_a_host(|host| {
        // The present values decide what a profile changes.
        run("sysctl", &["-qw", "net.core.somaxconn=128", "net.ipv4.tcp_max_syn_backlog=65536"]);
        let low = host.print();
        let args = ["plan", "--profile", "web", "--nic", "v0", "--json"];
        let (code, out, err) = host.tune(&args);
        assert_eq!(code, 0, "{out}{err}");
        let plan = json(&out);
        let find = |list: &str, knob: &str| {
            let all = plan[list].as_array().unwrap();
            all.iter().find(|c| c["knob"] == knob).cloned().unwrap_or_default()
        };
        let raised = find("changes", "sysctl.net.core.somaxconn");
        assert_eq!((raised["old"].as_str(), raised["new"].as_str()), (Some("128"), Some("8192")));
        assert!(raised["why"].as_str().unwrap().contains("bursts"), "{raised}");
        let stays = find("unchanged", "sysctl.net.ipv4.tcp_max_syn_backlog");
        assert_eq!(stays["value"], "65536", "it is more than the profile wants");
        assert_eq!(find("refused", "nic.v0.coalesce.adaptive_rx")["kind"], "environment");
        same(&low, &host.print(), "after a plan only");

        let (code, out, err) = host.tune(&["apply", "--profile", "web", "--nic", "v0"]);
        assert_eq!(code, 0, "{out}{err}");
        assert!(err.contains("left out (profile web, line "), "{err}");
        assert_eq!(run("sysctl", &["-n", "net.core.somaxconn"]).trim(), "8192");
        assert_eq!(run("sysctl", &["-n", "net.ipv4.tcp_notsent_lowat"]).trim(), "131072");
        assert_eq!(host.tune(&["rollback"]).0, 0);
        same(&low, &host.print(), "after the rollback");
    });
}

#[test]
fn no_profile_lowers_anything_below_the_kernels_default() {
    on_a_host(|host| {
        for name in ["database", "latency", "storage-node", "throughput-10g", "web"] {
            let (code, out, err) = host.tune(&["plan", "--profile", name, "--nic", "v0", "--json"]);
            assert_eq!(code, 0, "{name}: {out}{err}");
            let plan = json(&out);
            for r in plan["refused"].as_array().unwrap() {
                let knob = r["knob"].as_str().unwrap();
                // Settings that a veth lacks, and those of the initial namespace.
                assert!(r["kind"] == "environment" || r["kind"] == "denied", "{name}: {knob}: {r}");
            }
            let all = ["changes", "unchanged", "refused"];
            let lines: usize = all.iter().map(|l| plan[l].as_array().unwrap().len()).sum();
            assert!(lines >= 6, "{name}: {lines}");
        }
    });
}

#[test]
fn the_recipe_of_2008_is_refused_line_by_line() {
    on_a_host(|host| {
        let (code, out, err) =
            host.tune(&["plan", "--profile", "lore-2008", "--nic", "v0", "--json"]);
        assert_eq!(code, 1, "{out}{err}");
        let plan = json(&out);
        assert_eq!(plan["changes"].as_array().unwrap().len(), 0, "{out}");
        assert_eq!(plan["unchanged"].as_array().unwrap().len(), 0, "{out}");
        let refused = plan["refused"].as_array().unwrap();
        assert_eq!(refused.len(), 16);
        for (knob, why) in [
            ("sysctl.net.ipv4.tcp_sack", "loss recovery"),
            ("sysctl.net.ipv4.tcp_timestamps", "wrap"),
            ("sysctl.net.ipv4.tcp_mem", "pages"),
            ("sysctl.net.ipv4.tcp_rmem", "every socket"),
            ("sysctl.net.core.netdev_max_backlog", "RPS"),
            ("setpci -d 8086:1a48 e6.b", "bare offset"),
            ("nic.v0.mtu", "every hop"),
            ("service irqbalance", "reset"),
        ] {
            let r = refused.iter().find(|r| r["knob"] == knob).unwrap_or_else(|| panic!("{knob}"));
            assert_eq!(r["kind"], "harmful", "{r}");
            assert!(r["why"].as_str().unwrap().contains(why), "{r}");
        }
        let (code, _, err) = host.tune(&["apply", "--profile", "lore-2008"]);
        assert!(code == 2 && err.contains("nothing of it can be applied"), "{code}: {err}");
        let (code, out, _) = host.tune(&["profiles"]);
        assert!(code == 0 && out.contains("lore-2008") && out.contains("COUNTER-EXAMPLE"), "{out}");
        let (code, out, _) = host.tune(&["profiles", "storage-node"]);
        assert!(code == 0 && out.contains("throughput-10g, line"), "{out}");
        let (code, _, err) = host.tune(&["plan", "--profile", "blue"]);
        assert!(code == 2 && err.contains("there is no profile \"blue\""), "{err}");
    });
}
