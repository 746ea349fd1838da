//! One direction of a run, between two readings of both ends' counters.

use model::{
    Reading,
    measure::{Datagrams, Direction, StreamInterval},
};

use super::StreamShape;
use crate::control::message::Counters;

/// Counters of both ends at one time.
#[derive(Debug, Clone)]
pub struct StreamCounters {
    pub local: Counters,
    pub peer: Counters,
}

/// Splits a run into its single directions.
pub fn directions(direction: Direction) -> Vec<Direction> {
    match direction {
        Direction::Both => vec![Direction::Forward, Direction::Reverse],
        one => vec![one],
    }
}

/// One direction of a run.
#[derive(Debug, Clone, Copy)]
pub struct StreamPart<'a> {
    pub shape: &'a StreamShape,
    /// A single direction, [`Direction::Forward`] or [`Direction::Reverse`]; never `Both`.
    pub direction: Direction,
}

impl StreamPart<'_> {
    fn flows(&self) -> impl Iterator<Item = u32> {
        let forward = self.direction == Direction::Forward;
        let shape = *self.shape;
        (0..shape.connections()).filter(move |i| shape.goes_forward(*i) == forward)
    }

    pub fn receiver<'b>(&self, look: &'b StreamCounters) -> &'b Counters {
        if self.direction == Direction::Forward { &look.peer } else { &look.local }
    }

    pub fn sender<'b>(&self, look: &'b StreamCounters) -> &'b Counters {
        if self.direction == Direction::Forward { &look.local } else { &look.peer }
    }

    /// Bytes received between two readings, by flow.
    pub fn bytes(&self, before: &StreamCounters, after: &StreamCounters) -> Vec<u64> {
        let (a, b) = (&self.receiver(before).received_bytes, &self.receiver(after).received_bytes);
        self.flows().map(|i| at(b, i).saturating_sub(at(a, i))).collect()
    }

    /// Time between two readings, on the receiver's clock.
    pub fn time_ns(&self, before: &StreamCounters, after: &StreamCounters) -> u64 {
        self.receiver(after).at_ns.saturating_sub(self.receiver(before).at_ns)
    }

    /// Counts of datagrams whose numbers the receiver saw or skipped between two readings. A late
    /// datagram that an earlier reading counted as lost reduces the loss of the next interval.
    pub fn datagrams(&self, before: &StreamCounters, after: &StreamCounters) -> Option<Datagrams> {
        let (a, b) = (self.receiver(before), self.receiver(after));
        let (first, last) = (a.datagrams.as_ref()?, b.datagrams.as_ref()?);
        let numbers = |i| at(&b.next_sequence, i).saturating_sub(at(&a.next_sequence, i));
        let sent: u64 = self.flows().map(numbers).fold(0, u64::saturating_add);
        let received = last.received.saturating_sub(first.received);
        let refused = |look| self.sender(look).datagrams.as_ref().map_or(0, |d| d.send_refused);
        Some(Datagrams {
            sent,
            received,
            lost: sent.saturating_sub(received),
            reordered: grown(&first.reordered, &last.reordered),
            duplicates: grown(&first.duplicates, &last.duplicates),
            jitter_ns: last.jitter_ns.clone(),
            send_refused: refused(after).saturating_sub(refused(before)),
        })
    }

    /// Datagrams sent within the window after the last one received: lost, but no later number
    /// shows it.
    pub fn tail(
        &self,
        first: &StreamCounters,
        last: &StreamCounters,
        drained: Option<&StreamCounters>,
    ) -> u64 {
        let Some(drained) = drained else { return 0 };
        let sent = |look, i| at(&self.sender(look).next_sequence, i);
        let seen = |i| at(&self.receiver(drained).next_sequence, i);
        let lost = |i| sent(last, i).saturating_sub(seen(i).max(sent(first, i)));
        self.flows().map(lost).fold(0, u64::saturating_add)
    }

    /// The interval between two readings; `first` is the start of the window.
    pub fn interval(
        &self,
        first: &StreamCounters,
        before: &StreamCounters,
        after: &StreamCounters,
    ) -> StreamInterval {
        let bytes: u64 = self.bytes(before, after).iter().fold(0, |a, b| a.saturating_add(*b));
        let ns = self.time_ns(before, after);
        let since = |look| self.time_ns(first, look) as f64 / 1e9;
        let (a, b) = (self.sender(before), self.sender(after));
        StreamInterval {
            start_s: since(before),
            end_s: since(after),
            bytes,
            bits_per_s: per_s(bytes, ns),
            retransmits: grown(&a.retransmits, &b.retransmits),
            cwnd_bytes: b.cwnd_bytes.clone(),
            rtt_ns: b.rtt_ns.clone(),
            migrations: both(
                grown(&before.local.migrations, &after.local.migrations),
                grown(&before.peer.migrations, &after.peer.migrations),
            ),
            datagrams: self.datagrams(before, after),
        }
    }
}

/// Difference of a counter that the server reports; checked, since a server may send anything.
pub fn grown(before: &Reading<u64>, after: &Reading<u64>) -> Reading<u64> {
    before.clone().and_then(|b| after.clone().map(|a| a.saturating_sub(b)))
}

pub fn both(a: Reading<u64>, b: Reading<u64>) -> Reading<u64> {
    a.and_then(|a| b.map(|b| a.saturating_add(b)))
}

fn at(list: &[u64], index: u32) -> u64 {
    list.get(index as usize).copied().unwrap_or(0)
}

pub fn per_s(bytes: u64, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}

#[cfg(test)]
mod tests {
    use model::measure::{Transport, Wait};

    use super::*;

    fn look(sent: u64, seen: u64, received: u64) -> StreamCounters {
        let counters = |next: u64, received: u64| Counters {
            next_sequence: vec![next],
            received_bytes: vec![received * 100],
            datagrams: Some(Datagrams { received, ..Datagrams::default() }),
            ..Counters::default()
        };
        StreamCounters { local: counters(sent, 0), peer: counters(seen, received) }
    }

    fn shape() -> StreamShape {
        StreamShape {
            transport: Transport::Udp,
            direction: Direction::Forward,
            local: true,
            message_bytes: 100,
            rate_bps: Some(1),
            flows: 1,
            zerocopy: None,
            skip_receive_copy: false,
            wait: Wait::Block,
        }
    }

    #[test]
    fn what_is_on_its_way_is_neither_sent_nor_lost() {
        let shape = shape();
        let part = StreamPart { shape: &shape, direction: Direction::Forward };
        // 10 in transit at the start, 20 at the end; 5 in between were lost.
        let (first, last, drained) =
            (look(110, 100, 100), look(320, 300, 295), look(400, 400, 395));
        let d = part.datagrams(&first, &last).unwrap();
        assert_eq!((d.sent, d.received, d.lost), (200, 195, 5));
        assert_eq!(part.tail(&first, &last, Some(&drained)), 0);
        assert_eq!(part.bytes(&first, &last), [19_500]);
    }

    #[test]
    fn what_was_sent_and_followed_by_silence_is_lost() {
        let shape = shape();
        let part = StreamPart { shape: &shape, direction: Direction::Forward };
        // Nothing arrived from number 150 on; 320 had been sent when the window ended.
        let (first, last, drained) =
            (look(110, 100, 100), look(320, 150, 150), look(400, 150, 150));
        assert_eq!(part.datagrams(&first, &last).unwrap().lost, 0);
        assert_eq!(part.tail(&first, &last, Some(&drained)), 170);
        // Nothing arrived at all.
        let (first, last, drained) = (look(110, 0, 0), look(320, 0, 0), look(400, 0, 0));
        assert_eq!(part.tail(&first, &last, Some(&drained)), 210);
        assert_eq!(part.tail(&first, &last, None), 0);
    }
}
