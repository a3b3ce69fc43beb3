//! `import`.

use crate::args::{self, ImportIndexes};
use crate::opened;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::ImportAnswer;
use evenkeel_logical::import::{self, Input, Request};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result, exit};
use std::io::{self, Read};
use std::path::Path;

/// Runs the command.
pub fn run(args: &args::Import, ui: &Ui) -> Result<u8> {
    let request = Request {
        threads: usize::from(args.threads),
        database: args.database.clone(),
        indexes_after: args.indexes == ImportIndexes::After,
        from_line: args.from_line,
        done: args.done.clone(),
        source: !args.no_source,
        force: args.force,
        skip_comments: args.skip_comments,
        binary_mode: args.binary_mode,
        tell_every: args.tell_line_every,
    };
    // Before any connection: a wrong name is the likeliest mistake.
    let input = input(&args.file, ui)?;
    let name = input.name.clone();
    let options = settings::connect(&args.connection, "import", ui)?;
    let report = import::import(&options, &request, input, ui.progress(), ui.cancel())?;
    let failed = report.failed > 0;
    ui.answer(&ImportAnswer::new(name, report));
    Ok(if failed { exit::PARTIAL } else { exit::DONE })
}

fn input(path: &Path, ui: &Ui) -> Result<Input> {
    if path == Path::new("-") {
        return Ok(Input {
            name: "standard input".to_owned(),
            bytes: None,
            path: None,
            from: Box::new(io::stdin()),
        });
    }
    let hint = "to read standard input, give -";
    let failed = |error: io::Error| unreadable("SQL file", path, error).hint(hint);
    let file = opened::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    if facts.is_dir() {
        return Err(Error::usage(format!("{} is a directory", path.display()))
            .hint("give one file of SQL statements"));
    }
    // A pipe is waited for here, where nothing has been done yet.
    opened::wait(&file, ui.cancel()).map_err(failed)?;
    ui.cancel().check()?;
    let from: Box<dyn Read + Send> = Box::new(file);
    Ok(Input {
        name: path.display().to_string(),
        bytes: facts.is_file().then_some(facts.len()),
        path: Some(path.to_owned()),
        from,
    })
}
