//! Finds an interface that moved to another network namespace; it keeps its values there.

use model::tune::{NicId, Saved};
use parse::rtnl_link::LinkMessage;
use probe::{Root, ask::rtnl};

use super::{KnobLocation, called, place_in, real};
use crate::{
    Host, TuneError, knobs,
    netns::{self, Namespace},
};

/// Interfaces of all other network namespaces that a name, a mount or a process holds.
pub struct OtherNamespaces {
    all: Vec<(Namespace, Vec<LinkMessage>)>,
    partial: bool,
}

pub struct MovedLink<'e> {
    namespace: &'e Namespace,
    link: &'e LinkMessage,
}

impl OtherNamespaces {
    pub fn look() -> Self {
        let (namespaces, mut partial) = netns::others();
        let mut all = Vec::new();
        for namespace in namespaces {
            match netns::within(&namespace, || rtnl::links(&Root::live())) {
                Ok(Ok(links)) => all.push((namespace, links.entries)),
                _ => partial = true,
            }
        }
        Self { all, partial }
    }

    /// Whether some namespaces could not be read.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Finds an interface that was here. `number` is its ifindex as seen from a veth peer that is
    /// still here.
    pub fn find(&self, then: &NicId, number: Option<u32>) -> Option<MovedLink<'_>> {
        self.all.iter().find_map(|(namespace, links)| {
            let link = links.iter().find(|l| is_it(l, then, number))?;
            Some(MovedLink { namespace, link })
        })
    }
}

/// Whether a link is the saved interface. Hardware matches by permanent address, a veth by its
/// peer, others by address. Addresses can be shared (VLANs) or missing (tun), so name or number
/// must match as well. A journal without an address proves nothing.
fn is_it(link: &LinkMessage, then: &NicId, number: Option<u32>) -> bool {
    if link.kind != then.kind {
        return false;
    }
    if then.kind.is_none() {
        return then.mac.is_some() && real(link.permanent_mac.as_ref()) == then.mac;
    }
    let (index, name) = (link.ifindex == then.ifindex, link.name == then.name);
    let address = real(link.mac.as_ref());
    // Numbers alone match any pair created alike; a different address rules the match out.
    let by_end = number == Some(link.ifindex)
        && then.peer == link.link
        && link.link_netnsid.is_some()
        && (address == then.address || then.address.is_none());
    let by_address =
        address == then.address && if address.is_some() { index || name } else { index && name };
    by_end || by_address
}

impl MovedLink<'_> {
    /// Where a value is: nothing to do if it is as it was, otherwise it is not restored.
    ///
    /// # Errors
    /// The namespace, and the command that restores the value there.
    pub fn place_of(&self, saved: &Saved, then: &NicId) -> Result<KnobLocation, TuneError> {
        let name = called(&saved.knob, &then.name, &self.link.name);
        let as_now = match self.link.name == then.name {
            true => String::new(),
            false => format!(" as {}", self.link.name),
        };
        let place = match netns::called(self.namespace.inode) {
            label if label.starts_with("net:[") => format!("the one {}", self.namespace.name),
            name => name,
        };
        let is = format!("{} went to another network namespace, {place}{as_now}", then.name);
        // The kernel recreates these settings when the interface moves between namespaces.
        if place_in(&saved.knob).is_some() {
            return Ok(KnobLocation::Gone(format!("{is}, where this setting is reset")));
        }
        let knob = knobs::find(&name).filter(|_| !saved.old.is_empty());
        let read = || knob.as_ref().map(|k| k.read(&Host::live()));
        if let Ok(Some(Ok(now))) = netns::within(self.namespace, read)
            && now == saved.old
        {
            return Ok(KnobLocation::Gone(format!("{is}, and has its old value there")));
        }
        let back = knob.map(|k| self.namespace.way().line(&k.command(&k.show(&saved.old))));
        let back =
            back.map(|line| format!(": `{line}` puts the value back there")).unwrap_or_default();
        Err(TuneError::Environment(format!("{is}{back}")))
    }
}

/// Error for an interface that exists in an unknown namespace.
pub fn unseen(it: &str) -> TuneError {
    TuneError::Environment(format!("{it}, is in another network namespace: bring it back first"))
}

/// Error for an interface that may exist in another namespace.
pub fn not_all_seen(name: &str) -> TuneError {
    TuneError::Environment(format!(
        "{name} is not in this network namespace; whether it is in another one cannot be told, for \
         some may not be looked into: CAP_SYS_ADMIN (or root) is needed"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_went_is_known_by_its_end_or_address_and_never_by_name_alone() {
        let then = |kind: Option<&str>, address: Option<&str>| NicId {
            name: "v0".into(),
            ifindex: 5,
            kind: kind.map(str::to_owned),
            bus_address: None,
            mac: Some("02:00:00:00:00:0c".into()),
            address: address.map(str::to_owned),
            peer: Some(6),
        };
        let link = |kind: Option<&str>, ifindex, name: &str, mac: Option<&str>| LinkMessage {
            ifindex,
            name: name.into(),
            kind: kind.map(str::to_owned),
            mac: mac.map(str::to_owned),
            permanent_mac: mac.map(str::to_owned),
            link: Some(6),
            link_netnsid: Some(0),
            ..LinkMessage::default()
        };
        let (veth, tun) = (Some("veth"), Some("tun"));
        let (a, b) = (Some("02:00:00:00:00:0a"), Some("02:00:00:00:00:0b"));
        for (link, then, number, found) in [
            (link(veth, 5, "v0", a), then(veth, a), None, true),
            (link(veth, 5, "eth0", a), then(veth, a), None, true),
            (link(veth, 9, "v0", a), then(veth, a), None, true),
            // Another number and name: the peer identifies it. With another address it may be any
            // pair created alike.
            (link(veth, 9, "eth0", a), then(veth, a), Some(9), true),
            (link(veth, 9, "eth0", a), then(veth, a), Some(8), false),
            (link(veth, 9, "eth0", b), then(veth, a), Some(9), false),
            // The same name and number in a namespace set up the same way.
            (link(veth, 5, "v0", b), then(veth, a), None, false),
            (link(veth, 5, "v0", b), then(veth, None), None, false),
            (link(veth, 9, "eth0", a), then(veth, a), None, false),
            (link(Some("macvlan"), 5, "v0", a), then(veth, a), None, false),
            (link(tun, 5, "v0", None), then(tun, None), None, true),
            (link(tun, 9, "v0", None), then(tun, None), None, false),
            (link(None, 9, "eth0", Some("02:00:00:00:00:0c")), then(None, a), None, true),
            (link(None, 5, "v0", a), then(None, a), None, false),
        ] {
            assert_eq!(is_it(&link, &then, number), found, "{link:?} {then:?}");
        }
    }
}
