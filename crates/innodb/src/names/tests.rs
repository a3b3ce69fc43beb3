use super::*;

fn page(index_id: Option<u64>) -> PageHeader {
    PageHeader {
        checksum: 0,
        page_no: 9,
        prev: None,
        next: None,
        lsn: 1,
        page_type: if index_id.is_some() {
            PageType::INDEX
        } else {
            PageType::UNDO
        },
        space_id: Some(5),
        index_id,
    }
}

fn names() -> Names {
    let row = |index_id, index: &str, index_type| IndexRow {
        space_id: 5,
        index_id,
        table: "shop/order@0023s#P#p@002d0#SP#s1".into(),
        index: index.into(),
        index_type,
    };
    Names::new([row(70, "PRIMARY", 3), row(71, "by_date", 0)])
}

const FILE: &str = "data/shop/order@0023s#p#p@002d0#sp#s1.ibd";

#[test]
fn a_secondary_index_can_be_rebuilt() {
    let name = names().describe(FILE, 5, &page(Some(71)));
    assert_eq!(
        name.to_string(),
        "shop.order#s partition p-0 subpartition s1, secondary index by_date"
    );
    assert_eq!(
        name.rebuild_sql().unwrap(),
        "ALTER TABLE `shop`.`order#s` FORCE"
    );
}

#[test]
fn rows_cannot() {
    let name = names().describe(FILE, 5, &page(Some(70)));
    assert_eq!(name.secondary, Some(false));
    assert_eq!(name.rebuild_sql(), None);
    assert!(name.to_string().ends_with("clustered index PRIMARY"));
}

#[test]
fn an_unknown_index_leaves_the_file_name() {
    for (space_id, index_id) in [(5, Some(72)), (6, Some(71)), (5, None)] {
        let name = names().describe(FILE, space_id, &page(index_id));
        assert_eq!(name.table.as_ref().unwrap().table, "order#s");
        assert_eq!((name.index.as_ref(), name.secondary), (None, None));
        assert_eq!(name.rebuild_sql(), None);
    }
}

#[test]
fn files_outside_of_schemas_are_no_tables() {
    let undo = names().describe("undo/undo_001", 5, &page(None));
    assert_eq!(undo.table, None);
    assert_eq!(undo.to_string(), "undo log page");
    assert_eq!(TableName::of_file("data/mysql.ibd"), None);
    assert_eq!(TableName::of_file("data/bank/t.frm"), None);
    let table = TableName::of_file("data/bank/t.ibd").unwrap();
    assert_eq!(table.to_string(), "bank.t");
}

#[test]
fn quotes_are_doubled() {
    let table = TableName::of_dictionary("a@0060b/c");
    assert_eq!(table.quoted(), "`a``b`.`c`");
}
