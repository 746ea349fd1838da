//! A line for each sender, and what limits it.

use model::{BitsPerSec, reading::Known};

use super::{
    document::DoctorDocument,
    senders::{LimitedBy, Sender},
};
use crate::{
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
    let title =
        Line::new().ink(Ink::Strong, "SENDERS").text("  what limits what they send over TCP");
    page.line(title, 0);
    for s in shown.iter().take(most) {
        let name = if s.process.is_empty() { "not known" } else { &s.process };
        let rate = BitsPerSec(s.bits_per_s as u64);
        let connections = many(s.connections as usize, "connection");
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let why = match s.limited_by {
            LimitedBy::Application => {
                format!("data waited at {} of the readings", percent(s.waiting_share))
            }
            LimitedBy::Receiver => format!("full for {} of its time", percent(s.receiver_share)),
            LimitedBy::SendBuffer => {
                format!("full for {} of its time", percent(s.send_buffer_share))
            }
            LimitedBy::Network => {
                format!("data waited at {} of the readings", percent(s.waiting_share))
            }
        };
        let text = format!("{name}, {connections}, {rate}: {}; {why}", s.limited_by.text());
        page.line(Line::plain(text), 2);
    }
    if shown.len() > most {
        page.line(Line::plain(format!("and {} more: -v", shown.len() - most)), 2);
    }
}
