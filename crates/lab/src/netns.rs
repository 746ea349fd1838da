//! Network namespaces of a lab and the links in them.

use crate::{
    LabError,
    state::{Lab, Resource},
    tool,
};

/// The namespace's name of a lab's host: `nw-LAB-HOST`.
pub fn name_of(lab: &str, host: &str) -> String {
    format!("nw-{lab}-{host}")
}

/// Makes the namespace of a host, with loopback up.
///
/// # Errors
/// As `ip` says.
pub fn make(lab: &mut Lab, host: &str) -> Result<String, LabError> {
    let name = name_of(&lab.state.name, host);
    lab.will_make(Resource::Namespace { name: name.clone() })?;
    tool::ip(&format!("netns add {name}"))?;
    tool::ip(&format!("-n {name} link set lo up"))?;
    Ok(name)
}

/// Runs a program inside a namespace to its end; it must succeed.
///
/// # Errors
/// With the program's own last words.
pub fn run(namespace: &str, program: &str, args: &[&str]) -> Result<String, LabError> {
    let mut all = vec!["netns", "exec", namespace, program];
    all.extend(args);
    tool::run("ip", &all)
}

/// Writes a file as seen inside a namespace (`/sys/class/net/...` is its own there).
///
/// # Errors
/// With the shell's words.
pub fn write(namespace: &str, path: &str, value: &str) -> Result<(), LabError> {
    run(namespace, "sh", &["-c", "printf %s \"$2\" > \"$1\"", "sh", path, value]).map(drop)
}

/// Gives a link its address and brings it up.
///
/// # Errors
/// As `ip` says.
pub fn address(namespace: &str, link: &str, addresses: &[&str]) -> Result<(), LabError> {
    for a in addresses {
        let nodad = if a.contains(':') { " nodad" } else { "" };
        tool::ip(&format!("-n {namespace} addr add {a} dev {link}{nodad}"))?;
    }
    tool::ip(&format!("-n {namespace} link set {link} up")).map(drop)
}
