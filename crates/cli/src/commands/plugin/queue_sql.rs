//! `plugin … queue --sql`.

use crate::args::{PluginInstall, PluginStatus, PluginUninstall, SqlForm};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{QueueSqlInstallAnswer, QueueSqlStatusAnswer, QueueSqlUninstallAnswer};
use evenkeel_op::{Error, Result, exit};
use evenkeel_queue_admin::procedures;
use evenkeel_server::connect::Session;

pub(super) fn install(args: &PluginInstall, ui: &Ui) -> Result<u8> {
    if args.library.is_some() || args.table.is_some() || args.change_table {
        return Err(Error::usage("--sql uses no library and no table")
            .hint("remove --library, --table and --change-table"));
    }
    let mut session = Session::open(&settings::connect(&args.server.connection, "plugin", ui)?)?;
    let plan = procedures::plan_install(&mut session, database(&args.form)?)?;
    let executed = args.execute || !plan.is_destructive();
    if executed {
        procedures::perform(&mut session, &plan)?;
    }
    ui.answer(&QueueSqlInstallAnswer::new(&plan, executed));
    Ok(exit::DONE)
}

pub(super) fn uninstall(args: &PluginUninstall, ui: &Ui) -> Result<u8> {
    let mut session = Session::open(&settings::connect(&args.server.connection, "plugin", ui)?)?;
    let plan = procedures::plan_uninstall(&mut session, database(&args.form)?)?;
    if args.execute {
        procedures::perform(&mut session, &plan)?;
    }
    let answer = QueueSqlInstallAnswer::new(&plan, args.execute);
    ui.answer(&QueueSqlUninstallAnswer(answer));
    Ok(exit::DONE)
}

pub(super) fn status(args: &PluginStatus, ui: &Ui) -> Result<u8> {
    let mut session = Session::open(&settings::connect(&args.connection, "plugin", ui)?)?;
    let found = procedures::find(&mut session, database(&args.form)?)?;
    let answer = QueueSqlStatusAnswer::new(found);
    let broken = answer.state == "broken";
    ui.answer(&answer);
    Ok(match broken {
        true => exit::DIFFERS,
        false => exit::DONE,
    })
}

fn database(form: &SqlForm) -> Result<&str> {
    form.database.as_deref().ok_or_else(|| {
        Error::usage("--sql needs the database for the queues").hint("name it with --database")
    })
}
