//! The program where there is no library and no other program: installed by `make install` into an
//! empty root, used there, and removed again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{built, repository};
use crate::support::{output, schema, serve::Serve};

/// A root that has nothing but what was installed, /proc and /sys.
pub struct Bare {
    root: tempfile::TempDir,
}

impl Bare {
    /// Without the program.
    pub fn empty() -> Self {
        let bare = Self { root: tempfile::tempdir().unwrap() };
        for folder in ["proc", "sys", "etc"] {
            fs::create_dir(bare.root.path().join(folder)).unwrap();
        }
        bare
    }

    fn installed() -> Self {
        let bare = Self::empty();
        bare.make("install");
        bare
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    fn make(&self, target: &str) {
        let (root, program) = (self.root.path().display(), built().display());
        let out = Command::new("make")
            .args(["-s", target, "PREFIX=/usr", &format!("DESTDIR={root}")])
            .arg(format!("BINARY={program}"))
            .current_dir(repository())
            .output()
            .unwrap();
        assert!(out.status.success(), "{target}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// `netwright ARGS` with this folder as its root, in a new mount namespace.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.inside(&["--mount"], "mount --rbind /sys", args);
        command.env("NETWRIGHT_STORE", "off");
        command
    }

    /// The same in a new network namespace, because it may change settings. History and journal are
    /// kept in this root.
    pub fn alone(&self, args: &[&str]) -> Command {
        let mut command = self.inside(&["--mount", "--net"], "mount -t sysfs sysfs", args);
        command.env_remove("NETWRIGHT_STORE").env_remove("NETWRIGHT_STATE");
        command
    }

    fn inside(&self, namespaces: &[&str], sys: &str, args: &[&str]) -> Command {
        let script = format!(
            r#"mount -t proc proc "$1/proc" && {sys} "$1/sys" &&
            root=$1 && shift && exec chroot "$root" /usr/bin/netwright "$@""#
        );
        let mut command = Command::new("unshare");
        command.args(namespaces).args(["sh", "-c", &script, "sh"]).arg(self.root.path());
        command.args(args).env_remove("NETWRIGHT_SECRET");
        command
    }

    /// Its standard output; it must end well.
    pub fn run(&self, args: &[&str]) -> String {
        let out = schema::ended(&mut self.command(args));
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{args:?}: {}: {said}", out.status);
        String::from_utf8(out.stdout).unwrap()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.root.path().join(file), text).unwrap();
    }

    /// Every file, relative to the root.
    pub fn files(&self) -> Vec<PathBuf> {
        let (mut found, mut open) = (vec![], vec![self.root.path().to_owned()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
                match entry.is_dir() {
                    true => open.push(entry),
                    false => found.push(entry.strip_prefix(&self.root).unwrap().to_owned()),
                }
            }
        }
        found
    }
}

#[test]
fn it_needs_no_library_and_no_loader() {
    let program = built().to_str().unwrap();
    let out = output("readelf", &["--wide", "--program-headers", "--dynamic", program]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("LOAD"), "{text}");
    assert!(!text.contains("INTERP") && !text.contains("(NEEDED)"), "{text}");
    // The same test sees both in a program that has them.
    let out = output("readelf", &["--wide", "--program-headers", "--dynamic", "/bin/sh"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("INTERP") && text.contains("(NEEDED)"), "{text}");
}

/// What the program tells of the machine that built it would differ in another folder.
#[test]
fn it_names_no_folder_of_whoever_built_it() {
    let program = fs::read(built()).unwrap();
    let home = std::env::var("HOME").unwrap();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let has = |text: &str| program.windows(text.len()).any(|w| w == text.as_bytes());
    for folder in [repository().to_str().unwrap(), &cargo] {
        assert!(!has(folder), "the program has {folder} in it");
    }
    assert!(has("softirq.bpf.c"), "the sources of eBPF programs are named otherwise now");
}

#[test]
fn an_empty_root_installs_uses_and_removes_it() {
    let bare = Bare::installed();
    let own = repository().join("share/man/man1/netwright.1");
    let page = bare.root.path().join("usr/share/man/man1/netwright.1");
    assert_eq!(fs::read(page).unwrap(), fs::read(own).unwrap());
    assert!(bare.run(&["--version"]).starts_with("netwright "));
    assert!(bare.run(&["help", "units"]).starts_with("Units: "));
    let facts: Value = serde_json::from_str(&bare.run(&["inspect", "--json"])).unwrap();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(facts["host"]["kernel"], kernel.trim());
    let found = bare.run(&["doctor", "--json", "--window", "300ms"]);
    assert!(found.contains("\"passed\""), "{found}");
    // Names: glibc's own `files` is part of the program. A module that the root does not have is
    // passed over.
    bare.write("etc/hosts", "127.0.0.1 only-in-this-file\n");
    bare.write("etc/nsswitch.conf", "hosts: resolve [!UNAVAIL=return] mymachines files\n");
    let serve = Serve::of(bare.command(&["serve", "--json", "--port", "0"]));
    let port = serve.target().rsplit(':').next().unwrap();
    let target = format!("only-in-this-file:{port}");
    let result = bare.run(&["measure", "rtt", &target, "--duration", "500ms", "--json"]);
    let result: Value = serde_json::from_str(&result).unwrap();
    assert!(result["runs"][0]["transactions"].as_u64().unwrap() > 100, "{result}");
    let refused = bare.command(&["measure", "rtt", "nobody.invalid:1"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("does not resolve"), "{said}");
    drop(serve);
    bare.make("uninstall");
    let mut left = bare.files();
    left.sort();
    assert_eq!(left, ["etc/hosts", "etc/nsswitch.conf"].map(PathBuf::from));
    assert!(!Path::new(bare.root.path()).join("usr/share/doc/netwright").exists());
}
