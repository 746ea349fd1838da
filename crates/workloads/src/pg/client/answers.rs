//! Processes the server's messages.

use model::measure::PgProtocol;

use super::{Client, Row};
use crate::pg::{
    plan::Plan,
    wire::{self, ServerError},
};

impl Client {
    /// Whether the body of this kind of message is needed.
    #[inline]
    pub fn wants(&self, kind: u8) -> bool {
        matches!(kind, b'Z' | b'E') || (matches!(kind, b'T' | b'D') && self.wants_row)
    }

    /// Takes a server message; reports each answered statement with its send time.
    ///
    /// # Errors
    /// The message is invalid for a client.
    #[inline]
    pub fn take(
        &mut self,
        kind: u8,
        body: &[u8],
        plan: &Plan,
        mut answered: impl FnMut(usize, u64),
    ) -> Result<(), &'static str> {
        match kind {
            // For a statement that returns rows, in the usual order.
            b'2' | b'n' | b'N' | b'S' | b'A' | b'K' | b't' | b'3' => {}
            b'1' => {
                self.parsing.pop_front();
            }
            b'T' | b'D' if self.wants_row => self.row(kind, body),
            b'T' | b'D' => {}
            b'C' | b'I' | b's' => {
                if plan.protocol != PgProtocol::Simple && !self.undoing {
                    self.sent.pop_front().into_iter().for_each(|(n, at)| answered(n, at));
                }
            }
            b'Z' => {
                let Some(left) = self.awaiting.checked_sub(1) else {
                    return Err("it answered what was not asked");
                };
                self.awaiting = left;
                self.status = body.first().copied().unwrap_or(b'I');
                if plan.protocol == PgProtocol::Simple && self.error.is_none() {
                    self.sent.pop_front().into_iter().for_each(|(n, at)| answered(n, at));
                }
                self.sent.clear();
                // After an error the server skips statements that it had still to parse.
                for number in self.parsing.drain(..) {
                    if let Some(known) = self.known.get_mut(number) {
                        *known = false;
                    }
                }
            }
            b'E' => self.wrong(body),
            b'G' | b'H' | b'W' => return Err("COPY is not possible in a script"),
            _ => return Err("the answer is none of PostgreSQL's protocol"),
        }
        Ok(())
    }

    #[cold]
    fn wrong(&mut self, body: &[u8]) {
        if self.error.is_none() {
            self.error = Some(ServerError::read(body));
            self.wrong = self.sent.front().map(|(n, _)| *n);
        }
    }

    fn row(&mut self, kind: u8, body: &[u8]) {
        match kind {
            b'T' => {
                let columns = wire::columns(body).unwrap_or_default();
                self.rows.push(Row { columns, ..Row::default() });
            }
            _ => {
                if let Some(row) = self.rows.last_mut() {
                    row.count += 1;
                    row.values = wire::values(body).unwrap_or_default();
                }
            }
        }
    }
}
