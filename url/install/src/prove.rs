//! That a server's functions do what this program does.

use evenkeel_op::{Error, Result};
use evenkeel_plugins::refusal::explain;
use evenkeel_server::connect::Session;
use evenkeel_urlcodec::CodeTable;

/// What is compressed for proof: nothing, a page, bytes that are no text, and a long one.
fn texts() -> [Vec<u8>; 4] {
    [
        Vec::new(),
        b"https://example.com/a?b=%E3%81%82#c".to_vec(),
        b"\x00\xff'\\".to_vec(),
        b"https://example.com/".repeat(100),
    ]
}

/// Has the server compress, decompress and find bounds, and compares.
///
/// Errors: `Failed` where the answers differ; those of the session.
pub fn prove(session: &mut Session, table: &CodeTable) -> Result<()> {
    let id = session.value("SELECT url_table_id()").map_err(explain)?;
    if id.as_deref() != Some(&*table.id()) {
        return Err(Error::failed(format!(
            "the server's functions report that they use table {}, not {}",
            id.unwrap_or_default(),
            table.id()
        ))
        .hint("copy the library and the table of this program's version again"));
    }
    for text in texts() {
        let text_sql = format!("X'{}'", hex(&text));
        let sql = format!(
            "SELECT HEX(url_compress({text_sql})), HEX(url_decompress(url_compress({text_sql}))), \
             HEX(url_prefix_low({text_sql})), HEX(url_prefix_high({text_sql}))"
        );
        let row = session.one(&sql).map_err(explain)?;
        let (low, high) = table.prefix(&text);
        let code = table.compress(&text).unwrap_or_default();
        let wanted = [code, text, low, high].map(|bytes| hex(&bytes));
        let same = |row: &evenkeel_server::connect::Row| {
            (0..wanted.len()).all(|at| row.at(at) == Some(&wanted[at]))
        };
        if !row.as_ref().is_some_and(same) {
            return Err(Error::failed(
                "the server's functions produce different codes than this program",
            )
            .hint(
                "the library and the program have different versions: use those of one release",
            ));
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
