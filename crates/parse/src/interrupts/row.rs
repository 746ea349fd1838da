//! Parses one row: fast for the kernel's fixed columns, else by the general path.

use model::{CpuId, IrqId, irq::IrqCount};

#[derive(Debug, Clone, PartialEq)]
pub struct IrqRow {
    pub irq: IrqId,
    /// Counts above zero, in the order of the header's CPUs. `None` where the row does not have a
    /// number for each CPU of the header, as the CPUs of its counts are then unknown.
    pub counts: Option<Vec<IrqCount>>,
    /// Chip, which may hold blanks (`Hyper-V PCIe MSI`).
    pub chip: String,
    /// Hardware number and trigger, blanks squeezed (`1-edge`, `27 Level`, `-event`); empty
    /// where the kernel prints none.
    pub hwirq: String,
    /// Action names as printed (`uhci_hcd:usb5, ahci[0000:02:00.0]`); empty if none.
    pub name: String,
}

/// A named row: `NMI`, `LOC`, `ERR`, `IPI0`, …
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRow {
    /// Name without the colon.
    pub name: String,
    /// Counts above zero; `None` where the row is not by CPU (`ERR` and `MIS` have one column).
    pub counts: Option<Vec<IrqCount>>,
    /// The sum of all columns.
    pub total: u64,
    /// The kernel's description (`Local timer interrupts`), empty for some.
    pub title: String,
}

/// The columns of one row.
#[derive(Debug)]
pub struct Columns {
    counts: Option<Vec<IrqCount>>,
    total: u64,
    /// Where the colon stands.
    colon: usize,
    /// Where the text behind the counts begins.
    tail: usize,
}

impl Columns {
    /// What stands before the colon.
    pub(super) fn label<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        line.get(..self.colon).unwrap_or_default().trim_ascii()
    }

    fn tail<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        line.get(self.tail..).unwrap_or_default().trim_ascii()
    }

    /// Whether the text behind the counts starts with one count more.
    pub(super) fn overrun(&self, line: &[u8]) -> bool {
        let word = self.tail(line).split(u8::is_ascii_whitespace).next().unwrap_or_default();
        !word.is_empty() && word.iter().all(u8::is_ascii_digit)
    }
}

/// A blank and `%10u`.
const CELL: usize = 11;
/// Zero cells compared at once.
const RUN: usize = 32;
const ZERO: [u8; CELL] = *b"          0";
const ZEROS: [u8; CELL * RUN] = {
    let mut all = [b' '; CELL * RUN];
    let mut i = CELL - 1;
    while i < all.len() {
        all[i] = b'0';
        i += CELL;
    }
    all
};
/// No row's name is longer; a number has ten digits at most.
const LABEL: usize = 24;

/// The kernel's own layout: after the colon a cell of 11 bytes for each CPU. Gives the columns
/// and how far the row was read (no end of line before), or `None` where it is laid out in
/// any other way or not all there yet.
pub(super) fn fast(bytes: &[u8], cpus: &[CpuId]) -> Option<(Columns, usize)> {
    let colon = bytes.iter().take(LABEL).position(|&b| b == b':' || b == b'\n')?;
    if bytes.get(colon) != Some(&b':') {
        return None;
    }
    let end = colon + 1 + cpus.len() * CELL;
    if !matches!(bytes.get(end), Some(b' ' | b'\n')) {
        return None;
    }
    let (mut counts, mut total) = (Vec::new(), 0);
    let cells = bytes.get(colon + 1..end)?;
    for (run, cpus) in cells.chunks(CELL * RUN).zip(cpus.chunks(RUN)) {
        if Some(run) == ZEROS.get(..run.len()) {
            continue;
        }
        for (cell, &cpu) in run.chunks_exact(CELL).zip(cpus) {
            if cell == ZERO {
                continue;
            }
            let count = cell_value(cell)?;
            total += count;
            super::push(&mut counts, cpu, count);
        }
    }
    Some((Columns { counts: Some(counts), total, colon, tail: end }, end))
}

/// A blank, blanks, digits up to the end.
fn cell_value(cell: &[u8]) -> Option<u64> {
    let (&blank, rest) = cell.split_first()?;
    let digits = rest.iter().position(|&b| b != b' ')?;
    if blank != b' ' {
        return None;
    }
    let mut value = 0u64;
    for &b in rest.get(digits..)? {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(b - b'0');
    }
    Some(value)
}

/// Any layout: what stands before the colon, then numbers between blanks, then text. `None`
/// where that is not so.
pub(super) fn general(line: &[u8], cpus: &[CpuId]) -> Option<Columns> {
    let colon = line.iter().position(|&b| b == b':')?;
    if line.get(..colon)?.trim_ascii().is_empty() {
        return None;
    }
    let (mut counts, mut total, mut columns, mut whole) = (Vec::new(), 0u64, 0usize, true);
    let mut at = colon + 1;
    loop {
        let rest = line.get(at..)?;
        let start = rest.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(rest.len());
        let word = rest.get(start..)?.split(u8::is_ascii_whitespace).next()?;
        if word.is_empty() || !word.iter().all(u8::is_ascii_digit) {
            break;
        }
        let count = std::str::from_utf8(word).ok()?.parse::<u64>().ok();
        whole &= count.is_some();
        let count = count.unwrap_or(u64::MAX);
        total = total.saturating_add(count);
        if let Some(&cpu) = cpus.get(columns) {
            super::push(&mut counts, cpu, count);
        }
        columns += 1;
        at += start + word.len();
    }
    if columns == 0 {
        return None;
    }
    let counts = (whole && columns == cpus.len()).then_some(counts);
    Some(Columns { counts, total, colon, tail: at })
}

/// Digits alone, within 32 bits.
pub(super) fn number(label: &[u8]) -> Option<u32> {
    if !label.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(label).ok()?.parse().ok()
}

/// A numbered row of its columns and its text.
pub(super) fn irq(irq: IrqId, columns: Columns, line: &[u8]) -> IrqRow {
    let text = String::from_utf8_lossy(columns.tail(line));
    let (chip, hwirq, name) = describe(&text);
    IrqRow { irq, counts: columns.counts, chip: chip.into(), hwirq, name: name.into() }
}

/// A named row of its columns and its text.
pub(super) fn named(columns: Columns, line: &[u8]) -> NamedRow {
    NamedRow {
        name: String::from_utf8_lossy(columns.label(line)).into_owned(),
        title: String::from_utf8_lossy(columns.tail(line)).into_owned(),
        counts: columns.counts,
        total: columns.total,
    }
}

/// Chip, hardware number with trigger, names. The kernel prints ` %8s` chip, ` %*lu` hwirq
/// (blanks without a domain), on some architectures ` %-8s` level or edge, `-%-8s` handler,
/// then two blanks and the names. So a chip's own blanks are single ones, and the chip ends
/// before the first word that looks like a hardware number, or before two blanks.
fn describe(text: &str) -> (&str, String, &str) {
    let Some(mut chip_end) = text.find(' ') else { return (text, String::new(), "") };
    loop {
        let (chip, rest) = text.split_at(chip_end);
        let words = rest.trim_start_matches(' ');
        let word = words.split(' ').next().unwrap_or_default();
        if word.is_empty() {
            return (chip, String::new(), "");
        }
        if is_hwirq(word) {
            let (hwirq, name) = hwirq(words);
            return (chip, hwirq, name);
        }
        if rest.len() - words.len() >= 2 {
            return (chip, String::new(), words);
        }
        chip_end = text.len() - words.len() + word.len();
    }
}

/// The hardware number, `Level`/`Edge` and handler from the start of `words`; what follows is
/// the names.
fn hwirq(words: &str) -> (String, &str) {
    let mut found = String::new();
    let mut rest = words;
    loop {
        let word = rest.split(' ').next().unwrap_or_default();
        let trigger = matches!(word, "Level" | "Edge") || word.starts_with('-') && word.len() > 1;
        if !(found.is_empty() || trigger) || word.is_empty() {
            return (found, rest);
        }
        if !found.is_empty() {
            found.push(' ');
        }
        found.push_str(word);
        rest = rest.get(word.len()..).unwrap_or_default().trim_start_matches(' ');
    }
}

/// `524288`, `1-edge`, `-event` (no domain), `Level` (no domain).
fn is_hwirq(word: &str) -> bool {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    match word.as_bytes().get(digits) {
        None => true,
        Some(b'-') => word.len() > digits + 1,
        Some(_) => matches!(word, "Level" | "Edge"),
    }
}
