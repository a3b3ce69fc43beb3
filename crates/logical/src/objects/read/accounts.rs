//! Users, roles and what they may do.

use super::super::text::{Account, Token, all_tokens};
use super::super::{AccountObject, SchemaObjectKind};
use super::ask;
use super::reader::Reader;
use evenkeel_op::{Context, Error, Result};

/// Accounts that belong to the server.
const SYSTEM: [&str; 5] = [
    "mysql.sys",
    "mysql.session",
    "mysql.infoschema",
    "mariadb.sys",
    "PUBLIC",
];

/// Reads users and roles by name, but for the server's own.
///
/// Errors: `Refused` when the account may not read `mysql.user`, those of the session.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Vec<AccountObject>> {
    let rows = ask::rows(
        reader.session,
        "SELECT * FROM mysql.user ORDER BY User, Host",
    )
    .context(|| "failed to list users and roles")?;
    let mut found = Vec::new();
    for row in rows {
        let account = Account {
            user: row.text("User"),
            host: row.text("Host"),
        };
        if SYSTEM.contains(&account.user.as_str()) {
            continue;
        }
        let role = row.is("is_role", "Y");
        let who = account.to_string();
        match one(reader, account, role).context(|| format!("failed to read account {who}"))? {
            Some(read) => found.push(read),
            None => reader.is_gone(SchemaObjectKind::Account, "", &who),
        }
    }
    // Roles come first: whom they are granted to refers to them.
    found.sort_by_key(|one| !one.role);
    Ok(found)
}

fn one(reader: &mut Reader<'_>, account: Account, role: bool) -> Result<Option<AccountObject>> {
    let mut last = Vec::new();
    let create = if role {
        format!("CREATE ROLE IF NOT EXISTS {account}").into_bytes()
    } else {
        let sql = format!("SHOW CREATE USER {account}");
        let rows = match ask::try_rows(reader.session, &sql) {
            Ok(rows) => rows,
            // Operation CREATE USER, or SHOW CREATE USER, failed: there is no such user any more.
            Err(mysql::Error::MySqlError(e)) if e.code == 1396 || e.code == 1269 => {
                return Ok(None);
            }
            Err(error) => return Err(evenkeel_server::connect::query_error(&error, &sql)),
        };
        let text = rows.first().and_then(|row| row.first());
        let text = text.ok_or_else(|| Error::failed("the server does not show its definition"))?;
        let (create, roles) = without_default_roles(text)
            .ok_or_else(|| Error::failed("its CREATE USER statement is not understood"))?;
        if let Some(roles) = roles {
            last.push(
                [
                    b"SET DEFAULT ROLE ",
                    roles,
                    format!(" TO {account}").as_bytes(),
                ]
                .concat(),
            );
        }
        create
    };
    let sql = format!("SHOW GRANTS FOR {account}");
    let mut grants: Vec<Vec<u8>> = ask::rows(reader.session, &sql)?
        .iter()
        .filter_map(|row| row.first().map(<[u8]>::to_vec))
        .collect();
    // MariaDB shows a PROXY twice that was granted again.
    grants.dedup();
    grants.extend(last);
    Ok(Some(AccountObject {
        account,
        role,
        create,
        grants,
    }))
}

/// Returns a CREATE USER statement that stands for itself, and the roles that it made default
/// (MySQL), which may not be there yet; `None` when it is not understood.
fn without_default_roles(create: &[u8]) -> Option<(Vec<u8>, Option<&[u8]>)> {
    let tokens = all_tokens(create)?;
    let [verb, user, ..] = tokens.as_slice() else {
        return None;
    };
    if !verb.is_word(create, "CREATE") || !user.is_word(create, "USER") {
        return None;
    }
    let head = [&create[..user.end], b" IF NOT EXISTS"].concat();
    let words =
        |pair: &[Token]| pair[0].is_word(create, "DEFAULT") && pair[1].is_word(create, "ROLE");
    let Some(at) = tokens.windows(2).position(words) else {
        return Some(([head.as_slice(), &create[user.end..]].concat(), None));
    };
    let require = at
        + tokens[at..]
            .iter()
            .position(|one| one.is_word(create, "REQUIRE"))?;
    let roles = &create[tokens[at + 2].start..tokens[require - 1].end];
    let create = [
        head.as_slice(),
        &create[user.end..tokens[at].start],
        &create[tokens[require].start..],
    ];
    Some((create.concat(), Some(roles)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_roles_wait_for_the_roles() {
        let sql = b"CREATE USER 'DEFAULT ROLE'@'h' IDENTIFIED WITH 'x' AS 'REQUIRE' DEFAULT ROLE \
                    `a`@`%`,`b`@`%` REQUIRE NONE ACCOUNT LOCK";
        let (create, roles) = without_default_roles(sql).unwrap();
        let text = "CREATE USER IF NOT EXISTS 'DEFAULT ROLE'@'h' IDENTIFIED WITH 'x' AS 'REQUIRE' \
                    REQUIRE NONE ACCOUNT LOCK";
        assert_eq!(String::from_utf8(create).unwrap(), text);
        assert_eq!(roles, Some(&b"`a`@`%`,`b`@`%`"[..]));
        let plain = without_default_roles(b"CREATE USER `u`@`h`").unwrap();
        assert_eq!(plain, (b"CREATE USER IF NOT EXISTS `u`@`h`".to_vec(), None));
    }
}
