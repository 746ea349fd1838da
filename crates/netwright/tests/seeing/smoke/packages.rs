//! The packages, of the program as `make static` builds it: judged by the tools of their kind, and
//! installed, used, upgraded and removed in a root that has neither a compiler nor a C library.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use serde_json::Value;

use super::{artifacts, bare::Bare, built, repository};

/// A day in 2026, as a package has one.
const DATE: &str = "1790000000";

/// Standard output of a command that must end well.
fn said(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (text, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{command:?}: {}: {text}{err}", out.status);
    text.into_owned()
}

/// Runs a program of the build machine.
fn tool(program: &str, args: &[&str]) -> String {
    said(Command::new(program).args(args).env("LC_ALL", "C"))
}

/// A package of this revision, in a new folder.
fn package(kind: &str, revision: &str, into: &Path) -> String {
    let mut command = Command::new(repository().join("scripts/package"));
    command.arg(kind).arg(built()).env("OUT", into).env("REVISION", revision);
    command.env("PACK", "fast").env("SOURCE_DATE_EPOCH", DATE);
    command.env("DEBFULLNAME", "Netwright").env("DEBEMAIL", "packages@example.org");
    said(&mut command).trim().to_owned()
}

/// The first revision's .deb, packed once.
fn first_deb() -> &'static str {
    static PACKED: OnceLock<String> = OnceLock::new();
    PACKED.get_or_init(|| {
        package("deb", "1", &Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages"))
    })
}

/// How a kind of package is installed into a root.
struct Manager<'a> {
    root: &'a Bare,
    kind: &'static str,
}

impl Manager<'_> {
    fn deb(root: &Bare) -> Manager<'_> {
        let database = root.path().join("var/lib/dpkg");
        for folder in ["info", "updates"] {
            fs::create_dir_all(database.join(folder)).unwrap();
        }
        for file in ["status", "available"] {
            fs::write(database.join(file), "").unwrap();
        }
        Manager { root, kind: "deb" }
    }

    fn rpm(root: &Bare) -> Manager<'_> {
        let manager = Manager { root, kind: "rpm" };
        manager.run(&["--initdb"]);
        manager
    }

    fn run(&self, args: &[&str]) -> String {
        let (program, own): (_, &[&str]) = match self.kind {
            "deb" => ("dpkg", &["--log=/dev/null"]),
            // Debian's keeps its database in the home of whoever runs it.
            _ => ("rpm", &["--dbpath", "/var/lib/rpm"]),
        };
        let root = format!("--root={}", self.root.path().display());
        said(Command::new(program).arg(root).args(own).args(args).env("LC_ALL", "C"))
    }

    fn install(&self, package: &str) {
        self.run(&[if self.kind == "deb" { "-i" } else { "-U" }, package]);
    }

    /// Fails where an installed file is not as it was packed.
    fn verify(&self) -> String {
        self.run(&["-V", "netwright"])
    }

    fn version(&self) -> String {
        match self.kind {
            "deb" => tool_of(self, &["-W", "-f", "${Version}", "netwright"]),
            _ => self.run(&["-q", "--queryformat", "%{VERSION}-%{RELEASE}", "netwright"]),
        }
    }

    fn remove(&self) {
        self.run(&[if self.kind == "deb" { "--purge" } else { "-e" }, "netwright"]);
    }
}

fn tool_of(manager: &Manager<'_>, args: &[&str]) -> String {
    let database = format!("--admindir={}/var/lib/dpkg", manager.root.path().display());
    tool("dpkg-query", &[&[database.as_str()], args].concat())
}

/// The files outside of the package manager's own.
fn files(root: &Bare) -> BTreeSet<PathBuf> {
    let own = ["var/lib/dpkg", "var/lib/rpm"];
    root.files().into_iter().filter(|f| !own.iter().any(|o| f.starts_with(o))).collect()
}

/// The folders below `usr`, and that of units.
fn folders(root: &Bare) -> Vec<String> {
    let root = root.path().to_str().unwrap();
    let found = tool("find", &[root, "-mindepth", "1", "-type", "d", "-path", "*netwright*"]);
    found.lines().filter(|f| !f.contains("/var/")).map(str::to_owned).collect()
}

/// What a user leaves: a run in the history, and a change in the journal.
fn used(root: &Bare) -> BTreeSet<PathBuf> {
    said(&mut root.alone(&["doctor", "--window", "200ms"]));
    said(&mut root.alone(&["tune", "apply", "--no-confirm", "sysctl.net.ipv4.tcp_fin_timeout=31"]));
    let made: BTreeSet<PathBuf> =
        root.files().into_iter().filter(|f| f.starts_with("var/lib/netwright")).collect();
    assert!(made.contains(Path::new("var/lib/netwright/history.sqlite")), "{made:?}");
    assert!(made.len() >= 2, "no journal: {made:?}");
    made
}

/// Installs, uses, upgrades and removes a package; checks what is there after each.
fn lives(root: &Bare, manager: &Manager<'_>, first: &str, second: &str) {
    let before = files(root);
    assert!(before.is_empty(), "{before:?}");
    manager.install(first);
    assert_eq!(manager.version(), "0.1.0-1");
    assert_eq!(manager.verify(), "");
    assert!(root.run(&["--version"]).starts_with("netwright 0.1.0"));
    let found = root.run(&["doctor", "--json", "--window", "200ms"]);
    assert!(found.contains("\"passed\""), "{found}");
    // The pages are read by the `man` of the build machine: the root has none.
    let manuals = root.path().join("usr/share/man");
    for page in ["netwright", "netwright-tune-plan", "netwright-exit-codes"] {
        let text = tool("man", &["--manpath", manuals.to_str().unwrap(), page]);
        assert!(text.contains(&page.to_uppercase()) && text.contains("DESCRIPTION"), "{text}");
    }
    // The unit is there, and nothing starts it.
    let unit = Path::new("usr/lib/systemd/system/netwright-export.service");
    assert!(files(root).contains(unit));
    assert!(!files(root).iter().any(|f| f.starts_with("etc")), "{:?}", files(root));
    let made = used(root);
    manager.install(second);
    assert_eq!(manager.version(), "0.1.0-2");
    assert_eq!(manager.verify(), "");
    assert!(made.is_subset(&files(root)), "the upgrade took {made:?}");
    manager.remove();
    assert_eq!(files(root), made, "what is left, against what the user made");
    assert_eq!(folders(root), Vec::<String>::new());
}

#[test]
fn a_deb_is_clean_and_leaves_only_what_its_user_made() {
    let (folder, first) = (tempfile::tempdir().unwrap(), first_deb());
    let twice = package("deb", "1", folder.path());
    assert!(fs::read(first).unwrap() == fs::read(twice).unwrap(), "two packages differ");
    assert_eq!(tool("lintian", &["--allow-root", first]), "");
    assert_eq!(tool("dpkg-deb", &["--field", first, "Depends", "Pre-Depends"]), "");
    let control = folder.path().join("control");
    tool("dpkg-deb", &["--control", first, control.to_str().unwrap()]);
    let members = fs::read_dir(control).unwrap().map(|e| e.unwrap().file_name());
    let members: BTreeSet<_> = members.collect();
    assert_eq!(members, ["control", "md5sums"].map(Into::into).into(), "no scripts");
    let root = Bare::empty();
    lives(&root, &Manager::deb(&root), first, &package("deb", "2", folder.path()));
}

#[test]
fn an_rpm_needs_nothing_and_leaves_only_what_its_user_made() {
    let folder = tempfile::tempdir().unwrap();
    let first = package("rpm", "1", folder.path());
    assert!(tool("rpm", &["-K", &first]).ends_with("digests OK\n"));
    // What rpm itself must be able to do, and no file or package.
    let needs = tool("rpm", &["-qp", "--requires", &first]);
    assert!(needs.lines().all(|n| n.starts_with("rpmlib(")), "{needs}");
    assert_eq!(tool("rpm", &["-qp", "--scripts", &first]), "");
    let listed = tool("rpm", &["-qpl", &first]);
    for file in ["/usr/bin/netwright", "/usr/share/man/man1/netwright.1.gz"] {
        assert!(listed.lines().any(|l| l == file), "no {file}: {listed}");
    }
    let root = Bare::empty();
    lives(&root, &Manager::rpm(&root), &first, &package("rpm", "2", folder.path()));
}

/// The crates from the registry that cargo compiled for the program, as `NAME VERSION`. What only builds
/// is compiled for the build machine, into another folder.
fn compiled() -> BTreeSet<String> {
    let target = format!("/{}-unknown-linux-gnu/", std::env::consts::ARCH);
    let of_target = |m: &&Value| {
        let file = m["filenames"][0].as_str().unwrap_or_default();
        file.contains(&target) && m["target"]["kind"][0] != "custom-build"
    };
    let ids = artifacts().iter().filter(of_target).filter_map(|m| m["package_id"].as_str());
    // registry+https://…/crates.io-index#NAME@VERSION
    let outside = ids.filter(|id| id.starts_with("registry+"));
    outside.map(|id| id.split('#').nth(1).unwrap().replacen('@', " ", 1)).collect()
}

#[test]
fn the_bill_of_materials_is_what_was_compiled_and_each_has_its_licence() {
    let folder = tempfile::tempdir().unwrap();
    let tree_of = folder.path().join("tree");
    tool("dpkg-deb", &["-x", first_deb(), tree_of.to_str().unwrap()]);
    let doc = tree_of.join("usr/share/doc/netwright");
    let bill = doc.join("sbom.cdx.json");
    said(Command::new(repository().join("scripts/cyclonedx")).arg(&bill));
    let document: Value = serde_json::from_str(&fs::read_to_string(&bill).unwrap()).unwrap();
    let components = document["components"].as_array().unwrap();
    let text = |c: &Value, key: &str| c[key].as_str().unwrap().to_owned();
    let named = |c: &Value| format!("{} {}", text(c, "name"), text(c, "version"));
    let is_crate = |c: &&Value| text(c, "purl").starts_with("pkg:cargo/");
    let crates: BTreeSet<String> = components.iter().filter(is_crate).map(named).collect();
    assert_eq!(crates, compiled(), "the bill, against what was compiled for the program");
    assert!(crates.len() > 100, "{crates:?}");
    // The hash of a crate is that of Cargo.lock, which cargo itself compares with what it downloads.
    let lock = fs::read_to_string(repository().join("Cargo.lock")).unwrap();
    for c in components.iter().filter(is_crate) {
        let hash = c["hashes"][0]["content"].as_str().unwrap_or_else(|| panic!("{c} has no hash"));
        let entry =
            format!("name = \"{}\"\nversion = \"{}\"\n", text(c, "name"), text(c, "version"));
        let of = lock.split(&entry).nth(1).unwrap().split("\n\n").next().unwrap();
        assert!(of.contains(hash), "{c}: {of}");
    }
    let others: BTreeSet<String> =
        components.iter().filter(|c| !is_crate(c)).map(|c| text(c, "name")).collect();
    assert_eq!(others, ["glibc", "libgcc", "rust-std", "sqlite", "zstd"].map(str::to_owned).into());
    let program = tree_of.join("usr/bin/netwright");
    let hash = tool("sha256sum", &[program.to_str().unwrap()]);
    let told = document["metadata"]["component"]["hashes"][0]["content"].as_str().unwrap();
    assert!(hash.starts_with(told), "{hash} is not {told}");
    // Each component stands above a text, and in the table of the file `copyright`.
    let texts = tool("zcat", &[doc.join("licences.txt.gz").to_str().unwrap()]);
    let heads: BTreeSet<&str> = texts.lines().collect();
    let table = fs::read_to_string(doc.join("copyright")).unwrap();
    for name in components.iter().map(named) {
        assert!(heads.contains(name.as_str()), "no licence text of {name}");
        assert!(table.contains(&format!("\n {name}: ")), "{name} is not in the table");
    }
    let many = texts.matches("Permission is hereby granted").count();
    assert!(many > 20, "only {many} copies of the MIT licence with their copyright");
}

/// The image has nothing but the program, and that one runs in it.
#[test]
fn the_container_image_runs() {
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    fs::create_dir(&context).unwrap();
    fs::copy(built(), context.join("netwright")).unwrap();
    // A store of its own, and no privilege that this test's own container could lack.
    let state = |name: &str| folder.path().join(name).display().to_string();
    let (root, run) = (state("root"), state("run"));
    let buildah = |args: &[&str]| {
        let own = ["--storage-driver", "vfs", "--root", &root, "--runroot", &run];
        tool("buildah", &[&own[..], args].concat())
    };
    let file = repository().join("packaging/container/Containerfile");
    let (file, context) = (file.to_str().unwrap(), context.to_str().unwrap());
    buildah(&["build", "--isolation", "chroot", "-f", file, "-t", "netwright", context]);
    let container = buildah(&["from", "--pull-never", "localhost/netwright"]);
    let mount = buildah(&["mount", container.trim()]);
    let inside = tool("find", &[mount.trim(), "-type", "f"]);
    assert_eq!(inside.trim(), format!("{}/usr/bin/netwright", mount.trim()));
    let own = ["run", "--isolation", "chroot", container.trim(), "--", "/usr/bin/netwright"];
    assert!(buildah(&[&own[..], &["--version"]].concat()).starts_with("netwright 0.1.0"));
    let found = buildah(&[&own[..], &["doctor", "--json", "--window", "200ms"]].concat());
    assert!(found.contains("\"passed\""), "{found}");
}

/// By the metadata of Cargo.toml `cargo binstall` looks for this archive, and for the program in it.
#[test]
fn the_archive_is_the_one_that_binstall_looks_for() {
    let folder = tempfile::tempdir().unwrap();
    let archive = PathBuf::from(package("tar", "1", folder.path()));
    let manifest = fs::read_to_string(repository().join("crates/netwright/Cargo.toml")).unwrap();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let value = |key: &str| {
        let line = manifest.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(" = \""));
        let line = line.unwrap_or_else(|| panic!("no {key}")).trim_end_matches('"');
        let line = line.replace("{ version }", env!("CARGO_PKG_VERSION"));
        line.replace("{ target }", &target).replace("{ bin }", "netwright")
    };
    let url = value("pkg-url");
    assert_eq!(url.rsplit('/').next(), archive.file_name().unwrap().to_str(), "{url}");
    let listed = tool("tar", &["-tzf", archive.to_str().unwrap()]);
    assert!(listed.lines().any(|l| l == value("bin-dir")), "{listed}");
}
