//! The walk of `docs/fleet.md`: eight hosts, a real Prometheus, a diagnosis, and a change rolled out and
//! back by the command that the diagnosis printed.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::support::{NETWRIGHT, needs_root};

/// The lab's name on the page, and in this test.
const LAB: (&str, &str) = ("eight", "nwtest8");

fn commands() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fleet.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let commands: String = blocks.collect();
    assert!(commands.contains(LAB.0) && commands.contains("dashboard-picture"));
    // A busy machine takes longer to scrape and to judge.
    commands
        .replace(LAB.0, LAB.1)
        .replace("sleep 5", "sleep 15")
        .replace("timeout 60", "timeout 180")
}

/// Removes the lab, also after a panic.
struct Removed;

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = Command::new(NETWRIGHT).args(["lab", "down", LAB.1]).output();
    }
}

#[test]
fn eight_hosts_are_diagnosed_and_a_change_is_rolled_out_and_back() {
    needs_root();
    let (folder, _removed) = (tempfile::tempdir().unwrap(), Removed);
    let bin = Path::new(NETWRIGHT).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let collections = checkout.join("ansible");
    let mut walk = Command::new("bash");
    walk.args(["-uxc", &commands()]).current_dir(folder.path()).stdin(Stdio::null());
    // To files: what the script leaves behind would hold a pipe open.
    let file = |name: &str| fs::File::create(folder.path().join(name)).unwrap();
    walk.stdout(file("stdout")).stderr(file("stderr"));
    walk.env("PATH", path).env("HOME", folder.path()).env("NETWRIGHT_STORE", "off");
    walk.env("CHECKOUT", checkout)
        .env("ANSIBLE_COLLECTIONS_PATH", collections)
        .env("LC_ALL", "C.UTF-8");
    walk.env("ANSIBLE_NOCOLOR", "1").env("ANSIBLE_FORKS", "8");
    let status = walk.status().unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let said = || format!("{}\n{}", read("stdout"), read("stderr"));
    assert!(status.success(), "{}", said());

    let cause = |page: &str| {
        let line = page.lines().find(|l| l.starts_with("below_kernel_default")).map(str::to_owned);
        line.unwrap_or_default()
    };
    let five = |name: &str| {
        let line = cause(&read(name));
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) == Some(&"5") && line.ends_with("c1, c2, c3, c4, c5")
    };
    assert!(five("before"), "{}", said());
    assert!(read("before").contains("of 8 hosts have findings"), "{}", said());
    assert_eq!(cause(&read("after")), "", "{}", said());
    assert!(read("after").contains(" 8 hosts"), "{}", said());
    assert!(five("back"), "{}", said());
    // The dashboard has the hosts, their findings and their CPUs; a panel without data is one of few.
    let page = read("dashboard.html");
    for part in ["Findings of the last interval", "<td>c5</td>", "below_kernel_default", "CPU 0: "]
    {
        assert!(page.contains(part), "{part}: {page}\n{}", said());
    }
    let (panels, empty) = (page.matches("class=panel").count(), page.matches("No data").count());
    assert!(panels >= 25 && panels - empty >= 10, "{empty} of {panels}: {}", said());
}
