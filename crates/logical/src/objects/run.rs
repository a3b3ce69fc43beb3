//! Runs statements on a server, each in the session that it needs.

use super::{Objects, Settings, Statement, names_collation};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Session, quote_name};

/// What MySQL 5.7 has in every `sql_mode` and MySQL 8 knows no more; it only concerned GRANT.
const FORGOTTEN_MODE: &str = "NO_AUTO_CREATE_USER";

/// Runs statements one after the other; settings are sent when they change.
pub struct Runner<'a> {
    session: &'a mut Session,
    database: Option<String>,
    settings: Option<Settings>,
    /// On MySQL, what `utf8mb4` alone means in the texts, and on this server.
    meant: Option<[String; 2]>,
}

impl<'a> Runner<'a> {
    /// Takes a session of its own: its settings will be others afterwards.
    ///
    /// Errors: those of the session, when this server means another collation by `utf8mb4` alone
    /// and cannot be told.
    pub fn new(session: &'a mut Session, objects: &Objects) -> Result<Self> {
        // Texts of MySQL 8 and of newer MariaDBs always say their collation; others do not.
        let silent = "utf8mb4_general_ci";
        let default = "SELECT DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS \
                       WHERE CHARACTER_SET_NAME = 'utf8mb4'";
        let here = session.value(default)?.unwrap_or_default();
        let mut meant = None;
        // Servers that name each collation mean what this one does; whoever runs it may have changed that.
        let leaves_out = objects.utf8mb4_collation == silent;
        let wanted = if leaves_out { silent } else { &here };
        if here != silent {
            let sql = match Abilities::probe(session)?.character_set_collations {
                false => {
                    let now = session.value("SELECT @@SESSION.default_collation_for_utf8mb4")?;
                    meant = leaves_out.then(|| [silent.to_owned(), here.clone()]);
                    (now.as_deref() != Some(wanted)).then(|| utf8mb4_means(wanted))
                }
                true => leaves_out
                    .then(|| format!("SET SESSION character_set_collations = 'utf8mb4={silent}'")),
            };
            let done = sql.map_or(Ok(()), |sql| session.run(&sql));
            done.context(|| {
                format!("utf8mb4 has another default collation here than on the source, which uses {wanted}")
            })?;
        }
        Ok(Self {
            session,
            database: None,
            settings: None,
            meant,
        })
    }

    /// Runs one statement.
    ///
    /// Errors: those of the session, with the object in the message; `Failed` for a text in another
    /// character set than UTF-8, which this connection cannot send as it is.
    pub fn run(&mut self, statement: &Statement) -> Result<()> {
        self.prepare(statement)
            .and_then(|()| {
                let sql = std::str::from_utf8(&statement.sql).map_err(|_| {
                    let written = &statement.settings.character_set_client;
                    Error::failed(format!(
                        "its definition is in {written}, which evenkeel cannot send"
                    ))
                })?;
                self.run_as_meant(sql)
            })
            .context(|| format!("failed to create {}", statement.object))
    }

    /// MySQL takes a collation that is its own default for one that nobody named, and puts the session's default in its
    /// place. A text that names it is of a server that names each, so the session's is of no use there.
    fn run_as_meant(&mut self, sql: &str) -> Result<()> {
        let named = |[_, here]: &&[String; 2]| names_collation(sql.as_bytes(), here);
        let Some([silent, here]) = self.meant.as_ref().filter(named) else {
            return self.session.run(sql);
        };
        self.session.run(&utf8mb4_means(here))?;
        let done = self.session.run(sql);
        self.session.run(&utf8mb4_means(silent))?;
        done
    }

    /// Returns the definition of a table of the current schema, as the server prints it.
    ///
    /// Errors: those of the session.
    pub fn table(&mut self, name: &str) -> Result<String> {
        let sql = format!("SHOW CREATE TABLE {}", quote_name(name));
        let row = self.session.one(&sql)?;
        let text = row.and_then(|row| row.at(1).map(str::to_owned));
        Ok(text.unwrap_or_default())
    }

    fn prepare(&mut self, statement: &Statement) -> Result<()> {
        if let Some(database) = &statement.database
            && self.database.as_ref() != Some(database)
        {
            self.session.run(&format!("USE {}", quote_name(database)))?;
            self.database = Some(database.clone());
        }
        let wanted = &statement.settings;
        if self.settings.as_ref() == Some(wanted) {
            return Ok(());
        }
        self.settings = None;
        for sql in wanted.statements() {
            match self.session.run(&sql) {
                // ER_WRONG_VALUE_FOR_VAR names the first mode that the server does not know.
                Err(error) if error.to_string().contains(FORGOTTEN_MODE) => {
                    self.session.run(&sql.replace(FORGOTTEN_MODE, ""))?;
                }
                Err(error) if error.kind() == ErrorKind::Failed => {
                    return Err(error).context(
                        || "this server does not accept the settings that it was created with",
                    );
                }
                done => done?,
            }
        }
        self.settings = Some(wanted.clone());
        Ok(())
    }
}

/// Has `utf8mb4` alone mean a collation in a session of MySQL.
pub(crate) fn utf8mb4_means(collation: &str) -> String {
    format!("SET SESSION default_collation_for_utf8mb4 = {collation}")
}
