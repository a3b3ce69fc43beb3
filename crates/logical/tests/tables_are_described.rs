//! Are a table's columns, and the key that orders its rows, told as they are?

mod nasty;

use evenkeel_logical::objects::{Generated, Objects, Selection, TableObject, read};
use evenkeel_server::abilities::Flavour;
use evenkeel_testkit::{Scratch, servers};

fn table<'a>(objects: &'a Objects, name: &str) -> &'a TableObject {
    let mut tables = objects.databases.iter().flat_map(|one| &one.tables);
    tables
        .find(|table| table.name == name)
        .unwrap_or_else(|| panic!("{name}"))
}

fn key(objects: &Objects, name: &str) -> Option<String> {
    let key = table(objects, name).key.as_ref()?;
    Some(format!("{}: {}", key.name, key.columns.join(",")))
}

/// Returns what is special of each column.
fn columns(table: &TableObject) -> String {
    let special = table.columns.iter().filter_map(|column| {
        let how = match column.generated {
            Generated::No if column.auto_increment => "counter",
            Generated::No if column.invisible => "invisible",
            Generated::No => return None,
            Generated::Virtual => "virtual",
            Generated::Stored => "stored",
            Generated::RowTime => "time",
        };
        Some(format!("{} {how}", column.name))
    });
    special.collect::<Vec<_>>().join(", ")
}

#[test]
fn columns_and_keys_are_reported() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let mut session = running.session().unwrap();
        nasty::make(&mut session, &server);
        let objects = read(&mut session, &Selection::default()).unwrap();
        let weird = table(&objects, "we\nird`'\"name ü");
        assert!(weird.engine == "InnoDB" && weird.data_bytes > 0);
        assert_eq!(columns(weird), "id counter, g virtual, s stored");
        let charsets = weird
            .columns
            .iter()
            .filter_map(|one| one.charset.as_deref());
        let charsets: Vec<String> = charsets.map(|one| one.replace("utf8mb3", "utf8")).collect();
        assert_eq!(
            charsets[..4],
            ["utf8mb4", "latin1", "latin1", "utf8mb4"],
            "{}",
            server.name
        );
        let keys = [
            ("parts", Some("PRIMARY: a,c")),
            // Its c may be NULL, and its a,b is longer.
            ("hard", Some("b: b")),
            ("child", Some("y: y")),
            ("nokey", None),
            ("my", None),
        ];
        for (name, wanted) in keys {
            assert_eq!(
                key(&objects, name).as_deref(),
                wanted,
                "{}: {name}",
                server.name
            );
        }
        assert!(!table(&objects, "merged").has_rows() && table(&objects, "my").has_rows());
        let all = objects.databases.iter().flat_map(|one| &one.tables);
        assert!(
            all.into_iter().all(|table| table.name != "gone_soon"),
            "temporary"
        );
        if server.binary.flavour == Flavour::MariaDb {
            assert_eq!(columns(table(&objects, "maria")), "hidden invisible");
            assert_eq!(
                columns(table(&objects, "explicit_history")),
                "s time, e time"
            );
            assert!(table(&objects, "history").versioned && !table(&objects, "maria").versioned);
        } else if server.id == "mysql-8.0.15" {
            assert_eq!(
                columns(table(&objects, "eight")),
                "",
                "a default is not generated"
            );
            assert_eq!(table(&objects, "eight").histograms.len(), 2);
        }
    }
}
