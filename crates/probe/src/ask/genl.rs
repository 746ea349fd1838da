//! Looks up a generic-netlink family's number.

use std::{collections::BTreeMap, sync::Mutex};

use parse::netlink::{Request, attribute, u16_at};

use super::netlink;
use crate::ReadError;

/// The numbers that the kernel gave; it keeps them while the module is loaded, in all network
/// namespaces. A family that is not there is asked for again.
static KNOWN: Mutex<BTreeMap<String, u16>> = Mutex::new(BTreeMap::new());

/// The number that this kernel gave the family `name`, asked once; `what` names the question in
/// errors.
///
/// # Errors
/// Absent on a kernel without the family.
pub fn family(name: &str, what: &str) -> Result<u16, ReadError> {
    let known = || KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(number) = known().get(name) {
        return Ok(*number);
    }
    let number = asked(name, what)?;
    known().insert(name.to_owned(), number);
    Ok(number)
}

fn asked(name: &str, what: &str) -> Result<u16, ReadError> {
    const GET_FAMILY: u8 = 3;
    const FAMILY_ID: u16 = 1;
    const FAMILY_NAME: u16 = 2;
    let controller = libc::GENL_ID_CTRL as u16;
    let name = format!("{name}\0");
    let request =
        Request::one(controller, &[GET_FAMILY, 1, 0, 0]).with(FAMILY_NAME, name.as_bytes());
    netlink::one(libc::NETLINK_GENERIC, what, &request, |m| {
        (m.kind == controller)
            .then(|| attribute(m.payload, 4, FAMILY_ID))
            .flatten()
            .and_then(|a| u16_at(a.bytes, 0))
    })
}
