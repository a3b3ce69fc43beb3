//! Does `replica status` show who replicates from whom, whether it runs, and how far behind it is?

use evenkeel_cases::trio::Trio;
use evenkeel_testkit::By;
use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_5_7_22, mysql_8_0_15, mysql_9};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

fn of(answer: &Value, trio: &Trio, at: usize) -> Value {
    let socket = trio.running(at).socket().display().to_string();
    let servers = answer["servers"].as_array().unwrap();
    servers
        .iter()
        .find(|one| one["server"] == socket.as_str())
        .unwrap()
        .clone()
}

fn is_shown(server: TestServer, by: By) {
    let trio = Trio::start(server, by, &[], PROGRAM);
    let ended = trio.asks("status", &[2, 0, 1], &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let tree = ended.answer["tree"].as_array().unwrap();
    assert_eq!(tree.len(), 1, "{ended:?}");
    assert_eq!(
        tree[0]["replicas"].as_array().unwrap().len(),
        2,
        "{ended:?}"
    );
    let source = trio.running(0).socket().display().to_string();
    assert_eq!(tree[0]["server"], source.as_str());
    for at in [1, 2] {
        let channel = &of(&ended.answer, &trio, at)["channels"][0];
        assert_eq!(channel["source_server"], source.as_str());
        assert_eq!(channel["io_thread"], "running");
        assert_eq!(channel["sql_thread"], "running");
        assert_eq!(channel["by_gtid"], by == By::Gtid);
        assert_eq!(channel["lag"]["to_apply_bytes"], 0, "{channel}");
    }

    trio.order(1, "STOP", "SQL_THREAD");
    for id in 10..13 {
        trio.sql(
            0,
            &format!("INSERT INTO shop.a VALUES ({id}, 1{id}, 'behind')"),
        );
    }
    trio.until_fetched(1);
    let ended = trio.asks("status", &[0, 1], &[]);
    // Whether replication runs does not matter: all was answered.
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let channel = &of(&ended.answer, &trio, 1)["channels"][0];
    assert_eq!(channel["sql_thread"], "stopped");
    assert!(
        channel["lag"]["to_apply_bytes"].as_u64() > Some(300),
        "{channel}"
    );
    if by == By::Gtid || trio.is_mariadb() {
        assert_eq!(channel["lag"]["transactions"], 3, "{channel}");
    }
    // Without its source, the source is shown by its address.
    let ended = trio.asks("status", &[1], &[]);
    let tree = &ended.answer["tree"][0];
    assert_eq!(tree["server"], format!("127.0.0.1:{}", trio.port(0)));
    assert_eq!(tree["asked"], false);
    trio.order(1, "START", "SQL_THREAD");
    trio.catch_up();
    let nobody = trio.asks("status", &[0, 1], &["--user=nobody"]);
    assert_eq!(nobody.code, Some(14), "{nobody:?}");
}

#[test]
fn on_every_server() {
    for (server, by) in [
        (mariadb_10_11(), By::Gtid),
        (mysql_8_0_15(), By::Gtid),
        (mysql_5_7_22(), By::Position),
        (mysql_9(), By::Gtid),
    ] {
        is_shown(server, by);
    }
}
