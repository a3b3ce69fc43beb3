//! `load`.

use crate::args::{self, Load, LoadIndexes, LoadMethod};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{LoadAnswer, LoadPlanAnswer};
use evenkeel_logical::load::{self, Method, Request};
use evenkeel_logical::objects::{SchemaObjectKind, Selection};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, Result, exit};

/// Runs the command.
pub fn run(args: &args::Load, ui: &Ui) -> Result<u8> {
    let request = request(args, ui)?;
    let options = settings::connect(&args.connection, "load", ui)?;
    if args.replace && !args.execute {
        ui.answer(&LoadPlanAnswer::new(
            &request,
            load::plan(&options, &request)?,
        ));
        return Ok(exit::DONE);
    }
    let report = load::load(&options, &request, ui.progress(), ui.cancel())?;
    let answer = LoadAnswer::new(&request, &report);
    ui.answer(&answer);
    let differs = report.differs.as_ref().is_some_and(|list| !list.is_empty());
    Ok(match report.failed.is_empty() {
        _ if differs => exit::DIFFERS,
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}

fn request(args: &Load, ui: &Ui) -> Result<Request> {
    let skip = [
        (args.no_views, SchemaObjectKind::View),
        (args.no_routines, SchemaObjectKind::Procedure),
        (args.no_triggers, SchemaObjectKind::Trigger),
        (args.no_events, SchemaObjectKind::Event),
        (args.no_sequences, SchemaObjectKind::Sequence),
    ];
    let collations = args.collation.iter().map(|text| collation(text));
    Ok(Request {
        input: match settings::is_url(&args.input) {
            true => args.input.clone(),
            false => absolute(&args.input),
        },
        store: match settings::is_url(&args.input) {
            true => Some(ui.location(&args.input, None)?.store()),
            false => None,
        },
        threads: usize::from(args.threads),
        databases: args.database.clone(),
        include: Selection::patterns(&args.table)?,
        exclude: Selection::patterns(&args.exclude)?,
        skip: skip
            .into_iter()
            .filter_map(|(left_out, kind)| left_out.then_some(kind))
            .collect(),
        accounts: args.users,
        into: args
            .into
            .iter()
            .map(|text| {
                pair(
                    text,
                    "write --into shop=shop_copy: the dump's name, and the new one",
                )
            })
            .collect::<Result<_>>()?,
        definer: args.definer.parse()?,
        collations: collations.collect::<Result<_>>()?,
        replace: args.replace,
        method: match args.method {
            LoadMethod::Auto => Method::Auto,
            LoadMethod::LoadData => Method::LoadData,
            LoadMethod::Insert => Method::Insert,
        },
        indexes_after: args.indexes == LoadIndexes::After,
        binlog: !args.no_binlog,
        verify: args.verify,
    })
}

/// Reads two names, `OLD=NEW`.
pub(super) fn pair(text: &str, hint: &str) -> Result<(String, String)> {
    let both = text.split_once('=');
    let both = both.filter(|(old, new)| !old.is_empty() && !new.is_empty());
    let (old, new) = both
        .ok_or_else(|| Error::usage(format!("'{text}' is not of the form OLD=NEW")).hint(hint))?;
    Ok((old.to_owned(), new.to_owned()))
}

fn collation(text: &str) -> Result<(String, String)> {
    let name = |text: &str| {
        let letters = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (letters && !text.is_empty()).then(|| text.to_owned())
    };
    text.split_once('=')
        .and_then(|(old, new)| Some((name(old)?, name(new)?)))
        .ok_or_else(|| {
            Error::usage(format!("'{text}' is not of the form OLD=NEW"))
                .hint("write --collation utf8mb4_0900_ai_ci=utf8mb4_unicode_520_ci")
        })
}
