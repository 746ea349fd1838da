//! Lines of the kernel's log about network interfaces, as `dmesg`, `journalctl` and syslog print them.
//!
//! **Source**: `netif_carrier_off` messages and reset paths of the drivers that Linux 6.12 has below
//! `drivers/net/ethernet` (igb, ixgbe, i40e, ice, e1000e, mlx5, bnxt, tg3, r8169, atlantic, vmxnet3);
//! the notifications of the ENA device that AWS's guide lists (`troubleshooting-ena`);
//! `dev_watchdog` of `net/sched/sch_generic.c`; `drivers/pci/pcie/aer.c`.

use std::collections::BTreeMap;

use model::kernel_log::{NicLogEvent, NicLogKind};

use crate::irq_name::is_pci_address;

/// Distinct subjects that are kept: a log is another host's, and may hold anything.
const MOST: usize = 10_000;
/// Longest text of one line that is kept, in bytes.
const LONGEST: usize = 240;

/// The events of a log, by subject and kind. `source` is the log's name.
pub fn parse(bytes: &[u8], source: &str) -> Vec<NicLogEvent> {
    let text = String::from_utf8_lossy(bytes);
    let mut all: BTreeMap<(String, NicLogKind), NicLogEvent> = BTreeMap::new();
    for line in text.lines() {
        let (stamp, message) = stamped(line);
        // A file may hold several boots: the last one counts.
        if begins_a_boot(message) {
            all.clear();
        }
        let Some((subject, kind)) = event(message) else { continue };
        let key = (subject.to_owned(), kind);
        if all.len() >= MOST && !all.contains_key(&key) {
            continue;
        }
        let event = all.entry(key).or_insert_with(|| NicLogEvent {
            subject: subject.to_owned(),
            kind,
            count: 0,
            first: stamp.to_owned(),
            last: String::new(),
            line: String::new(),
            source: source.to_owned(),
        });
        event.count += 1;
        stamp.clone_into(&mut event.last);
        event.line = cut(message);
    }
    all.into_values().collect()
}

/// The first line that a kernel prints.
fn begins_a_boot(line: &str) -> bool {
    line.starts_with("Linux version ")
}

fn cut(text: &str) -> String {
    let end = (0..=LONGEST.min(text.len())).rev().find(|&i| text.is_char_boundary(i));
    text.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

/// Stamp and message of a line: `[  12.345678] text`, `[Mon Jul  7 10:00:00 2025] text`,
/// `Jul 07 10:00:00 host kernel: text`, `2025-07-07T10:00:00+0200 host kernel: text`. A syslog line of
/// another program has no message.
fn stamped(line: &str) -> (&str, &str) {
    // `<6>` of the raw buffer.
    let line = match line.strip_prefix('<').and_then(|l| l.split_once('>')) {
        Some((level, rest)) if level.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => line,
    };
    if let Some((stamp, text)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
        return (stamp.trim(), text.trim_start());
    }
    let Some((head, text)) = line.split_once(" kernel: ") else {
        let is_syslog = line.split_once(": ").is_some_and(|(head, _)| head.ends_with(']'));
        return ("", if is_syslog { "" } else { line });
    };
    // The host's name is the last word.
    let stamp = head.trim_end().rsplit_once(' ').map_or("", |(stamp, _)| stamp);
    let text = match text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        Some((_, text)) => text,
        None => text,
    };
    (stamp.trim(), text.trim_start())
}

/// Who and what a message is about.
fn event(message: &str) -> Option<(&str, NicLogKind)> {
    let lower = message.to_ascii_lowercase();
    let has = |words: &str| lower.contains(words);
    // The port's `AER: Corrected error received: …` comes before each, and would count it twice.
    if has("pcie bus error") {
        let kind = match () {
            () if has("severity=corrected") || has("severity=correctable") => {
                NicLogKind::PcieCorrected
            }
            () if has("severity=uncorrected") => NicLogKind::PcieUncorrected,
            () => return None,
        };
        let address = words(message).rev().find(|w| is_pci_address(w))?;
        return Some((address, kind));
    }
    let kind = match () {
        () if has("sub-optimal configuration notification code: 1.") => NicLogKind::EnaLargeEntries,
        () if has("sub-optimal configuration notification code: 3.") => {
            NicLogKind::EnaHeaderTooLong
        }
        () if has("netdev watchdog") && has("timed out")
            || has("tx timeout")
            || has("hardware unit hang")
            || has("transmit timed out")
            || has("tx unit hang") =>
        {
            NicLogKind::TransmitTimeout
        }
        // `VF Reset msg received from vf 0` is no fault: a guest has started with it.
        () if has("reset adapter")
            || has("resetting adapter")
            || has("adapter reset")
            || has("pf reset")
            || has("resetting device") =>
        {
            NicLogKind::Reset
        }
        () if has("link is down")
            || has("link down")
            || has("link is not ready")
            || has("lost carrier") =>
        {
            NicLogKind::LinkDown
        }
        () => return None,
    };
    subject(message).map(|subject| (subject, kind))
}

/// The interface of a message: `igb 0000:01:00.0 eth0: …`, `eth0: …`, `NETDEV WATCHDOG: eth0 (igb): …`,
/// `eth0 (igb): NETDEV WATCHDOG: …`; else the PCI address of the function.
fn subject(message: &str) -> Option<&str> {
    let (rest, of_watchdog) = match message.strip_prefix("NETDEV WATCHDOG: ") {
        Some(rest) => (rest, true),
        None => (message, false),
    };
    let (head, _) = rest.split_once(": ")?;
    let mut head: Vec<&str> = head.split_whitespace().collect();
    // The driver's name in brackets.
    if head.len() > 1 && head.last().is_some_and(|w| w.starts_with('(') && w.ends_with(')')) {
        head.pop();
    }
    let address = head.iter().copied().find(|w| is_pci_address(w));
    let name = head.last().copied().filter(|w| is_name(w) && !is_pci_address(w));
    match (name, address) {
        // `CPU: 3: transmit queue …` of 6.x has the interface in front.
        (Some("CPU"), _) if of_watchdog => None,
        // `igb 0000:01:00.0: …` has a driver and no interface.
        (Some(name), _) if head.len() == 1 || address.is_some() => Some(name),
        (_, address) => address,
    }
}

fn is_name(word: &str) -> bool {
    model::knob::is_nic_name(word)
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-@".contains(&b))
}

/// The words of a message, without what punctuation surrounds them.
fn words(message: &str) -> impl DoubleEndedIterator<Item = &str> {
    message.split_whitespace().map(|w| w.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Option<(String, NicLogKind, String)> {
        parse(line.as_bytes(), "dmesg").pop().map(|e| (e.subject, e.kind, e.last))
    }

    #[test]
    fn messages_of_drivers_have_a_kind_and_a_subject() {
        use NicLogKind::{LinkDown, PcieCorrected, PcieUncorrected, Reset, TransmitTimeout};
        for (line, subject, kind) in [
            ("[  5.1] igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down", "eth0", LinkDown),
            ("[  5.1] ixgbe 0000:81:00.0 ens1f0: NIC Link is Down", "ens1f0", LinkDown),
            ("[  5.1] mlx5_core 0000:81:00.0 ens1f0np0: Link down", "ens1f0np0", LinkDown),
            ("[  5.1] r8169 0000:03:00.0 enp3s0: Link is Down", "enp3s0", LinkDown),
            ("[  5.1] tg3 0000:02:00.0 eno1: Link is down", "eno1", LinkDown),
            (
                "[  5.1] NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out",
                "eth0",
                TransmitTimeout,
            ),
            (
                "[  5.1] igb 0000:01:00.0 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 1 timed out 5008 ms",
                "eth0",
                TransmitTimeout,
            ),
            (
                "[  5.1] e1000e 0000:00:19.0 eno1: Detected Hardware Unit Hang:",
                "eno1",
                TransmitTimeout,
            ),
            ("[  5.1] mlx5_core 0000:81:00.0 ens1: TX timeout detected", "ens1", TransmitTimeout),
            ("[  5.1] e1000e 0000:00:19.0 eno1: Reset adapter unexpectedly", "eno1", Reset),
            ("[  5.1] ixgbe 0000:81:00.0 ens1f0: Reset adapter", "ens1f0", Reset),
            (
                "[  5.1] mlx5_core 0000:81:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
                "0000:81:00.0",
                PcieCorrected,
            ),
            (
                "[  5.1] nvme 0000:82:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
                "0000:82:00.0",
                PcieUncorrected,
            ),
        ] {
            let is = one(line).map(|(s, k, _)| (s, k));
            assert_eq!(is, Some((subject.to_owned(), kind)), "{line}");
        }
    }

    #[test]
    fn an_ena_device_tells_of_its_entries_by_code() {
        use NicLogKind::{EnaHeaderTooLong, EnaLargeEntries};
        let line = |code: &str| {
            format!(
                "[ 9.1] ena 0000:00:05.0: Sub-optimal configuration notification code: {code}. Refer to AWS \
                 ENA documentation for additional details and mitigation options."
            )
        };
        let of = |code: &str| one(&line(code)).map(|(subject, kind, _)| (subject, kind));
        assert_eq!(of("1"), Some(("0000:00:05.0".into(), EnaLargeEntries)));
        assert_eq!(of("3"), Some(("0000:00:05.0".into(), EnaHeaderTooLong)));
        // Code 2 is the ring, and 13 is not 3.
        assert_eq!((of("2"), of("13")), (None, None));
    }

    #[test]
    fn lines_that_only_look_alike_are_passed_over() {
        for line in [
            "[  5.1] igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex",
            "[  5.1] ata1: SATA link down (SStatus 0 SControl 300) ata1: x",
            "[  5.1] usb 1-1: reset high-speed USB device number 2 using xhci_hcd",
            "[  5.1] sd 0:0:0:0: [sda] Link down",
            "[  5.1] pcieport 0000:80:01.0: AER: enabled with IRQ 25",
            // The line before the one that counts.
            "[  5.1] pcieport 0000:80:01.0: AER: Corrected error received: 0000:81:00.0",
            "[  5.1] pcieport 0000:80:01.0: AER: Uncorrected (Non-Fatal) error received: 0000:81:00.0",
            "[  5.1] ixgbe 0000:03:00.0 eth1: VF Reset msg received from vf 0",
            "Jul 07 10:00:00 web1 NetworkManager[812]: <info> device (eth0): link down",
            "Jul 07 10:00:00 web1 systemd-networkd[700]: eth0: Lost carrier",
            "eth0 link down",
            "",
            "[",
            "]: ",
        ] {
            assert!(one(line).is_none_or(|e| e.0 == "ata1"), "{line}: {:?}", one(line));
        }
    }

    #[test]
    fn every_form_of_stamp_is_taken_off_and_lines_are_counted() {
        let down = "igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down";
        for (line, stamp) in [
            (format!("[ 1234.567890] {down}"), "1234.567890"),
            (format!("[Mon Jul  7 10:00:00 2025] {down}"), "Mon Jul  7 10:00:00 2025"),
            (format!("Jul 07 10:00:00 web1 kernel: {down}"), "Jul 07 10:00:00"),
            (format!("Jul 07 10:00:00 web1 kernel: [ 1234.5] {down}"), "Jul 07 10:00:00"),
            (format!("2025-07-07T10:00:00+0200 web1 kernel: {down}"), "2025-07-07T10:00:00+0200"),
            (format!("<6>[ 7.5] {down}"), "7.5"),
            (down.to_owned(), ""),
        ] {
            let (subject, _, last) = one(&line).unwrap();
            assert_eq!((subject.as_str(), last.as_str()), ("eth0", stamp), "{line}");
        }
        let log = format!("[1.0] {down}\n[2.0] up\n[3.0] {down}\n[9.5] {down}\n");
        let all = parse(log.as_bytes(), "var/log/dmesg");
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].count, &*all[0].first, &*all[0].last), (3, "1.0", "9.5"));
        assert_eq!((all[0].line.as_str(), all[0].source.as_str()), (down, "var/log/dmesg"));
    }

    #[test]
    fn of_several_boots_in_one_file_the_last_counts() {
        let stamp = "Jul 07 10:00:00 web1 kernel: ";
        let lines = [
            "igb 0000:01:00.0 eth0: Reset adapter",
            "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org) #1 SMP",
            "igb 0000:01:00.0 eth1: igb: eth1 NIC Link is Down",
        ];
        let log: String = lines.iter().map(|l| format!("{stamp}{l}\n")).collect();
        let all = parse(log.as_bytes(), "var/log/messages");
        let subjects: Vec<&str> = all.iter().map(|e| e.subject.as_str()).collect();
        assert_eq!(subjects, ["eth1"]);
    }
}
