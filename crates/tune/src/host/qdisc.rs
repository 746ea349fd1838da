//! An interface's queueing disciplines, with their options in the kernel's encoding.

use parse::netlink::{Request, attributes, i32_at, u32_at};
use probe::ask::netlink;

use super::Host;
use crate::TuneError;

/// Parent of the root (`TC_H_ROOT`).
pub const ROOT: u32 = 0xffff_ffff;
/// Parent of `ingress` and `clsact`, which hold filters and queue nothing.
const INGRESS: u32 = 0xffff_fff1;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const NESTED: u16 = 0x8000;
const CREATE_OR_REPLACE: u16 = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// Kind, such as `fq` or `mq`.
    pub kind: String,
    /// Handle; 0 if the kernel created the qdisc by itself.
    pub handle: u32,
    /// [`ROOT`], or major and minor of the parent class.
    pub parent: u32,
    /// `TCA_OPTIONS` in the kernel's encoding, unparsed.
    pub options: Vec<u8>,
}

/// A `struct tcmsg` as bytes.
fn header(ifindex: u32, handle: u32, parent: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    for word in [ifindex, handle, parent, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

fn parsed(payload: &[u8]) -> Option<(u32, Qdisc)> {
    let mut q = Qdisc {
        kind: String::new(),
        handle: u32_at(payload, 8)?,
        parent: u32_at(payload, 12)?,
        options: vec![],
    };
    for a in attributes(payload.get(20..)?) {
        match a.kind {
            TCA_KIND => q.kind = a.text(),
            TCA_OPTIONS => q.options = a.bytes.to_vec(),
            _ => {}
        }
    }
    Some((u32::try_from(i32_at(payload, 4)?).ok()?, q))
}

impl Host {
    pub(super) fn ifindex(&self, nic: &str) -> Result<u32, TuneError> {
        let path = format!("/sys/class/net/{nic}/ifindex");
        let text = self.text(&path)?;
        text.trim()
            .parse::<u32>()
            .map_err(|_| TuneError::Environment(format!("{path}: {:?} is no number", text.trim())))
    }

    /// All qdiscs of an interface, the root first, then by parent, without `ingress`.
    ///
    /// # Errors
    /// As the kernel answered; a directory tree has none.
    pub fn qdiscs(&self, nic: &str) -> Result<Vec<Qdisc>, TuneError> {
        let what = format!("tc qdisc show dev {nic}");
        let ifindex = self.live_ifindex(nic, &what)?;
        let request = Request::dump(libc::RTM_GETQDISC, &header(ifindex, 0, 0));
        let dump = netlink::dump(libc::NETLINK_ROUTE, &what, &request, |m| {
            (m.kind == libc::RTM_NEWQDISC).then(|| parsed(m.payload)).flatten()
        });
        let dump = dump.map_err(|e| TuneError::read(&e))?;
        if dump.interrupted {
            return Err(TuneError::Environment(format!("{what}: changes all the time")));
        }
        let own = |(index, q): (u32, Qdisc)| (index == ifindex && q.parent != INGRESS).then_some(q);
        let mut all: Vec<Qdisc> = dump.entries.into_iter().filter_map(own).collect();
        all.sort_by_key(|q| (q.parent != ROOT, q.parent));
        Ok(all)
    }

    /// Number of filters attached to one qdisc.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn filters(&self, nic: &str, handle: u32) -> Result<usize, TuneError> {
        let what = format!("tc filter show dev {nic}");
        let ifindex = self.live_ifindex(nic, &what)?;
        let request = Request::dump(libc::RTM_GETTFILTER, &header(ifindex, 0, handle));
        let each = |m: &parse::netlink::Message<'_>| (m.kind == libc::RTM_NEWTFILTER).then_some(());
        let dump = netlink::dump(libc::NETLINK_ROUTE, &what, &request, each);
        Ok(dump.map_err(|e| TuneError::read(&e))?.entries.len())
    }

    /// `tc qdisc replace`.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn put_qdisc(&self, nic: &str, q: &Qdisc) -> Result<(), TuneError> {
        let what = format!("tc qdisc replace dev {nic} {}", q.kind);
        let ifindex = self.live_ifindex(nic, &what)?;
        let head = header(ifindex, q.handle, q.parent);
        let kind = format!("{}\0", q.kind);
        let mut request = Request::change(libc::RTM_NEWQDISC, CREATE_OR_REPLACE, &head)
            .with(TCA_KIND, kind.as_bytes());
        if !q.options.is_empty() {
            // Old kernels take a plain structure for some kinds; the mark does no harm with the
            // others.
            let mark = if q.kind.ends_with("fifo") { 0 } else { NESTED };
            request = request.with(TCA_OPTIONS | mark, &q.options);
        }
        match self.request(&what, &request) {
            Err(TuneError::Absent(_)) if self.ifindex(nic).is_ok() => Err(TuneError::Environment(
                format!("{what}: this kernel has no such discipline (module sch_{})", q.kind),
            )),
            other => other,
        }
    }

    /// `tc qdisc del root`: the kernel then installs its default.
    ///
    /// # Errors
    /// As the kernel answered.
    pub fn drop_root_qdisc(&self, nic: &str) -> Result<(), TuneError> {
        let what = format!("tc qdisc del dev {nic} root");
        let ifindex = self.live_ifindex(nic, &what)?;
        self.request(&what, &Request::change(libc::RTM_DELQDISC, 0, &header(ifindex, 0, ROOT)))
    }

    fn live_ifindex(&self, nic: &str, what: &str) -> Result<u32, TuneError> {
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has no disciplines")));
        }
        self.ifindex(nic)
    }
}
