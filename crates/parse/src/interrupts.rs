//! `/proc/interrupts`: a column per online CPU, a row per interrupt.
//!
//! **Source**: `show_interrupts` in the kernel's `kernel/irq/proc.c`. The header names the online
//! CPUs (`CPU0 CPU2 CPU3`: an offline one has no column). A row is a number or a name, a colon, and
//! a count of ten columns and a blank for each CPU. Numbered rows continue with the chip, the
//! hardware number with trigger, and the comma-separated action names.
//!
//! 512 CPUs and 4,096 interrupts make 23 MB of mostly zeros, read again for every sample. So a
//! [`Parser`] takes it in pieces, and compares runs of zero cells as a whole before it parses
//! digits. Rows with another layout are split at blanks by the general path; a property test
//! compares both paths.

use model::{CpuId, IrqId, cpuset::MAX_ID, irq::IrqCount};

use crate::ParseError;

mod row;
#[cfg(test)]
mod tests;

pub use row::{Columns, IrqRow, NamedRow};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interrupts {
    /// The online CPUs, in the order of the columns; ids have holes.
    pub cpus: Vec<CpuId>,
    /// Numbered rows, in the file's order (ascending).
    pub irqs: Vec<IrqRow>,
    /// Named rows: `NMI`, `LOC`, `ERR`, `IPI0`, …
    pub named: Vec<NamedRow>,
    /// Lines that are no row at all (a truncated last line, garbage), at most 16.
    pub skipped: Vec<ParseError>,
}

impl Interrupts {
    /// Whether a numbered row had another number of columns than the header has CPUs: a CPU
    /// came or went while the kernel was writing. Reading again helps.
    pub fn is_torn(&self) -> bool {
        self.irqs.iter().any(|r| r.counts.is_none())
    }
}

/// Parses the whole file.
///
/// # Errors
/// When the header names no CPU.
pub fn parse(bytes: &[u8]) -> Result<Interrupts, ParseError> {
    let mut parser = Parser::default();
    parser.feed(bytes);
    parser.finish()
}

/// Parses the file piece by piece, so that no caller must hold it whole.
#[derive(Debug, Default)]
pub struct Parser {
    out: Interrupts,
    /// The beginning of an incomplete line.
    carry: Vec<u8>,
    header: Option<ParseError>,
    line: usize,
}

/// A line longer than this is no line of `/proc/interrupts` (8,192 CPUs take 90 kB).
const MAX_LINE: usize = 1 << 20;
const MAX_SKIPPED: usize = 16;

impl Parser {
    /// The next piece, cut anywhere.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if !self.carry.is_empty() {
            let Some(end) = bytes.iter().position(|&b| b == b'\n') else {
                self.keep(bytes);
                return;
            };
            let (head, rest) = bytes.split_at(end + 1);
            let mut line = std::mem::take(&mut self.carry);
            line.extend_from_slice(head);
            self.lines(&line);
            line.clear();
            self.carry = line;
            bytes = rest;
        }
        let left = self.lines(bytes);
        self.keep(left);
    }

    /// What was read.
    ///
    /// # Errors
    /// When the header names no CPU.
    pub fn finish(mut self) -> Result<Interrupts, ParseError> {
        if !self.carry.is_empty() {
            // The kernel ends every line: what is left was cut, perhaps within a number.
            self.line += 1;
            let cut = std::mem::take(&mut self.carry);
            self.skip("a line with its end", &cut);
        }
        match self.header {
            Some(e) => Err(e),
            None if self.out.cpus.is_empty() => Err(ParseError::new(1, "a line of CPUs", b"")),
            None => Ok(self.out),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.carry.len());
        self.carry.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn skip(&mut self, expected: &'static str, line: &[u8]) {
        if self.out.skipped.len() < MAX_SKIPPED {
            self.out.skipped.push(ParseError::new(self.line, expected, line));
        }
    }

    /// Takes every complete line and gives back the rest.
    fn lines<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while !bytes.is_empty() {
            if self.out.cpus.is_empty() {
                let Some((line, rest)) = split_line(bytes, 0) else { return bytes };
                self.line += 1;
                bytes = rest;
                self.take_header(line);
                continue;
            }
            let (columns, searched) = match row::fast(bytes, &self.out.cpus) {
                Some((columns, at)) => (Some(columns), at),
                None => (None, 0),
            };
            let Some((line, rest)) = split_line(bytes, searched) else { return bytes };
            self.line += 1;
            bytes = rest;
            self.take_row(line, columns);
        }
        bytes
    }

    fn take_header(&mut self, line: &[u8]) {
        if self.header.is_some() {
            return;
        }
        match header(line) {
            Some(cpus) => self.out.cpus = cpus,
            None => self.header = Some(ParseError::new(self.line, "a line of CPUs", line)),
        }
    }

    fn take_row(&mut self, line: &[u8], columns: Option<Columns>) {
        let columns =
            columns.filter(|c| !c.overrun(line)).or_else(|| row::general(line, &self.out.cpus));
        let Some(columns) = columns else {
            if line.iter().any(|b| !b.is_ascii_whitespace()) {
                self.skip("a row such as `24: 0 1 chip`", line);
            }
            return;
        };
        match row::number(columns.label(line)) {
            Some(n) => self.out.irqs.push(row::irq(IrqId(n), columns, line)),
            None => self.out.named.push(row::named(columns, line)),
        }
    }
}

/// The first line without its end, and what follows; the first `from` bytes hold no end.
fn split_line(bytes: &[u8], from: usize) -> Option<(&[u8], &[u8])> {
    let end = from + bytes.get(from..)?.iter().position(|&b| b == b'\n')?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

/// `CPU0 CPU2 …`; `None` if it is anything else.
fn header(line: &[u8]) -> Option<Vec<CpuId>> {
    let text = std::str::from_utf8(line).ok()?;
    let mut cpus = Vec::with_capacity(line.len() / 11);
    for word in text.split_ascii_whitespace() {
        let id: u32 = word.strip_prefix("CPU")?.parse().ok()?;
        if id > MAX_ID {
            return None;
        }
        cpus.push(CpuId(id));
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// Adds a count if it is above zero.
fn push(counts: &mut Vec<IrqCount>, cpu: CpuId, count: u64) {
    if count > 0 {
        counts.push(IrqCount { cpu, count });
    }
}
