//! Whether a boot of the host reads sysctl.conf.
//!
//! **Source**: systemd-sysctl.service(8) reads the folders of sysctl.d(5) alone; sysctl(8) `--system`
//! reads sysctl.conf as well.

use probe::Root;

const FOLDERS: [&str; 4] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

/// What the host's folders say of it, as a note.
pub fn of_sysctl_conf(root: &Root) -> String {
    let mut files = FOLDERS.iter().map(|f| format!("{f}/99-sysctl.conf"));
    let found = files.find(|f| root.link(f).is_ok() || root.exists(f));
    let by_procps = "`sysctl --system` (procps) does";
    match found {
        Some(file) => match root.link(&file) {
            Ok(to) if to.ends_with("sysctl.conf") => {
                format!("a boot of the host applies sysctl.conf: {file} links to it")
            }
            Ok(to) => format!(
                "{file} of the host links to {to}: a boot does not apply sysctl.conf; {by_procps}"
            ),
            Err(_) => format!(
                "{file} of the host is a file of its own: a boot does not apply sysctl.conf; {by_procps}"
            ),
        },
        None if FOLDERS.iter().any(|f| root.entries(f).is_ok()) => format!(
            "no 99-sysctl.conf of the host links to sysctl.conf: systemd does not apply it at boot; {by_procps}"
        ),
        None => {
            "sysctl.conf is applied at boot only where /etc/sysctl.d/99-sysctl.conf links to it \
                 (systemd), or by `sysctl --system` (procps)"
                .into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_of_the_host_decides() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("etc")).unwrap();
        std::fs::write(at("etc/hostname"), "h\n").unwrap();
        let said = || of_sysctl_conf(&Root::open(folder.path()).unwrap());
        assert!(said().starts_with("sysctl.conf is applied at boot only where"), "{}", said());
        std::fs::create_dir_all(at("usr/lib/sysctl.d")).unwrap();
        assert!(said().starts_with("no 99-sysctl.conf of the host"), "{}", said());
        std::fs::create_dir_all(at("etc/sysctl.d")).unwrap();
        std::os::unix::fs::symlink("../sysctl.conf", at("etc/sysctl.d/99-sysctl.conf")).unwrap();
        assert!(said().starts_with("a boot of the host applies sysctl.conf"), "{}", said());
        std::fs::remove_file(at("etc/sysctl.d/99-sysctl.conf")).unwrap();
        std::os::unix::fs::symlink("/etc/other.conf", at("etc/sysctl.d/99-sysctl.conf")).unwrap();
        assert!(said().contains("links to /etc/other.conf"), "{}", said());
        std::fs::remove_file(at("etc/sysctl.d/99-sysctl.conf")).unwrap();
        std::fs::write(at("etc/sysctl.d/99-sysctl.conf"), "vm.swappiness = 1\n").unwrap();
        assert!(said().contains("is a file of its own"), "{}", said());
    }
}
