//! Content of requests and responses: a few leading bytes that the measurement needs, as far as
//! they fit.
//!
//! A TCP or Unix response begins with the CPU of its sender (16 bits, little-endian; only the low 8
//! in a one-byte response), and by how much its simulated service time took longer than requested
//! (16 bits, little-endian, microseconds; the io_uring engine leaves it 0). A UDP request begins with its sequence number (32 bits, little-endian).
//! The response returns that number around the CPU: number's low byte, CPU, the number's other
//! bytes.

use model::measure::Transport;

use crate::engine::ran_on::UNKNOWN_CPU;

/// Length in bytes of a UDP request's number, if it fits.
pub const NUMBER: usize = 4;
/// Positions of the number's bytes in a UDP response.
const NUMBER_AT: [usize; 4] = [0, 3, 4, 5];
/// Position of the CPU in a UDP response.
const UDP_CPU_AT: usize = 1;

/// Writes the sender's CPU into a response.
#[inline]
pub fn stamp_cpu(transport: Transport, response: &mut [u8], cpu: u16) {
    let at = if transport == Transport::Udp { UDP_CPU_AT } else { 0 };
    for (byte, value) in response.iter_mut().skip(at).zip(cpu.to_le_bytes()) {
        *byte = value;
    }
}

/// The sender's CPU from a response of `length` bytes, given its first bytes.
#[inline]
pub fn read_cpu(transport: Transport, length: u64, head: &[u8]) -> u16 {
    let at = if transport == Transport::Udp { UDP_CPU_AT } else { 0 };
    match (head.get(at), head.get(at + 1)) {
        (Some(low), Some(high)) => u16::from_le_bytes([*low, *high]),
        (Some(low), None) if length == 1 => u16::from(*low),
        _ => UNKNOWN_CPU,
    }
}

/// The shortest response that has room for its overrun, bytes.
pub const LEAST_WITH_OVERRUN: u64 = 4;
/// Position of the overrun in a TCP or Unix response.
const OVERRUN_AT: usize = 2;

/// Writes into a TCP or Unix response by how much its service time took longer; at most 65 ms.
#[inline]
pub fn stamp_overrun(response: &mut [u8], ns: u64) {
    let us = u16::try_from(ns.saturating_add(500) / 1000).unwrap_or(u16::MAX);
    if let Some(room) = response.get_mut(OVERRUN_AT..OVERRUN_AT + 2) {
        room.copy_from_slice(&us.to_le_bytes());
    }
}

/// By how much the service time of a TCP or Unix response took longer, nanoseconds, given its first
/// bytes; 0 where it has no room to say so.
#[inline]
pub fn read_overrun(head: &[u8]) -> u64 {
    match head.get(OVERRUN_AT..OVERRUN_AT + 2) {
        Some([low, high]) => u64::from(u16::from_le_bytes([*low, *high])) * 1000,
        _ => 0,
    }
}

/// Writes a UDP request's number.
#[inline]
pub fn stamp_number(request: &mut [u8], number: u32) {
    for (byte, value) in request.iter_mut().zip(number.to_le_bytes()) {
        *byte = value;
    }
}

/// Copies a UDP request's number into its response.
#[inline]
pub fn echo_number(request: &[u8], response: &mut [u8]) {
    for (byte, at) in request.iter().zip(NUMBER_AT) {
        if let Some(to) = response.get_mut(at) {
            *to = *byte;
        }
    }
}

/// Whether a UDP response answers this number, compared as far as both have room.
#[inline]
pub fn answers(response: &[u8], request_bytes: u64, number: u32) -> bool {
    let bytes = number.to_le_bytes();
    let reported = bytes.iter().zip(NUMBER_AT).take(request_bytes.min(4) as usize);
    reported.into_iter().all(|(byte, at)| response.get(at).is_none_or(|b| b == byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_has_room_comes_back(cpu in 0u16..256, n in any::<u32>(), req in 1usize..9, resp in 1usize..9) {
            let (mut request, mut response) = (vec![0; req], vec![0; resp]);
            stamp_number(&mut request, n);
            stamp_cpu(Transport::Udp, &mut response, cpu);
            echo_number(&request, &mut response);
            prop_assert!(answers(&response, req as u64, n));
            // The low byte always fits.
            prop_assert!(!answers(&response, req as u64, n ^ 1));
            let got = read_cpu(Transport::Udp, resp as u64, &response);
            prop_assert_eq!(got, if resp >= 3 { cpu } else { UNKNOWN_CPU });
            stamp_cpu(Transport::Tcp, &mut response, cpu);
            stamp_overrun(&mut response, u64::from(n));
            prop_assert_eq!(read_cpu(Transport::Tcp, resp as u64, &response), cpu);
            let overrun = u64::from(n).min(65_535_000);
            let room = resp as u64 >= LEAST_WITH_OVERRUN;
            let written = if room { overrun } else { 0 };
            prop_assert!(read_overrun(&response).abs_diff(written) <= 500);
        }
    }
}
