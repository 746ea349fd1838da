//! Tests of refusals, with their reasons and exit codes.

use std::{fs, process::Command};

use super::{CHANGES, namespace, print, tune};
use crate::support::{NETWRIGHT, output, run};

#[test]
fn what_a_namespace_only_shows_is_refused_by_the_plan() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    // Read-only or missing there, depending on the kernel.
    for ask in ["sysctl.net.core.rmem_max=67108864", "sysctl.net.core.netdev_max_backlog=20000"] {
        for args in [&["plan"][..], &["apply", "--dry-run"], &["apply"]] {
            let args = [args, &["--netns", &ns.name, ask]].concat();
            let (code, out, err) = tune(state.path(), &args);
            assert!(code == 4 && err.contains("it is the whole host's"), "{args:?} {out}{err}");
        }
    }
    assert!(!state.path().join("journal/000001.jsonl").exists());
}

#[test]
fn findings_of_another_host_are_refused_and_none_are_nothing_to_change() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let (_, out, _) = tune(state, &["plan", "--json", "--netns", &ns.name, "nic.v0.mtu=1400"]);
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    let file = state.join("findings.json");
    let write = |key: &str, value: serde_json::Value, findings: serde_json::Value| {
        let mut id = plan["host"].clone();
        if !key.is_empty() {
            id[key] = value;
        }
        let document = serde_json::json!({
            "findings": findings, "host": {"name": id["name"]}, "source": {"kind": "live", "id": id},
        });
        fs::write(&file, document.to_string()).unwrap();
    };
    let none = || serde_json::json!([]);
    let file = file.to_str().unwrap();
    write("", none(), none());
    let (code, out, err) = tune(state, &["plan", "--netns", &ns.name, file]);
    assert!(code == 0 && out.contains("nothing to change"), "{code} {out}{err}");
    let (code, out, err) = tune(state, &["plan", "--json", "--netns", &ns.name, file]);
    let made: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(code == 0 && made["changes"] == none(), "{out}{err}");
    let (code, out, err) = tune(state, &["apply", "--netns", &ns.name, file]);
    assert!(code == 0 && out.contains("Nothing to change"), "{code} {out}{err}");

    let (code, out, err) = tune(state, &["plan", file]);
    assert!(code == 4 && err.contains("of another network namespace"), "{code} {out}{err}");
    for (key, why) in [
        ("name", "another host (other"),
        ("machine_id", "another host"),
        ("boot_id", "another boot"),
    ] {
        write(key, "other".into(), none());
        for command in ["plan", "apply"] {
            let (code, out, err) = tune(state, &[command, "--netns", &ns.name, file]);
            assert!(code == 4 && err.contains(why) && out.is_empty(), "{key}: {code} {out}{err}");
        }
    }
    let out = output(NETWRIGHT, &["doctor", "--json", "--window", "100ms"]);
    let reported: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(reported["source"]["id"]["boot_id"].is_string(), "{}", reported["source"]);
}

#[test]
fn apply_names_all_that_it_refuses() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let asks = ["nic.v0.mtu=nonsense", "nic.v9.mtu=1400", "sysctl.net.nothing=1", "nic.v0.mtux=1"];
    let ask = [&["apply", "--netns", &ns.name][..], &asks].concat();
    let (code, out, err) = tune(state.path(), &ask);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), asks.len(), "{err}");
    for ask in asks {
        assert_eq!(lines.iter().filter(|l| l.contains(ask)).count(), 1, "{ask}: {err}");
    }
    assert!(lines.last().is_some_and(|l| l.contains(asks[0])), "the exit code's: {err}");
}

/// The range named by a refusal is one that this kernel takes; further values that it takes have no
/// documented meaning.
#[test]
fn ranges_are_the_kernels_own() {
    /// The kernel takes more than it gives a meaning to.
    const LAX: &[&str] = &[
        "ip_early_demux",
        "ip_no_pmtu_disc",
        "tcp_abort_on_overflow",
        "tcp_dsack",
        "tcp_early_demux",
        "tcp_fastopen",
        "tcp_fin_timeout",
        "tcp_frto",
        "tcp_keepalive_intvl",
        "tcp_keepalive_time",
        "tcp_limit_output_bytes",
        "tcp_max_syn_backlog",
        "tcp_max_tw_buckets",
        "tcp_moderate_rcvbuf",
        "tcp_mtu_probing",
        "tcp_no_metrics_save",
        "tcp_recovery",
        "tcp_rfc1337",
        "tcp_sack",
        "tcp_slow_start_after_idle",
        "tcp_syncookies",
        "tcp_thin_linear_timeouts",
        "tcp_timestamps",
        "tcp_window_scaling",
        "udp_early_demux",
        "max_dgram_qlen",
    ];
    /// Other kernels may take more than this one.
    const WIDER: &[&str] = &["tcp_ecn"];
    const EXACT: &[&str] = &[
        "somaxconn",
        "tcp_adv_win_scale",
        "tcp_app_win",
        "tcp_autocorking",
        "tcp_early_retrans",
        "tcp_ecn_fallback",
        "tcp_keepalive_probes",
        "tcp_min_snd_mss",
        "tcp_min_tso_segs",
        "tcp_notsent_lowat",
        "tcp_orphan_retries",
        "tcp_pacing_ca_ratio",
        "tcp_pacing_ss_ratio",
        "tcp_retries1",
        "tcp_retries2",
        "tcp_rmem",
        "tcp_shrink_window",
        "tcp_syn_retries",
        "tcp_synack_retries",
        "tcp_tso_win_divisor",
        "tcp_tw_reuse",
        "tcp_wmem",
        "udp_rmem_min",
        "udp_wmem_min",
    ];
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let folder = |name: &str| match name {
        "somaxconn" => "core",
        "max_dgram_qlen" => "unix",
        _ => "ipv4",
    };
    let words = |name: &str, n: i64| match name {
        "tcp_rmem" | "tcp_wmem" => format!("{n} {n} {n}"),
        _ => n.to_string(),
    };
    let names: Vec<&str> = [LAX, WIDER, EXACT].concat();
    let ask =
        |n| names.iter().map(move |k| format!("sysctl.net.{}.{k}={}", folder(k), words(k, n)));
    let mut args = vec!["plan".to_owned(), "--json".into(), "--netns".into(), ns.name.clone()];
    args.extend(ask(-99_999));
    let (code, out, err) = tune(state.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(code, 2, "{err}");
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    let refused = plan["refused"].as_array().unwrap();
    assert_eq!(refused.len(), names.len(), "{out}");
    let takes = |name: &str, n: i64| {
        let file = format!("/proc/sys/net/{}/{name}", folder(name));
        let value = words(name, n);
        let script = format!("echo {value} > {file} && cat {file}");
        let out = ns.output("sh", &["-c", &script]);
        let back =
            String::from_utf8_lossy(&out.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        out.status.success() && back == value
    };
    for r in refused {
        let name = r["knob"].as_str().unwrap().rsplit('.').next().unwrap();
        let why = r["why"].as_str().unwrap();
        let range = why.split("out of range: ").nth(1).unwrap_or_else(|| panic!("{name}: {why}"));
        let number =
            |i: usize| range.split(' ').filter_map(|w| w.parse::<i64>().ok()).nth(i).unwrap();
        let (least, most) = (number(0), number(1));
        // Ticks: a kernel with fewer per second takes more.
        if !WIDER.contains(&name) {
            assert!(takes(name, least) && takes(name, most), "{name}: {least} to {most}");
        }
        if !LAX.contains(&name) {
            assert!(!takes(name, least - 1) && !takes(name, most + 1), "{name}: {least} to {most}");
        }
    }
    println!("{} settings held against this kernel", refused.len());
}

/// Where the answer cannot be written, the exit code says so, and the error has the result.
#[test]
fn a_full_standard_output_is_exit_code_4_and_never_hides_what_was_done() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let full = |args: &[&str]| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(NETWRIGHT);
        command.args(args).env("NETWRIGHT_STATE", state).env_remove("SSH_CONNECTION").stdout(full);
        let out = command.output().unwrap();
        (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let name = ns.name.as_str();
    let (mtu, fin) = (CHANGES[0], CHANGES[3]);
    for (args, done) in [
        (&["tune", "plan", "--netns", name, mtu][..], ""),
        (&["tune", "apply", "--netns", name, mtu], "Change 1 is in force"),
        (
            &["tune", "apply", "--netns", name, "--confirm", "1h", "--json", fin],
            "Change 2 is in force",
        ),
        (&["tune", "status"], ""),
        (&["tune", "status", "--json"], ""),
        (&["tune", "log"], ""),
        (&["tune", "confirm"], "Change 2 is confirmed"),
        (&["tune", "persist", "--dry-run"], ""),
        (&["tune", "persist", "--format", "shell"], ""),
        (&["tune", "rollback", "--dry-run"], ""),
        (&["tune", "rollback", "--all"], "Change 1 is rolled back"),
        (&["tune", "profiles"], ""),
        (&["tune", "profiles", "web"], ""),
        (&["tune", "--help"], ""),
        (&["--version"], ""),
        (&["doctor", "--window", "100ms"], ""),
        (&["doctor", "--window", "100ms", "--json"], ""),
    ] {
        let (code, err) = full(args);
        assert_eq!(code, 4, "{args:?}: {err}");
        assert!(err.contains("No space left") && err.contains(done), "{args:?}: {err}");
        assert!(!err.contains("internal error"), "{args:?}: {err}");
    }
    assert!(ns.run("ip", &["link", "show", "v0"]).contains("mtu 1500"));
}

#[test]
fn an_interface_that_is_not_there_and_two_places_for_one_answer_are_refused() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let of =
        |nics: &str| tune(state, &["plan", "--netns", &ns.name, "--profile", "web", "--nic", nics]);
    let (code, _, err) = of("v0,v9");
    let reported = "--nic v9: there is no such interface here; did you mean v0?";
    assert!(code == 4 && err.contains(reported), "{code} {err}");
    let (code, out, err) = of("v0,v1");
    assert_eq!(code, 0, "{out}{err}");
    let (code, _, err) = tune(state, &["persist", "--format", "shell", "--into", "/tmp"]);
    assert!(code == 2 && err.contains("cannot be used with"), "{code} {err}");
}

#[test]
fn rollback_names_what_is_missing_and_its_dry_run_needs_nothing() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let state = state.path();
    let before = print(&ns);
    let mut args = vec!["apply", "--netns", &ns.name, "--no-confirm"];
    args.extend(CHANGES);
    assert_eq!(tune(state, &args).0, 0);
    let folder = state.to_str().unwrap();
    // As an earlier netwright made them: readable by everybody.
    run("chmod", &["-R", "a+rX", folder]);
    let without = |how: &[&str], more: &[&str]| {
        let mut all = how.to_vec();
        all.extend([NETWRIGHT, "tune", "rollback", "--state-dir", folder]);
        all.extend(more);
        let out = ns.output("setpriv", &all);
        let text =
            |b: &[u8]| String::from_utf8_lossy(b).split_whitespace().collect::<Vec<_>>().join(" ");
        (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
    };
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let (code, out, err) = without(&nobody, &["--dry-run"]);
    assert!(code == 0 && out.contains("nic.v0.mtu would be 1500 again"), "{code} {out}{err}");
    assert!(
        out.contains("This process could not do it: ") && out.contains("CAP_NET_ADMIN"),
        "{out}"
    );
    let (code, _, err) = without(&nobody, &[]);
    assert!(code == 3 && err.contains("CAP_NET_ADMIN is missing"), "{code} {err}");
    // The journal is writable, the interface is not: nothing is written.
    let no_net = ["--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];
    let (code, out, err) = without(&no_net, &[]);
    assert!(code == 3 && err.contains("CAP_NET_ADMIN is missing"), "{code} {out}{err}");
    assert_eq!(ns.run("sysctl", &["-n", "net.core.somaxconn"]).trim(), "8192");
    let (_, out, _) = tune(state, &["log", "--json"]);
    assert!(out.contains("\"in_force\""), "{out}");
    assert_eq!(tune(state, &["rollback"]).0, 0);
    assert_eq!(print(&ns), before);
}

#[test]
fn what_has_no_limit_is_not_out_of_range() {
    let (ns, state) = (namespace(), tempfile::tempdir().unwrap());
    let (code, out, err) = tune(state.path(), &["plan", "--netns", &ns.name, "nic.lo.mtu=65536"]);
    assert!(code == 0 && out.contains("NO CHANGE NEEDED"), "{code} {out}{err}");
}
