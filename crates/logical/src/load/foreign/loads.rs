//! Files of rows that are no rows, but LOAD DATA statements that name other files.

use crate::load::chunk::ChunkReader;
use crate::load::insert::{TEXT_ONLY, is_set_already, setting, verb};
use crate::load::source::Chunk;
use crate::objects::Column;
use crate::objects::text::{Token, TokenKind, all_tokens, name_of};
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::quote_name;
use std::io::{BufRead, BufReader, Read};

/// How much of such a file is read, in bytes.
const STATEMENTS_MAX: u64 = 1 << 20;
/// What begins the part of a statement that says how its file is written.
const WRITTEN: [&str; 4] = ["FIELDS", "COLUMNS", "LINES", "IGNORE"];

/// Returns the names of the files that a file's LOAD DATA statements load, each with its statement;
/// `None` when the file holds rows itself.
///
/// Errors: `Failed` when it cannot be read; `Refused` for a statement that does not say what it has
/// to, and for a setting that load does not make.
pub(super) fn loaded_files(
    chunk: &Chunk,
    columns: &[Column],
) -> Result<Option<Vec<(String, String)>>> {
    let mut lines = BufReader::new(ChunkReader::open(chunk)?.take(STATEMENTS_MAX));
    let (mut statement, mut found) = (Vec::new(), Vec::new());
    let mut names = None;
    let mut strange = None;
    while lines
        .read_until(b'\n', &mut statement)
        .context(|| "failed to read")?
        > 0
    {
        // Rows are not read here: the first line tells.
        if verb(statement.trim_ascii_start()).is_some() {
            return Ok(None);
        }
        let Some(whole) = statement.trim_ascii().strip_suffix(b";") else {
            continue;
        };
        if let Some(set) = setting(whole) {
            match set.strip_prefix("SETNAMES") {
                Some(set) => names = Some(set.trim_matches(['\'', '"']).to_ascii_lowercase()),
                None if is_set_already(&set) => {}
                None => strange = Some(set),
            }
        }
        let whole = String::from_utf8_lossy(whole).into_owned();
        if whole.starts_with("LOAD DATA") {
            let one = loaded_file(&whole, names.as_deref(), columns);
            found.push(one.ok_or_else(|| {
                Error::refused(format!("a statement is not understood: {whole}")).hint(
                    "load understands only LOAD DATA statements that name a file and a character set, or that follow SET NAMES",
                )
            })?);
        }
        statement.clear();
    }
    match strange {
        _ if found.is_empty() => Ok(None),
        Some(set) => Err(Error::refused(format!(
            "a file of rows has settings that load does not support: {set}"
        ))),
        None => Ok(Some(found)),
    }
}

/// Returns the file of a LOAD DATA statement, and the statement without what it says of rows that are
/// there: there are none. Where it says no character set, rows are as the program's own connection had
/// them, which `names` says: the server would take that of the schema.
fn loaded_file(sql: &str, names: Option<&str>, columns: &[Column]) -> Option<(String, String)> {
    let text = sql.as_bytes();
    let tokens = all_tokens(text)?;
    let at = |word: &str| tokens.iter().position(|token| token.is_word(text, word));
    let file = tokens.get(at("INFILE")? + 1)?;
    let into = tokens.get(at("INTO")?)?;
    let sql = &sql[into.start..];
    let tokens = &tokens[at("INTO")?..];
    let set = match at("CHARACTER") {
        Some(_) => String::new(),
        None => format!("CHARACTER SET {} ", names?),
    };
    let is_written = |one: &Token| WRITTEN.iter().any(|word| one.is_word(text, word));
    let begin = tokens
        .iter()
        .find(|one| is_written(one) || one.is_sign(b'('))?;
    let (head, rest) = sql.split_at(begin.start - into.start);
    let rest = as_text(rest, columns)?;
    let local = format!("LOAD DATA LOCAL INFILE 'rows' {head}{set}{rest}");
    Some((name_of(file.of(text)), local))
}

/// Has columns that take text and no bytes get text: sixteen letters of an address would be taken for its bytes.
fn as_text(rest: &str, columns: &[Column]) -> Option<String> {
    let text = rest.as_bytes();
    let tokens = all_tokens(text)?;
    let open = tokens.iter().position(|one| one.is_sign(b'('))?;
    let close = open + tokens[open..].iter().position(|one| one.is_sign(b')'))?;
    let is_text = |name: &str| {
        let mut all = columns.iter();
        all.any(|one| one.name == name && TEXT_ONLY.contains(&one.data_type.as_str()))
    };
    let (mut out, mut copied, mut sets) = (String::new(), 0, Vec::new());
    for token in tokens[open..close]
        .iter()
        .filter(|one| one.kind == TokenKind::Name)
    {
        let name = name_of(token.of(text));
        // A variable, which the statement converts itself.
        let is_variable = rest[..token.start].ends_with('@');
        if is_text(&name) && !is_variable {
            let value = format!("@evenkeel{}", sets.len());
            out.push_str(&rest[copied..token.start]);
            out.push_str(&value);
            copied = token.end;
            let quoted = quote_name(&name);
            sets.push(format!("{quoted} = CONVERT({value} USING utf8mb4)"));
        }
    }
    out.push_str(&rest[copied..]);
    if !sets.is_empty() {
        let has_some = tokens[close..].iter().any(|one| one.is_word(text, "SET"));
        out.push_str(if has_some { ", " } else { " SET " });
        out.push_str(&sets.join(", "));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_name_files_are_understood() {
        let sql = "LOAD DATA LOCAL INFILE 's.t.00000.dat' REPLACE INTO TABLE `t` CHARACTER SET binary \
                   FIELDS TERMINATED BY '\\t' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' (`a`, @j) \
                   SET `j` = CONVERT(@j USING UTF8MB4)";
        let (file, local) = loaded_file(sql, None, &[]).unwrap();
        assert_eq!(file, "s.t.00000.dat");
        let (_, rest) = sql.split_once("REPLACE ").unwrap();
        assert_eq!(local, format!("LOAD DATA LOCAL INFILE 'rows' {rest}"));
        assert!(
            loaded_file("LOAD DATA LOCAL INFILE 'x' INTO TABLE `t` (`a`)", None, &[]).is_none()
        );
    }

    #[test]
    fn what_a_statement_leaves_out_is_what_the_file_says() {
        let column = |name: &str, data_type: &str| Column {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
            column_type: data_type.to_owned(),
            charset: None,
            collation: None,
            nullable: true,
            generated: crate::objects::Generated::No,
            invisible: false,
            auto_increment: false,
        };
        let columns = [
            column("i", "inet6"),
            column("j", "json"),
            column("t", "text"),
        ];
        let sql = "LOAD DATA LOCAL INFILE 's.t.00000.dat' INTO TABLE `t` FIELDS TERMINATED BY '\t' (`i`,@j,`t`) \
                   SET `j`=CONVERT(@j USING UTF8MB4)";
        let (_, local) = loaded_file(sql, Some("binary"), &columns).unwrap();
        assert_eq!(
            local,
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE `t` CHARACTER SET binary FIELDS TERMINATED BY '\t' \
             (@evenkeel0,@j,`t`) SET `j`=CONVERT(@j USING UTF8MB4), `i` = CONVERT(@evenkeel0 USING utf8mb4)"
        );
        let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE `t` (`t`,`i`)";
        let (_, local) = loaded_file(sql, Some("latin1"), &columns).unwrap();
        assert!(local.ends_with(
            "`t` CHARACTER SET latin1 (`t`,@evenkeel0) SET `i` = CONVERT(@evenkeel0 USING utf8mb4)"
        ));
    }
}
