//! State of one client's session, and the messages that end it.

use std::{cell::Cell, net::SocketAddr, sync::atomic::AtomicBool};

use super::{Event, registry::Registry};
use crate::iperf3::{
    params::Refused,
    wire::{Broken, Control, Cookie, IperfState, Until},
};

/// Why a session ends early.
pub enum End {
    /// The client gets iperf3's error number.
    Refused(Refused),
    /// The connection failed; no message is possible.
    Broken(Broken),
    /// The client ended the test.
    Terminated,
    /// The server ends the test.
    Terminate(String),
    /// The client was informed already.
    Reported(String),
}

impl From<Broken> for End {
    fn from(b: Broken) -> Self {
        Self::Broken(b)
    }
}

impl From<Refused> for End {
    fn from(r: Refused) -> Self {
        Self::Refused(r)
    }
}

pub struct Session<'a> {
    pub control: &'a Control,
    pub client: SocketAddr,
    pub cookie: Cookie,
    pub registry: &'a Registry<'a>,
    pub stop: &'a AtomicBool,
    pub on_event: &'a (dyn Fn(Event) + Sync),
    /// Whether data was about to flow.
    pub begun: Cell<bool>,
}

impl Session<'_> {
    pub fn step(&self) -> Until<'_> {
        Until::after(self.registry.limits.step, self.stop)
    }

    /// Sends the reason to the client as far as its protocol can express it; returns our text.
    pub fn goodbye(&self, end: End) -> String {
        match end {
            End::Reported(why) => why,
            End::Refused(Refused { code, errno, why }) => {
                let mut said = vec![IperfState::ServerError as i8 as u8];
                said.extend((code as i32).to_be_bytes());
                said.extend(errno.to_be_bytes());
                let _ = self.control.write_all(&said);
                why
            }
            End::Broken(Broken::Stopped) => {
                let _ = self.control.say(IperfState::ServerTerminate);
                "the server was stopped".into()
            }
            End::Broken(b) => b.to_string(),
            End::Terminated => "it ended the test early".into(),
            End::Terminate(why) => {
                let _ = self.control.say(IperfState::ServerTerminate);
                why
            }
        }
    }
}
