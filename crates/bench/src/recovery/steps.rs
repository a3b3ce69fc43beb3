//! Which step of a start takes how long, by what the server writes into its log.

use super::log::Line;
use super::report::StepTime;
use std::time::Duration;

const TABLESPACES: &str = "looking into every tablespace";
const TABLESPACE_IDS: &str = "finding the id of every tablespace";
const PREPARING: &str = "preparing InnoDB";
const REDO: &str = "reading the redo log";
const APPLYING: &str = "applying the redo log";
const FILES: &str = "opening InnoDB's files";
const DICTIONARY: &str = "data dictionary";
const TEMPORARY: &str = "temporary tablespace";
const SERVER: &str = "everything above InnoDB";

/// What begins with a line that holds these words; of several the first. Lines that hold none belong
/// to the step under way. Taken from the logs of MySQL 5.7.22 and 8.0.15 and MariaDB 10.11.19.
const BEGINNINGS: [(&str, &str); 26] = [
    ("as process", "starting the program"),
    ("PUNCH HOLE support", PREPARING),
    ("InnoDB: Compressed tables use", PREPARING),
    ("[InnoDB] Scanning './'", TABLESPACE_IDS),
    ("Completed space ID check", PREPARING),
    ("Initializing buffer pool", "buffer pool"),
    ("Completed initialization of buffer pool", FILES),
    ("Starting to parse redo log", REDO),
    ("Log scan progressed past", REDO),
    ("Starting crash recovery from checkpoint", REDO),
    ("Doing recovery: scanned up to", REDO),
    ("Starting an apply batch", APPLYING),
    ("Applying a batch of", APPLYING),
    ("To recover:", APPLYING),
    // 8.0 writes it with a mark, and looks into the tablespaces later.
    ("Apply batch completed!", FILES),
    // dict_check_tablespaces_and_store_max_id() says nothing.
    ("Apply batch completed", TABLESPACES),
    ("Using undo tablespace", "undo tablespaces"),
    ("Removed temporary tablespace", TEMPORARY),
    ("Creating shared tablespace for temporary", TEMPORARY),
    ("rollback segments are active", TEMPORARY),
    ("Data dictionary restarting", DICTIONARY),
    ("Reading DD tablespace files", TABLESPACES),
    ("Validated ", DICTIONARY),
    ("started; log sequence number", SERVER),
    ("InnoDB: log sequence number", SERVER),
    ("Using data dictionary with", SERVER),
];

/// Divides a start into steps, in the order in which they began. They add up to all of it.
pub(super) fn of(lines: &[Line], whole: Duration) -> Vec<StepTime> {
    let mut steps: Vec<StepTime> = Vec::new();
    let mut current = ("loading the program", Duration::ZERO);
    let mut add = |name: &'static str, took: Duration| {
        let seconds = took.as_secs_f64();
        match steps.iter_mut().find(|step| step.name == name) {
            Some(step) => step.seconds += seconds,
            None => steps.push(StepTime {
                name: name.to_owned(),
                seconds,
            }),
        }
    };
    for line in lines.iter().filter(|line| line.at <= whole) {
        let begun = BEGINNINGS
            .iter()
            .find(|(words, _)| line.text.contains(words));
        if let Some((_, name)) = begun
            && *name != current.0
        {
            add(current.0, line.at - current.1);
            current = (name, line.at);
        }
    }
    add(current.0, whole.saturating_sub(current.1));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(log: &[(u64, &str)], whole: u64) -> Vec<(String, u64)> {
        let line = |(at, text): &(u64, &str)| Line {
            at: Duration::from_secs(*at),
            text: (*text).to_owned(),
        };
        let lines: Vec<Line> = log.iter().map(line).collect();
        let steps = of(&lines, Duration::from_secs(whole));
        let steps = steps.into_iter();
        steps.map(|s| (s.name, s.seconds as u64)).collect()
    }

    fn seconds(steps: &[(String, u64)], name: &str) -> Option<u64> {
        let found = steps.iter().find(|step| step.0 == name);
        found.map(|step| step.1)
    }

    #[test]
    fn mysql_5_7_says_nothing_while_it_looks_into_tablespaces() {
        let steps = steps(
            &[
                (
                    1,
                    "0 [Note] mysqld (mysqld 5.7.22) starting as process 686 ...",
                ),
                (2, "0 [Note] InnoDB: PUNCH HOLE support available"),
                (
                    3,
                    "0 [Note] InnoDB: Starting an apply batch of log records to the database...",
                ),
                (4, "0 [Note] InnoDB: Apply batch completed"),
                (
                    34,
                    "0 [Note] InnoDB: Removed temporary tablespace data file: \"ibtmp1\"",
                ),
                (
                    35,
                    "0 [Note] InnoDB: 5.7.22 started; log sequence number 3962944",
                ),
                (36, "0 [Note] mysqld: ready for connections."),
            ],
            37,
        );
        assert_eq!(seconds(&steps, TABLESPACES), Some(30));
        assert_eq!(seconds(&steps, SERVER), Some(2));
        assert_eq!(steps.iter().map(|step| step.1).sum::<u64>(), 37);
    }

    #[test]
    fn mysql_8_0_looks_into_tablespaces_twice() {
        let steps = steps(
            &[
                (1, "1 [Note] [MY-012204] [InnoDB] Scanning './'"),
                (
                    5,
                    "1 [Note] [MY-012208] [InnoDB] Completed space ID check of 304 files.",
                ),
                (6, "1 [Note] [MY-012535] [InnoDB] Apply batch completed!"),
                (
                    7,
                    "1 [Note] [MY-012357] [InnoDB] Reading DD tablespace files",
                ),
                (
                    27,
                    "1 [Note] [MY-012356] [InnoDB] Validated 306/306  tablespaces",
                ),
            ],
            28,
        );
        assert_eq!(seconds(&steps, TABLESPACE_IDS), Some(4));
        assert_eq!(seconds(&steps, TABLESPACES), Some(20));
    }

    #[test]
    fn a_log_that_says_nothing_is_one_step() {
        assert_eq!(steps(&[], 9), [("loading the program".to_owned(), 9)]);
    }
}
