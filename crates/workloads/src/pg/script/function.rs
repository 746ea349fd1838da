//! Functions and operators of expressions.

use super::{
    hash,
    random::{Range, Rng},
    value::Scalar,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Debug,
    Div,
    Double,
    Eq,
    Exp,
    Exponential,
    Fnv1a,
    Gaussian,
    Greatest,
    Int,
    Is,
    Le,
    Least,
    Ln,
    Lt,
    Mod,
    Mul,
    Murmur2,
    Ne,
    Not,
    Permute,
    Pi,
    Pow,
    Random,
    ShiftLeft,
    ShiftRight,
    Sqrt,
    Sub,
    /// Rounds towards 0; not callable from scripts.
    Truncate,
    Zipfian,
}

/// Name in scripts, and the smallest and largest number of arguments.
const NAMED: [(&str, Function, usize, usize); 21] = {
    use Function as F;
    [
        ("abs", F::Abs, 1, 1),
        ("debug", F::Debug, 1, 1),
        ("double", F::Double, 1, 1),
        ("exp", F::Exp, 1, 1),
        ("greatest", F::Greatest, 1, usize::MAX),
        ("hash", F::Murmur2, 1, 2),
        ("hash_fnv1a", F::Fnv1a, 1, 2),
        ("hash_murmur2", F::Murmur2, 1, 2),
        ("int", F::Int, 1, 1),
        ("least", F::Least, 1, usize::MAX),
        ("ln", F::Ln, 1, 1),
        ("mod", F::Mod, 2, 2),
        ("permute", F::Permute, 2, 3),
        ("pi", F::Pi, 0, 0),
        ("pow", F::Pow, 2, 2),
        ("power", F::Pow, 2, 2),
        ("random", F::Random, 2, 2),
        ("random_exponential", F::Exponential, 3, 3),
        ("random_gaussian", F::Gaussian, 3, 3),
        ("random_zipfian", F::Zipfian, 3, 3),
        ("sqrt", F::Sqrt, 1, 1),
    ]
};

impl Function {
    /// The function of this name, in any case.
    pub fn named(word: &str) -> Option<Self> {
        NAMED.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word)).map(|(_, f, ..)| *f)
    }

    /// Checks the number of arguments; returns whether the optional seed must be added.
    ///
    /// # Errors
    /// The function does not take that number of arguments.
    pub fn lacks_seed(self, word: &str, n: usize) -> Result<bool, String> {
        let entry = NAMED.iter().find(|(name, ..)| name.eq_ignore_ascii_case(word));
        let Some((name, _, least, most)) = entry else { return Ok(false) };
        if !(*least..=*most).contains(&n) {
            let wanted = match (*least, *most) {
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) if least == most => least.to_string(),
                (least, most) => format!("{least} or {most}"),
            };
            return Err(format!("{name}() takes {wanted} arguments, not {n}"));
        }
        Ok(n < *most && matches!(self, Self::Murmur2 | Self::Fnv1a | Self::Permute))
    }

    /// Its value for the number of arguments that [`Function::lacks_seed`] requires.
    ///
    /// # Errors
    /// As pgbench words it: an argument of the wrong type, a division by zero, an overflow, or a
    /// parameter outside its range.
    pub fn apply(self, arguments: &[Scalar], rng: &mut Rng) -> Result<Scalar, String> {
        let null = arguments.contains(&Scalar::Null);
        if null && !matches!(self, Self::Is | Self::Debug) {
            return Ok(Scalar::Null);
        }
        match *arguments {
            [] => Ok(Scalar::Double(std::f64::consts::PI)),
            [a] => self.of_one(a),
            [a, b] => self.of_two(a, b, rng),
            [a, b, c] if !matches!(self, Self::Least | Self::Greatest) => {
                self.of_three(a, b, c, rng)
            }
            _ => self.of_many(arguments),
        }
    }

    fn of_one(self, a: Scalar) -> Result<Scalar, String> {
        Ok(match self {
            Self::Abs => match a {
                Scalar::Double(x) => Scalar::Double(x.abs()),
                other => Scalar::Int(other.int()?.wrapping_abs()),
            },
            Self::Not => Scalar::Bool(!a.boolean()?),
            Self::Int => Scalar::Int(a.int()?),
            Self::Truncate => Scalar::Int(match a {
                Scalar::Double(x) => Scalar::Double(x.trunc()).int()?,
                other => other.int()?,
            }),
            Self::Double => Scalar::Double(a.double()?),
            Self::Sqrt => Scalar::Double(a.double()?.sqrt()),
            Self::Ln => Scalar::Double(a.double()?.ln()),
            Self::Exp => Scalar::Double(a.double()?.exp()),
            Self::Least | Self::Greatest => return self.of_many(&[a]),
            _ => a,
        })
    }

    fn of_two(self, a: Scalar, b: Scalar, rng: &mut Rng) -> Result<Scalar, String> {
        Ok(match self {
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Mod => return self.sum(a, b),
            Self::Eq | Self::Ne | Self::Lt | Self::Le => Scalar::Bool(self.compare(a, b)?),
            Self::BitAnd => Scalar::Int(a.int()? & b.int()?),
            Self::BitOr => Scalar::Int(a.int()? | b.int()?),
            Self::BitXor => Scalar::Int(a.int()? ^ b.int()?),
            // Shifts by the lowest six bits, as processors do.
            Self::ShiftLeft => Scalar::Int(a.int()?.wrapping_shl(low_bits(b.int()?))),
            Self::ShiftRight => Scalar::Int(a.int()?.wrapping_shr(low_bits(b.int()?))),
            Self::Is => Scalar::Bool(a == b),
            Self::Pow => Scalar::Double(a.double()?.powf(b.double()?)),
            Self::Random => Scalar::Int(range(a, b)?.uniform(rng)),
            Self::Murmur2 => Scalar::Int(hash::murmur2(a.int()?, b.int()?)),
            Self::Fnv1a => Scalar::Int(hash::fnv1a(a.int()?, b.int()?)),
            _ => return self.of_many(&[a, b]),
        })
    }

    fn of_three(self, a: Scalar, b: Scalar, c: Scalar, rng: &mut Rng) -> Result<Scalar, String> {
        if self == Self::Permute {
            let (value, size, seed) = (a.int()?, b.int()?, c.int()?);
            if size <= 0 {
                return Err("permute size parameter must be greater than zero".into());
            }
            return Ok(Scalar::Int(hash::permute(value, size, seed)));
        }
        let (range, parameter) = (range(a, b)?, c.double()?);
        Ok(Scalar::Int(match self {
            Self::Gaussian if parameter < 2.0 => {
                return Err(format!(
                    "gaussian parameter must be at least 2.000000 (not {parameter:.6})"
                ));
            }
            Self::Exponential if parameter <= 0.0 => {
                return Err(format!(
                    "exponential parameter must be greater than zero (not {parameter:.6})"
                ));
            }
            Self::Zipfian if !(1.001..=1000.0).contains(&parameter) => {
                return Err(format!(
                    "zipfian parameter must be in range [1.001, 1000] (not {parameter:.6})"
                ));
            }
            _ if parameter.is_nan() => return Err("the parameter is no number".into()),
            Self::Gaussian => range.gaussian(rng, parameter),
            Self::Exponential => range.exponential(rng, parameter),
            _ => range.zipfian(rng, parameter),
        }))
    }

    /// The least or greatest: a double if one argument is.
    fn of_many(self, all: &[Scalar]) -> Result<Scalar, String> {
        let least = self == Self::Least;
        if all.iter().any(|v| matches!(v, Scalar::Double(_))) {
            let mut best = f64::NAN;
            for (n, value) in all.iter().enumerate() {
                let x = value.double()?;
                if n == 0 || (if least { x < best } else { x > best }) {
                    best = x;
                }
            }
            return Ok(Scalar::Double(best));
        }
        let mut best = None;
        for value in all {
            let n = value.int()?;
            best = best.map_or(Some(n), |b: i64| Some(if least { b.min(n) } else { b.max(n) }));
        }
        Ok(best.map_or(Scalar::Null, Scalar::Int))
    }

    /// Arithmetic: in doubles if an operand is one; the remainder takes integers only.
    fn sum(self, a: Scalar, b: Scalar) -> Result<Scalar, String> {
        let doubles = matches!(a, Scalar::Double(_)) || matches!(b, Scalar::Double(_));
        if doubles && self != Self::Mod {
            let (x, y) = (a.double()?, b.double()?);
            return Ok(Scalar::Double(match self {
                Self::Add => x + y,
                Self::Sub => x - y,
                Self::Mul => x * y,
                _ => x / y,
            }));
        }
        let (n, m) = (a.int()?, b.int()?);
        let (result, name) = match self {
            Self::Add => (n.checked_add(m), "add"),
            Self::Sub => (n.checked_sub(m), "sub"),
            Self::Mul => (n.checked_mul(m), "mul"),
            _ if m == 0 => return Err("division by zero".into()),
            Self::Div => (n.checked_div(m), "div"),
            _ => (Some(n.wrapping_rem(m)), "mod"),
        };
        result.map(Scalar::Int).ok_or_else(|| format!("bigint {name} out of range"))
    }

    #[expect(clippy::float_cmp, reason = "the script asks for it")]
    fn compare(self, a: Scalar, b: Scalar) -> Result<bool, String> {
        if matches!(a, Scalar::Double(_)) || matches!(b, Scalar::Double(_)) {
            let (x, y) = (a.double()?, b.double()?);
            return Ok(match self {
                Self::Eq => x == y,
                Self::Ne => x != y,
                Self::Lt => x < y,
                _ => x <= y,
            });
        }
        let (n, m) = (a.int()?, b.int()?);
        Ok(match self {
            Self::Eq => n == m,
            Self::Ne => n != m,
            Self::Lt => n < m,
            _ => n <= m,
        })
    }
}

fn low_bits(n: i64) -> u32 {
    (n & 63) as u32
}

fn range(min: Scalar, max: Scalar) -> Result<Range, String> {
    let (min, max) = (min.int()?, max.int()?);
    if min > max {
        return Err("empty range given to random".into());
    }
    match max.checked_sub(min).and_then(|n| n.checked_add(1)) {
        Some(_) => Ok(Range { min, max }),
        None => Err("random range is too large".into()),
    }
}
