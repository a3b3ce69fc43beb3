//! Words that a native reader reads twice are not used: the glossary says what to write instead.

/// A phrase, in lower case, and what to write instead.
const BANNED: [(&str, &str); 35] = [
    ("anew", "again, or re-create, rebuild, rewrite, restart"),
    ("go on with", "resume, continue"),
    ("goes on with", "resumes, continues"),
    ("going on with", "resuming, continuing"),
    ("gone on with", "resumed, continued"),
    ("went on with", "resumed, continued"),
    ("mend", "fix, repair"),
    ("mends", "fixes, repairs"),
    ("mended", "fixed, repaired"),
    ("mending", "fixing, repairing"),
    ("one instant", "point-in-time consistent, one point in time"),
    ("stand still", "are paused"),
    ("stands still", "is paused"),
    ("stood still", "paused"),
    ("standing still", "paused"),
    ("put up with", "wait for, tolerate"),
    ("puts up with", "waits for, tolerates"),
    ("lean on", "be based on, depend on"),
    ("leans on", "is based on, depends on"),
    ("leaning on", "based on, depending on"),
    ("sees to", "handles, makes sure"),
    ("see to it", "make sure"),
    ("seeing to it", "making sure"),
    ("at the price of", "in exchange for"),
    ("not there yet", "new, missing, does not exist yet"),
    ("look after", "manage"),
    ("looks after", "manages"),
    ("looked after", "managed"),
    ("looking after", "managing"),
    ("time and again", "repeatedly"),
    ("for want of", "for lack of"),
    ("puts in order", "repairs, cleans up"),
    ("put in order", "repaired, cleaned up"),
    ("puts that in order", "repairs that, cleans that up"),
    ("putting that in order", "repairing that"),
];

/// Where phrases may stand all the same, and why: the beginnings of paths.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("CHANGELOG.md", "says what was said at the time"),
    ("docs/src/glossary.md", "says which words are not used"),
    ("docs/src/reference.md", "is written by the program"),
    ("xtask/src/tidy/words.rs", "is this list"),
];

/// Checks the pages, and the comments and messages of Rust code.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let is_read = path.ends_with(".md") || path.ends_with(".rs") || path.starts_with(MESSAGES);
    let is_excepted = EXCEPTIONS.iter().any(|(start, _)| path.starts_with(start));
    if !is_read || is_excepted {
        return Vec::new();
    }
    let (words, starts) = flow(text);
    let mut found = Vec::new();
    for (phrase, instead) in BANNED {
        for (at, _) in words.match_indices(phrase) {
            if is_part_of_a_word(&words, at, phrase.len()) {
                continue;
            }
            let line = starts.partition_point(|start| *start <= at);
            found.push(format!(
                "{path}:{line}: '{phrase}' is not a word of ours: {instead} (see the glossary)"
            ));
        }
    }
    found
}

/// The goldens of the messages.
const MESSAGES: &str = "tests/cases/tests/errors/";

/// Returns a text in lower case as it is read, without its line ends, the marks of comments and the backslashes with
/// which strings go on, and where each line starts in it.
fn flow(text: &str) -> (String, Vec<usize>) {
    let mut words = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in text.lines() {
        starts.push(words.len());
        let line = line.trim();
        let line = line.strip_suffix('\\').unwrap_or(line).trim_end();
        let line = line.trim_start_matches(['/', '!', '>', '*', ' ']);
        words.push_str(&line.to_lowercase());
        words.push(' ');
    }
    (words, starts)
}

/// Returns whether letters, digits or underscores go on before or after what is found.
fn is_part_of_a_word(words: &str, at: usize, len: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    words[..at].chars().next_back().is_some_and(is_word)
        || words[at + len..].chars().next().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_over_line_ends() {
        let code = "/// Makes it\n/// anew.\nfn f() {}\n// Writes stand\n// still.\nlet s = \"it goes \\\n    on with it\";\n";
        let found = check("crates/op/src/a.rs", code);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("crates/op/src/a.rs:2: 'anew'"),
            "{found:?}"
        );
        assert_eq!(check("docs/src/a.md", "It is\nmended.").len(), 1);
        assert_eq!(
            check("tests/cases/tests/errors/a.txt", "hint: mend it").len(),
            1
        );
    }

    #[test]
    fn other_words_and_other_files_are_left_alone() {
        assert!(check("docs/src/a.md", "I recommend it, and stand_still.").is_empty());
        assert!(check("CHANGELOG.md", "made anew").is_empty());
        assert!(check("queue/mariadb/a.cc", "made anew").is_empty());
    }
}
