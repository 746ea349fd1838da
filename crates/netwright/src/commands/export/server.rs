//! `--listen`: the address, the secret, and the line that names them.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use ::metrics::text::Format;
use traffic::Secret;
use view::web::{Listening, MetricsPage, WebServer};

use crate::{
    commands::{
        measure::{flags::SecretArgs, secret_text},
        watch::args::ServeAddress,
    },
    failure::Failure,
    output::{Sink, note},
};

/// Where to serve, and to whom.
pub struct Wanted {
    /// Of `--listen`; `None`: loopback.
    pub listen: Option<ServeAddress>,
    /// The port where `--listen` names none.
    pub port: u16,
    pub secret_file: Option<PathBuf>,
    /// Do not print the address.
    pub quiet: bool,
}

/// A socket that listens; scrapers wait until [`Server::serve`].
pub struct Server {
    listening: Listening,
    key: Option<String>,
}

impl Server {
    /// Listens where `--listen` says and prints the address.
    ///
    /// # Errors
    /// The secret cannot be read or is too short, a generated one would be hidden (exit code 2), or
    /// the address cannot be bound (3 or 4).
    pub fn listen(wanted: Wanted) -> Result<Self, Failure> {
        let loopback = ServeAddress { ip: Ipv4Addr::LOCALHOST.into(), port: None };
        let at = wanted.listen.unwrap_or(loopback);
        let given = secret_text(&SecretArgs { secret_file: wanted.secret_file })?;
        let generated = given.is_none() && !at.ip.is_loopback();
        if generated && wanted.quiet {
            return Err(Failure::Usage(
                "--listen beyond loopback needs a secret, and --quiet hides the generated one; give \
                 one by --secret-file or NETWRIGHT_SECRET"
                    .into(),
            ));
        }
        let key = if generated { Some(Secret::one_time()?.1) } else { given };
        let listening = Listening::bind(SocketAddr::new(at.ip, at.port.unwrap_or(wanted.port)))?;
        if !wanted.quiet {
            let at = listening.address();
            // Every address of this host: the operator knows which one a scraper reaches.
            let host = match at.ip() {
                ip if ip.is_unspecified() => "ADDRESS".to_owned(),
                IpAddr::V6(ip) => format!("[{ip}]"),
                IpAddr::V4(ip) => ip.to_string(),
            };
            let line = format!("metrics: http://{host}:{}/metrics\n", at.port());
            Sink::Stdout.text(&line)?;
            if let Some(key) = key.as_ref().filter(|_| generated) {
                note(&format!("the bearer token of scrapers: {key}"));
            }
        }
        Ok(Self { listening, key })
    }

    /// Serves the pages that `page` makes.
    ///
    /// # Errors
    /// The kernel refused to start a thread (exit code 4).
    pub fn serve(
        self,
        page: impl Fn(Format) -> String + Send + Sync + 'static,
    ) -> Result<WebServer, Failure> {
        let page = move |accept: &str| {
            let format = Format::accepted(accept);
            MetricsPage { content_type: format.content_type(), text: page(format) }
        };
        Ok(self.listening.serve_metrics(Box::new(page), self.key)?)
    }
}
