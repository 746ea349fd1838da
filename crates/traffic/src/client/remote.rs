//! A server that lets itself be tuned: texts to and fro, each sealed, and a word every few
//! seconds so that it knows of us.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{From, Peer};
use crate::{
    Error, Result,
    control::{ToClient, ToServer},
    serve::LEASE,
};

/// How long an answer may take beyond what was asked for: the server reads its host meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to it. When it is dropped the server puts back what is on trial there.
#[derive(Debug)]
pub struct Remote {
    peer: Arc<Mutex<Peer>>,
    name: String,
    over: Arc<AtomicBool>,
    talker: Option<JoinHandle<()>>,
}

impl Remote {
    /// Connects, and proves the secret. `alive` is what is said when nothing else is.
    ///
    /// # Errors
    /// As for a measurement; and when it does not let itself be tuned.
    pub fn connect(target: &str, secret: &crate::Secret, alive: &str) -> Result<Self> {
        let peer = Peer::dial(target, &From::default(), Some(secret))?;
        let name = peer.name.clone();
        if peer.seals.is_none() {
            return Err(Error::Denied(format!(
                "{name} does not let itself be tuned; its operator can: `netwright serve \
                 --allow-tune --secret-file FILE` there"
            )));
        }
        let (peer, over) = (Arc::new(Mutex::new(peer)), Arc::new(AtomicBool::new(false)));
        let (theirs, until, word) = (Arc::clone(&peer), Arc::clone(&over), alive.to_owned());
        let talk = move || {
            let mut last = Instant::now();
            while !until.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                if last.elapsed() > LEASE / 6 {
                    // Whoever asks next hears what is wrong.
                    let _ = ask(&theirs, &word, PATIENCE);
                    last = Instant::now();
                }
            }
        };
        let talker = std::thread::Builder::new().name("nw-alive".into()).spawn(talk);
        let talker = talker.map_err(|e| Error::Environment(format!("no thread: {e}")))?;
        Ok(Self { peer, name, over, talker: Some(talker) })
    }

    /// As it was named.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks, and waits for the answer, which may take so long.
    ///
    /// # Errors
    /// The server is gone, or what came is not its answer.
    pub fn ask(&self, request: &str, takes: Duration) -> Result<String> {
        ask(&self.peer, request, takes + PATIENCE)
    }
}

fn ask(peer: &Mutex<Peer>, request: &str, most: Duration) -> Result<String> {
    let mut peer = peer.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut seals) = peer.seals.take() else {
        return Err(Error::Environment(format!(
            "{}: the connection broke off; what was on trial there is put back within {} s",
            peer.name,
            LEASE.as_secs()
        )));
    };
    let _ = peer.socket.set_read_timeout(Some(most));
    let answered = peer.send(&ToServer::Tune(seals.seal(request.to_owned()))).and_then(|()| {
        let ToClient::Tuned(answer) = peer.receive()? else { return peer.odd() };
        seals.open(&answer).map(str::to_owned).map_err(|e| super::named(&peer.name, e))
    });
    match &answered {
        Ok(_) => peer.seals = Some(seals),
        // An answer that comes later must not be taken for another one's.
        Err(_) => drop(peer.socket.shutdown(std::net::Shutdown::Both)),
    }
    answered
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(talker) = self.talker.take() {
            let _ = talker.join();
        }
    }
}
