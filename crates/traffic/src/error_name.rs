//! Names of the errors that applications meet, as the servers' own lists have them.

/// By number, ascending. MySQL and MariaDB number them alike up to 1900.
const NAMES: [(u16, &str); 52] = [
    (1021, "ER_DISK_FULL"),
    (1022, "ER_DUP_KEY"),
    (1036, "ER_OPEN_AS_READONLY"),
    (1037, "ER_OUTOFMEMORY"),
    (1040, "ER_CON_COUNT_ERROR"),
    (1041, "ER_OUT_OF_RESOURCES"),
    (1044, "ER_DBACCESS_DENIED_ERROR"),
    (1045, "ER_ACCESS_DENIED_ERROR"),
    (1046, "ER_NO_DB_ERROR"),
    (1048, "ER_BAD_NULL_ERROR"),
    (1049, "ER_BAD_DB_ERROR"),
    (1050, "ER_TABLE_EXISTS_ERROR"),
    (1051, "ER_BAD_TABLE_ERROR"),
    (1052, "ER_NON_UNIQ_ERROR"),
    (1054, "ER_BAD_FIELD_ERROR"),
    (1055, "ER_WRONG_FIELD_WITH_GROUP"),
    (1062, "ER_DUP_ENTRY"),
    (1064, "ER_PARSE_ERROR"),
    (1065, "ER_EMPTY_QUERY"),
    (1091, "ER_CANT_DROP_FIELD_OR_KEY"),
    (1104, "ER_TOO_BIG_SELECT"),
    (1114, "ER_RECORD_FILE_FULL"),
    (1136, "ER_WRONG_VALUE_COUNT_ON_ROW"),
    (1142, "ER_TABLEACCESS_DENIED_ERROR"),
    (1143, "ER_COLUMNACCESS_DENIED_ERROR"),
    (1146, "ER_NO_SUCH_TABLE"),
    (1153, "ER_NET_PACKET_TOO_LARGE"),
    (1193, "ER_UNKNOWN_SYSTEM_VARIABLE"),
    (1205, "ER_LOCK_WAIT_TIMEOUT"),
    (1213, "ER_LOCK_DEADLOCK"),
    (1217, "ER_ROW_IS_REFERENCED"),
    (1227, "ER_SPECIFIC_ACCESS_DENIED_ERROR"),
    (1242, "ER_SUBQUERY_NO_1_ROW"),
    (1243, "ER_UNKNOWN_STMT_HANDLER"),
    (1264, "ER_WARN_DATA_OUT_OF_RANGE"),
    (1265, "WARN_DATA_TRUNCATED"),
    (1267, "ER_CANT_AGGREGATE_2COLLATIONS"),
    (1290, "ER_OPTION_PREVENTS_STATEMENT"),
    (1292, "ER_TRUNCATED_WRONG_VALUE"),
    (1305, "ER_SP_DOES_NOT_EXIST"),
    (1317, "ER_QUERY_INTERRUPTED"),
    (1318, "ER_SP_WRONG_NO_OF_ARGS"),
    (1364, "ER_NO_DEFAULT_FOR_FIELD"),
    (1365, "ER_DIVISION_BY_ZERO"),
    (1366, "ER_TRUNCATED_WRONG_VALUE_FOR_FIELD"),
    (1370, "ER_PROCACCESS_DENIED_ERROR"),
    (1406, "ER_DATA_TOO_LONG"),
    (1451, "ER_ROW_IS_REFERENCED_2"),
    (1452, "ER_NO_REFERENCED_ROW_2"),
    (1644, "ER_SIGNAL_EXCEPTION"),
    (1690, "ER_DATA_OUT_OF_RANGE"),
    (1792, "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION"),
];

/// Returns the name of an error, if it is a frequent one.
fn error_name(number: u16) -> Option<&'static str> {
    let place = NAMES.binary_search_by_key(&number, |(number, _)| *number);
    place.ok().map(|place| NAMES[place].1)
}

/// Writes an error's number and name: `error 1062 (ER_DUP_ENTRY)`.
#[must_use]
pub fn named_error(number: u16) -> String {
    match error_name(number) {
        Some(name) => format!("error {number} ({name})"),
        None => format!("error {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_found() {
        for (number, name) in NAMES {
            assert_eq!(error_name(number), Some(name));
        }
        assert_eq!(named_error(1062), "error 1062 (ER_DUP_ENTRY)");
        assert_eq!(named_error(9999), "error 9999");
    }
}
