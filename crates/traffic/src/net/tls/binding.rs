//! Channel binding: ties a login to its TLS connection.
//!
//! **Source**: RFC 5929, section 4.1, `tls-server-end-point`; RFC 5280, appendix A, for the
//! structure of a certificate.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// OID of RSA's signature algorithms, without the last byte.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// OID of ECDSA with SHA-2, without the last byte.
const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
/// OID of ECDSA with SHA-1, complete.
const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];

/// The certificate's hash by its signature's hash algorithm, with SHA-256 in place of MD5 and
/// SHA-1; `None` if the signature has no separate hash (Ed25519, RSA-PSS).
pub fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (whole, _) = element(certificate, 0x30)?;
    let (_, rest) = element(whole, 0x30)?;
    let (algorithm, _) = element(rest, 0x30)?;
    let (oid, _) = element(algorithm, 0x06)?;
    let (last, family) = oid.split_last()?;
    let sha256 = || Sha256::digest(certificate).to_vec();
    match (family, last) {
        (RSA, 4 | 5 | 11) | (ECDSA, 2) => Some(sha256()),
        (RSA, 12) | (ECDSA, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ if oid == ECDSA_SHA1 => Some(sha256()),
        _ => None,
    }
}

/// Content of the first element, which must have tag `kind`, and the bytes after it.
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    if head[0] != kind {
        return None;
    }
    let (length, rest) = match head[1] {
        short @ 0..=127 => (usize::from(short), rest),
        long @ 0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            (digits.iter().fold(0, |n, d| n << 8 | usize::from(*d)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(oid: &[u8]) -> Vec<u8> {
        let wrap = |kind: u8, body: &[u8]| [&[kind, body.len() as u8], body].concat();
        let algorithm = wrap(0x30, &wrap(0x06, oid));
        wrap(0x30, &[wrap(0x30, b"who and what"), algorithm, wrap(0x03, b"signed")].concat())
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        for (oid, length) in [
            (&[RSA, &[11]].concat(), Some(32)),
            (&[RSA, &[5]].concat(), Some(32)),
            (&[ECDSA, &[3]].concat(), Some(48)),
            (&[ECDSA, &[4]].concat(), Some(64)),
            (&ECDSA_SHA1.to_vec(), Some(32)),
            (&[RSA, &[10]].concat(), None),
            (&vec![0x2b, 0x65, 0x70], None),
        ] {
            assert_eq!(end_point(&certificate(oid)).map(|h| h.len()), length, "{oid:?}");
        }
        let one = certificate(&[RSA, &[11]].concat());
        assert_eq!(end_point(&one), Some(Sha256::digest(&one).to_vec()));
        for n in 0..one.len() {
            let _ = end_point(&one[..n]);
        }
        assert_eq!(end_point(b"\x30\x84\xff\xff\xff\xff\0"), None);
    }
}
