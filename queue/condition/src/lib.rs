//! Which rows of a queue a consumer waits for: a condition is parsed once and evaluated row by row.
//!
//! From loose to tight: `OR ||`, `XOR`, `AND &&`, `NOT`, comparisons (`= != <> < <= > >=`, `IS [NOT]
//! TRUE|FALSE|NULL`, `[NOT] IN`, `[NOT] BETWEEN`, `[NOT] LIKE 'prefix%'`), `|`, `&`, `<< >>`, `+ -`,
//! `* DIV % MOD`, `^`, `- ~`, then literals, columns, `pow(a, b)` and parentheses. NULL is neither true
//! nor false. `1.5` is an exact decimal, `1e3` floating point, as in SQL, and compared like there; operators
//! on bits are for integers. What cannot be computed is NULL: a division by zero, an overflow, a text that is
//! compared with a number.

mod decimal;
mod evaluate;
mod lexer;
mod parse;

pub use decimal::{DIGITS, Decimal};
pub use evaluate::{Value, evaluate, holds};
pub use parse::parse;

use std::fmt;

/// Why a text is no condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the condition is wrong at byte {at}: {what}")]
pub struct Wrong {
    /// Where in the text, in bytes from 0.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
}

/// What stands between two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its sign says")]
pub enum Operator {
    Or,
    Xor,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitAnd,
    Left,
    Right,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitXor,
}

impl Operator {
    /// Its sign.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Or => "OR",
            Self::Xor => "XOR",
            Self::And => "AND",
            Self::Equal => "=",
            Self::Unequal => "<>",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::BitOr => "|",
            Self::BitAnd => "&",
            Self::Left => "<<",
            Self::Right => ">>",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "DIV",
            Self::Modulo => "%",
            Self::BitXor => "^",
        }
    }
}

/// An expression. Columns are meant by their place in the row.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum Expression {
    Null,
    Number(i128),
    Decimal(Decimal),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
    Column(usize, String),
    Not(Box<Self>),
    Negative(Box<Self>),
    Inverse(Box<Self>),
    Binary(Operator, Box<Self>, Box<Self>),
    Power(Box<Self>, Box<Self>),
    /// IS TRUE, IS FALSE, or with none IS NULL.
    Is(Box<Self>, Option<bool>),
    In(Box<Self>, Vec<Self>),
    Between(Box<Self>, Box<Self>, Box<Self>),
    /// What a text starts with, and whether it may go on.
    Like(Box<Self>, String, bool),
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "'{}'", text.replace('\'', "''"))
}

impl fmt::Display for Expression {
    /// As text that is parsed to the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Decimal(decimal) => write!(f, "{decimal}"),
            Self::Real(real) => write!(f, "{real:e}"),
            Self::Text(text) => quoted(f, text),
            Self::Bytes(bytes) => {
                f.write_str("X'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                f.write_str("'")
            }
            Self::Column(_, name) => write!(f, "`{}`", name.replace('`', "``")),
            Self::Not(of) => write!(f, "(NOT {of})"),
            Self::Negative(of) => write!(f, "(- {of})"),
            Self::Inverse(of) => write!(f, "(~ {of})"),
            Self::Binary(operator, a, b) => write!(f, "({a} {} {b})", operator.sign()),
            Self::Power(a, b) => write!(f, "pow({a}, {b})"),
            Self::Is(of, None) => write!(f, "({of} IS NULL)"),
            Self::Is(of, Some(true)) => write!(f, "({of} IS TRUE)"),
            Self::Is(of, Some(false)) => write!(f, "({of} IS FALSE)"),
            Self::Between(of, low, high) => write!(f, "({of} BETWEEN {low} AND {high})"),
            Self::In(of, list) => {
                write!(f, "({of} IN (")?;
                for (at, one) in list.iter().enumerate() {
                    write!(f, "{}{one}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("))")
            }
            Self::Like(of, prefix, continues) => {
                let text = prefix
                    .replace('\\', "\\\\")
                    .replace('%', "\\%")
                    .replace('_', "\\_");
                write!(f, "({of} LIKE ")?;
                quoted(f, &format!("{text}{}", if *continues { "%" } else { "" }))?;
                f.write_str(")")
            }
        }
    }
}
