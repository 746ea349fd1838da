//! Computes sizes and positions of boxes: children in a grid whose proportions suit the page.

use super::{
    scale::Scale,
    tree::{Block, BoxKind},
};

/// A box with its size, and the positions of its contents relative to its own corner.
#[derive(Debug)]
pub struct Laid<'a> {
    pub block: &'a Block,
    pub size: (f64, f64),
    pub inside: Vec<((f64, f64), Laid<'a>)>,
    /// The positions of its NICs.
    pub nics: Vec<((f64, f64), usize)>,
}

/// A box grows for its label up to this; a longer label is cut.
const WIDEST_LABEL: f64 = 280.0;

/// Lays out a box and everything in it.
pub fn lay<'a>(block: &'a Block, s: &Scale) -> Laid<'a> {
    if let BoxKind::Core(_) = block.kind {
        let n = block.cpus.len().max(1) as f64;
        let w = n * s.cell.0 + (n - 1.0) * s.thread_gap + 2.0 * s.core_pad;
        return Laid {
            block,
            size: (w, s.cell.1 + 2.0 * s.core_pad),
            inside: vec![],
            nics: vec![],
        };
    }
    let (pad, head) =
        if block.label.is_empty() { (0.0, 0.0) } else { (s.pad(block.kind), s.head(block.kind)) };
    let children = block.inside.iter().map(|b| lay(b, s)).collect();
    let (children, (w, h)) = arrange(children, s.gap(block.kind), aspect(block.kind));
    let label = super::svg::text_width(&block.label, s.label(block.kind));
    let (nics, nic_w, nic_h) = shelf(&block.nics, w.max(s.nic.0), s);
    let inner = w.max(nic_w).max(label.min(WIDEST_LABEL));
    let top = head + nic_h;
    Laid {
        block,
        size: (inner + 2.0 * pad, top + h + pad + if head == 0.0 { pad } else { 0.0 }),
        inside: children.into_iter().map(|((x, y), c)| ((pad + x, top + y), c)).collect(),
        nics: nics.into_iter().map(|((x, y), n)| ((pad + x, head + y), n)).collect(),
    }
}

/// Boxes with their places.
type Arranged<'a> = Vec<((f64, f64), Laid<'a>)>;

/// Boxes in a grid, those of one row stretched to the same height; and the grid's size.
pub fn arrange(boxes: Vec<Laid<'_>>, gap: f64, aspect: f64) -> (Arranged<'_>, (f64, f64)) {
    let (places, size) = pack(&boxes.iter().map(|b| b.size).collect::<Vec<_>>(), gap, aspect);
    let mut placed: Arranged<'_> = places.into_iter().zip(boxes).collect();
    for at in 0..placed.len() {
        let row = placed.get(at).map(|((_, y), _)| *y);
        let same = |((_, y), _): &&((f64, f64), Laid<'_>)| Some(*y) == row;
        let height = placed.iter().filter(same).map(|(_, b)| b.size.1).fold(0.0, f64::max);
        if let Some((_, b)) = placed.get_mut(at) {
            b.size.1 = height;
        }
    }
    (placed, size)
}

/// NICs with their places.
type Shelf = Vec<((f64, f64), usize)>;

/// NICs side by side in rows, over the CPUs; with the width and height they take.
fn shelf(nics: &[usize], room: f64, s: &Scale) -> (Shelf, f64, f64) {
    if nics.is_empty() {
        return (vec![], 0.0, 0.0);
    }
    let per_row = ((room + s.nic_gap) / (s.nic.0 + s.nic_gap)).floor().max(1.0) as usize;
    let places = nics
        .iter()
        .enumerate()
        .map(|(i, n)| {
            let (col, row) = ((i % per_row) as f64, (i / per_row) as f64);
            ((col * (s.nic.0 + s.nic_gap), row * (s.nic.1 + s.nic_gap)), *n)
        })
        .collect();
    let cols = nics.len().min(per_row) as f64;
    let rows = nics.len().div_ceil(per_row) as f64;
    (places, cols * s.nic.0 + (cols - 1.0) * s.nic_gap, rows * (s.nic.1 + s.nic_gap))
}

/// Width to height that a box's content should come close to.
fn aspect(kind: BoxKind) -> f64 {
    match kind {
        BoxKind::L3(_) => 2.0,
        BoxKind::Core(_) => 1.0,
        BoxKind::Node(_) | BoxKind::Package(_) => 1.5,
    }
}

/// Places in a grid, row by row, and the whole grid's size: of all numbers of columns the one
/// whose proportions come closest to `aspect`, a full last row preferred.
fn pack(sizes: &[(f64, f64)], gap: f64, aspect: f64) -> (Vec<(f64, f64)>, (f64, f64)) {
    let mut best: Option<(f64, Grid)> = None;
    for columns in 1..=sizes.len().min(64) {
        let grid = Grid::new(sizes, columns, gap);
        let ragged = if sizes.len().is_multiple_of(columns) { 0.0 } else { 0.8 };
        let off = (grid.size.0 / grid.size.1.max(1.0) / aspect).ln().abs() + ragged;
        if best.as_ref().is_none_or(|(least, _)| off < *least) {
            best = Some((off, grid));
        }
    }
    best.map(|(_, g)| (g.places, g.size)).unwrap_or_default()
}

struct Grid {
    places: Vec<(f64, f64)>,
    size: (f64, f64),
}

impl Grid {
    fn new(sizes: &[(f64, f64)], columns: usize, gap: f64) -> Self {
        let mut places = vec![];
        let (mut y, mut widest) = (0.0, 0.0f64);
        let column = |i: usize| {
            let cells = sizes.iter().skip(i).step_by(columns);
            cells.map(|s| s.0).fold(0.0, f64::max)
        };
        let widths: Vec<f64> = (0..columns).map(column).collect();
        for row in sizes.chunks(columns) {
            let mut x = 0.0;
            for ((w, _), column) in row.iter().zip(&widths) {
                places.push((x, y));
                widest = widest.max(x + w);
                x += column + gap;
            }
            y += row.iter().map(|s| s.1).fold(0.0, f64::max) + gap;
        }
        Self { places, size: (widest, (y - gap).max(0.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_into_a_grid_near_the_aspect_without_overlap() {
        let (places, size) = pack(&[(10.0, 10.0); 8], 2.0, 2.0);
        assert_eq!(size, (46.0, 22.0));
        assert_eq!(places[4], (0.0, 12.0));
        assert_eq!(pack(&[], 2.0, 2.0), (vec![], (0.0, 0.0)));
        let mixed = [(100.0, 10.0), (10.0, 40.0), (30.0, 10.0)];
        let (places, _) = pack(&mixed, 2.0, 1.5);
        for (i, (a, sa)) in places.iter().zip(&mixed).enumerate() {
            for (b, sb) in places.iter().zip(&mixed).skip(i + 1) {
                let apart = a.0 + sa.0 <= b.0
                    || b.0 + sb.0 <= a.0
                    || a.1 + sa.1 <= b.1
                    || b.1 + sb.1 <= a.1;
                assert!(apart, "{a:?} {sa:?} overlaps {b:?} {sb:?}");
            }
        }
    }
}
