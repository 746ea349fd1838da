//! Where the kernel cmdline of the next boot is written, for advice: netwright never writes it.

use crate::Host;

/// How to set a parameter for the next boot: the file to edit, and the command after that.
pub fn advice(host: &Host, parameter: &str) -> String {
    let has = |path: &str| host.root().exists(path);
    let word = format!("{parameter}=…");
    if has("/run/ostree-booted") {
        return format!("rpm-ostree kargs --append={word}, then reboot");
    }
    if let Some(file) = PLAIN.into_iter().find(|f| has(f)) {
        return format!("put {word} into the line of {file}, then reboot");
    }
    if has("/etc/kernel/cmdline") && !has("/etc/default/grub") {
        return format!(
            "put {word} into /etc/kernel/cmdline, run `kernel-install add-all` (or `reinstall-kernels`), then \
             reboot"
        );
    }
    if has("/etc/default/grub") {
        let file = format!("put {word} into GRUB_CMDLINE_LINUX of /etc/default/grub");
        let with = |path: &str| ["/usr/sbin", "/sbin"].iter().any(|d| has(&format!("{d}/{path}")));
        let then = match () {
            () if with("update-grub") => "run `update-grub`".to_owned(),
            () if with("grubby") => {
                format!(
                    "run `grubby --update-kernel=ALL --args={word}` for the kernels that are installed"
                )
            }
            () if has("/boot/grub2") => "run `grub2-mkconfig -o /boot/grub2/grub.cfg`".to_owned(),
            () => "run `grub-mkconfig -o /boot/grub/grub.cfg`".to_owned(),
        };
        return format!("{file}, {then}, then reboot");
    }
    if has("/boot/extlinux/extlinux.conf") {
        return format!(
            "put {word} into the APPEND line of /boot/extlinux/extlinux.conf, then reboot"
        );
    }
    format!(
        "none of the files of GRUB, systemd-boot, extlinux or a Raspberry Pi is here: put {word} where this \
         host's boot loader or hypervisor has the kernel cmdline, then reboot"
    )
}

/// Files whose single line is the cmdline: those of the Raspberry Pi's firmware.
const PLAIN: [&str; 2] = ["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_to_edit_is_the_one_of_this_hosts_boot_loader() {
        for (files, says) in [
            (vec!["etc/default/grub", "usr/sbin/update-grub"], "update-grub"),
            (vec!["etc/default/grub", "sbin/grubby", "etc/kernel/cmdline"], "grubby --update"),
            (vec!["etc/default/grub", "boot/grub2/grub.cfg"], "grub2-mkconfig"),
            (vec!["etc/default/grub"], "grub-mkconfig -o /boot/grub/"),
            (vec!["etc/kernel/cmdline"], "put iommu=… into /etc/kernel/cmdline"),
            (vec!["boot/firmware/cmdline.txt"], "the line of /boot/firmware/cmdline.txt"),
            (vec!["boot/extlinux/extlinux.conf"], "APPEND line"),
            (vec!["run/ostree-booted", "etc/default/grub"], "rpm-ostree kargs --append=iommu=…"),
            (vec![], "none of the files"),
        ] {
            let tree = tempfile::tempdir().unwrap();
            for file in &files {
                let path = tree.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "").unwrap();
            }
            let host = Host::tree(tree.path()).unwrap();
            let text = advice(&host, "iommu");
            assert!(text.contains(says), "{files:?}: {text}");
        }
    }
}
