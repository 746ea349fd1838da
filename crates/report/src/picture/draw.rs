//! Draws the boxes, cells and NICs of a layout.

use model::{CpuId, Facts, cpu::Cpu, ids::Direction, nic::Nic, reading::Known};

use super::{
    layout::Laid,
    marks::{Landing, Marks, colour},
    scale::Scale,
    svg::{Font, Paint, Svg, fit, text_width},
    tree::BoxKind,
};
use crate::{places::CpuPlaces, words::many};

pub const INK: &str = "#1f2937";
pub const FAINT: &str = "#6b7280";
pub const ALARM: &str = "#dc2626";
pub const DISC: &str = "#111827";

/// The data that drawing looks up.
pub struct Scene<'a> {
    pub facts: &'a Facts,
    pub places: CpuPlaces<'a>,
    pub marks: Marks,
    /// NICs with marks, by position; their order sets their colours.
    pub drawn: Vec<usize>,
    pub scale: Scale,
}

impl Scene<'_> {
    /// A box and everything in it.
    pub fn block(&self, laid: &Laid<'_>, at: (f64, f64), svg: &mut Svg) {
        let b = laid.block;
        if let BoxKind::Core(_) = b.kind {
            self.core(laid, at, svg);
            return;
        }
        if !b.label.is_empty() {
            let (fill, stroke, ink) = match b.kind {
                BoxKind::Package(_) => ("#f3f4f6", "#9ca3af", INK),
                BoxKind::Node(_) => ("#ffffff", "#9ca3af", INK),
                _ => ("#eef4fb", "#c3d4e8", FAINT),
            };
            svg.rect(at, laid.size, 5.0, Paint::framed(fill, stroke));
            let size = self.scale.label(b.kind);
            let room = laid.size.0 - 2.0 * self.scale.pad(b.kind);
            let text = fit_label(&b.label, size, room);
            let y = at.1 + size + 4.0;
            svg.text((at.0 + self.scale.pad(b.kind), y), Font::new(size, ink).bold(), &text);
        }
        for ((x, y), nic) in &laid.nics {
            self.nic(*nic, (at.0 + x, at.1 + y), svg);
        }
        for ((x, y), inner) in &laid.inside {
            self.block(inner, (at.0 + x, at.1 + y), svg);
        }
    }

    /// A NIC: name, speed, queues, in the colour of its interrupts.
    pub fn nic(&self, at_list: usize, (x, y): (f64, f64), svg: &mut Svg) {
        let Some(nic) = self.facts.nics.get(at_list) else { return };
        let (w, h) = self.scale.nic;
        let ink = colour(at_list, &self.drawn);
        svg.open(&nic_title(nic));
        svg.rect((x, y), (w, h), 3.0, Paint::framed("#ffffff", ink));
        svg.rect((x, y), (7.0, h), 2.0, Paint::fill(ink));
        let name = fit(&nic.name, 11.0, w - 20.0);
        svg.text((x + 13.0, y + 14.0), Font::new(11.0, INK).bold(), &name);
        let down = nic.carrier.get() == Some(false);
        let state = match &nic.speed_bps {
            _ if down => Some("no carrier".to_owned()),
            Known(speed) => Some(speed.to_string()),
            _ => None,
        };
        let rx = nic.queues.iter().filter(|q| q.id.direction == Direction::Rx).count();
        let short: Vec<String> = state.into_iter().chain([many(rx, "queue")]).collect();
        let full = short.iter().cloned().chain(nic.driver.get()).collect::<Vec<_>>().join(" · ");
        let room = w - 20.0;
        let below = if text_width(&full, 9.0) <= room { full } else { short.join(" · ") };
        let font = Font::new(9.0, if down { ALARM } else { FAINT });
        svg.text((x + 13.0, y + 27.0), font, &fit(&below, 9.0, room));
        svg.close();
    }

    fn core(&self, laid: &Laid<'_>, (x, y): (f64, f64), svg: &mut Svg) {
        let s = &self.scale;
        svg.rect((x, y), laid.size, 3.0, Paint::framed("#e5e7eb", "#d1d5db"));
        for (i, cpu) in laid.block.cpus.iter().enumerate() {
            let left = x + s.core_pad + i as f64 * (s.cell.0 + s.thread_gap);
            self.cell(*cpu, (left, y + s.core_pad), svg);
        }
    }

    fn cell(&self, id: CpuId, (x, y): (f64, f64), svg: &mut Svg) {
        let s = &self.scale;
        let cpu = self.places.cpu(id);
        let offline = cpu.is_some_and(|c| c.online == Known(false));
        let isolated = cpu.is_some_and(|c| c.isolated == Known(true));
        let landings = self.marks.landings.get(&id).map(Vec::as_slice).unwrap_or_default();
        svg.open(&self.cell_title(id, cpu, landings));
        let mut paint = Paint::framed(if offline { "#f3f4f6" } else { "#ffffff" }, "#d1d5db");
        if offline {
            paint.dashed = true;
        }
        if isolated {
            paint = Paint { stroke: INK, width: 1.6, ..paint };
        }
        svg.rect((x, y), s.cell, 2.0, paint);
        let number = Font::new(s.cpu_font, if offline { "#9ca3af" } else { INK }).bold();
        svg.text((x + 4.0, y + s.cpu_font + 2.5), number, &id.to_string());
        self.discs(id, (x, y), svg);
        if s.irq_font > 0.0 {
            self.numbers(landings, (x, y), svg);
        } else {
            self.squares(landings, (x, y), svg);
        }
        svg.close();
    }

    /// Discs of processes, from the right; a `+` for those without room.
    fn discs(&self, id: CpuId, (x, y): (f64, f64), svg: &mut Svg) {
        let s = &self.scale;
        let Some(groups) = self.marks.threads.get(&id) else { return };
        let number = text_width(&id.to_string(), s.cpu_font) + 5.0;
        let step = 2.0 * s.disc + 1.0;
        let room = ((s.cell.0 - number - 2.0) / step).floor().max(1.0) as usize;
        let shown = if groups.len() > room { room.saturating_sub(1).max(1) } else { groups.len() };
        for (i, at) in groups.keys().take(shown).enumerate() {
            let letter = self.marks.groups.get(*at).map_or('*', |g| g.letter);
            let centre = (x + s.cell.0 - s.disc - 1.5 - i as f64 * step, y + s.disc + 1.5);
            svg.circle(centre, s.disc, Paint::fill(DISC));
            let size = (s.disc * 1.5).max(8.0);
            let font = Font::new(size, "#ffffff").bold().centred();
            svg.text((centre.0, centre.1 + size * 0.36), font, &letter.to_string());
        }
        if groups.len() > shown && room > 1 {
            let left = x + s.cell.0 - 1.5 - shown as f64 * step - s.disc;
            let font = Font::new(9.0, DISC).bold().centred();
            svg.text((left, y + s.disc + 4.5), font, "+");
        }
    }

    /// Chips with the interrupts' numbers, in rows; `+n` for those without room.
    fn numbers(&self, landings: &[Landing], (x, y): (f64, f64), svg: &mut Svg) {
        let s = &self.scale;
        let height = s.irq_font + 4.0;
        let top = y + (2.0 * s.disc).max(s.cpu_font) + 6.0;
        let rows = ((y + s.cell.1 - 2.0 - top + 2.0) / (height + 2.0)).floor().max(1.0) as usize;
        let (right, mut left, mut row) = (x + s.cell.0 - 3.0, x + 3.0, 0);
        for (i, l) in landings.iter().enumerate() {
            let text = l.irq.to_string();
            let w = text_width(&text, s.irq_font) + 5.0;
            let rest = landings.len() - i - 1;
            let more =
                if rest > 0 { text_width(&format!("+{rest}"), s.irq_font) + 4.0 } else { 0.0 };
            let last_row = row + 1 == rows;
            if left + w + if last_row { more } else { 0.0 } > right && left > x + 3.0 {
                if last_row {
                    let line = top + row as f64 * (height + 2.0) + s.irq_font;
                    let font = Font::new(s.irq_font, INK).bold();
                    svg.text((left, line), font, &format!("+{}", rest + 1));
                    return;
                }
                row += 1;
                left = x + 3.0;
            }
            let corner = (left, top + row as f64 * (height + 2.0));
            svg.rect(corner, (w, height), 2.0, self.chip(l));
            let ink = if l.shared { INK } else { "#ffffff" };
            let font = Font::new(s.irq_font, ink).centred();
            svg.text((corner.0 + w / 2.0, corner.1 + s.irq_font + 0.6), font, &text);
            left += w + 2.0;
        }
    }

    /// A square for each NIC with interrupts here, with their number where it is not one.
    fn squares(&self, landings: &[Landing], (x, y): (f64, f64), svg: &mut Svg) {
        let s = &self.scale;
        let mut nics: Vec<(&Landing, usize)> = vec![];
        for l in landings {
            match nics.iter_mut().find(|(first, _)| first.nic == l.nic) {
                Some((_, n)) => *n += 1,
                None => nics.push((l, 1)),
            }
        }
        let most = 2;
        let side = 11.0;
        for (i, (l, n)) in nics.iter().take(most).enumerate() {
            let text = match n {
                1 => String::new(),
                2..=9 => n.to_string(),
                _ => "9+".into(),
            };
            let corner = (x + 2.5 + i as f64 * (side + 2.0), y + s.cell.1 - side - 2.5);
            svg.rect(corner, (side, side), 2.0, self.chip(l));
            let ink = if l.shared { INK } else { "#ffffff" };
            let font = Font::new(8.0, ink).bold().centred();
            svg.text((corner.0 + side / 2.0, corner.1 + 8.4), font, &text);
        }
        if nics.len() > most {
            let corner = (x + 2.5 + most as f64 * (side + 2.0) - 1.0, y + s.cell.1 - 4.0);
            svg.text(corner, Font::new(8.0, INK).bold(), "+");
        }
    }

    /// Filled where the interrupt always goes here, hollow where it may go elsewhere; a red border
    /// where the NIC is on another node.
    pub fn chip(&self, l: &Landing) -> Paint<'static> {
        let ink = colour(l.nic, &self.drawn);
        let fill = if l.shared { "#ffffff" } else { ink };
        let stroke = if l.away { ALARM } else { ink };
        Paint { fill, stroke, width: if l.away { 2.0 } else { 1.0 }, dashed: false }
    }

    fn cell_title(&self, id: CpuId, cpu: Option<&Cpu>, landings: &[Landing]) -> String {
        let mut lines = vec![format!("CPU {id}")];
        if let Some(c) = cpu {
            let known = |what: &str, v: Option<String>| v.map(|v| format!(", {what} {v}"));
            let place = [
                known("core", c.core_id.get().map(|v| v.to_string())),
                known("package", c.package_id.get().map(|v| v.to_string())),
                known("node", c.numa_node.get().map(|v| v.to_string())),
            ];
            lines[0].extend(place.into_iter().flatten());
            if c.online == Known(false) {
                lines.push("offline".into());
            }
            if c.isolated == Known(true) {
                lines.push("isolated from the scheduler".into());
            }
        }
        lines.extend(landings.iter().map(|l| {
            format!("{}{}", l.title, if l.away { " (the NIC is on another node)" } else { "" })
        }));
        for (at, n) in self.marks.threads.get(&id).into_iter().flatten() {
            if let Some(g) = self.marks.groups.get(*at) {
                lines.push(format!("{}: {} last ran here", g.name, many(*n, "thread")));
            }
        }
        lines.join("\n")
    }
}

/// The label, without its last parts where it is too long.
fn fit_label(label: &str, size: f64, room: f64) -> String {
    let mut text = label;
    while text_width(text, size) > room + 0.01
        && let Some((head, _)) = text.rsplit_once(" · ")
    {
        text = head;
    }
    fit(text, size, room)
}

fn nic_title(nic: &Nic) -> String {
    let or = |r: &model::Reading<String>| r.get().unwrap_or_else(|| "not known".into());
    format!(
        "{}\ndriver {}\nbus address {}\nnode {}\n{}",
        nic.name,
        or(&nic.driver),
        or(&nic.bus_address),
        nic.numa_node.get().map_or_else(|| "not known".into(), |n| n.to_string()),
        many(nic.irqs.len(), "interrupt")
    )
}
