//! Explains a missing kernel setting.

use model::{
    sysctls::{self, JudgedValue, ProposedValue, TABLE, Verdict},
    tune::RefusedAs,
};
use parse::sysctl_conf;

use crate::{Host, knob::Refusal, suggestion};

/// Deepest nesting of directories below `/proc/sys`.
const DEEPEST: usize = 8;

/// Why a setting is missing: removed from older kernels, or mistyped. `None` if the name is known
/// and just not present.
pub fn missing(host: &Host, path: &str) -> Option<Refusal> {
    let key = sysctl_conf::dotted(path);
    let release = host.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = model::host::kernel_version(&release);
    if let Some(gone @ JudgedValue { verdict: Verdict::Gone, .. }) =
        sysctls::judge(&key, &ProposedValue { kernel, ..ProposedValue::default() })
    {
        return Some(gone.into());
    }
    let mut names = Vec::new();
    match sysctls::find(&key) {
        Some(row) if row.key == key => return None,
        // For a missing interface, another interface's settings are no suggestion.
        Some(_) => below(host, path.rsplit_once('/')?.0, 1, &mut names),
        None => {
            names.extend(TABLE.iter().map(|s| s.key.to_owned()));
            below(host, path.split('/').next()?, DEEPEST, &mut names);
        }
    }
    let meant = suggestion::nearest_setting(&key, names.iter().map(String::as_str))?;
    let why = format!("there is no such setting; did you mean sysctl.{meant}?");
    Some(Refusal::new(RefusedAs::Usage, why))
}

/// The dotted names of all files below a directory of `/proc/sys`.
fn below(host: &Host, path: &str, deep: usize, names: &mut Vec<String>) {
    let folder = host.root().entries(&format!("/proc/sys/{path}"));
    match folder {
        Ok(all) if deep > 0 => {
            all.iter().for_each(|name| below(host, &format!("{path}/{name}"), deep - 1, names));
        }
        _ => names.push(sysctl_conf::dotted(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_answered_with_the_nearest_one() {
        let tree = tempfile::tempdir().unwrap();
        for file in ["net/core/somaxconn", "net/ipv4/conf/eth0/rp_filter", "kernel/osrelease"] {
            let path = tree.path().join("proc/sys").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "6.18.1\n").unwrap();
        }
        let host = Host::tree(tree.path()).unwrap();
        let why = |path: &str| missing(&host, path).map(|r| r.why);
        for (typed, meant) in [
            ("net/core/somaxcon", "sysctl.net.core.somaxconn"),
            ("net/core/somaxocnn", "sysctl.net.core.somaxconn"),
            ("net/ipv4/conf/eth0/rpfilter", "sysctl.net.ipv4.conf.eth0.rp_filter"),
            ("net/ipv4/tcp_sakc", "sysctl.net.ipv4.tcp_sack"),
        ] {
            let why = why(typed).unwrap_or_default();
            assert!(why.ends_with(&format!("did you mean {meant}?")), "{typed}: {why}");
        }
        assert_eq!(why("net/nothing"), None);
        assert_eq!(why("net/ipv4/conf/eth1/rp_filter"), None, "the interface is not there");
        assert_eq!(why("net/core/rmem_max"), None, "known, and only not there");
        let gone = missing(&host, "net/ipv4/tcp_tw_recycle").unwrap();
        assert!(gone.why.starts_with("Linux 4.12 took it away"), "{gone:?}");
    }
}
