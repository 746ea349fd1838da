//! SipHash-2-4: a keyed function for short inputs. Without the key its outputs reveal nothing of
//! the inputs. Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.

use siphasher::sip::SipHasher24;

/// The function with its key.
#[derive(Debug, Clone)]
pub struct SipHash(SipHasher24);

impl SipHash {
    pub fn new(key: &[u8; 16]) -> Self {
        Self(SipHasher24::new_with_key(key))
    }

    /// The hash of the parts, each with its length before it, so that ("ab", "c") is not
    /// ("a", "bc").
    pub fn hash(&self, parts: &[&[u8]]) -> u64 {
        let mut message = Vec::new();
        for part in parts {
            message.extend((part.len() as u64).to_le_bytes());
            message.extend(*part);
        }
        self.0.hash(&message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_papers_own_example() {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let message: Vec<u8> = (0..15).collect();
        // Appendix A of the paper.
        assert_eq!(SipHash::new(&key).0.hash(&message), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn parts_are_kept_apart() {
        let s = SipHash::new(&[7; 16]);
        assert_ne!(s.hash(&[b"ab", b"c"]), s.hash(&[b"a", b"bc"]));
        assert_eq!(s.hash(&[b"ab"]), s.hash(&[b"ab"]));
        assert_ne!(s.hash(&[b"ab"]), SipHash::new(&[8; 16]).hash(&[b"ab"]));
    }
}
