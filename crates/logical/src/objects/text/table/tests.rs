use super::*;
use proptest::prelude::*;

const NASTY: &str = "CREATE TABLE `t``(` (
  `id` int NOT NULL AUTO_INCREMENT COMMENT 'KEY `k` (`b`),\\n) ENGINE=InnoDB',
  `b` varchar(9) DEFAULT ')'',\\'(',
  `KEY` enum('a,)','b') GENERATED ALWAYS AS (concat(`b`,_utf8mb4',)')) VIRTUAL /*!80023 INVISIBLE */,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u,` (`b`(3)) COMMENT ',)',
  KEY `f` ((concat(`b`,_utf8mb4'),'))) /*!80000 INVISIBLE */,
  KEY `d` (`b` DESC,`id`) USING BTREE,
  SPATIAL KEY `s` (`p`),
  KEY `e` (`b`),
  FULLTEXT KEY `g` (`b`) /*!50100 WITH PARSER `ngram` */ ,
  FULLTEXT KEY `h` (`b`),
  CONSTRAINT `fk` FOREIGN KEY (`b`) REFERENCES `o`.`x` (`y`,`z`) ON DELETE CASCADE,
  CONSTRAINT `self` FOREIGN KEY (`b`) REFERENCES `t``(` (`b`),
  CONSTRAINT `c` CHECK ((`b` <> _utf8mb4'),')) /*!80016 NOT ENFORCED */
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COMMENT='a) ENGINE=MyISAM'
/*!50100 PARTITION BY HASH (`id`)
PARTITIONS 3 */";

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_nasty_table_is_split() {
    let split = split_table(NASTY.as_bytes()).unwrap();
    let lines: Vec<&str> = NASTY.lines().collect();
    let bare = [&lines[..4], &["  PRIMARY KEY (`id`),"], &lines[14..]].concat();
    assert_eq!(text(&split.create), bare.join("\n"));
    let indexes: Vec<&str> = split.indexes.iter().map(|one| text(one)).collect();
    let alter = "ALTER TABLE `t``(`\n  ADD ";
    let add = |range: std::ops::Range<usize>| {
        let lines = lines[range]
            .iter()
            .map(|line| line.trim().trim_end_matches(',').trim_end());
        format!("{alter}{}", lines.collect::<Vec<_>>().join(",\n  ADD "))
    };
    assert_eq!(
        indexes,
        [add(5..8), add(8..9), add(9..10), add(10..11), add(11..12)]
    );
    assert_eq!(text(&split.foreign_key.unwrap()), add(12..14));
}

#[test]
fn only_what_cannot_be_added_in_place_is_copied() {
    let added = |column: &str, key: &str| {
        let create = format!(
            "CREATE TABLE `t` (\n  `a` int,\n  {column},\n  CONSTRAINT `STORED` FOREIGN KEY (`a`) REFERENCES `p` (`b`) \
             {key}\n) ENGINE=InnoDB"
        );
        let sql = split_table(create.as_bytes()).unwrap().foreign_key.unwrap();
        sql.ends_with(b",\n  ALGORITHM=COPY")
    };
    let stored = "`s` int GENERATED ALWAYS AS (`x` + `A`) STORED";
    assert!(added(stored, "ON DELETE CASCADE"));
    assert!(!added(stored, "ON DELETE RESTRICT"));
    let by_another =
        "`v` int GENERATED ALWAYS AS (`a`) VIRTUAL,\n  `s` int GENERATED ALWAYS AS (`v`) STORED";
    assert!(added(by_another, "ON DELETE CASCADE"));
    for other in [
        "`s` int GENERATED ALWAYS AS (`a` + 1) VIRTUAL",
        "`s` int GENERATED ALWAYS AS (`b` + 1) STORED COMMENT '`a`'",
        "`a` int GENERATED ALWAYS AS (1) STORED",
        "`STORED` int DEFAULT (`a`)",
    ] {
        assert!(!added(other, "ON DELETE CASCADE"), "{other}");
    }
}

#[test]
fn keys_that_a_table_cannot_be_without_stay() {
    let kept = |keys: &[&str], primary: bool| {
        let mut lines = vec!["`a` int NOT NULL AUTO_INCREMENT", "`b` int NOT NULL"];
        if primary {
            lines.push("PRIMARY KEY (`b`,`a`)");
        }
        lines.extend(keys);
        let create = format!(
            "CREATE TABLE `t` (\n  {}\n) ENGINE=InnoDB",
            lines.join(",\n  ")
        );
        let split = split_table(create.as_bytes())?;
        Some(text(&split.create).matches("KEY `").count())
    };
    assert_eq!(
        kept(&["KEY `x` (`b`)", "KEY `y` (`a`)", "KEY `z` (`b`)"], true),
        Some(2)
    );
    let keys = [
        "UNIQUE KEY `x` (`a`)",
        "UNIQUE KEY `y` (`b`)",
        "KEY `z` (`b`)",
    ];
    assert_eq!(kept(&keys, false), Some(2));
    assert_eq!(
        kept(&["KEY `z` (`b`)"], true),
        None,
        "no index for the counter"
    );
}

#[test]
fn what_is_not_understood_is_left_whole() {
    for create in [
        "CREATE TABLE `t` (\n  `a` int,\n  KEY `k` (`a`)\n) ENGINE=MyISAM",
        "CREATE TABLE `t` (\n  `a` int,\n  KEY `k` (`a`)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING",
        "CREATE TABLE `t` (\n  `a` int,\n  PERIOD FOR `p` (`b`, `c`)\n) ENGINE=InnoDB",
        "CREATE TABLE `t` (\n  `a` int,\n  NOVEL KEY `k` (`a`)\n) ENGINE=InnoDB",
        "CREATE TABLE `t` (\n  `a` int,\n  /*!99999 KEY `k` (`a`), */\n  KEY `l` (`a`)\n) ENGINE=InnoDB",
        "CREATE TABLE `t` (\n  `a` int COMMENT 'b,\n) ENGINE=InnoDB",
        "CREATE TABLE `t` (\n  `a` int\n",
        "CREATE TEMPORARY TABLE `t` (\n  `a` int\n) ENGINE=InnoDB",
        "CREATE TABLE `t` (\n  `a` int,\n) ENGINE=InnoDB",
    ] {
        assert_eq!(split_table(create.as_bytes()), None, "{create}");
    }
}

proptest! {
    /// Nothing is lost and nothing moves between statements, whatever the names and comments are.
    #[test]
    fn every_definition_lands_in_one_place(
        names in proptest::collection::vec(".{1,12}", 1..6),
        comments in proptest::collection::vec(".{0,12}", 6),
    ) {
        let name = |at: usize| evenkeel_server::connect::quote_name(&names[at]);
        let comment = |at: usize| evenkeel_server::connect::quote(&comments[at]);
        let columns = (0..names.len()).map(|at| format!("{} int COMMENT {}", name(at), comment(at)));
        let keys: Vec<String> = (0..names.len())
            .map(|at| format!("KEY {} ({}) COMMENT {}", name(at), name(at), comment(at)))
            .collect();
        let columns = columns.collect::<Vec<_>>().join(",\n  ");
        let tail = format!("\n) ENGINE=InnoDB COMMENT={}", comment(0));
        let head = format!("CREATE TABLE {} (\n  ", name(0));
        let create = format!("{head}{columns},\n  {}{tail}", keys.join(",\n  "));
        let split = split_table(create.as_bytes()).unwrap();
        prop_assert_eq!(text(&split.create), format!("{head}{columns}{tail}"));
        let alter = format!("ALTER TABLE {}\n  ADD {}", name(0), keys.join(",\n  ADD "));
        prop_assert_eq!(split.indexes.len(), 1);
        prop_assert_eq!(text(&split.indexes[0]), alter);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = split_table(&bytes);
        let _ = split_table(&[b"CREATE TABLE `t` (", bytes.as_slice()].concat());
    }
}
