//! A line for each sender, and what limits it.

use model::{BitsPerSec, reading::Known};

use super::document::DoctorDocument;
use crate::{
    senders::Sender,
    text::{Ink, Line, Page},
    words::many,
};

/// Rate below which a sender is shown with `-v` only, such as an operator's ssh session.
const SHOWN_FROM: f64 = 1e6;
/// The most senders without `-v`.
const MOST: usize = 4;

/// A line for each sender.
pub fn show(d: &DoctorDocument, page: &mut Page) {
    let Known(all) = &d.senders else { return };
    let verbose = page.look().verbose;
    let shown: Vec<&Sender> =
        all.iter().filter(|s| verbose || s.bits_per_s >= SHOWN_FROM).collect();
    let most = if verbose { shown.len() } else { MOST };
    if shown.is_empty() {
        return;
    }
    page.gap();
    let title = Line::new().ink(Ink::Strong, "SENDERS").text("  what limits each of them over TCP");
    page.line(title, 0);
    for s in shown.iter().take(most) {
        let name = if s.process.is_empty() { "not known" } else { &s.process };
        let rate = BitsPerSec(s.bits_per_s as u64).to_string();
        let connections = many(s.connections as usize, "connection");
        let by = s.limited_by.text();
        page.raw(&Line::plain(format!("  {name:<16} {connections:>16}  {rate:>13}  {by}")));
        if verbose {
            page.line(Line::plain(format!("    {}", shares(s))), 6);
        }
    }
    if shown.len() > most {
        page.raw(&Line::plain(format!("  and {} more: -v", shown.len() - most)));
    }
}

fn shares(s: &Sender) -> String {
    let percent = |share: f64| format!("{:.0}%", share * 100.0);
    format!(
        "busy {} of the time; of that the receiver's window was full {}, the send buffer {}; data waited \
         at {} of the readings",
        percent(s.busy_share),
        percent(s.receiver_share),
        percent(s.send_buffer_share),
        percent(s.waiting_share)
    )
}
