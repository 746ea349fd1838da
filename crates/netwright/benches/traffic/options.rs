//! The options: `make bench BENCHES=traffic ARGS='--only rtt,stream --nice'`.

use std::{
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

pub struct Options {
    /// `--only rtt,flows,calls,stream,http,cost,pg,redis,memory`: these parts; empty is all.
    only: Vec<String>,
    /// `--rounds N`: repetitions of each cell, at least 7 for a judgement.
    pub rounds: usize,
    /// `--most-rounds N`: repetitions of a cell without a clear result yet.
    pub most_rounds: usize,
    /// `--window MS`: the measured part of a repetition, where the program allows a choice.
    pub window_ms: u32,
    /// `--minutes M`: how long memory is watched, for each kind of traffic.
    pub minutes: f64,
    /// `--nice`: run everything at the highest normal priority (root), so that other load matters
    /// less.
    pub nice: bool,
    /// `--control`: the bare loop takes part twice. How far their ratio is from 1 shows what this
    /// machine cannot resolve.
    pub control: bool,
    /// `NEPER`: path of neper's `tcp_rr`; `None`: without neper.
    pub neper: Option<PathBuf>,
    /// When further repetitions must be over.
    extra_until: Instant,
}

/// Further repetitions are made until this long after the beginning.
const EXTRA_FOR: Duration = Duration::from_secs(270);

impl Options {
    /// Reads the arguments; `cargo bench` adds `--bench`.
    pub fn parse(args: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut options = Self {
            only: vec![],
            rounds: 7,
            most_rounds: 21,
            window_ms: 300,
            minutes: 0.5,
            nice: false,
            control: false,
            neper: std::env::var_os("NEPER").filter(|p| !p.is_empty()).map(PathBuf::from),
            extra_until: Instant::now() + EXTRA_FOR,
        };
        let mut args = args.filter(|a| a != "--bench");
        while let Some(name) = args.next() {
            match name.as_str() {
                "--nice" => options.nice = true,
                "--control" => options.control = true,
                _ => {
                    let value = args.next().ok_or_else(|| wrong(&format!("{name} what?")))?;
                    options.set(&name, &value)?;
                }
            }
        }
        options.rounds = options.rounds.clamp(1, 1000);
        options.window_ms = options.window_ms.clamp(50, 60_000);
        match &options.neper {
            Some(path) if !path.is_file() => {
                Err(wrong(&format!("NEPER={}: no such file", path.display())))
            }
            _ => Ok(options),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> io::Result<()> {
        match name {
            "--only" => self.only = value.split(',').map(str::to_owned).collect(),
            "--rounds" => self.rounds = number(value)?,
            "--most-rounds" => self.most_rounds = number(value)?,
            "--window" => self.window_ms = number(value)?,
            "--minutes" => self.minutes = number(value)?,
            _ => return Err(wrong(&format!("{name} is unknown; see options.rs"))),
        }
        Ok(())
    }

    /// Whether a part was requested.
    pub fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == part)
    }

    /// Whether there is time for repetitions beyond `rounds`.
    pub fn time_for_more(&self) -> bool {
        Instant::now() < self.extra_until
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_owned())
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| wrong(&format!("{text:?} is no number")))
}
