//! Frames of the control connection: four magic bytes, a length, a JSON text.

use std::io::{Read, Write};

use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, Result};

pub const MAGIC: [u8; 4] = *b"NWT1";
const HEAD: usize = 8;

/// Size limit of a frame before the other end is authenticated, in bytes.
pub const SMALL: usize = 4 << 10;
/// Size limit of a test request: room for 256 addresses and the CPUs of a large host.
pub const ASKED: usize = 64 << 10;
/// Size limit of any frame.
pub const LARGE: usize = 4 << 20;

/// Encodes a message as a frame.
///
/// # Errors
/// The message is not valid JSON, or larger than [`LARGE`].
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(message).map_err(|e| Error::Environment(e.to_string()))?;
    if text.len() > LARGE {
        return Err(Error::Environment(format!("a message of {} bytes is too long", text.len())));
    }
    let mut frame = Vec::with_capacity(HEAD + text.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&(text.len() as u32).to_be_bytes());
    frame.extend_from_slice(&text);
    Ok(frame)
}

/// Sends a message on a blocking connection.
///
/// # Errors
/// As the connection reports.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> Result<()> {
    to.write_all(&encode(message)?).map_err(|e| lost(&e))
}

/// Receives a message on a blocking connection; its read timeout limits the wait.
///
/// # Errors
/// The connection ended, timed out, or speaks another protocol.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read, most: usize) -> Result<T> {
    let mut inbox = Inbox::default();
    let mut chunk = [0u8; 4096];
    loop {
        if let Some(message) = inbox.next(most)? {
            return Ok(message);
        }
        // Never reads beyond this frame: the next bytes belong to another message.
        let want = inbox.missing().min(chunk.len());
        let room = chunk.get_mut(..want).unwrap_or_default();
        match from.read(room) {
            Ok(0) => return Err(Error::Environment("the server closed the connection".into())),
            Ok(n) => inbox.push(room.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(lost(&e)),
        }
    }
}

fn lost(e: &std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    match e.kind() {
        K::WouldBlock | K::TimedOut => {
            Error::Environment("the server is silent; does `netwright serve` run there?".into())
        }
        K::ConnectionReset | K::BrokenPipe => {
            Error::Environment("the server broke the connection".into())
        }
        _ => Error::io("control connection", e),
    }
}

/// Received bytes that do not form a whole message yet.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that the current message still lacks; more than 0.
    pub fn missing(&self) -> usize {
        let whole = self.length().map_or(HEAD, |n| HEAD + n);
        whole.saturating_sub(self.bytes.len()).max(1)
    }

    fn length(&self) -> Option<usize> {
        let word = self.bytes.get(4..HEAD)?;
        Some(u32::from_be_bytes(word.try_into().ok()?) as usize)
    }

    /// The next message, once it is whole.
    ///
    /// # Errors
    /// The bytes are not our protocol, or the message is longer than `most`.
    pub fn next<T: DeserializeOwned>(&mut self, most: usize) -> Result<Option<T>> {
        let begun = self.bytes.len().min(MAGIC.len());
        if self.bytes.get(..begun) != MAGIC.get(..begun) {
            // The last magic byte is the protocol version.
            if begun == MAGIC.len() && self.bytes.get(..begun - 1) == MAGIC.get(..begun - 1) {
                return Err(Error::Environment(
                    "a netwright of another version answers there; run the same at both ends"
                        .into(),
                ));
            }
            let head: String = self.bytes.iter().take(16).map(|b| char::from(*b)).collect();
            return Err(Error::Environment(format!(
                "something other than netwright answers there (it says {head:?})"
            )));
        }
        let Some(length) = self.length() else { return Ok(None) };
        if length > most {
            return Err(Error::Environment(format!("a message of {length} bytes is too long")));
        }
        let Some(text) = self.bytes.get(HEAD..HEAD + length) else { return Ok(None) };
        let message = model::json::read(text)
            .map_err(|e| Error::Environment(format!("a message that makes no sense: {e}")))?;
        self.bytes.drain(..HEAD + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_arrives_whole_in_any_pieces() {
        let frame = encode(&vec!["abc", "d"]).unwrap();
        let mut inbox = Inbox::default();
        for (i, byte) in frame.iter().enumerate() {
            assert!(inbox.next::<Vec<String>>(100).unwrap().is_none(), "{i}");
            assert!(inbox.missing() >= 1);
            inbox.push(&[*byte]);
        }
        assert_eq!(inbox.next::<Vec<String>>(100).unwrap().unwrap(), ["abc", "d"]);
        assert!(inbox.next::<Vec<String>>(100).unwrap().is_none());
    }

    #[test]
    fn another_protocol_is_named() {
        let mut ssh: &[u8] = b"SSH-2.0-OpenSSH_9.2\r\n";
        let e = receive::<Vec<String>>(&mut ssh, SMALL).unwrap_err().to_string();
        assert!(e.contains("something other than netwright") && e.contains("SSH-2.0"), "{e}");
        let mut other: &[u8] = b"NWT9\0\0\0\x02{}";
        let e = receive::<Vec<String>>(&mut other, SMALL).unwrap_err().to_string();
        assert!(e.contains("another version"), "{e}");
        let mut ends: &[u8] = b"NW";
        let e = receive::<Vec<String>>(&mut ends, SMALL).unwrap_err().to_string();
        assert!(e.contains("closed"), "{e}");
        let mut long: &[u8] = b"NWT1\xff\xff\xff\xff";
        let e = receive::<Vec<String>>(&mut long, SMALL).unwrap_err().to_string();
        assert!(e.contains("too long"), "{e}");
    }

    proptest! {
        #[test]
        fn another_beginning_is_refused(bytes in prop::collection::vec(any::<u8>(), 1..200)) {
            let begun = bytes.len().min(MAGIC.len());
            prop_assume!(bytes[..begun] != MAGIC[..begun]);
            let mut inbox = Inbox::default();
            inbox.push(&bytes);
            prop_assert!(inbox.next::<Vec<String>>(SMALL).is_err());
        }

        #[test]
        fn a_length_is_waited_for_or_refused(length: u32, body in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut inbox = Inbox::default();
            inbox.push(&[&MAGIC[..], &length.to_be_bytes(), &body].concat());
            let got = inbox.next::<Vec<String>>(SMALL);
            if length as usize > SMALL {
                prop_assert!(got.is_err());
            } else if length as usize > body.len() {
                prop_assert!(got.unwrap().is_none());
                prop_assert_eq!(inbox.missing(), length as usize - body.len());
            } else {
                let text = &body[..length as usize];
                prop_assert_eq!(got.ok().flatten(), serde_json::from_slice::<Vec<String>>(text).ok());
            }
        }
    }
}
