//! SipHash-2-4: a keyed function whose outputs tell nothing of the inputs without the key,
//! for short inputs. Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.

/// The function with its key.
#[derive(Debug, Clone)]
pub struct SipHash {
    k0: u64,
    k1: u64,
}

impl SipHash {
    pub fn new(key: &[u8; 16]) -> Self {
        let [k0, k1] = [0, 8].map(|at| little_endian(key.get(at..at + 8).unwrap_or_default()));
        Self { k0, k1 }
    }

    /// The hash of the parts, each with its length before it, so that ("ab", "c") is not
    /// ("a", "bc").
    pub fn hash(&self, parts: &[&[u8]]) -> u64 {
        let mut message = Vec::new();
        for part in parts {
            message.extend((part.len() as u64).to_le_bytes());
            message.extend(*part);
        }
        self.of(&message)
    }

    fn of(&self, message: &[u8]) -> u64 {
        let mut v = [
            self.k0 ^ 0x736f_6d65_7073_6575,
            self.k1 ^ 0x646f_7261_6e64_6f6d,
            self.k0 ^ 0x6c79_6765_6e65_7261,
            self.k1 ^ 0x7465_6462_7974_6573,
        ];
        let mut words = message.chunks_exact(8);
        let mut absorb = |m: u64, rounds: u32| {
            v[3] ^= m;
            for _ in 0..rounds {
                round(&mut v);
            }
            v[0] ^= m;
        };
        for word in &mut words {
            absorb(little_endian(word), 2);
        }
        absorb(little_endian(words.remainder()) | (message.len() as u64) << 56, 2);
        v[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

fn round(v: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *v;
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    *v = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_papers_own_example() {
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let message: Vec<u8> = (0..15).collect();
        // Appendix A of the paper.
        assert_eq!(SipHash::new(&key).of(&message), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn parts_are_kept_apart() {
        let s = SipHash::new(&[7; 16]);
        assert_ne!(s.hash(&[b"ab", b"c"]), s.hash(&[b"a", b"bc"]));
        assert_eq!(s.hash(&[b"ab"]), s.hash(&[b"ab"]));
        assert_ne!(s.hash(&[b"ab"]), SipHash::new(&[8; 16]).hash(&[b"ab"]));
    }
}
