use super::*;
use proptest::prelude::*;

/// Renames `shop` to `co``py`, and `other` to `new`.
fn about(kind: SchemaObjectKind, name: &str, sql_mode: &str, sql: &str) -> (String, Vec<Doubt>) {
    let name_of = |old: &str, new: &str| (old.to_owned(), new.to_owned());
    let new = BTreeMap::from([name_of("shop", "co`py"), name_of("ot`h.er", "new")]);
    let names = Names {
        all: new.keys().cloned().chain(["SHOP2".to_owned()]).collect(),
        new,
    };
    let qualifiers = BTreeSet::new();
    let about = About {
        kind,
        name,
        mode: Mode::of(sql_mode),
        qualifiers: &qualifiers,
    };
    let (text, doubts) = renamed(sql.as_bytes(), about, &names);
    (
        String::from_utf8(text).unwrap(),
        doubts.into_iter().collect(),
    )
}

/// Checks a text whose every `@@` is the schema's name, and which holds no doubt.
#[track_caller]
fn assert_decided(kind: SchemaObjectKind, sql: &str) {
    let (text, doubts) = about(kind, "t", "", &sql.replace("@@", "shop"));
    assert_eq!(text, sql.replace("`@@`", "@@").replace("@@", "`co``py`"));
    assert_eq!(doubts, []);
}

#[test]
fn names_of_schemas_are_exchanged() {
    for sql in [
        "CREATE VIEW `v` AS select `@@`.`t`.`shop` AS `shop`,`@@`.`f`(1) AS `x` from (`@@`.`t` join \
         (`@@`.`u` `a` join `@@`.`w`)) where `t`.`shop` = 1",
        "CREATE VIEW `v` AS select extract(year from `t`.`shop`) AS `y` from `@@` . `t`",
        "CREATE VIEW `v` AS select 1 from (select 1 from @@.t) x union select `shop` from @@.t",
    ] {
        assert_decided(SchemaObjectKind::View, sql);
    }
    for sql in [
        "CREATE PROCEDURE @@.p() BEGIN INSERT INTO @@.t SELECT * FROM x, @@.y; CALL @@.q(@@.f(1)); \
         DELETE @@.t FROM @@.t JOIN @@.u USING (id); UPDATE @@.t SET a = @shop.x, b = @@.t.c; \
         DROP TABLE IF EXISTS @@.a, @@.b; END",
        "CREATE FUNCTION f() RETURNS int RETURN (SELECT NEXT VALUE FOR @@.s)",
        "CREATE FUNCTION f() RETURNS int RETURN nextval(@@.s) /* shop.no */ -- shop.no",
        "CREATE PROCEDURE `shop`() LOCK TABLES @@.a READ, @@.b WRITE",
    ] {
        assert_decided(SchemaObjectKind::Procedure, sql);
    }
    assert_decided(
        SchemaObjectKind::Trigger,
        "CREATE TRIGGER @@.`x` AFTER UPDATE ON @@.`t` FOR EACH ROW FOLLOWS @@.y INSERT INTO @@.log \
         VALUES (OLD.shop, NEW.shop)",
    );
    assert_decided(
        SchemaObjectKind::Event,
        "CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY ON COMPLETION NOT PRESERVE ENABLE COMMENT 'shop' DO \
         DELETE FROM @@.t ORDER BY shop LIMIT 1",
    );
    assert_decided(
        SchemaObjectKind::Table,
        "CREATE TABLE `t` (\n  `shop` int DEFAULT nextval(`@@`.`s`) COMMENT '`shop`.`t`',\n  CHECK \
         (`shop` > 1 and `b` <> 'shop'), CONSTRAINT `shop` FOREIGN KEY (`shop`) REFERENCES `@@`.`u` \
         (`shop`)) ENGINE=MRG_MyISAM UNION=(`@@`.`a`,`@@`.`b`)",
    );
}

#[test]
fn names_may_be_quoted_in_any_way() {
    let sql = "SELECT 1 FROM `ot``h.er`.`t` JOIN \"shop\".t";
    let (text, doubts) = about(SchemaObjectKind::Procedure, "p", "ANSI_QUOTES", sql);
    assert_eq!(text, "SELECT 1 FROM `new`.`t` JOIN `co``py`.t");
    assert_eq!(doubts, []);
    let (text, doubts) = about(
        SchemaObjectKind::Procedure,
        "p",
        "",
        "SELECT \"shop\" FROM shop2.t, x.shop",
    );
    assert_eq!(text, "SELECT \"shop\" FROM shop2.t, x.shop");
    assert_eq!(doubts, [Doubt::Literal("shop".to_owned())]);
}

#[test]
fn what_may_be_something_else_stays_and_is_reported() {
    let qualifier = |chain: &str| Doubt::Qualifier(chain.to_owned());
    for (kind, name, sql, doubt) in [
        (
            SchemaObjectKind::View,
            "v",
            "CREATE VIEW `v` AS select `shop`.`id` AS `id` from `x`.`orders` `shop`",
            qualifier("`shop`.`id`"),
        ),
        (
            SchemaObjectKind::Procedure,
            "p",
            "CREATE PROCEDURE p() BEGIN DECLARE shop ROW (a int); SET shop.a = 1; END",
            qualifier("shop.a"),
        ),
        (
            SchemaObjectKind::Procedure,
            "p",
            "CREATE PROCEDURE p() BEGIN DECLARE shop ROW (a int); FETCH c INTO shop.a; END",
            qualifier("shop.a"),
        ),
        (
            SchemaObjectKind::View,
            "v",
            "CREATE VIEW `v` AS select event, shop.id from x shop",
            qualifier("shop.id"),
        ),
        (
            SchemaObjectKind::Table,
            "shop",
            "CREATE TABLE `shop` (`a` int, `b` int GENERATED ALWAYS AS (`shop`.`a`) VIRTUAL)",
            qualifier("`shop`.`a`"),
        ),
        (
            SchemaObjectKind::Procedure,
            "p",
            "CREATE PROCEDURE p() DELETE FROM SHOP.t",
            Doubt::Case("SHOP".to_owned()),
        ),
        (
            SchemaObjectKind::Procedure,
            "p",
            "CREATE PROCEDURE p() PREPARE s FROM 'DELETE FROM shop.t'",
            Doubt::Literal("shop".to_owned()),
        ),
        (
            SchemaObjectKind::Procedure,
            "p",
            "CREATE PROCEDURE p() DROP DATABASE IF EXISTS shop",
            Doubt::Itself("shop".to_owned()),
        ),
        (
            SchemaObjectKind::Procedure,
            "p",
            "CREATE PROCEDURE p() SELECT 'no end FROM shop.t",
            Doubt::Unread,
        ),
    ] {
        let (text, doubts) = about(kind, name, "", sql);
        assert_eq!((text.as_str(), doubts), (sql, vec![doubt]));
    }
}

#[test]
fn an_alias_hides_no_table() {
    let sql = "CREATE VIEW `v` AS select `shop`.`id` AS `id` from `shop`.`orders` `shop`";
    let (text, doubts) = about(SchemaObjectKind::View, "v", "", sql);
    assert!(
        text.ends_with("select `shop`.`id` AS `id` from `co``py`.`orders` `shop`"),
        "{text}"
    );
    assert_eq!(doubts.len(), 1);
}

#[test]
fn rows_of_triggers_are_no_schemas() {
    let new = BTreeMap::from([("old".to_owned(), "copy".to_owned())]);
    let names = Names {
        all: new.keys().cloned().collect(),
        new,
    };
    let about = About {
        kind: SchemaObjectKind::Trigger,
        name: "x",
        mode: Mode::default(),
        qualifiers: &BTreeSet::new(),
    };
    let sql =
        b"CREATE TRIGGER x AFTER DELETE ON old.t FOR EACH ROW INSERT INTO old.log VALUES (old.id)";
    let (text, doubts) = renamed(sql, about, &names);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "CREATE TRIGGER x AFTER DELETE ON `copy`.t FOR EACH ROW INSERT INTO `copy`.log VALUES (old.id)"
    );
    assert_eq!(
        doubts,
        BTreeSet::from([Doubt::Qualifier("old.id".to_owned())])
    );
}

proptest! {
    #[test]
    fn texts_without_the_name_stay(sql in "[a-z`'\"().,; \\\\/*-]{0,80}") {
        prop_assume!(!sql.contains("shop") && !sql.contains("h.er"));
        let (text, _) = about(SchemaObjectKind::Procedure, "p", "", &sql);
        prop_assert_eq!(text, sql);
    }

    #[test]
    fn any_name_comes_back(old in "[^\0]{1,20}", new in "[^\0]{1,20}", other in "[^\0]{1,20}") {
        prop_assume!(other != old && other != new);
        let quoted = |name: &str| quote_name(name);
        let there = format!(
            "CREATE VIEW `v` AS select {0}.`t`.{0} AS {0} from {0}.`t` join {1}.{0} `x`",
            quoted(&old),
            quoted(&other)
        );
        let once = |sql: &str, old: &str, new: &str| {
            let names = Names {
                new: BTreeMap::from([(old.to_owned(), new.to_owned())]),
                all: BTreeSet::from([old.to_owned(), other.clone()]),
            };
            let about = About {
                kind: SchemaObjectKind::View,
                name: "v",
                mode: Mode::default(),
                qualifiers: &BTreeSet::new(),
            };
            String::from_utf8(renamed(sql.as_bytes(), about, &names).0).unwrap()
        };
        let copy = once(&there, &old, &new);
        let wanted = format!(
            "CREATE VIEW `v` AS select {0}.`t`.{2} AS {2} from {0}.`t` join {1}.{2} `x`",
            quoted(&new),
            quoted(&other),
            quoted(&old)
        );
        prop_assert_eq!(&copy, &wanted);
        prop_assume!(!copy.contains(&format!("{}.`t`.{}", quoted(&new), quoted(&new))));
        prop_assert_eq!(once(&copy, &new, &old), there);
    }
}
