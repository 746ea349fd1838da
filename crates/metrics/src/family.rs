//! A family: one name, one meaning, one unit, and its series.

/// What the values of a family are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until its source begins anew.
    Counter,
    Gauge,
    /// Observations by upper bounds.
    Histogram,
    /// Quantiles, and the sum of all observations.
    Summary,
    /// Facts as labels; the value is 1.
    Info,
}

/// The value of one series.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Count(u64),
    Number(f64),
    Histogram(Histogram),
    Summary(Summary),
}

/// Observations by upper bounds. **Unit**: that of the family.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// Upper bounds, ascending, and how many observations are at most as large as each.
    pub buckets: Vec<(f64, u64)>,
    pub sum: f64,
    /// All observations, also those above the last bound.
    pub count: u64,
}

/// Observations by quantile. **Unit**: that of the family.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Quantiles of the last observations, ascending: the share, and the value.
    pub quantiles: Vec<(f64, f64)>,
    /// Sum of all observations.
    pub sum: f64,
    /// Number of all observations.
    pub count: u64,
}

/// A series: its labels, and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

/// One family of series with distinct labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// The name without the suffix that its kind adds (`_total`, `_info`), the unit included.
    pub name: &'static str,
    pub kind: Kind,
    /// `seconds`, `bytes` or `ratio`, with which the name ends; empty where things are counted.
    pub unit: &'static str,
    pub help: &'static str,
    pub series: Vec<Series>,
}

impl Family {
    /// A family without series; the unit is taken from the name.
    pub fn new(kind: Kind, name: &'static str, help: &'static str) -> Self {
        let units = ["seconds", "bytes", "ratio"];
        let unit = units
            .into_iter()
            .find(|u| name.strip_suffix(u).is_some_and(|before| before.ends_with('_')));
        Self { name, kind, unit: unit.unwrap_or_default(), help, series: vec![] }
    }

    /// A family of counters.
    pub fn counter(name: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Counter, name, help)
    }

    /// A family of gauges.
    pub fn gauge(name: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Gauge, name, help)
    }

    /// Adds a series; its labels must differ from those of all others.
    pub fn add(&mut self, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.series.push(Series { labels, value });
    }

    /// Adds a count where it is known: absent is not zero.
    pub fn count(&mut self, labels: &[(&'static str, &str)], value: Option<u64>) {
        if let Some(value) = value {
            self.add(labels, Value::Count(value));
        }
    }

    /// Adds a number where it is known.
    pub fn number(&mut self, labels: &[(&'static str, &str)], value: Option<f64>) {
        if let Some(value) = value {
            self.add(labels, Value::Number(value));
        }
    }

    /// The family with one more series, where its value is known.
    #[must_use]
    pub fn with(mut self, labels: &[(&'static str, &str)], value: Option<f64>) -> Self {
        self.number(labels, value);
        self
    }
}

/// Converts nanoseconds to seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
