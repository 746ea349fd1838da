//! Frames on a guest's command port, in both directions: a magic number, a kind, a length, a
//! payload. The length is bounded, and the magic resynchronizes after a client that died within a
//! frame.

use std::io::{self, Read, Write};

pub const MAX_PAYLOAD: usize = 64 * 1024;

const MAGIC: [u8; 4] = *b"NWf1";

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// To the guest: answer with [`FrameKind::Welcome`] and the same payload.
    Hello = 1,
    Welcome = 2,
    /// To the guest: run a command, an [`Exec`] as JSON.
    Exec = 3,
    /// To the guest: standard input; an empty payload is its end.
    Stdin = 4,
    /// From the guest: standard output.
    Stdout = 5,
    /// From the guest: standard error.
    Stderr = 6,
    /// From the guest: the exit code, an `i32` in little-endian.
    Exit = 7,
}

impl FrameKind {
    fn from_byte(b: u8) -> Option<Self> {
        [
            Self::Hello,
            Self::Welcome,
            Self::Exec,
            Self::Stdin,
            Self::Stdout,
            Self::Stderr,
            Self::Exit,
        ]
        .into_iter()
        .find(|k| *k as u8 == b)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exec {
    pub argv: Vec<String>,
}

/// Writes one frame in one call.
///
/// # Errors
/// Errors of the port; `InvalidInput` for a payload above [`MAX_PAYLOAD`].
pub fn write(to: &mut impl Write, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
    if payload.len() > MAX_PAYLOAD {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut frame = Vec::with_capacity(9 + payload.len());
    frame.extend(MAGIC);
    frame.push(kind as u8);
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend(payload);
    to.write_all(&frame)?;
    to.flush()
}

/// Reads one frame, skipping bytes outside frames.
///
/// # Errors
/// Errors of the port; `UnexpectedEof` if the other end has disconnected.
pub fn read(from: &mut impl Read) -> io::Result<(FrameKind, Vec<u8>)> {
    loop {
        let mut seen = 0;
        while seen < MAGIC.len() {
            let b = byte(from)?;
            seen = match MAGIC.get(seen) {
                Some(m) if *m == b => seen + 1,
                _ => usize::from(b == MAGIC[0]),
            };
        }
        let kind = FrameKind::from_byte(byte(from)?);
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if let (Some(kind), true) = (kind, length <= MAX_PAYLOAD) {
            let mut payload = vec![0; length];
            from.read_exact(&mut payload)?;
            return Ok((kind, payload));
        }
    }
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut b = [0];
    from.read_exact(&mut b)?;
    Ok(b[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_again_after_garbage() {
        let mut link = b"NWf garbage NNWf1\xff\xff\xff\xff\xff".to_vec();
        write(&mut link, FrameKind::Stdout, b"hello").unwrap();
        write(&mut link, FrameKind::Exit, &7i32.to_le_bytes()).unwrap();
        let mut from = link.as_slice();
        assert_eq!(read(&mut from).unwrap(), (FrameKind::Stdout, b"hello".to_vec()));
        assert_eq!(read(&mut from).unwrap(), (FrameKind::Exit, 7i32.to_le_bytes().to_vec()));
        assert_eq!(read(&mut from).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_payload_above_the_bound_is_refused() {
        assert!(write(&mut Vec::new(), FrameKind::Stdout, &vec![0; MAX_PAYLOAD + 1]).is_err());
    }
}
