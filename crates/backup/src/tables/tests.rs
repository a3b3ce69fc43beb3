use super::*;
use evenkeel_server::files::discover_stopped;
use std::collections::BTreeMap;

/// A `.frm` of an engine's number.
fn frm(number: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..2].copy_from_slice(&[0xfe, 0x01]);
    bytes[3] = number;
    bytes
}

fn made(files: &[(&str, &[u8])]) -> (tempfile::TempDir, ServerFiles) {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let found = discover_stopped(dir.path(), &BTreeMap::new()).unwrap();
    (dir, found)
}

fn table(schema: &str, name: &str) -> TableId {
    TableId {
        schema: schema.into(),
        name: name.into(),
    }
}

fn listed(tables: &[(&str, &str, Option<&str>)], tablespaces: &[&str]) -> ServerTables {
    let each = tables.iter().map(|(schema, name, engine)| {
        let engine = engine.map(str::to_owned);
        (table(schema, name), engine)
    });
    ServerTables {
        schemas: tables
            .iter()
            .map(|(schema, _, _)| (*schema).to_owned())
            .collect(),
        tables: each.collect(),
        tablespaces: tablespaces.iter().map(PathBuf::from).collect(),
        has_frm_files: true,
    }
}

fn lacking(listed: &ServerTables, files: &ServerFiles) -> Vec<String> {
    let checked = of_server(listed, files, |file| file.path.clone());
    checked.unwrap().lacking
}

#[test]
fn names_on_disk_are_those_of_tables() {
    let (_dir, files) = made(&[
        ("a@002db/t@0020@0023.frm", &frm(12)),
        ("a@002db/t@0020@0023.ibd", b""),
        ("a@002db/parts.frm", &frm(20)),
        ("a@002db/parts#P#p0.ibd", b""),
        ("a@002db/my#p#x.MYD", b""),
        ("a@002db/my#p#x.MYI", b""),
        ("a@002db/my.frm", &frm(9)),
        ("old-style/t.frm", &frm(12)),
    ]);
    let mut all = listed(
        &[
            ("a-b", "t #", Some("InnoDB")),
            ("a-b", "parts", Some("InnoDB")),
            ("a-b", "my", Some("MyISAM")),
            ("#mysql50#old-style", "t", Some("InnoDB")),
        ],
        &["./a@002db/t@0020@0023.ibd", "./a@002db/parts#P#p0.ibd"],
    );
    assert_eq!(lacking(&all, &files), [""; 0]);
    // Another spelling on disk is another table.
    all.tables
        .insert(table("old-style", "t"), Some("InnoDB".into()));
    all.tablespaces.insert("./a@002db/parts#P#p1.ibd".into());
    all.tablespaces.insert("./general.ibd".into());
    all.schemas.insert("gone".into());
    let expected = [
        "`a-b`.`parts`",
        "`old-style`.`t`",
        "schema gone",
        "tablespace ./general.ibd",
    ];
    assert_eq!(lacking(&all, &files), expected);
}

#[test]
fn each_engine_has_its_files() {
    let (_dir, files) = made(&[
        ("s/my.frm", &frm(9)),
        ("s/my.MYD", b""),
        ("s/ar.ARZ", b""),
        ("s/me.frm", &frm(6)),
    ]);
    let all = listed(
        &[
            ("s", "my", Some("MyISAM")),
            ("s", "ar", Some("ARCHIVE")),
            ("s", "me", Some("MEMORY")),
            ("s", "no", Some("MEMORY")),
        ],
        &[],
    );
    assert_eq!(lacking(&all, &files), ["`s`.`my`", "`s`.`no`"]);
}

#[test]
fn engines_that_are_not_covered_are_refused() {
    let (_dir, files) = made(&[
        ("s/open.frm", &frm(12)),
        ("s/hidden.frm", &frm(14)),
        ("s/broken.frm", &frm(9)),
        ("s/broken.MYD", b""),
        ("s/v.frm", b"TYPE=VIEW"),
    ]);
    let refused = |listed: &ServerTables| {
        let error = of_server(listed, &files, |file| file.path.clone()).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    let spider = listed(
        &[
            ("s", "open", Some("SPIDER")),
            ("s", "hidden", Some("InnoDB")),
        ],
        &[],
    );
    let reported = refused(&spider);
    assert!(
        reported.contains("`s`.`open` (SPIDER)") && !reported.contains("hidden"),
        "{reported}"
    );
    // An account that may not see them.
    let reported = refused(&listed(&[], &[]));
    assert!(
        reported.contains("`s`.`hidden` (engine number 14)"),
        "{reported}"
    );
    assert!(of_files(&files, |file| file.path.clone()).is_err());
    // The server does not say, and there is nothing to go by.
    let unknown = listed(&[("s", "hidden", Some("InnoDB")), ("s", "lost", None)], &[]);
    let reported = refused(&unknown);
    assert!(
        reported.contains("`s`.`lost` (the server does not report"),
        "{reported}"
    );
    let known = listed(
        &[("s", "hidden", Some("InnoDB")), ("s", "broken", None)],
        &[],
    );
    assert_eq!(refused(&known), "");
}

#[test]
fn unseen_tables_are_recorded_by_their_definitions() {
    let (_dir, files) = made(&[("s/a.frm", &frm(12)), ("s/b.frm", b"TYPE=VIEW")]);
    let checked = of_server(&listed(&[], &[]), &files, |file| file.path.clone()).unwrap();
    assert_eq!(checked.lacking, [""; 0]);
    assert_eq!(checked.record.names().unwrap().1, [table("s", "a")].into());
    let stopped = of_files(&files, |file| file.path.clone()).unwrap();
    assert_eq!(stopped.map(|record| record.tables), Some(1));
}

/// The server's own tool copies a point in time that is over when the files are looked at: a table of the
/// first look may have been dropped before it, and be there again since.
#[test]
fn a_copys_record_has_no_table_that_did_not_come() {
    let (_dir, files) = made(&[("s/a.frm", &frm(12)), ("s/again.frm", &frm(12))]);
    let came = ["data/s/a.frm", "data/s/a.ibd"];
    let known = listed(&[("s", "a", Some("InnoDB")), ("s", "shut", None)], &[]);
    let names = came.into_iter().chain(["data/s/shut.ibd"]);
    let checked = of_copy(&known, &files, names, ["data/s"].into_iter()).unwrap();
    assert_eq!(checked.lacking, ["`s`.`shut`"]);
    assert_eq!(checked.record.names().unwrap().1, [table("s", "a")].into());
}

#[test]
fn a_directory_that_no_create_database_made_may_be_left_out() {
    let (_dir, files) = made(&[("lost+found/x", b""), ("s/db.opt", b"")]);
    let mut all = listed(&[], &[]);
    all.schemas = ["s".to_owned(), "#mysql50#lost+found".to_owned()].into();
    assert_eq!(lacking(&all, &files), [""; 0]);
    all.schemas.insert("lost+found".to_owned());
    assert_eq!(lacking(&all, &files), ["schema lost+found"]);
}

#[test]
fn a_table_that_was_renamed_for_a_moment_does_not_lack() {
    let (dir, before) = made(&[("s/stays.frm", &frm(12)), ("s/away.frm", &frm(12))]);
    let tables = [
        ("s", "stays", Some("InnoDB")),
        ("s", "away_for_a_moment", Some("InnoDB")),
    ];
    let all = || Ok(listed(&tables, &[]));
    let mut lacking = lacking(&all().unwrap(), &before);
    assert_eq!(lacking, ["`s`.`away_for_a_moment`"]);
    let at = |name: &str| dir.path().join(name);
    std::fs::rename(at("s/away.frm"), at("s/away_for_a_moment.frm")).unwrap();
    keep_lacking(&mut lacking, &before, all).unwrap();
    assert_eq!(lacking, [""; 0]);
    // One that no look finds does.
    std::fs::remove_file(at("s/stays.frm")).unwrap();
    let mut lacking = vec!["`s`.`stays`".to_owned()];
    keep_lacking(&mut lacking, &before, all).unwrap();
    assert_eq!(lacking, ["`s`.`stays`"]);
}
