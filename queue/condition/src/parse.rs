//! From tokens to an expression.

use crate::lexer::{Token, tokens};
use crate::{Expression, Operator, Wrong};

/// How deep expressions may be nested.
const DEPTH: usize = 60;

/// The longest text, in bytes.
const LONGEST: usize = 64 << 10;

/// Binary operators by how tightly they bind, loosest first. Between the third and the fourth are NOT
/// and the comparisons.
const LEVELS: [&[(&str, Operator)]; 9] = [
    &[("OR", Operator::Or), ("||", Operator::Or)],
    &[("XOR", Operator::Xor)],
    &[("AND", Operator::And), ("&&", Operator::And)],
    &[("|", Operator::BitOr)],
    &[("&", Operator::BitAnd)],
    &[("<<", Operator::Left), (">>", Operator::Right)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("DIV", Operator::Divide),
        ("%", Operator::Modulo),
        ("MOD", Operator::Modulo),
    ],
    &[("^", Operator::BitXor)],
];

/// Above this level of `LEVELS` operands are truths, from it on they are values.
const VALUES: usize = 3;

const COMPARISONS: [(&str, Operator); 7] = [
    ("=", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<>", Operator::Unequal),
    ("<", Operator::Less),
    ("<=", Operator::LessEqual),
    (">", Operator::Greater),
    (">=", Operator::GreaterEqual),
];

/// Parses a condition; `column` says which column of the row has that name.
///
/// # Errors
///
/// Says what is wrong with the text, and where.
pub fn parse(text: &str, column: &dyn Fn(&str) -> Option<usize>) -> Result<Expression, Wrong> {
    if text.len() > LONGEST {
        let what = format!("it is longer than {LONGEST} bytes");
        return Err(Wrong { at: LONGEST, what });
    }
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        column,
    };
    let whole = parser.level(0)?;
    if *parser.peek() != Token::End {
        return Err(parser.wrong("nothing more is expected here"));
    }
    Ok(whole)
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
    column: &'a dyn Fn(&str) -> Option<usize>,
}

type Parsed = Result<Expression, Wrong>;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].1
    }

    fn wrong(&self, what: &str) -> Wrong {
        Wrong {
            at: self.tokens[self.at].0,
            what: what.to_owned(),
        }
    }

    /// Whether this sign or keyword comes next; if so it is passed.
    fn eat(&mut self, what: &str) -> bool {
        let is_it = match self.peek() {
            Token::Sign(sign) => *sign == what,
            Token::Word(word) => word.eq_ignore_ascii_case(what),
            _ => false,
        };
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, what: &str) -> Result<(), Wrong> {
        if self.eat(what) {
            return Ok(());
        }
        Err(self.wrong(&format!("{what} is expected here")))
    }

    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn level(&mut self, level: usize) -> Parsed {
        let operand = |this: &mut Self| match level + 1 {
            VALUES => this.truth(),
            end if end == LEVELS.len() => this.unary(),
            next => this.level(next),
        };
        let mut left = operand(self)?;
        let mut links = 0;
        while let Some((_, operator)) = LEVELS[level].iter().find(|(sign, _)| self.eat(sign)) {
            links += 1;
            if links > 10 * DEPTH {
                return Err(self.wrong("the chain is too long: use IN"));
            }
            let right = operand(self)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn truth(&mut self) -> Parsed {
        if self.eat("NOT") || self.eat("!") {
            return self.deeper(|this| Ok(Expression::Not(Box::new(this.truth()?))));
        }
        let mut left = self.level(VALUES)?;
        for _ in 0..DEPTH {
            if let Some((_, operator)) = COMPARISONS.iter().find(|(sign, _)| self.eat(sign)) {
                let right = self.level(VALUES)?;
                left = Expression::Binary(*operator, Box::new(left), Box::new(right));
            } else if self.eat("IS") {
                let negative = self.eat("NOT");
                let what = [("TRUE", Some(true)), ("FALSE", Some(false)), ("NULL", None)];
                let what = what.into_iter().find(|(word, _)| self.eat(word));
                let (_, what) =
                    what.ok_or_else(|| self.wrong("TRUE, FALSE or NULL is expected"))?;
                left = negated(Expression::Is(Box::new(left), what), negative);
            } else {
                let before = self.at;
                let negative = self.eat("NOT");
                match self.membership(left)? {
                    Ok(found) => left = negated(found, negative),
                    Err(same) => {
                        self.at = before;
                        return Ok(same);
                    }
                }
            }
        }
        Err(self.wrong("the chain is too long: use AND"))
    }

    /// IN, BETWEEN or LIKE; what was given comes back if none of them follows.
    fn membership(&mut self, of: Expression) -> Result<Result<Expression, Expression>, Wrong> {
        if self.eat("IN") {
            self.expect("(")?;
            let mut list = vec![self.deeper(|this| this.level(0))?];
            while self.eat(",") {
                list.push(self.deeper(|this| this.level(0))?);
            }
            self.expect(")")?;
            return Ok(Ok(Expression::In(Box::new(of), list)));
        }
        if self.eat("BETWEEN") {
            let low = self.level(VALUES)?;
            self.expect("AND")?;
            let high = self.level(VALUES)?;
            let all = (Box::new(of), Box::new(low), Box::new(high));
            return Ok(Ok(Expression::Between(all.0, all.1, all.2)));
        }
        if self.eat("LIKE") {
            let Token::Text(pattern) = self.peek().clone() else {
                return Err(self.wrong("a text is expected after LIKE"));
            };
            let only = "only 'text' and 'text%' are known; \\% and \\_ stand for themselves";
            let (prefix, continues) = prefix(&pattern).ok_or_else(|| self.wrong(only))?;
            self.at += 1;
            return Ok(Ok(Expression::Like(Box::new(of), prefix, continues)));
        }
        Ok(Err(of))
    }

    fn unary(&mut self) -> Parsed {
        if self.eat("-") {
            return self.deeper(|this| {
                Ok(match this.unary()? {
                    Expression::Number(number) => Expression::Number(-number),
                    Expression::Decimal(decimal) => Expression::Decimal(decimal.negative()),
                    Expression::Real(real) => Expression::Real(-real),
                    other => Expression::Negative(Box::new(other)),
                })
            });
        }
        if self.eat("~") {
            return self.deeper(|this| Ok(Expression::Inverse(Box::new(this.unary()?))));
        }
        if self.eat("(") {
            let inside = self.deeper(|this| this.level(0))?;
            self.expect(")")?;
            return Ok(inside);
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed {
        let token = self.peek().clone();
        let name = match token {
            Token::Number(number) => {
                self.at += 1;
                return Ok(Expression::Number(number));
            }
            Token::Decimal(decimal) => {
                self.at += 1;
                return Ok(Expression::Decimal(decimal));
            }
            Token::Real(real) => {
                self.at += 1;
                return Ok(Expression::Real(real));
            }
            Token::Text(text) => {
                self.at += 1;
                return Ok(Expression::Text(text));
            }
            Token::Bytes(bytes) => {
                self.at += 1;
                return Ok(Expression::Bytes(bytes));
            }
            Token::Word(word) => {
                for (literal, value) in [
                    ("NULL", Expression::Null),
                    ("TRUE", Expression::Number(1)),
                    ("FALSE", Expression::Number(0)),
                ] {
                    if self.eat(literal) {
                        return Ok(value);
                    }
                }
                if word.eq_ignore_ascii_case("pow")
                    && self.tokens[self.at + 1].1 == Token::Sign("(")
                {
                    self.at += 2;
                    let base = self.deeper(|this| this.level(0))?;
                    self.expect(",")?;
                    let exponent = self.deeper(|this| this.level(0))?;
                    self.expect(")")?;
                    return Ok(Expression::Power(Box::new(base), Box::new(exponent)));
                }
                word
            }
            Token::Quoted(name) => name,
            Token::Sign(_) | Token::End => return Err(self.wrong("a value is expected here")),
        };
        let column = (self.column)(&name);
        let column = column.ok_or_else(|| self.wrong(&format!("there is no column {name}")))?;
        self.at += 1;
        Ok(Expression::Column(column, name))
    }
}

fn negated(expression: Expression, negative: bool) -> Expression {
    if negative {
        Expression::Not(Box::new(expression))
    } else {
        expression
    }
}

/// What a pattern says a text starts with, and whether it may go on; none for other patterns.
fn prefix(pattern: &str) -> Option<(String, bool)> {
    let mut prefix = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => prefix.push(letters.next()?),
            '%' => return letters.next().is_none().then_some((prefix, true)),
            '_' => return None,
            other => prefix.push(other),
        }
    }
    Some((prefix, false))
}
