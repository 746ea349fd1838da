//! The live page of `watch --serve`: a constant page whose script shows events, and these events.
//!
//! The script formats nothing. An event has every figure as the text of `watch` has it, so that both
//! agree, and every name is cleaned before it leaves the program.

mod event;

use std::collections::VecDeque;

use model::watch::{WatchHost, WatchRecord};
use report::clean;
use serde_json::json;

use self::event::{Event, Figure};
use crate::{html::STYLE, markup::Markup};

const SCRIPT: &str = include_str!("live/live.js");
const LIVE_STYLE: &str = include_str!("live/live.css");

/// Intervals in a history line.
const HISTORY: usize = 120;

/// The `Content-Security-Policy` of the page: nothing but its own script and style with this nonce,
/// and events from where the page came from.
pub fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The page as HTML. It has no figure and no name; its script asks for the events at `page`.
pub fn page(nonce: &str) -> String {
    let mut m = Markup::default();
    m.constant("<!DOCTYPE html>\n");
    m.element("html", &[("lang", &"en")], |m| {
        m.element("head", &[], |m| head(nonce, m));
        m.element("body", &[("class", &"live")], |m| {
            body(m);
            // An inline script runs at once: the elements that it fills must be there.
            m.element("script", &[("nonce", &nonce)], |m| m.constant(SCRIPT));
        });
    });
    m.constant("\n");
    m.finish()
}

fn head(nonce: &str, m: &mut Markup) {
    m.leaf("meta", &[("charset", &"utf-8")]);
    m.leaf("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    m.leaf("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
    // Without it a browser asks the server for one.
    m.leaf("link", &[("rel", &"icon"), ("href", &"data:,")]);
    m.says("title", &[], "netwright watch");
    m.element("style", &[("nonce", &nonce)], |m| {
        m.constant(STYLE);
        m.constant(LIVE_STYLE);
    });
}

fn body(m: &mut Markup) {
    m.element("header", &[], |m| {
        m.says("h1", &[("id", &"host")], "netwright watch");
        m.element("p", &[("class", &"about")], |m| {
            m.says("strong", &[("id", &"state"), ("role", &"status")], "Connecting");
            m.text(" ");
            m.says("span", &[("id", &"when")], "");
            m.text(" ");
            m.says("button", &[("id", &"pause"), ("type", &"button")], "Pause");
        });
        m.element("noscript", &[], |m| {
            m.says("p", &[], "This page needs its script. Without one: netwright watch --plain");
        });
    });
    m.element("main", &[], |m| {
        section("now", "Traffic and losses", m, |m| m.says("ul", &[("id", &"figures")], ""));
        section("cpus", "CPUs", m, |m| {
            m.element("figure", &[], |m| {
                m.says("figcaption", &[("id", &"legend")], "");
                m.says("div", &[("id", &"bars")], "");
            });
            m.says("div", &[("id", &"cpu-table")], "");
        });
        section("tables", "Where the time goes", m, |m| m.says("div", &[("id", &"rest")], ""));
        section("findings", "Findings", m, |m| m.says("ul", &[("id", &"found")], ""));
        section("missing", "Not seen", m, |m| m.says("ul", &[("id", &"lacks")], ""));
    });
}

fn section(
    id: &'static str,
    title: &'static str,
    m: &mut Markup,
    inside: impl FnOnce(&mut Markup),
) {
    let heading = format!("{id}-heading");
    m.element("section", &[("id", &id), ("aria-labelledby", &heading)], |m| {
        m.says("h2", &[("id", &heading)], title);
        inside(m);
    });
}

/// What a browser is told: of the host once, of the intervals one after the other.
#[derive(Debug)]
pub struct Live {
    host: WatchHost,
    state: &'static str,
    history: VecDeque<Vec<Figure>>,
}

impl Live {
    /// Of a host that is watched now, or of a recording.
    pub fn new(host: WatchHost, recorded: bool) -> Self {
        Self { host, state: if recorded { "Replay" } else { "Live" }, history: VecDeque::new() }
    }

    /// The first event of each browser: the host, and the figures of the intervals before the newest.
    /// **Shape**: one line of JSON.
    pub fn hello(&self) -> String {
        let known = |r: &model::Reading<String>| r.known().map(|t| clean(t)).unwrap_or_default();
        let name = format!("{} {}", known(&self.host.name), known(&self.host.kernel));
        let before = self.history.len().saturating_sub(1);
        let history: Vec<&Vec<Figure>> = self.history.iter().take(before).collect();
        json!({ "host": name.trim(), "state": self.state, "keep": HISTORY, "history": history })
            .to_string()
    }

    /// The event of an interval. **Shape**: one line of JSON.
    pub fn interval(&mut self, record: &WatchRecord) -> String {
        let event = Event::of(record, &self.host);
        while self.history.len() >= HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(event.headline.clone());
        // Only maps with keys that are no texts, and failing writers, make it fail.
        serde_json::to_string(&event).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
