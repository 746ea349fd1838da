//! TLS handshakes that were made.

use model::measure::TlsRun;
use stats::Histogram;

use crate::net::tls::conn::Agreed;

/// Of one thread, or of all.
#[derive(Debug, Default)]
pub struct Handshakes {
    /// How long they took.
    pub took: Histogram,
    /// How many of them took up an earlier session.
    resumed: u64,
    /// What the first of them agreed on.
    agreed: Option<Agreed>,
    /// What the cipher took here, and how many requests or transactions it was for: all of them,
    /// also those outside of the window.
    cipher_ns: u64,
    ciphered: u64,
}

impl Handshakes {
    /// One that is done.
    pub fn record(&mut self, took: u64, agreed: Agreed) {
        self.took.record(took);
        self.resumed += u64::from(agreed.resumed);
        self.agreed.get_or_insert(agreed);
    }

    /// What the cipher took for so many requests or transactions.
    pub fn ciphered(&mut self, ns: u64, n: u64) {
        self.cipher_ns += ns;
        self.ciphered += n;
    }

    pub fn add(&mut self, other: &Self) {
        self.took.add(&other.took);
        self.resumed += other.resumed;
        self.ciphered(other.cipher_ns, other.ciphered);
        self.agreed = self.agreed.or(other.agreed);
    }

    /// What was agreed on, where there was a handshake; `verified` where certificates were
    /// checked.
    pub fn run(&self, verified: bool) -> Option<TlsRun> {
        let agreed = self.agreed?;
        Some(TlsRun {
            version: agreed.version.into(),
            cipher: agreed.cipher.into(),
            verified,
            handshakes: self.took.count(),
            resumed: self.resumed,
            cipher_per_unit_ns: self.cipher_ns.checked_div(self.ciphered),
        })
    }
}
