//! Sockets as people name them.

use model::{Reading, samples::Owner};

/// `nginx[812]`, `nginx[812] and 3 more`, or that no process is known.
pub(crate) fn owners(of: &Reading<Vec<Owner>>) -> String {
    let Some((first, rest)) = of.known().and_then(|all| all.split_first()) else {
        return "a process that is not known".into();
    };
    let name = match first.name.as_str() {
        "" => format!("pid {}", first.pid),
        name => format!("{name}[{}]", first.pid),
    };
    if rest.is_empty() { name } else { format!("{name} and {} more", rest.len()) }
}
