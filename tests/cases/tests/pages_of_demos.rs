//! Does `make demo` show what README says that it does?

use evenkeel_cases::house::House;
use evenkeel_cases::pages::Page;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Stands in for cargo where there is none: what it would build lies there already.
const CARGO: &str = r#"#!/bin/sh
[ "$*" = "build --release --locked --package evenkeel-cli" ] &&
    install -D /srv/evenkeel "$CARGO_TARGET_DIR/release/evenkeel"
"#;

#[test]
fn make_demo() {
    let checkout = evenkeel_testkit::checkout().display();
    let parts = ["Makefile", "testkit"];
    let parts = parts.map(|part| format!("{checkout}/{part}={}/{part}", House::HOME));
    let program = format!("{PROGRAM}=/srv/evenkeel");
    let house = House::showing(&[&parts[..], &[program]].concat(), "db1");
    house.write("/usr/local/bin/cargo", CARGO, "755");
    let line = Page::part(&house, "start.md", "make demo").take("make demo");
    let mut page = Page::part(&house, "README.md", "generation  kind");
    // What make and the demo say before stands on no page.
    let line = format!(
        "set -o pipefail; {} | sed -n '/^generation/,$p'",
        line.trim()
    );
    page.does(&line, 0);
    page.shows("generation  kind");
    page.end();
}
