//! irqbalance's answer to `setup` on its socket: `SLEEP 10 IRQ 25 LOAD 0 DIFF 0 CLASS 0 BANNED
//! 00000000,00000003`. **Source**: irqbalance-ui and irqbalance's own `sock_handle`.

use model::{CpuSet, IrqId};

use crate::ParseError;

/// irqbalance's settings as it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// Seconds between two looks.
    pub interval_s: Option<u64>,
    /// IRQs banned on its command line or through the socket, ascending; not those a policy
    /// script bans.
    pub banned_irqs: Vec<IrqId>,
    /// CPUs that it assigns no IRQs to.
    pub banned_cpus: CpuSet,
}

/// Parses the answer.
///
/// # Errors
/// When it has no `BANNED` mask.
pub fn parse(bytes: &[u8]) -> Result<Setup, ParseError> {
    let bad = || ParseError::new(1, "irqbalance's answer with SLEEP and BANNED", bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let mut setup = Setup::default();
    let mut banned = None;
    let mut words = text.trim_matches('\0').split_ascii_whitespace();
    while let Some(key) = words.next() {
        match key {
            "SLEEP" => setup.interval_s = words.next().and_then(|w| w.parse().ok()),
            "IRQ" => {
                let irq = words.next().and_then(|w| w.parse().ok()).ok_or_else(bad)?;
                setup.banned_irqs.push(IrqId(irq));
            }
            "BANNED" => banned = words.next(),
            _ => {}
        }
    }
    setup.banned_cpus = crate::hexmask::parse(banned.ok_or_else(bad)?.as_bytes())?;
    setup.banned_irqs.sort_unstable();
    setup.banned_irqs.dedup();
    Ok(setup)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_answer() {
        let s = parse(b"SLEEP 10 IRQ 25 LOAD 0 DIFF 0 CLASS 0 IRQ 3 LOAD 1 DIFF 1 CLASS 5 BANNED 00000001,00000003").unwrap();
        assert_eq!(s.interval_s, Some(10));
        assert_eq!(s.banned_irqs, [IrqId(3), IrqId(25)]);
        assert_eq!(s.banned_cpus.to_string(), "0-1,32");
        assert!(parse(b"").is_err());
        assert!(parse(b"SLEEP 10 BANNED").is_err());
    }
}
