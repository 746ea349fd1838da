//! Finds the interface that a saved value belongs to. Interfaces are renamed or removed, and others
//! take over their names.

mod other_namespaces;

use model::tune::{NicId, Planned, Saved};
use parse::sysctl_conf;
use probe::{Root, ask::rtnl, facts::nic};

use crate::{
    Host, TuneError,
    knob::{irq_of, is_of_nic},
};
use other_namespaces::OtherNamespaces;

/// Where a saved value is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnobLocation {
    /// Under its own name.
    Here,
    /// Under this name: its interface was renamed.
    Renamed(String),
    /// Nowhere: the interface is gone with its values; the text says what is known.
    Gone(String),
}

impl KnobLocation {
    /// The current name of a knob.
    ///
    /// # Errors
    /// What is known of an interface that is gone.
    pub fn current_name(self, knob: &str) -> Result<String, String> {
        match self {
            Self::Here => Ok(knob.to_owned()),
            Self::Renamed(now) => Ok(now),
            Self::Gone(why) => Err(why),
        }
    }
}

/// The interfaces of this network namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nics {
    all: Vec<PresentNic>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PresentNic {
    id: NicId,
    irqs: Vec<String>,
    /// Whether the kernel chose the address and nobody has changed it since.
    chance_address: bool,
    /// For a veth: whether its peer is in another network namespace.
    reaches_out: bool,
}

/// Number of retries while interfaces come and go.
const ATTEMPTS: u32 = 5;

/// Whether a knob may belong to an interface.
fn may_be(knob: &str) -> bool {
    knob.starts_with("nic.") || irq_of(knob).is_some() || place_in(knob).is_some()
}

/// For a kernel setting of one interface: the path before the name, the name, and the path after
/// it.
///
/// **Source**: `net/*/conf/NAME/` and `net/*/neigh/NAME/` below `/proc/sys`.
fn place_in(knob: &str) -> Option<(String, String, String)> {
    let path = sysctl_conf::path(knob.strip_prefix("sysctl.")?);
    let parts: Vec<&str> = path.splitn(5, '/').collect();
    let ["net", family, table @ ("conf" | "neigh"), name, rest] = parts.as_slice() else {
        return None;
    };
    let own = !matches!(*name, "all" | "default");
    own.then(|| (format!("net/{family}/{table}"), (*name).to_owned(), (*rest).to_owned()))
}

/// The knob's name after its interface was renamed from `then` to `now`.
fn called(knob: &str, then: &str, now: &str) -> String {
    if let Some((before, _, rest)) = place_in(knob) {
        return format!("sysctl.{}", sysctl_conf::dotted(&format!("{before}/{now}/{rest}")));
    }
    let own = knob.strip_prefix("nic.").and_then(|k| k.strip_prefix(then));
    own.map_or_else(|| knob.to_owned(), |rest| format!("nic.{now}{rest}"))
}

/// A key for a value that survives renames and differs between interfaces that shared a name.
pub fn key(saved: &Saved) -> String {
    match &saved.nic {
        Some(nic) => called(&saved.knob, &nic.name, &format!("#{}", nic.ifindex)),
        None => one_spelling(&saved.knob),
    }
}

/// Kernel settings are spelled with dots or with slashes; this makes one form of both.
fn one_spelling(knob: &str) -> String {
    let key = knob.strip_prefix("sysctl.");
    let dotted = key.map(|k| sysctl_conf::dotted(&sysctl_conf::path(k)));
    dotted.map_or_else(|| knob.to_owned(), |k| format!("sysctl.{k}"))
}

impl Nics {
    /// The current interfaces.
    ///
    /// # Errors
    /// `/sys` and the kernel's own list disagree, as they do if `/sys` belongs to another network
    /// namespace; or a file could not be read.
    pub fn now(host: &Host) -> Result<Self, TuneError> {
        let root = host.root();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let mut all = listed(root)?;
            if !host.is_live() || reported(root, &mut all)? {
                return Ok(Self { all });
            }
        }
        Err(TuneError::Environment(
            "/sys shows other interfaces than the kernel tells: it is another network namespace's; \
             enter it with `ip netns exec`, or let --netns do it"
                .into(),
        ))
    }

    /// The interface that a knob belongs to, if any.
    pub fn of(&self, knob: &str) -> Option<&NicId> {
        if let Some((_, name, _)) = place_in(knob) {
            return self.ids().find(|n| n.name == name);
        }
        if let Some(irq) = irq_of(knob) {
            let has_it = |n: &&PresentNic| n.irqs.iter().any(|i| i == irq);
            return self.all.iter().find(has_it).map(|n| &n.id);
        }
        let own = self.ids().filter(|n| is_of_nic(knob, &n.name));
        own.max_by_key(|n| n.name.len())
    }

    fn ids(&self) -> impl Iterator<Item = &NicId> {
        self.all.iter().map(|n| &n.id)
    }

    /// The current interface that is the saved one.
    fn same_as(&self, then: &NicId) -> Option<&NicId> {
        let is_it = |n: &&PresentNic| {
            let id = &n.id;
            let same = id.ifindex == then.ifindex && id.kind == then.kind;
            same && is_same_hardware(id, then) && !is_made_anew(n, then)
        };
        let here = self.all.iter().find(is_it);
        here.or_else(|| self.all.iter().find(|n| came_back(n, then))).map(|n| &n.id)
    }

    /// Finds a saved value.
    pub fn find(&self, saved: &Saved) -> KnobLocation {
        let Some(then) = &saved.nic else { return self.by_name(&saved.knob) };
        let Some(now) = self.same_as(then) else {
            return KnobLocation::Gone(self.instead_of(then));
        };
        if let Some(irq) = irq_of(&saved.knob)
            && self.of(&saved.knob).is_some_and(|other| other.ifindex != now.ifindex)
        {
            let why = format!("interrupt {irq} is no longer one of {}'s", now.name);
            return KnobLocation::Gone(why);
        }
        // The kernel recreates these settings when the interface moves between namespaces.
        if now.ifindex != then.ifindex && place_in(&saved.knob).is_some() {
            return KnobLocation::Gone(format!(
                "{} went to another network namespace and came back: this setting was reset",
                then.name
            ));
        }
        match called(&saved.knob, &then.name, &now.name) {
            knob if knob == saved.knob => KnobLocation::Here,
            knob => KnobLocation::Renamed(knob),
        }
    }

    /// For a veth that left this namespace: its peer, if that is still here.
    fn other_end_of(&self, then: &NicId) -> Option<&PresentNic> {
        let number = then.peer.filter(|_| then.kind.as_deref() == Some("veth"))?;
        self.all.iter().find(|n| n.id.ifindex == number && n.reaches_out)
    }

    /// For a journal that does not identify the interface.
    fn by_name(&self, knob: &str) -> KnobLocation {
        let names_one = knob.starts_with("nic.") || place_in(knob).is_some();
        if !names_one || self.all.is_empty() || self.of(knob).is_some() {
            return KnobLocation::Here;
        }
        KnobLocation::Gone("there is no interface of that name".into())
    }

    /// Describes what stands in the place of a missing interface.
    fn instead_of(&self, then: &NicId) -> String {
        let hardware = |n: &&NicId| {
            then.bus_address.is_some() && n.kind == then.kind && is_same_hardware(n, then)
        };
        if let Some(back) = self.ids().find(hardware) {
            let now = match back.name == then.name {
                true => String::new(),
                false => format!(" as {}", back.name),
            };
            return format!(
                "{} went and came back{now}, and has its driver's values now: not touched",
                then.name
            );
        }
        match self.ids().any(|n| n.name == then.name) {
            true => format!("another interface is called {} now: not touched", then.name),
            false => format!("{} is gone from this network namespace", then.name),
        }
    }
}

/// An unknown field does not count as a difference.
fn is_same_hardware(a: &NicId, b: &NicId) -> bool {
    let differ =
        |a: &Option<String>, b: &Option<String>| matches!((a, b), (Some(a), Some(b)) if a != b);
    a.bus_address == b.bus_address && !differ(&a.mac, &b.mac)
}

/// Kinds with an address of their own. A bridge takes the address of a port, a bond and a VLAN that
/// of the device below.
const OWN_ADDRESS: [&str; 5] = ["dummy", "ifb", "tun", "veth", "vxlan"];

/// Whether `now`, of the same number and kind, was created later with that number on request.
fn is_made_anew(now: &PresentNic, then: &NicId) -> bool {
    let (is, was) = (&now.id, then);
    let other_address = matches!((&is.address, &was.address), (Some(a), Some(b)) if a != b);
    let other_peer = matches!((is.peer, was.peer), (Some(a), Some(b)) if a != b);
    let own = is.kind.as_deref().is_some_and(|kind| OWN_ADDRESS.contains(&kind));
    other_address && (other_peer || own && now.chance_address)
}

/// Whether a virtual interface is the saved one, returned from another network namespace with a new
/// number because its own was taken there (**source**: `__dev_change_net_namespace`). It has kept
/// its values. The proof is its address, if the kernel chose that, or the unchanged number of a
/// veth's peer.
fn came_back(now: &PresentNic, then: &NicId) -> bool {
    let (is, was) = (&now.id, then);
    let own = was.kind.as_deref().is_some_and(|kind| OWN_ADDRESS.contains(&kind));
    let same_address = is.address.is_some() && is.address == was.address;
    let same_end = is.peer.is_some() && is.peer == was.peer;
    let is_other_end = was.peer.is_some() && is.peer != was.peer;
    own && is.kind == was.kind && same_address && !is_other_end && (now.chance_address || same_end)
}

/// Whether the hardware still has an interface that this network namespace does not show. That
/// interface keeps its values.
///
/// **Source**: the directory `net` of its PCI function, or of the virtio device on it.
///
/// # Errors
/// The directory could not be read.
fn is_away(root: &Root, nics: &Nics, then: &NicId) -> Result<bool, TuneError> {
    let Some(address) = &then.bus_address else { return Ok(false) };
    if nics.ids().any(|n| n.bus_address.as_ref() == Some(address)) {
        return Ok(false);
    }
    let function = format!("/sys/bus/pci/devices/{address}");
    let below = root.entries(&function).map_err(|e| TuneError::read(&e)).or_else(none_there)?;
    let virtio = below.iter().filter(|e| e.starts_with("virtio"));
    Ok(below.iter().any(|e| e == "net")
        || virtio.into_iter().any(|v| root.exists(&format!("{function}/{v}/net"))))
}

/// **Source**: `/sys/class/net/*/ifindex`, `addr_assign_type` (1 is `NET_ADDR_RANDOM`), and the
/// `device` links.
fn listed(root: &Root) -> Result<Vec<PresentNic>, TuneError> {
    // A read that failed is not taken as absence: without its bus address an interface would count
    // as another one.
    let answered = |name: &str| {
        for file in ["ifindex", "addr_assign_type", "device/uevent"] {
            let read = root.read(&crate::knob::nic_file(name, file));
            if let Err(no_answer @ TuneError::Unread(_)) = read.map_err(|e| TuneError::read(&e)) {
                return Err(no_answer);
            }
        }
        Ok(())
    };
    for name in
        root.entries("/sys/class/net").map_err(|e| TuneError::read(&e)).or_else(none_there)?
    {
        answered(&name)?;
    }
    let one = |name: String| {
        let number = |file: &str| root.number::<u32>(&crate::knob::nic_file(&name, file)).get();
        let ifindex = number("ifindex")?;
        let chance_address = number("addr_assign_type") == Some(1);
        let place = nic::place::of(root, &name);
        let bus_address = place.known().map(|p| p.bus_address.clone());
        let id =
            NicId { name, ifindex, kind: None, bus_address, mac: None, address: None, peer: None };
        let irqs = irqs(root, &id);
        Some(PresentNic { id, irqs, chance_address, reaches_out: false })
    };
    Ok(nic::names(root).into_iter().filter_map(one).collect())
}

/// An empty list if the directory is missing, as in a directory tree, or may not be read.
fn none_there(e: TuneError) -> Result<Vec<String>, TuneError> {
    match e {
        TuneError::Absent(_) | TuneError::Denied(_) => Ok(vec![]),
        e => Err(e),
    }
}

/// Adds what only netlink reports; `false` if it lists other interfaces.
fn reported(root: &Root, all: &mut [PresentNic]) -> Result<bool, TuneError> {
    let links = rtnl::links(root).map_err(|e| TuneError::read(&e))?;
    for link in &links.entries {
        let own = |n: &&mut PresentNic| n.id.ifindex == link.ifindex && n.id.name == link.name;
        let Some(nic) = all.iter_mut().find(own) else { return Ok(false) };
        nic.id.kind.clone_from(&link.kind);
        nic.id.mac = real(link.permanent_mac.as_ref());
        nic.id.address = real(link.mac.as_ref());
        let is_veth = link.kind.as_deref() == Some("veth");
        nic.id.peer = link.link.filter(|_| is_veth);
        nic.reaches_out = is_veth && link.link_netnsid.is_some();
    }
    Ok(!links.interrupted && links.entries.len() == all.len())
}

/// Drops an address that identifies nothing.
fn real(address: Option<&String>) -> Option<String> {
    address.filter(|a| a.bytes().any(|b| b != b'0' && b != b':')).cloned()
}

/// **Source**: `msi_irqs` of its PCI function.
fn irqs(root: &Root, nic: &NicId) -> Vec<String> {
    if nic.bus_address.is_none() {
        return vec![];
    }
    let function = nic::place::of(root, &nic.name).into_known().and_then(|p| p.pci);
    function.and_then(|f| root.entries(&format!("{f}/msi_irqs")).ok()).unwrap_or_default()
}

/// Locates values; lists the interfaces once for many values.
pub struct Finder<'h> {
    host: &'h Host,
    nics: std::cell::OnceCell<Result<Nics, TuneError>>,
    elsewhere: std::cell::OnceCell<OtherNamespaces>,
}

impl<'h> Finder<'h> {
    /// Lists nothing until the first question.
    pub fn new(host: &'h Host) -> Self {
        Self { host, nics: std::cell::OnceCell::new(), elsewhere: std::cell::OnceCell::new() }
    }

    fn nics(&self) -> &Result<Nics, TuneError> {
        self.nics.get_or_init(|| Nics::now(self.host))
    }

    /// The interface that a knob belongs to, as far as known.
    pub fn of(&self, knob: &str) -> Option<NicId> {
        let nics = may_be(knob).then(|| self.nics().as_ref().ok()).flatten();
        nics.and_then(|n| n.of(knob).cloned())
    }

    /// A value to save, with its interface as far as known.
    pub fn saved(&self, knob: &str, old: String) -> Saved {
        Saved { knob: knob.to_owned(), old, nic: self.of(knob) }
    }

    /// Checks that a value is still under its name.
    ///
    /// # Errors
    /// [`TuneError::Changed`] with what happened to the interface; as [`Finder::find`].
    pub fn unmoved(&self, saved: &Saved) -> Result<(), TuneError> {
        let why = match self.find(saved)? {
            KnobLocation::Here => return Ok(()),
            KnobLocation::Renamed(now) => format!("its interface was renamed: it is {now} now"),
            KnobLocation::Gone(why) => why,
        };
        Err(TuneError::Changed(format!("{}: {why}", saved.knob)))
    }

    /// Checks that a change still targets the interface it was planned for. A plan without that
    /// information is matched by name.
    ///
    /// # Errors
    /// As [`Finder::unmoved`].
    pub fn still_means(&self, change: &Planned) -> Result<(), TuneError> {
        let Some(meant) = &change.nic else { return Ok(()) };
        let knob = change.knob.clone();
        self.unmoved(&Saved { knob, old: String::new(), nic: Some(meant.clone()) })
    }

    /// Finds a saved value.
    ///
    /// # Errors
    /// As [`Nics::now`], for a value of an interface.
    pub fn find(&self, saved: &Saved) -> Result<KnobLocation, TuneError> {
        if !may_be(&saved.knob) {
            return Ok(KnobLocation::Here);
        }
        match self.nics() {
            Ok(nics) => match (nics.find(saved), &saved.nic) {
                (KnobLocation::Gone(why), Some(nic)) if nics.same_as(nic).is_none() => {
                    self.beyond(nics, nic, saved, why)
                }
                (place, _) => Ok(place),
            },
            Err(_) if saved.nic.is_none() => Ok(KnobLocation::Here),
            Err(e) => Err(e.clone()),
        }
    }

    /// For an interface that this namespace does not show: looks whether it moved to another
    /// namespace with its values. `why` is the text for one that is gone.
    fn beyond(
        &self,
        nics: &Nics,
        then: &NicId,
        saved: &Saved,
        why: String,
    ) -> Result<KnobLocation, TuneError> {
        let other_end = nics.other_end_of(then);
        let lives = match other_end {
            Some(end) => Some(format!("{}, whose other end {} is here", then.name, end.id.name)),
            None => is_away(self.host.root(), nics, then)?
                .then(|| format!("{}, whose hardware is there", then.name)),
        };
        let came_back = nics.ids().any(|n| n.bus_address.is_some() && is_same_hardware(n, then));
        if !self.host.is_live() || came_back {
            return lives
                .map_or(Ok(KnobLocation::Gone(why)), |it| Err(other_namespaces::unseen(&it)));
        }
        let elsewhere = self.elsewhere.get_or_init(OtherNamespaces::look);
        match (elsewhere.find(then, other_end.and_then(|e| e.id.peer)), lives) {
            (Some(there), _) => there.place_of(saved, then),
            (None, Some(it)) => Err(other_namespaces::unseen(&it)),
            (None, None) if elsewhere.is_partial() && then.kind.is_some() => {
                Err(other_namespaces::not_all_seen(&then.name))
            }
            (None, None) => Ok(KnobLocation::Gone(why)),
        }
    }

    /// As [`Finder::find`], with the interfaces listed again.
    ///
    /// # Errors
    /// As [`Finder::find`].
    pub fn again(&mut self, saved: &Saved) -> Result<KnobLocation, TuneError> {
        self.nics.take();
        self.elsewhere.take();
        self.find(saved)
    }
}

#[cfg(test)]
mod tests;
