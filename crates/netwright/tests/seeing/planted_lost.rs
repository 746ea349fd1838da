//! Settings that a driver, or somebody else, takes away after `tune apply`: `doctor` names them, its
//! remedy brings them back, and look-alikes are left alone. In namespaces of the tests.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::support::{
    NETWRIGHT,
    planted::{finding, found, silent},
    run,
    tuned::on_a_host,
};

/// `doctor` beside the journal of this folder.
fn doctor(state: &Path) -> Value {
    let mut command = Command::new(NETWRIGHT);
    command.args(["doctor", "--json", "--no-bpf", "--window", "200ms"]);
    let out = command.env("NETWRIGHT_STATE", state).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// A driver that makes its queues anew forgets what was set at them: veth's, by `ethtool -L`.
#[test]
fn a_queue_made_anew_loses_its_setting_and_the_remedy_brings_it_back() {
    on_a_host(|host| {
        let state = host.state.path();
        let rule = "setting_lost";
        silent(&doctor(state), rule);
        let (code, out, err) = host.tune(&[
            "apply",
            "--no-confirm",
            "nic.v0.queue.rx-1.rps_cpus=1",
            "nic.v0.mtu=1400",
        ]);
        assert_eq!(code, 0, "{out}{err}");
        silent(&doctor(state), rule);
        run("ethtool", &["-L", "v0", "rx", "1"]);
        // The queue is not there: nothing to set.
        silent(&doctor(state), rule);
        run("ethtool", &["-L", "v0", "rx", "4"]);
        let d = doctor(state);
        let f = found(&d, rule, "v0");
        assert_eq!(
            (&f["severity"], &f["confidence"]),
            (&"warning".into(), &"high".into()),
            "{f:#}"
        );
        assert_eq!(f["evidence"].as_array().unwrap().len(), 1, "the MTU is as it was set: {f:#}");
        assert!(f["explanation"].as_str().unwrap().contains("made its queues anew"), "{f:#}");
        let change = &f["changes"][0];
        assert_eq!(change["knob"], "nic.v0.queue.rx-1.rps_cpus", "{f:#}");
        let again =
            format!("{}={}", change["knob"].as_str().unwrap(), change["new"].as_str().unwrap());
        let (code, out, err) = host.tune(&["apply", "--no-confirm", &again]);
        assert_eq!(code, 0, "{out}{err}");
        silent(&doctor(state), rule);
        // The first change is still to be in force when the second is undone; what was undone is no loss.
        for lost in [1, 0] {
            let (code, out, err) = host.tune(&["rollback"]);
            assert_eq!(code, 0, "{out}{err}");
            let d = doctor(state);
            let all = d["findings"].as_array().unwrap().iter().filter(|f| f["rule"] == rule);
            assert_eq!(all.count(), lost, "{d:#}");
        }
    });
}

/// The look-alike: somebody else writes a value of their own; and an interface goes with its values.
#[test]
fn a_value_of_somebody_else_is_not_taken_for_the_drivers() {
    on_a_host(|host| {
        let state = host.state.path();
        run("ip", &["link", "add", "d7", "type", "veth", "peer", "d8"]);
        let args = ["apply", "--no-confirm", "nic.v0.mtu=1400", "nic.d7.txqueuelen=77"];
        let (code, out, err) = host.tune(&args);
        assert_eq!(code, 0, "{out}{err}");
        run("ip", &["link", "set", "v0", "mtu", "1300"]);
        run("ip", &["link", "del", "d7"]);
        let d = doctor(state);
        let f = found(&d, "setting_lost", "v0");
        assert_eq!(f["title"], "nic.v0.mtu is 1300, and netwright set it to 1400", "{f:#}");
        assert!(
            f["explanation"].as_str().unwrap().contains("another program, or a person"),
            "{f:#}"
        );
        let rest = d["findings"].as_array().unwrap().iter().filter(|f| f["rule"] == "setting_lost");
        assert_eq!(rest.count(), 1, "{d:#}");
        run("ip", &["link", "set", "v0", "mtu", "1400"]);
        assert!(finding(&doctor(state), "setting_lost").is_none());
    });
}
