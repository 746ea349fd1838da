//! Network namespaces and their links.

use model::Reading;

use super::{View, dotted};
use crate::{
    text::{Ink, Line, Page, Table},
    words::{many, ranges},
};

pub fn show(v: &View<'_>, page: &mut Page) {
    page.heading("NETWORK NAMESPACES");
    let list = match &v.facts.namespaces {
        Reading::Known(list) => list,
        Reading::Absent(why) | Reading::Denied(why) => {
            page.line(Line::plain("  ").text(why), 4);
            return;
        }
    };
    for n in list {
        let name = n.name.get().unwrap_or_else(|| format!("net:[{}]", n.inode));
        let container = n.container.get().filter(|c| c != "none");
        let more = if n.process_count as usize > n.pids.len() { ", …" } else { "" };
        let pids = ranges(n.pids.iter().copied());
        page.line(
            Line::plain("  ").also(dotted([
                Line::new().ink(Ink::Strong, name),
                if n.own { Line::plain("this one") } else { Line::new() },
                container.map(|c| Line::plain(format!("container {c}"))).unwrap_or_default(),
                Line::plain(many(n.process_count as usize, "process")),
                if pids.is_empty() {
                    Line::new()
                } else {
                    Line::plain(format!("pids {pids}{more}"))
                },
            ])),
            4,
        );
        match &n.links {
            _ if n.own => {}
            Reading::Absent(why) | Reading::Denied(why) => {
                page.line(Line::plain("    ").ink(Ink::Faint, why), 6);
            }
            Reading::Known(links) => {
                let mut t = Table::new().right("").left("").left("").left("").wrapping("");
                for l in links {
                    t.row([
                        Line::plain(l.ifindex),
                        Line::plain(&l.name),
                        Line::plain(&l.kind),
                        if l.up { Line::plain("up") } else { Line::new().ink(Ink::Warn, "down") },
                        Line::plain(format!("mtu {} {}", l.mtu, l.addresses.join(" "))),
                    ]);
                }
                page.table(&t, 4);
            }
        }
    }
}
