//! Network namespaces of a lab and the links in them.

use crate::{
    LabError,
    state::{Lab, Resource},
    tool,
};

/// Name of a lab host's namespace: `nw-LAB-HOST`.
pub fn name_of(lab: &str, host: &str) -> String {
    format!("nw-{lab}-{host}")
}

/// Creates a host's namespace, with loopback up.
///
/// # Errors
/// Errors of `ip`.
pub fn make(lab: &mut Lab, host: &str) -> Result<String, LabError> {
    let name = name_of(&lab.state.name, host);
    lab.will_make(Resource::Namespace { name: name.clone() })?;
    tool::ip(&format!("netns add {name}"))?;
    tool::ip(&format!("-n {name} link set lo up"))?;
    Ok(name)
}

/// Runs a program in a namespace to its end; it must succeed.
///
/// # Errors
/// The program's error output.
pub fn run(namespace: &str, program: &str, args: &[&str]) -> Result<String, LabError> {
    let mut all = vec!["netns", "exec", namespace, program];
    all.extend(args);
    tool::run("ip", &all)
}

/// Writes a file from inside a namespace, which has its own `/sys/class/net`.
///
/// # Errors
/// The shell's error output.
pub fn write(namespace: &str, path: &str, value: &str) -> Result<(), LabError> {
    run(namespace, "sh", &["-c", "printf %s \"$2\" > \"$1\"", "sh", path, value]).map(drop)
}

/// Adds addresses to a link and brings it up.
///
/// # Errors
/// Errors of `ip`.
pub fn address(namespace: &str, link: &str, addresses: &[&str]) -> Result<(), LabError> {
    for a in addresses {
        let nodad = if a.contains(':') { " nodad" } else { "" };
        tool::ip(&format!("-n {namespace} addr add {a} dev {link}{nodad}"))?;
    }
    tool::ip(&format!("-n {namespace} link set {link} up")).map(drop)
}
