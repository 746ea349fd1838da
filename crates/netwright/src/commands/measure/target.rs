//! The server of a measurement, with the port of `--port`.

use crate::failure::Failure;

/// The target, with the port of `--port` or of a foreign protocol where it has none.
///
/// # Errors
/// Both name a port, or it is no target (exit code 2).
pub fn with_port(
    target: &str,
    port: Option<u16>,
    foreign_port: Option<u16>,
) -> Result<String, Failure> {
    let usage = |e: traffic::Error| Failure::Usage(e.to_string());
    let parsed: traffic::Target = target.parse().map_err(usage)?;
    Ok(match (&parsed, port.or(foreign_port)) {
        (traffic::Target::Host(host, None), Some(port)) => {
            traffic::Target::Host(host.clone(), Some(port)).to_string()
        }
        (traffic::Target::Host(_, Some(_)), _) if port.is_some() => {
            return Err(Failure::Usage("the target names a port and so does --port".into()));
        }
        _ => target.to_owned(),
    })
}
