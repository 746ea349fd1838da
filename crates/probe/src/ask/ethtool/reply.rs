//! Fields of an answer by offset, never beyond its end. All numbers are the machine's own
//! byte order, as the structures of the ioctl are.

/// An answer; reading beyond it is `EIO`.
#[derive(Clone, Copy)]
pub struct Reply<'a>(pub &'a [u8]);

impl<'a> Reply<'a> {
    /// `len` bytes from `at`.
    ///
    /// # Errors
    /// `EIO` where the answer is shorter.
    pub fn bytes(self, at: usize, len: usize) -> Result<&'a [u8], i32> {
        at.checked_add(len).and_then(|end| self.0.get(at..end)).ok_or(libc::EIO)
    }

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], i32> {
        self.bytes(at, N)?.try_into().map_err(|_| libc::EIO)
    }

    /// One byte.
    ///
    /// # Errors
    /// `EIO` where the answer is shorter.
    pub fn u8(self, at: usize) -> Result<u8, i32> {
        self.array::<1>(at).map(|[b]| b)
    }

    /// Four bytes in the host's order.
    ///
    /// # Errors
    /// `EIO` where the answer is shorter.
    pub fn u32(self, at: usize) -> Result<u32, i32> {
        self.array(at).map(u32::from_ne_bytes)
    }

    /// Eight bytes in the host's order.
    ///
    /// # Errors
    /// `EIO` where the answer is shorter.
    pub fn u64(self, at: usize) -> Result<u64, i32> {
        self.array(at).map(u64::from_ne_bytes)
    }

    /// A text of at most `len` bytes, ended by a zero if shorter, without blanks around it.
    ///
    /// # Errors
    /// `EIO` where the answer is shorter.
    pub fn text(self, at: usize, len: usize) -> Result<String, i32> {
        let bytes = self.bytes(at, len)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(len);
        Ok(parse::text::word(bytes.get(..end).unwrap_or(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_within_and_refuses_beyond() {
        let bytes: Vec<u8> =
            [1u32, 2].iter().flat_map(|w| w.to_ne_bytes()).chain(*b" eth\0x").collect();
        let reply = Reply(&bytes);
        assert_eq!(reply.u32(4), Ok(2));
        assert_eq!(reply.text(8, 6).as_deref(), Ok("eth"));
        assert_eq!(reply.u64(8), Err(libc::EIO));
        assert_eq!(reply.u32(usize::MAX), Err(libc::EIO));
        assert_eq!(reply.u8(14), Err(libc::EIO));
    }
}
