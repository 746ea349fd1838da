//! Charts as inline SVG: scales, axes, direct labels, and colours that colour-blind people tell
//! apart. Every chart stands before a table of its figures.

mod heat;
mod rows;
mod scale;
mod sheet;
mod xy;

pub use heat::Heat;
pub use rows::{Row, Rows};
pub use scale::Scale;
pub use xy::{Band, Point, Series, Strip, Xy};

use crate::markup::Markup;

/// The widths that a chart is drawn for, in px: a phone and a desk. A style sheet shows one.
pub const WIDTHS: [(f64, &str); 2] = [(340.0, "narrow"), (760.0, "wide")];

/// The most series that a chart draws: there are as many colours.
pub const MOST_SERIES: usize = 6;

#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    Rows(Rows),
    Xy(Xy),
    Heat(Heat),
}

impl Chart {
    /// What the chart shows, in a sentence.
    pub fn about(&self) -> &str {
        match self {
            Self::Rows(c) => &c.about,
            Self::Xy(c) => &c.about,
            Self::Heat(c) => &c.about,
        }
    }

    /// Draws the chart at a width in px.
    pub fn draw(&self, width: f64, class: &str, m: &mut Markup) {
        match self {
            Self::Rows(c) => c.draw(width, class, m),
            Self::Xy(c) => c.draw(width, class, m),
            Self::Heat(c) => c.draw(width, class, m),
        }
    }
}

impl From<Rows> for Chart {
    fn from(c: Rows) -> Self {
        Self::Rows(c)
    }
}

impl From<Xy> for Chart {
    fn from(c: Xy) -> Self {
        Self::Xy(c)
    }
}

impl From<Heat> for Chart {
    fn from(c: Heat) -> Self {
        Self::Heat(c)
    }
}
