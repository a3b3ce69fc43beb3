//! Blocks of statements, the last of which shows rows upright (`\G`) with what a reader looks at below.

use super::{Page, shape};
use std::time::{Duration, Instant};

/// How long what is shown may take to be so.
const PATIENCE: Duration = Duration::from_secs(30);

impl Page<'_> {
    /// Runs the statements of the next block by a client (`mariadb -S SOCKET`), and asks the last of them again until
    /// it prints the lines that stand below it, among others and in that order.
    #[track_caller]
    pub fn run_sql(&mut self, words: &str, client: &str) {
        let text = self.take(words);
        let (statements, shown) = text.split_once("\\G\n").expect("rows upright");
        let (others, last) = statements.rsplit_once('\n').expect("statements");
        self.house.run(&format!("{client} <<'END'\n{others}\nEND"));
        let end = Instant::now() + PATIENCE;
        loop {
            let printed = self.house.run(&format!("{client} <<'END'\n{last}\\G\nEND"));
            let mut lines = printed.lines();
            let mut all = shown.lines();
            if all.all(|line| lines.any(|one| shape::is_like(line, one))) {
                return;
            }
            assert!(
                Instant::now() < end,
                "{}: {last}\nshows{shown}\nit printed\n{printed}",
                self.name
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
