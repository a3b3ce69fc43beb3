//! `plugin … queue --sql`.

use crate::args::{PluginInstall, PluginStatus, PluginUninstall, SqlForm};
use crate::settings;
use crate::show::Face;
use crate::show::answers::{QueueSqlInstallAnswer, QueueSqlStatusAnswer, QueueSqlUninstallAnswer};
use evenkeel_op::{Error, Result, exit};
use evenkeel_queue_admin::procedures;
use evenkeel_server::connect::Session;

pub(super) fn install(args: &PluginInstall, face: &Face) -> Result<u8> {
    if args.library.is_some() || args.table.is_some() || args.change_table {
        return Err(Error::usage("--sql uses no library and no table")
            .hint("remove --library, --table and --change-table"));
    }
    let mut session = Session::open(&settings::connect(&args.server.connection, "plugin", face)?)?;
    let plan = procedures::plan_install(&mut session, database(&args.form)?)?;
    let executed = args.execute || !plan.is_destructive();
    if executed {
        procedures::perform(&mut session, &plan)?;
    }
    face.answer(&QueueSqlInstallAnswer::new(&plan, executed));
    Ok(exit::DONE)
}

pub(super) fn uninstall(args: &PluginUninstall, face: &Face) -> Result<u8> {
    let mut session = Session::open(&settings::connect(&args.server.connection, "plugin", face)?)?;
    let plan = procedures::plan_uninstall(&mut session, database(&args.form)?)?;
    if args.execute {
        procedures::perform(&mut session, &plan)?;
    }
    let answer = QueueSqlInstallAnswer::new(&plan, args.execute);
    face.answer(&QueueSqlUninstallAnswer(answer));
    Ok(exit::DONE)
}

pub(super) fn status(args: &PluginStatus, face: &Face) -> Result<u8> {
    let mut session = Session::open(&settings::connect(&args.connection, "plugin", face)?)?;
    let found = procedures::find(&mut session, database(&args.form)?)?;
    let answer = QueueSqlStatusAnswer::new(found);
    let broken = answer.state == "broken";
    face.answer(&answer);
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
