//! Parses expressions into trees.
//!
//! Operators bind as in PostgreSQL's own grammar, from the loosest: `OR`, `AND`, `NOT`, `IS`,
//! comparisons (which do not chain), bits, sums, products, signs.

use super::{
    fault::Fault,
    function::Function,
    random::Rng,
    token::{Token, Tokens},
    value::{Scalar, Value, Vars},
};

/// Deepest nesting of parentheses, `CASE` and signs.
const DEEPEST: usize = 100;

/// Greatest depth of a tree in operators: `1 + 1 + 1 + …` is as deep as it is long.
const DEEPEST_TREE: usize = 1000;

/// An expression of `\set` or `\if`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    node: Node,
    depth: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Constant(Scalar),
    Variable(Box<str>),
    Call(Function, Vec<Expr>),
    And(Box<[Expr; 2]>),
    Or(Box<[Expr; 2]>),
    /// Pairs of condition and result, and the value of `ELSE`.
    Case(Vec<(Expr, Expr)>, Box<Expr>),
}

impl Expr {
    pub fn int(n: i64) -> Self {
        Self::leaf(Node::Constant(Scalar::Int(n)))
    }

    fn leaf(node: Node) -> Self {
        Self { node, depth: 1 }
    }

    pub(super) fn variable(name: &str) -> Self {
        Self::leaf(Node::Variable(name.into()))
    }

    pub(super) fn call(function: Function, arguments: Vec<Self>) -> Self {
        let depth = 1 + arguments.iter().map(|a| a.depth).max().unwrap_or(0);
        Self { node: Node::Call(function, arguments), depth }
    }

    /// Its value. The same variables and random numbers give the same value.
    ///
    /// # Errors
    /// A computation error, in pgbench's words: an unknown variable, a division by zero, a result
    /// out of range.
    pub fn eval(&self, vars: &Vars, rng: &mut Rng) -> Result<Value, String> {
        self.scalar(vars, rng).map(Value::from)
    }

    /// Its value, for further computation.
    pub(super) fn scalar(&self, vars: &Vars, rng: &mut Rng) -> Result<Scalar, String> {
        match &self.node {
            Node::Constant(value) => Ok(*value),
            Node::Variable(name) => match vars.get(name) {
                Some(value) => Scalar::read(name, value),
                None => Err(format!("undefined variable \"{name}\"")),
            },
            Node::Call(function, arguments) => {
                let mut values = [Scalar::Null; MOST_ARGUMENTS];
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = argument.scalar(vars, rng)?;
                }
                let given = values.get(..arguments.len()).unwrap_or(&values);
                function.apply(given, rng)
            }
            // `NULL AND false` is NULL here, unlike in SQL.
            Node::And(both) => Self::both(both, false, vars, rng),
            Node::Or(both) => Self::both(both, true, vars, rng),
            Node::Case(cases, otherwise) => {
                for (condition, result) in cases {
                    if condition.scalar(vars, rng)?.is_true() {
                        return result.scalar(vars, rng);
                    }
                }
                otherwise.scalar(vars, rng)
            }
        }
    }

    /// `AND` and `OR`: evaluates the right side only if the left does not decide.
    fn both(
        [left, right]: &[Self; 2],
        decides: bool,
        vars: &Vars,
        rng: &mut Rng,
    ) -> Result<Scalar, String> {
        for side in [left, right] {
            match side.scalar(vars, rng)? {
                Scalar::Null => return Ok(Scalar::Null),
                value if value.boolean()? == decides => return Ok(Scalar::Bool(decides)),
                _ => {}
            }
        }
        Ok(Scalar::Bool(!decides))
    }
}

/// Most arguments of a function, as in pgbench.
const MOST_ARGUMENTS: usize = 16;

/// Binding strength of an operator.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Or,
    And,
    Not,
    Is,
    Compare,
    Bits,
    Sum,
    Product,
    Sign,
    None,
}

impl Level {
    fn tighter(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Not,
            Self::Not => Self::Is,
            Self::Is => Self::Compare,
            Self::Compare => Self::Bits,
            Self::Bits => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product => Self::Sign,
            Self::Sign | Self::None => Self::None,
        }
    }
}

/// An operator between two operands.
enum Operator {
    And,
    Or,
    /// `IS …`, without a right operand.
    Is,
    Call(Function),
    /// `a > b` is computed as `b < a`, evaluating `b` first.
    Swapped(Function),
}

/// Parses an expression up to the end of the command.
pub(super) fn whole(tokens: &mut Tokens<'_>) -> Result<Expr, Fault> {
    let expr = Parser { tokens, depth: 0 }.level(Level::Or)?;
    match tokens.peek() {
        Token::End => Ok(expr),
        _ => Err(tokens.unexpected("an operator or the command's end")),
    }
}

struct Parser<'p, 'a> {
    tokens: &'p mut Tokens<'a>,
    depth: usize,
}

impl Parser<'_, '_> {
    /// Parses an expression of operators with at least this binding strength.
    fn level(&mut self, loosest: Level) -> Result<Expr, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Fault::at(self.tokens.offset(), "the expression is nested too deep"));
        }
        let mut left = self.operand()?;
        let mut unchained = None;
        while let Some((level, operator)) = self.operator() {
            if level < loosest {
                break;
            }
            if unchained == Some(level) {
                return Err(self.tokens.unexpected("something else than one more comparison"));
            }
            unchained = (level == Level::Compare).then_some(level);
            let at = self.tokens.offset();
            left = self.joined(left, level, &operator)?;
            if left.depth > DEEPEST_TREE {
                return Err(Fault::at(at, "the expression is too long"));
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    fn joined(&mut self, left: Expr, level: Level, operator: &Operator) -> Result<Expr, Fault> {
        if matches!(operator, Operator::Is) {
            return self.is(left);
        }
        self.tokens.take()?;
        let right = self.level(level.tighter())?;
        let depth = 1 + left.depth.max(right.depth);
        Ok(match operator {
            Operator::And => Expr { node: Node::And(Box::new([left, right])), depth },
            Operator::Or => Expr { node: Node::Or(Box::new([left, right])), depth },
            Operator::Swapped(function) => Expr::call(*function, vec![right, left]),
            Operator::Call(function) => Expr::call(*function, vec![left, right]),
            Operator::Is => left,
        })
    }

    /// The next operator and its binding strength.
    fn operator(&self) -> Option<(Level, Operator)> {
        use Function as F;
        let (level, function) = match self.tokens.peek() {
            Token::Sign(sign) => match *sign {
                "=" => (Level::Compare, F::Eq),
                "<>" | "!=" => (Level::Compare, F::Ne),
                "<" => (Level::Compare, F::Lt),
                "<=" => (Level::Compare, F::Le),
                ">" => return Some((Level::Compare, Operator::Swapped(F::Lt))),
                ">=" => return Some((Level::Compare, Operator::Swapped(F::Le))),
                "|" => (Level::Bits, F::BitOr),
                "#" => (Level::Bits, F::BitXor),
                "&" => (Level::Bits, F::BitAnd),
                "<<" => (Level::Bits, F::ShiftLeft),
                ">>" => (Level::Bits, F::ShiftRight),
                "+" => (Level::Sum, F::Add),
                "-" => (Level::Sum, F::Sub),
                "*" => (Level::Product, F::Mul),
                "/" => (Level::Product, F::Div),
                "%" => (Level::Product, F::Mod),
                _ => return None,
            },
            Token::Word(_) => {
                let is = |word: &str| self.tokens.is_word(word);
                return if is("or") {
                    Some((Level::Or, Operator::Or))
                } else if is("and") {
                    Some((Level::And, Operator::And))
                } else if is("is") || is("isnull") || is("notnull") {
                    Some((Level::Is, Operator::Is))
                } else {
                    None
                };
            }
            _ => return None,
        };
        Some((level, Operator::Call(function)))
    }

    /// `ISNULL`, `NOTNULL`, `IS [NOT] NULL | TRUE | FALSE`.
    fn is(&mut self, left: Expr) -> Result<Expr, Fault> {
        let (negated, what) = if self.tokens.accept("isnull")? {
            (false, Scalar::Null)
        } else if self.tokens.accept("notnull")? {
            (true, Scalar::Null)
        } else {
            self.tokens.take()?;
            let negated = self.tokens.accept("not")?;
            let Some(what) = self.constant() else {
                return Err(self.tokens.unexpected("NULL, TRUE or FALSE"));
            };
            self.tokens.take()?;
            (negated, what)
        };
        let what = Expr::leaf(Node::Constant(what));
        let is = Expr::call(Function::Is, vec![left, what]);
        Ok(if negated { Expr::call(Function::Not, vec![is]) } else { is })
    }

    /// The next token's constant, if a word is one.
    fn constant(&self) -> Option<Scalar> {
        let words =
            [("null", Scalar::Null), ("true", Scalar::Bool(true)), ("false", Scalar::Bool(false))];
        words.into_iter().find(|(word, _)| self.tokens.is_word(word)).map(|(_, value)| value)
    }

    fn operand(&mut self) -> Result<Expr, Fault> {
        if let Some(value) = self.constant() {
            self.tokens.take()?;
            return Ok(Expr::leaf(Node::Constant(value)));
        }
        match self.tokens.peek().clone() {
            Token::Int(n) => {
                let Ok(n) = i64::try_from(n) else {
                    return Err(Fault::at(self.tokens.offset(), "bigint constant overflow"));
                };
                self.tokens.take()?;
                Ok(Expr::int(n))
            }
            Token::Double(x) => {
                self.tokens.take()?;
                Ok(Expr::leaf(Node::Constant(Scalar::Double(x))))
            }
            Token::Variable(name) => {
                self.tokens.take()?;
                Ok(Expr::variable(name))
            }
            Token::Word(word) => self.word(word),
            Token::Sign(sign) => self.sign(sign),
            Token::End => Err(self.tokens.unexpected("an expression")),
        }
    }

    /// Parses a sign and its operand, or an expression in parentheses.
    fn sign(&mut self, sign: &str) -> Result<Expr, Fault> {
        if !matches!(sign, "(" | "+" | "-" | "~") {
            return Err(self.tokens.unexpected("an expression"));
        }
        self.tokens.take()?;
        match sign {
            "(" => {
                let inner = self.level(Level::Or)?;
                self.expect(")", "an operator or \")\"")?;
                Ok(inner)
            }
            "+" => self.level(Level::Sign),
            // Binds as loosely as bit operators: ~ 1 + 2 is ~ (1 + 2).
            "~" => Ok(Expr::call(Function::BitXor, vec![Expr::int(-1), self.level(Level::Sum)?])),
            _ => {
                if *self.tokens.peek() == Token::Int(1 << 63) {
                    self.tokens.take()?;
                    return Ok(Expr::int(i64::MIN));
                }
                Ok(Expr::call(Function::Sub, vec![Expr::int(0), self.level(Level::Sign)?]))
            }
        }
    }

    fn word(&mut self, word: &str) -> Result<Expr, Fault> {
        let at = self.tokens.offset();
        if self.tokens.accept("not")? {
            return Ok(Expr::call(Function::Not, vec![self.level(Level::Not)?]));
        }
        if self.tokens.accept("case")? {
            return self.case();
        }
        let keywords = ["and", "or", "is", "isnull", "notnull", "when", "then", "else", "end"];
        if keywords.iter().any(|k| k.eq_ignore_ascii_case(word)) {
            return Err(self.tokens.unexpected("an expression"));
        }
        let Some(function) = Function::named(word) else {
            let hint = "; a variable has a colon before its name";
            return Err(Fault::at(at, format!("there is no function \"{word}\"{hint}")));
        };
        self.tokens.take()?;
        self.expect("(", "\"(\"")?;
        let mut arguments = vec![];
        if !self.tokens.accept(")")? {
            loop {
                arguments.push(self.level(Level::Or)?);
                if !self.tokens.accept(",")? {
                    break;
                }
            }
            self.expect(")", "an operator, \",\" or \")\"")?;
        }
        if arguments.len() > MOST_ARGUMENTS {
            let what = format!("too many arguments for {word}(): {MOST_ARGUMENTS} are possible");
            return Err(Fault::at(at, what));
        }
        let lacks_seed = function.lacks_seed(word, arguments.len());
        if lacks_seed.map_err(|what| Fault::at(at, what))? {
            arguments.push(Expr::variable("default_seed"));
        }
        Ok(Expr::call(function, arguments))
    }

    fn case(&mut self) -> Result<Expr, Fault> {
        let mut cases = vec![];
        while self.tokens.accept("when")? {
            let condition = self.level(Level::Or)?;
            self.expect("then", "THEN")?;
            cases.push((condition, self.level(Level::Or)?));
        }
        if cases.is_empty() {
            return Err(self.tokens.unexpected("WHEN"));
        }
        let otherwise = match self.tokens.accept("else")? {
            true => self.level(Level::Or)?,
            false => Expr::leaf(Node::Constant(Scalar::Null)),
        };
        self.expect("end", "WHEN, ELSE or END")?;
        let deepest = cases.iter().map(|(c, r)| c.depth.max(r.depth)).max().unwrap_or(0);
        let depth = 1 + deepest.max(otherwise.depth);
        Ok(Expr { node: Node::Case(cases, Box::new(otherwise)), depth })
    }

    fn expect(&mut self, what: &str, wanted: &str) -> Result<(), Fault> {
        if self.tokens.accept(what)? { Ok(()) } else { Err(self.tokens.unexpected(wanted)) }
    }
}
