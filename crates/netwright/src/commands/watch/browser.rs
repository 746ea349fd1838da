//! `--serve`: the address, the secret, and the line that names both.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use model::watch::WatchHost;
use traffic::Secret;
use view::{
    error::ViewError,
    web::{Listening, WebServer},
};

use super::args::{ServeAddress, WatchArgs};
use crate::{
    commands::measure::{flags::SecretArgs, secret_text},
    failure::Failure,
    output::{Sink, note},
};

/// The port where none is named; a free one where it is taken.
const PORT: u16 = 7472;

/// The socket of `--serve`; its address is printed.
pub struct Browser {
    listening: Listening,
    key: Option<String>,
}

impl Browser {
    /// Listens where `--serve` says and prints the address; `None` without the flag.
    ///
    /// # Errors
    /// The secret cannot be read or is too short, a generated one would be hidden (exit code 2), or
    /// the address cannot be bound (3 or 4).
    pub fn listen(args: &WatchArgs) -> Result<Option<Self>, Failure> {
        let Some(at) = args.browser.serve else { return Ok(None) };
        let given = secret_text(&SecretArgs { secret_file: args.browser.secret_file.clone() })?;
        let beyond = !at.ip.is_loopback();
        if given.is_none() && beyond && args.output.talk.quiet {
            return Err(Failure::Usage(
                "--serve beyond loopback needs a secret, and --quiet hides the generated one; give \
                 one by --secret-file or NETWRIGHT_SECRET"
                    .into(),
            ));
        }
        let (key, shown) = match given {
            Some(key) => (Some(key), Some("SECRET".to_owned())),
            None if beyond => {
                let (_, text) = Secret::one_time()?;
                (Some(text.clone()), Some(text))
            }
            None => (None, None),
        };
        let listening = bind(at)?;
        say(args, &listening, shown.as_deref())?;
        Ok(Some(Self { listening, key }))
    }

    /// Serves this host, or a recording.
    ///
    /// # Errors
    /// The kernel refused to start a thread (exit code 4).
    pub fn serve(self, host: &WatchHost, recorded: bool) -> Result<WebServer, Failure> {
        Ok(self.listening.serve(host.clone(), recorded, self.key)?)
    }
}

fn bind(at: ServeAddress) -> Result<Listening, Failure> {
    let listen = |port| Listening::bind(SocketAddr::new(at.ip, port));
    match at.port {
        Some(port) => Ok(listen(port)?),
        None => match listen(PORT) {
            Err(ViewError::Listen(_, e)) if e.kind() == io::ErrorKind::AddrInUse => Ok(listen(0)?),
            bound => Ok(bound?),
        },
    }
}

/// Prints the address on standard output, or beside other output on standard error.
fn say(args: &WatchArgs, listening: &Listening, key: Option<&str>) -> Result<(), Failure> {
    if args.output.talk.quiet {
        return Ok(());
    }
    let at = listening.address();
    // Every address of this host: the operator knows which one a browser reaches.
    let host = match at.ip() {
        ip if ip.is_unspecified() => "ADDRESS".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    };
    let query = key.map(|key| format!("?key={key}")).unwrap_or_default();
    let line = format!("watching in a browser: http://{host}:{}/{query}", at.port());
    match super::only_browser(args) {
        true => Sink::Stdout.text(&format!("{line}\n")),
        false => {
            note(&line);
            Ok(())
        }
    }
}
