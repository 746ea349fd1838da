//! `nic.NIC.gso_max_size` and its like: the largest packet that the stack hands to a NIC before it is
//! cut, and that it merges from received ones. Above 65,536 bytes it is BIG TCP.

use model::{
    knob::{NicSetting, SEGMENT_SIZES, Target},
    tune::Impact,
};

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, number},
    need::Need,
    phase::Phase,
};

/// `ip link set dev NIC gso_max_size BYTES`; `gro_max_size` since Linux 5.19, those of IPv4 since 6.3.
pub const KIND: Kind = Kind {
    name: "nic_segment_size",
    spelling: "nic.NIC.gso_max_size|gro_max_size|gso_ipv4_max_size|gro_ipv4_max_size=BYTES",
    parse: |target| match target {
        Target::Nic(nic, NicSetting::Plain(name)) => {
            let name = SEGMENT_SIZES.into_iter().find(|n| *n == name)?;
            Some(Box::new(NicSegmentSize { nic, name }))
        }
        _ => None,
    },
};

struct NicSegmentSize<'k> {
    nic: &'k str,
    name: &'static str,
}

/// **Source**: `GSO_MAX_SIZE` is `8 * GSO_LEGACY_MAX_SIZE`, `GRO_MAX_SIZE` `8 * 65535`
/// (`include/linux/netdevice.h`).
const GSO_MOST: u64 = 8 * 65_536;
const GRO_MOST: u64 = 8 * 65_535;
/// Below a packet of Ethernet nothing would be merged or cut. Our limit; the kernel has none.
const LEAST: u64 = 1_500;

impl NicSegmentSize<'_> {
    /// **Source**: `IFLA_GSO_MAX_SIZE` and its like, `include/uapi/linux/if_link.h`.
    fn id(&self) -> u16 {
        match self.name {
            "gso_max_size" => 41,
            "gro_max_size" => 58,
            "gso_ipv4_max_size" => 63,
            _ => 64,
        }
    }

    fn sends(&self) -> bool {
        self.name.starts_with("gso")
    }
}

/// The size and the driver's limit of an exact value: `65536 of 524280`.
fn parts(exact: &str) -> (&str, Option<u64>) {
    match exact.trim().split_once(" of ") {
        Some((now, most)) => (now, most.parse().ok()),
        None => (exact.trim(), None),
    }
}

impl Knob for NicSegmentSize<'_> {
    fn target(&self) -> Target<'_> {
        Target::Nic(self.nic, NicSetting::Plain(self.name))
    }

    fn phase(&self) -> Phase {
        Phase::Nic
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let size = host.segment_size(self.nic, self.id(), self.name)?;
        Ok(match size.driver_max.filter(|_| self.sends()) {
            Some(most) => format!("{} of {most}", size.now),
            None => size.now.to_string(),
        })
    }

    fn show(&self, exact: &str) -> String {
        parts(exact).0.to_owned()
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        old: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        if context.nic(self.nic).is_none() {
            return cannot("no such interface");
        }
        let most = if self.sends() { GSO_MOST } else { GRO_MOST };
        let bytes = number(wanted, LEAST, most, "bytes")?;
        match parts(old).1.filter(|most| bytes > *most) {
            Some(most) => cannot(format!("the driver takes at most {most} bytes (tso_max_size)")),
            None => Ok(bytes.to_string()),
        }
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::Net]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let bytes = parts(value).0.parse().map_err(|_| {
            TuneError::Usage(format!("{}: {value:?} is no number of bytes", self.target()))
        })?;
        host.set_segment_size(self.nic, self.id(), self.name, bytes)
    }

    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        match self.read(host) {
            Ok(now) if self.verify(old, &now) => return Ok(Undone::Restored(now)),
            Err(TuneError::Absent(why)) => return Ok(Undone::Gone(why)),
            _ => {}
        }
        self.write(host, old)?;
        self.came_back(host, old)
    }

    /// The driver's limit may have changed since; the size counts.
    fn came_back(&self, host: &Host, old: &str) -> Result<Undone, TuneError> {
        let back = self.read(host)?;
        if self.verify(old, &back) {
            return Ok(Undone::Restored(back));
        }
        Err(TuneError::Environment(format!(
            "{}: was {}, and after putting it back reads {}",
            self.target(),
            self.show(old),
            self.show(&back)
        )))
    }

    /// No packet is lost: the stack asks for the size with each packet that it makes.
    fn impact(&self, _: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        Impact::none()
    }

    fn unit(&self) -> &'static str {
        "bytes"
    }

    fn sets(&self) -> &'static str {
        "offloads"
    }

    /// A size of at most 65,536 bytes is also that of IPv4.
    ///
    /// **Source**: `netif_set_gso_max_size` and `netif_set_gro_max_size` in `net/core/dev.h`.
    fn coupled_settings(&self, _: &Host) -> Vec<String> {
        match self.name {
            "gso_max_size" => vec![format!("nic.{}.gso_ipv4_max_size", self.nic)],
            "gro_max_size" => vec![format!("nic.{}.gro_ipv4_max_size", self.nic)],
            _ => vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_value_has_the_drivers_limit_and_shows_without_it() {
        let knob = NicSegmentSize { nic: "eth0", name: "gso_max_size" };
        assert_eq!(parts("65536 of 524280"), ("65536", Some(524_280)));
        assert_eq!(parts("65536\n"), ("65536", None));
        assert_eq!(knob.show("65536 of 524280"), "65536");
        assert!(knob.verify("65536", "65536 of 262144"));
        assert!(!knob.verify("65536", "65535 of 262144"));
    }
}
