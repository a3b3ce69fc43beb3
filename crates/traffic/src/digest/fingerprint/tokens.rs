//! Pieces put together again, without values.

use evenkeel_sql::{Lexeme, is_word};

/// Words after which a parenthesis is not that of a function, and a sign is not one between two values.
const KEYWORDS: [&str; 66] = [
    "all",
    "and",
    "any",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "check",
    "cross",
    "default",
    "delete",
    "desc",
    "distinct",
    "div",
    "else",
    "end",
    "except",
    "exists",
    "explain",
    "false",
    "from",
    "group",
    "having",
    "in",
    "index",
    "inner",
    "insert",
    "intersect",
    "into",
    "is",
    "join",
    "key",
    "left",
    "like",
    "limit",
    "mod",
    "natural",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "over",
    "prepare",
    "regexp",
    "replace",
    "return",
    "returning",
    "right",
    "rlike",
    "row",
    "select",
    "set",
    "some",
    "then",
    "true",
    "union",
    "update",
    "using",
    "value",
    "values",
    "when",
    "where",
    "xor",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Keyword,
    Word,
    Variable,
    Value,
    List,
    Open,
    Close,
    Comma,
    Dot,
    Semicolon,
    Sign,
}

#[derive(Debug, Clone, Copy)]
struct Token {
    kind: PieceKind,
    begin: usize,
    end: usize,
}

/// What lies between two parentheses, or outside of all.
#[derive(Debug, Clone, Default)]
struct Frame {
    /// The index of its parenthesis.
    open: usize,
    /// Where `UNION` stands in it.
    unions: Vec<usize>,
    /// Whether rows of `VALUES` are listed.
    in_values: bool,
    /// The last parentheses within it.
    last: Option<(usize, usize)>,
}

/// The statement so far.
#[derive(Debug)]
pub(super) struct Tokens {
    text: String,
    all: Vec<Token>,
    frames: Vec<Frame>,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            text: String::new(),
            all: Vec::new(),
            frames: vec![Frame::default()],
        }
    }
}

impl Tokens {
    pub(super) fn add(&mut self, lexeme: Lexeme<'_>) {
        match lexeme {
            Lexeme::Word(word) => self.word(word),
            Lexeme::Name(name) => self.name(name),
            Lexeme::Variable(name) => {
                let name = clean(name).to_lowercase();
                self.push(PieceKind::Variable, &name);
            }
            Lexeme::Text(_) | Lexeme::Number(_) | Lexeme::Placeholder => self.value(),
            Lexeme::Sign(b"(") => {
                self.frames.push(Frame {
                    open: self.all.len(),
                    ..Frame::default()
                });
                self.push(PieceKind::Open, "(");
            }
            Lexeme::Sign(b")") => self.close(),
            Lexeme::Sign(b",") => self.push(PieceKind::Comma, ","),
            Lexeme::Sign(b".") => self.push(PieceKind::Dot, "."),
            Lexeme::Sign(b";") => self.push(PieceKind::Semicolon, ";"),
            Lexeme::Sign(sign) => self.push(PieceKind::Sign, &String::from_utf8_lossy(sign)),
        }
    }

    /// Adds a list of values.
    pub(super) fn list(&mut self) {
        self.push(PieceKind::List, "(...)");
        self.merge_lists();
    }

    fn push(&mut self, kind: PieceKind, text: &str) {
        let begin = self.text.len();
        self.text.push_str(text);
        self.all.push(Token {
            kind,
            begin,
            end: self.text.len(),
        });
    }

    /// Forgets the tokens from `length` on.
    fn truncate(&mut self, length: usize) {
        if let Some(token) = self.all.get(length) {
            self.text.truncate(token.begin);
            self.all.truncate(length);
        }
    }

    fn text_of(&self, token: &Token) -> &str {
        &self.text[token.begin..token.end]
    }

    fn is(&self, index: Option<usize>, kind: PieceKind) -> bool {
        index
            .and_then(|index| self.all.get(index))
            .is_some_and(|token| token.kind == kind)
    }

    fn is_keyword(&self, index: Option<usize>, word: &[&str]) -> bool {
        let token = index.and_then(|index| self.all.get(index));
        token.is_some_and(|token| {
            token.kind == PieceKind::Keyword && word.contains(&self.text_of(token))
        })
    }

    /// Returns the index of the token so many before the end.
    fn back(&self, count: usize) -> Option<usize> {
        self.all.len().checked_sub(count)
    }

    fn word(&mut self, word: &[u8]) {
        let word = clean(word).to_lowercase();
        let after_dot = self.is(self.back(1), PieceKind::Dot);
        if after_dot || KEYWORDS.binary_search(&word.as_str()).is_err() {
            self.frame().in_values = false;
            return self.push(PieceKind::Word, &word);
        }
        let at = self.all.len();
        match word.as_str() {
            "union" => self.frame().unions.push(at),
            "row" => {}
            word => self.frame().in_values = matches!(word, "values" | "value"),
        }
        self.push(PieceKind::Keyword, &word);
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// A name that needs no quotes has none.
    fn name(&mut self, quoted: &[u8]) {
        self.frame().in_values = false;
        let name = clean(&quoted[1..quoted.len() - 1]);
        let quote = char::from(quoted[0]);
        let name = name.replace(&format!("{quote}{quote}"), &quote.to_string());
        let lower = name.to_lowercase();
        let begins = |byte: &u8| is_word(*byte) && !byte.is_ascii_digit();
        let is_plain = lower.as_bytes().first().is_some_and(begins)
            && lower.bytes().all(is_word)
            && KEYWORDS.binary_search(&lower.as_str()).is_err();
        if is_plain {
            return self.push(PieceKind::Word, &lower);
        }
        self.push(PieceKind::Word, &format!("`{}`", name.replace('`', "``")));
    }

    fn value(&mut self) {
        // `= -5` is a value, `a - 5` is a difference.
        while self.is(self.back(1), PieceKind::Sign)
            && self.is_minus(self.back(1))
            && !self.ends_value(self.back(2))
        {
            let length = self.all.len() - 1;
            self.truncate(length);
        }
        if self.is(self.back(1), PieceKind::Value) {
            return;
        }
        let is_pair =
            self.is(self.back(1), PieceKind::Comma) || self.is_keyword(self.back(1), &["offset"]);
        if is_pair
            && self.is(self.back(2), PieceKind::Value)
            && self.is_keyword(self.back(3), &["limit"])
        {
            let length = self.all.len() - 1;
            return self.truncate(length);
        }
        self.push(PieceKind::Value, "?");
    }

    fn is_minus(&self, index: Option<usize>) -> bool {
        let token = index.and_then(|index| self.all.get(index));
        token.is_some_and(|token| matches!(self.text_of(token), "-" | "+"))
    }

    /// Whether what is there is a value that a sign may follow.
    fn ends_value(&self, index: Option<usize>) -> bool {
        let token = index.and_then(|index| self.all.get(index));
        token.is_some_and(|token| {
            matches!(
                token.kind,
                PieceKind::Word
                    | PieceKind::Variable
                    | PieceKind::Value
                    | PieceKind::List
                    | PieceKind::Close
            )
        }) || self.is_keyword(index, &["null", "true", "false", "end", "default"])
    }

    fn close(&mut self) {
        if self.frames.len() == 1 {
            return self.push(PieceKind::Close, ")");
        }
        self.merge_arms();
        let frame = self.frames.pop().unwrap_or_default();
        let open = frame.open;
        if self.is_list(open) {
            self.truncate(open);
            return self.list();
        }
        let close = self.all.len();
        self.push(PieceKind::Close, ")");
        let Frame {
            in_values, last, ..
        } = *self.frame();
        let comma = open.checked_sub(1);
        let before = last.filter(|(_, end)| in_values && Some(end + 1) == comma);
        if let (Some((begin, end)), true) = (before, self.is(comma, PieceKind::Comma))
            && self.same(begin, end, open, close)
        {
            return self.truncate(end + 1);
        }
        self.frame().last = Some((open, close));
    }

    /// Whether what follows the parenthesis at `open` is values only, and stands where lists do.
    fn is_list(&self, open: usize) -> bool {
        let content = &self.all[open + 1..];
        let is_plain = content.iter().all(|token| match token.kind {
            PieceKind::Value | PieceKind::List | PieceKind::Comma => true,
            PieceKind::Sign => matches!(self.text_of(token), "-" | "+"),
            PieceKind::Keyword => {
                matches!(self.text_of(token), "null" | "true" | "false" | "default")
            }
            _ => false,
        });
        let before = open.checked_sub(1);
        let after_list =
            self.is(before, PieceKind::Comma) && self.is(open.checked_sub(2), PieceKind::List);
        is_plain
            && !content.is_empty()
            && (after_list
                || self.is(before, PieceKind::Open)
                || self.is_keyword(before, &["in", "values", "value", "row"]))
    }

    /// Makes one of two lists that follow each other.
    fn merge_lists(&mut self) {
        let is_after = |tokens: &Self, first: usize| {
            tokens.is(tokens.back(first), PieceKind::Comma)
                && tokens.is(tokens.back(first + 1), PieceKind::List)
        };
        let less = if is_after(self, 2) {
            2
        } else if self.is_keyword(self.back(2), &["row"]) && is_after(self, 3) {
            3
        } else {
            return;
        };
        let length = self.all.len() - less;
        self.truncate(length);
    }

    /// Whether the tokens of two ranges, ends included, are the same.
    fn same(&self, begin: usize, end: usize, other: usize, other_end: usize) -> bool {
        let (first, second) = (&self.all[begin..=end], &self.all[other..=other_end]);
        let mut both = first.iter().zip(second);
        first.len() == second.len()
            && both.all(|(a, b)| a.kind == b.kind && self.text_of(a) == self.text_of(b))
    }

    /// Makes one of equal arms of a `UNION` that follow each other.
    fn merge_arms(&mut self) {
        let unions = std::mem::take(&mut self.frame().unions);
        if unions.len() < 2 {
            return;
        }
        let length = self.all.len();
        let ends = unions.iter().skip(1).copied().chain([length]);
        let arms: Vec<(usize, usize)> = unions.iter().copied().zip(ends).collect();
        // What stands before them stays where it is: this is done at each parenthesis that closes.
        let first = self.all[unions[0]].begin;
        let mut kept = Vec::new();
        let mut before: Option<(usize, usize)> = None;
        for (begin, end) in arms {
            let is_same = before
                .is_some_and(|(other, other_end)| self.same(other, other_end - 1, begin, end - 1));
            if !is_same {
                kept.extend_from_slice(&self.all[begin..end]);
            }
            before = Some((begin, end));
        }
        let mut text = String::new();
        for token in &mut kept {
            let begin = first + text.len();
            text.push_str(&self.text[token.begin..token.end]);
            (token.begin, token.end) = (begin, first + text.len());
        }
        self.all.truncate(unions[0]);
        self.all.append(&mut kept);
        self.text.truncate(first);
        self.text.push_str(&text);
    }

    /// Ends the last row or list that is open, as far as it came; false when that cannot be done.
    fn close_cut(&mut self) -> bool {
        let open = self.frame().open;
        if self.is(self.back(1), PieceKind::Comma) {
            let length = self.all.len() - 1;
            self.truncate(length);
        }
        if self.frames.len() == 1 {
            return false;
        }
        let is_empty = open + 1 == self.all.len();
        if !is_empty && !self.is_list(open) {
            return false;
        }
        self.frames.pop();
        self.truncate(open);
        if !is_empty {
            self.list();
        }
        true
    }

    /// Returns the statement; `is_cut` when more of it came, of which rows and lists would not have changed it.
    pub(super) fn end(mut self, is_cut: bool) -> String {
        while is_cut && self.close_cut() {}
        while self.frames.len() > 1 {
            self.frames.pop();
        }
        self.merge_arms();
        while self.is(self.back(1), PieceKind::Semicolon) {
            let length = self.all.len() - 1;
            self.truncate(length);
        }
        self.written()
    }

    fn written(&self) -> String {
        let mut text = String::with_capacity(self.text.len() + self.all.len());
        let mut before: Option<PieceKind> = None;
        // A dot between names stands without spaces, any other with them: then it is none of a number.
        let mut is_tight = false;
        for token in &self.all {
            let after_dot = is_tight;
            is_tight = token.kind == PieceKind::Dot
                && matches!(before, Some(PieceKind::Word | PieceKind::Keyword));
            let is_joined = is_tight || (after_dot && token.kind != PieceKind::Dot);
            if !is_joined && before.is_some_and(|before| is_apart(before, token.kind)) {
                text.push(' ');
            }
            text.push_str(self.text_of(token));
            before = Some(token.kind);
        }
        text
    }
}

/// Whether a space stands between two tokens.
fn is_apart(first: PieceKind, second: PieceKind) -> bool {
    let is_joined = matches!(
        (first, second),
        (PieceKind::Open, _)
            | (
                _,
                PieceKind::Close | PieceKind::Comma | PieceKind::Semicolon
            )
            | (PieceKind::Word, PieceKind::Open | PieceKind::List)
    );
    !is_joined
}

/// Returns a name without what a terminal would obey.
fn clean(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    match text.contains(char::is_control) {
        true => text.replace(char::is_control, "\u{fffd}"),
        false => text.into_owned(),
    }
}
