//! Pseudo-random modifications, the same on every run.

/// xorshift64 (Marsaglia 2003): the same attacks on every run.
pub struct Dice(pub u64);

impl Dice {
    /// A number below this.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

/// Numbers that may be used as sizes.
pub const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "255",
    "65535",
    "65536",
    "2147483647",
    "4294967295",
    "4294967296",
    "1048576",
    "9223372036854775807",
    "18446744073709551615",
    "1e300",
    "null",
];
