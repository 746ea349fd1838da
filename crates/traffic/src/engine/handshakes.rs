//! Statistics of TLS handshakes.

use model::measure::TlsRun;
use stats::Histogram;

use crate::net::tls::conn::Agreed;

/// Handshakes of one thread, or of all.
#[derive(Debug, Default)]
pub struct Handshakes {
    /// Duration of the handshakes.
    pub took: Histogram,
    /// Number of resumed sessions.
    resumed: u64,
    /// TLS parameters of the first handshake.
    agreed: Option<Agreed>,
    /// CPU time of the cipher on this end, and the number of requests or transactions, including
    /// those outside the window.
    cipher_ns: u64,
    ciphered: u64,
}

impl Handshakes {
    /// Records a completed handshake.
    pub fn record(&mut self, took: u64, agreed: Agreed) {
        self.took.record(took);
        self.resumed += u64::from(agreed.resumed);
        self.agreed.get_or_insert(agreed);
    }

    /// Adds cipher time for a number of requests or transactions.
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

    /// The TLS part of the result; `None` without a handshake. `verified` says whether certificates
    /// were checked.
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
