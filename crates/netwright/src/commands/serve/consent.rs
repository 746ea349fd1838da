//! Whether this host may be changed from afar.

use std::sync::Arc;

use traffic::{Secret, serve::TuningService};

use super::{args::ServeArgs, log::Log};
use crate::{commands::peer::host::HostTuning, exit::Failure};

/// Bytes of a secret below which somebody who recorded a greeting could try them all.
const SHORTEST: usize = 16;

/// Refuses to lend a host without a secret that deserves the name.
///
/// # Errors
/// No secret of the operator's own, a short one, or no right to change anything.
pub fn check(args: &ServeArgs, secret: Option<&Secret>) -> Result<(), Failure> {
    if !args.allow_tune {
        return Ok(());
    }
    let own = args.secret_file.is_some() || std::env::var_os("NETWRIGHT_SECRET").is_some();
    match secret.filter(|_| own) {
        None => Err(Failure::Usage(
            "--allow-tune needs a secret that both ends know: --secret-file FILE or \
             NETWRIGHT_SECRET (`openssl rand -hex 16` makes one)"
                .into(),
        )),
        Some(secret) if secret.length() < SHORTEST => Err(Failure::Usage(format!(
            "--allow-tune needs a secret of {SHORTEST} characters at least: whoever records a \
             greeting may try out short ones at leisure"
        ))),
        // SAFETY: takes nothing, changes nothing.
        Some(_) if unsafe { libc::geteuid() } != 0 => {
            Err(Failure::Denied("--allow-tune changes this host: run it as root".into()))
        }
        Some(_) => Ok(()),
    }
}

/// Who answers about this host's settings, where that is allowed.
pub fn tuning(args: &ServeArgs, log: &Arc<Log>) -> Option<Arc<dyn TuningService>> {
    let host_tuning = || HostTuning { state_dir: args.state_dir.clone(), log: Arc::clone(log) };
    args.allow_tune.then(|| Arc::new(host_tuning()) as Arc<dyn TuningService>)
}
