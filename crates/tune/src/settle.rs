//! Waits until a member of a bond, team or bridge carries traffic again after a link reset.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use model::tune::{LinkMember, Planned};
use probe::Root;

use crate::{Host, TuneError, knob::nic_file};

/// Default wait for a link to come back; the delays configured on its master are added.
pub const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// How long a link must stay up to count as back: some drivers take it down only after they
/// answered.
const STEADY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(100);
/// Interval of LACP's slow rate: a partner may send no sooner (802.3ad).
const LACP_SLOW: Duration = Duration::from_secs(30);
/// Actor is in sync, collecting and distributing (802.3ad, 43.4.2.2).
const AD_CARRIES: u32 = 0x08 | 0x10 | 0x20;

/// Checks that a member carries traffic; the error says why not.
///
/// **Source**: `master`, `carrier`, `bonding_slave/mii_status` and `ad_*`, `brport/state`. A team's
/// own view of its ports is not in sysfs: its carrier counts alone.
///
/// # Errors
/// The reason why it carries none.
pub fn carries(root: &Root, nic: &str, master: &str) -> Result<(), String> {
    let word = |file: &str| root.word(&nic_file(nic, file)).known().cloned();
    let of = root.link(&nic_file(nic, "master")).unwrap_or_default();
    if of.rsplit('/').next() != Some(master) {
        return Err(format!("{nic} is no longer a member of {master}"));
    }
    if word("carrier").as_deref() != Some("1") {
        return Err(format!("{nic} has no link"));
    }
    if let Some(status) = word("bonding_slave/mii_status").filter(|s| s != "up") {
        return Err(format!("{master} takes {nic} for {status}"));
    }
    if let Some(Ok(state)) =
        word("bonding_slave/ad_actor_oper_port_state").map(|s| s.parse::<u32>())
    {
        let own = word("bonding_slave/ad_aggregator_id");
        let active = root.word(&nic_file(master, "bonding/ad_aggregator")).known().cloned();
        if state & AD_CARRIES != AD_CARRIES || own != active {
            return Err(format!("{nic} is not in {master}'s active aggregate (LACP)"));
        }
    }
    // BR_STATE_FORWARDING
    if word("brport/state").is_some_and(|s| s != "3") {
        return Err(format!("{nic} does not forward in {master} yet"));
    }
    Ok(())
}

/// Records which members carry traffic before the first change.
pub fn note(root: &Root, changes: &mut [Planned]) {
    for member in changes.iter_mut().filter_map(|c| c.member.as_mut()) {
        member.up.retain(|nic| carries(root, nic, &member.master).is_ok());
    }
}

/// Whether change `n` is the last change of its member.
pub fn ends_turn(changes: &[Planned], n: usize) -> bool {
    let nic = |n: usize| changes.get(n).and_then(|c| Some(&c.member.as_ref()?.nic));
    nic(n).is_some() && nic(n) != nic(n + 1)
}

/// Before resetting a member's link: checks that the others still carry traffic.
///
/// # Errors
/// A member does not carry traffic within its time, or `stop` was set.
pub fn others(
    host: &Host,
    member: &LinkMember,
    link_wait: Duration,
    stop: &AtomicBool,
) -> Result<(), TuneError> {
    for nic in member.up.iter().filter(|n| **n != member.nic) {
        let most = patience(host.root(), &member.master, link_wait);
        wait(host, nic, &member.master, (Duration::ZERO, most), stop)
            .map_err(|e| not_now(&e, &format!("the link of {} is not reset", member.nic)))?;
    }
    Ok(())
}

/// After the reset: waits until the member carries traffic.
///
/// # Errors
/// It does not within its time, or `stop` was set.
pub fn back(
    host: &Host,
    member: &LinkMember,
    link_wait: Duration,
    stop: &AtomicBool,
) -> Result<(), TuneError> {
    if !member.up.contains(&member.nic) {
        return Ok(());
    }
    let steady = if host.is_live() { STEADY } else { Duration::ZERO };
    let most = patience(host.root(), &member.master, link_wait);
    wait(host, &member.nic, &member.master, (steady, most), stop)
        .map_err(|e| not_now(&e, &format!("its link did not come back into {}", member.master)))
}

fn not_now(why: &TuneError, what: &str) -> TuneError {
    TuneError::Environment(format!("{what}: {why}"))
}

fn wait(
    host: &Host,
    nic: &str,
    master: &str,
    (steady, most): (Duration, Duration),
    stop: &AtomicBool,
) -> Result<(), TuneError> {
    let begun = Instant::now();
    let changes = || host.root().word(&nic_file(nic, "carrier_changes")).known().cloned();
    let (mut since, mut seen) = (begun, changes());
    loop {
        let now = carries(host.root(), nic, master);
        let changed = changes();
        if now.is_err() || changed != seen {
            (since, seen) = (Instant::now(), changed);
        }
        match now {
            Ok(()) if since.elapsed() >= steady => return Ok(()),
            Err(why) if begun.elapsed() >= most => {
                let after = most.as_secs_f64();
                return Err(TuneError::Environment(format!("{why} after {after} s")));
            }
            // The link flaps.
            Ok(()) if begun.elapsed() >= most + steady => {
                return Err(TuneError::Environment(format!("{nic} does not stay up")));
            }
            _ if stop.load(Ordering::Relaxed) => {
                return Err(TuneError::Environment("interrupted".into()));
            }
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// Longest wait for a member, from its master's own delays.
///
/// **Source**: `bonding/updelay` (ms), `bonding/mode`, `bridge/stp_state` and
/// `bridge/forward_delay` (hundredths of a second, twice: listening and learning).
pub fn patience(root: &Root, master: &str, link_wait: Duration) -> Duration {
    let word = |file: &str| root.word(&nic_file(master, file)).known().cloned();
    let number = |file: &str| word(file).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
    let mut most = link_wait + Duration::from_millis(number("bonding/updelay"));
    if word("bonding/mode").is_some_and(|m| m.starts_with("802.3ad")) {
        most += LACP_SLOW;
    }
    if number("bridge/stp_state") > 0 {
        most += Duration::from_millis(number("bridge/forward_delay").saturating_mul(2 * 10));
    }
    most
}

#[cfg(test)]
mod tests;
