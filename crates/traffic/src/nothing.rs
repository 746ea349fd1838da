//! A run that measured nothing says so, and why: zeros look like results.

use model::{
    Nanos,
    measure::{
        ConnectDocument, ConnectRun, HttpDocument, HttpRun, PgDocument, PgRun, RttDocument, RttRun,
        StreamDocument, StreamRun,
    },
};

use crate::{Error, Measured};

/// A result that may be empty.
pub trait Judged {
    /// Adds a warning to each run that measured nothing; why nothing at all was measured, where
    /// that is so.
    fn judge(&mut self) -> Option<String>;
}

impl<D: Judged> Measured<D> {
    /// The same with a warning in every run that measured nothing, and broken where none
    /// measured anything: the environment, or whoever ended it, gave no result. And whether it
    /// is so: then there are no figures to show.
    #[must_use]
    pub fn judged(mut self) -> (Self, bool) {
        let why = self.document.judge();
        let nothing = why.is_some();
        self.broken = self.broken.or(why.map(Error::Environment));
        (self, nothing)
    }
}

/// What became of one run: nothing where it measured something.
trait Run {
    fn nothing(&self, interrupted: bool, rate: Option<u64>) -> Option<String>;
    fn warnings(&mut self) -> &mut Vec<String>;
}

fn judge<R: Run>(runs: &mut [R], interrupted: bool, rate: Option<u64>) -> Option<String> {
    let (mut why, mut some) = (None, false);
    let last = runs.len().saturating_sub(1);
    for (n, run) in runs.iter_mut().enumerate() {
        // Only the last one can have been ended.
        match run.nothing(interrupted && n == last, rate) {
            Some(nothing) => {
                run.warnings().push(nothing.clone());
                why = Some(nothing);
            }
            None => some = true,
        }
    }
    match (runs.is_empty(), some) {
        (true, _) => Some("nothing was measured: it was ended before the first window".into()),
        (false, true) => None,
        (false, false) => why,
    }
}

/// The reason where nothing was lost or failed.
fn empty(what: &str, interrupted: bool, window_ns: Nanos) -> String {
    match interrupted {
        true => format!("nothing was measured: it was ended before the first {what} came"),
        false => format!(
            "nothing was measured: no {what} came within the window of {window_ns}; give it a \
             longer --duration"
        ),
    }
}

/// Why a schedule had nothing for the window, where that is so.
fn none_due(rate: Option<u64>, what: &str, window_ns: Nanos) -> Option<String> {
    let rate = rate.filter(|r| (*r as f64) * (window_ns.0 as f64) < 2e9)?;
    Some(format!(
        "nothing was measured: --rate {rate} makes {what} due every {}, and the window was \
         {window_ns}; give it a longer --duration",
        Nanos(1_000_000_000 / rate.max(1)),
    ))
}

impl Run for RttRun {
    fn nothing(&self, interrupted: bool, rate: Option<u64>) -> Option<String> {
        if self.transactions > 0 {
            return None;
        }
        if self.lost > 0 {
            return Some(format!(
                "no round trip was measured: all {} requests were lost",
                self.lost
            ));
        }
        let due = none_due(rate, "a request", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| empty("response", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }
}

impl Run for ConnectRun {
    fn nothing(&self, interrupted: bool, rate: Option<u64>) -> Option<String> {
        if self.connections > 0 {
            return None;
        }
        let failed = self.failed.values().fold(0u64, |a, n| a.saturating_add(*n));
        if failed > 0 {
            let why: Vec<&str> = self.failed.keys().map(String::as_str).collect();
            return Some(format!(
                "no connection was measured: all {failed} attempts failed: {}",
                why.join("; ")
            ));
        }
        let due = none_due(rate, "a connection", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| empty("connection", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }
}

/// What to look at where a server asked in clear hangs up on every request, or says what is no HTTP:
/// nothing otherwise.
pub fn perhaps_tls(run: &HttpRun) -> &'static str {
    let in_clear = run.tls_handshake_ns.is_none();
    let closed = |why: &String| why.starts_with("closed by") || why.starts_with("the answer is");
    let all = run.transactions == 0 && run.failed > 0 && run.failures.keys().all(closed);
    if in_clear && all { "; is it a port with TLS, for https://?" } else { "" }
}

impl Run for HttpRun {
    fn nothing(&self, interrupted: bool, rate: Option<u64>) -> Option<String> {
        if self.transactions > 0 {
            return None;
        }
        if self.failed > 0 {
            let why: Vec<&str> = self.failures.keys().map(String::as_str).collect();
            return Some(format!(
                "no response was measured: all {} requests failed: {}{}",
                self.failed,
                why.join("; "),
                perhaps_tls(self)
            ));
        }
        let due = none_due(rate, "a request", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| empty("response", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }
}

impl Run for PgRun {
    fn nothing(&self, interrupted: bool, rate: Option<u64>) -> Option<String> {
        if self.transactions > 0 {
            return None;
        }
        if self.failed > 0 {
            let why: Vec<&str> = self.failures.keys().map(String::as_str).collect();
            return Some(format!(
                "no transaction was measured: all {} failed: {}",
                self.failed,
                why.join("; ")
            ));
        }
        let due = none_due(rate, "a transaction", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| empty("transaction", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }
}

impl Run for StreamRun {
    fn nothing(&self, interrupted: bool, _: Option<u64>) -> Option<String> {
        if self.bytes > 0 {
            return None;
        }
        match self.datagrams.as_ref().filter(|d| d.lost > 0) {
            Some(d) => Some(format!("no datagram was received: all {} were lost", d.lost)),
            None => Some(empty("byte", interrupted, self.window_ns)),
        }
    }

    fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }
}

impl Judged for RttDocument {
    fn judge(&mut self) -> Option<String> {
        judge(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl Judged for ConnectDocument {
    fn judge(&mut self) -> Option<String> {
        judge(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl Judged for HttpDocument {
    fn judge(&mut self) -> Option<String> {
        judge(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl Judged for PgDocument {
    fn judge(&mut self) -> Option<String> {
        judge(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl Judged for StreamDocument {
    fn judge(&mut self) -> Option<String> {
        judge(&mut self.runs, self.interrupted, None)
    }
}
