//! `bench compare`: reads what other benches answered with `--json`.

use crate::args::BenchCompare;
use crate::opened;
use crate::show::Ui;
use crate::show::answers::{Compared, Comparison};
use evenkeel_op::{Cancel, Error, Result, exit};
use evenkeel_report::compare::compare;
use serde_json::{Deserializer, Value};
use std::path::PathBuf;

/// What a bench is about, by its schema: the value's place, its name, whether more is better.
const ABOUT: [(&str, &str, &str, bool); 6] = [
    ("evenkeel/bench-tpcc/1", "/tpmc", "TpmC", true),
    (
        "evenkeel/bench-tpcc/1",
        "/kinds/0/p95_ms",
        "New-Order 95 %, ms",
        false,
    ),
    (
        "evenkeel/bench-tpcc/1",
        "/kinds/0/max_ms",
        "New-Order slowest, ms",
        false,
    ),
    (
        "evenkeel/bench-oltp/1",
        "/transactions_per_s",
        "transactions a second",
        true,
    ),
    ("evenkeel/bench-oltp/1", "/p95_ms", "95 %, ms", false),
    ("evenkeel/bench-oltp/1", "/p99_ms", "99 %, ms", false),
];
const EXPERIMENT: &str = "evenkeel/bench-experiment/1";
const SHOWDOWN: &str = "evenkeel/bench-showdown/1";
/// What a showdown is about, of each method: the value's key, its name, whether more is better.
const METHOD: [(&str, &str, bool); 2] = [
    ("percents", "% of the undisturbed throughput", true),
    ("restores_s", "restore, s", false),
];

/// Values of one name.
struct Lot {
    name: String,
    more_is_better: bool,
    runs: Vec<f64>,
}

/// Runs the command.
pub(super) fn run(args: &BenchCompare, ui: &Ui) -> Result<u8> {
    let asked = |places: &[String], more| -> Vec<(String, String, bool)> {
        let all = places.iter();
        all.map(|place| (place.clone(), place.clone(), more))
            .collect()
    };
    let mut wanted = asked(&args.values, true);
    wanted.extend(asked(&args.values_less, false));
    let first = lots(&read(&args.first, ui.cancel())?, &wanted)?;
    let second = lots(&read(&args.second, ui.cancel())?, &wanted)?;
    let mut values = Vec::new();
    for lot in &first {
        let Some(other) = second.iter().find(|other| other.name == lot.name) else {
            continue;
        };
        let verdict = compare(&lot.runs, &other.runs)?;
        values.push(Compared {
            name: lot.name.clone(),
            more_is_better: lot.more_is_better,
            says: verdict.says(&lot.name, lot.more_is_better),
            verdict,
        });
    }
    if values.is_empty() {
        return Err(Error::usage("the two sides have no value in common")
            .hint("compare results of the same benchmark, or name a value with --value /PLACE"));
    }
    let differs = values.iter().any(|value| value.verdict.is_real);
    ui.answer(&Comparison { differs, values });
    Ok(exit::DONE)
}

/// Reads all documents of all files.
fn read(paths: &[PathBuf], cancel: &Cancel) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for path in paths {
        let text = opened::read(path, "result file", cancel)?;
        for document in Deserializer::from_slice(&text).into_iter() {
            let document = document.map_err(|error| {
                Error::usage(format!("{} is not JSON: {error}", path.display()))
                    .hint("give the --json output of a benchmark")
            })?;
            all.push(document);
        }
    }
    Ok(all)
}

/// Gathers the values of all documents by their names.
fn lots(documents: &[Value], wanted: &[(String, String, bool)]) -> Result<Vec<Lot>> {
    let mut lots: Vec<Lot> = Vec::new();
    let mut add = |name: String, more_is_better: bool, run: f64| match lots
        .iter_mut()
        .find(|lot| lot.name == name)
    {
        Some(lot) => lot.runs.push(run),
        None => lots.push(Lot {
            name,
            more_is_better,
            runs: vec![run],
        }),
    };
    for document in &single(documents) {
        let schema = document["schema"].as_str().unwrap_or_default();
        if wanted.is_empty() && schema == EXPERIMENT {
            experiment(document, &mut add);
            continue;
        }
        if wanted.is_empty() && schema == SHOWDOWN {
            showdown(document, &mut add);
            continue;
        }
        let about = ABOUT.iter().filter(|(of, ..)| *of == schema);
        let about =
            about.map(|(_, place, name, more)| (place.to_string(), name.to_string(), *more));
        let places: Vec<_> = match wanted {
            [] => about.collect(),
            wanted => wanted.to_vec(),
        };
        if places.is_empty() {
            return Err(Error::usage(format!(
                "'bench compare' does not know which values of {schema:?} to compare"
            ))
            .hint("name a value with --value /PLACE"));
        }
        for (place, name, more_is_better) in places {
            let value = document.pointer(&place).and_then(Value::as_f64);
            let value = value.ok_or_else(|| {
                Error::usage(format!(
                    "there is no number at {place} in one of the documents"
                ))
                .hint("write a place like /kinds/0/p95_ms")
            })?;
            add(name, more_is_better, value);
        }
    }
    Ok(lots)
}

/// Takes runs that were repeated one by one, each as if it had been answered alone.
fn single(documents: &[Value]) -> Vec<Value> {
    let taken = documents.iter().flat_map(|document| {
        let schema = document["schema"].as_str().unwrap_or_default();
        let Some(name) = schema.strip_suffix("-runs/1") else {
            return vec![document.clone()];
        };
        let mut runs = document["runs"].as_array().cloned().unwrap_or_default();
        for run in &mut runs {
            run["schema"] = format!("{name}/1").into();
        }
        runs
    });
    taken.collect()
}

/// Each way, by each of its values, has a lot of its own.
fn experiment(document: &Value, add: &mut impl FnMut(String, bool, f64)) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for arm in list(&document["arms"]) {
        let name = arm["name"].as_str().unwrap_or_default();
        for metric in list(&document["metrics"]) {
            let says = metric["says"].as_str().unwrap_or_default();
            let more = metric["more_is_better"].as_bool().unwrap_or_default();
            let key = metric["name"].as_str().unwrap_or_default();
            for run in list(&arm["runs"][key]).iter().filter_map(Value::as_f64) {
                add(format!("{name}: {says}"), more, run);
            }
        }
    }
}

/// Each method has a lot for what it left of the throughput, and for its restores.
fn showdown(document: &Value, add: &mut impl FnMut(String, bool, f64)) {
    for method in document["methods"].as_array().into_iter().flatten() {
        let name = method["method"].as_str().unwrap_or_default();
        for (key, says, more) in METHOD {
            let runs = method[key].as_array().into_iter().flatten();
            for run in runs.filter_map(Value::as_f64) {
                add(format!("{name}: {says}"), more, run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reported(documents: &[Value], wanted: &[(String, String, bool)]) -> Vec<(String, Vec<f64>)> {
        let lots = lots(documents, wanted).unwrap();
        lots.into_iter().map(|lot| (lot.name, lot.runs)).collect()
    }

    #[test]
    fn runs_are_gathered_over_documents() {
        let one = |tps| json!({"schema": "evenkeel/bench-oltp/1", "transactions_per_s": tps, "p95_ms": 2, "p99_ms": 3});
        let found = reported(&[one(10.0), one(11.0)], &[]);
        assert_eq!(
            found[0],
            ("transactions a second".to_owned(), vec![10.0, 11.0])
        );
        assert_eq!(found.len(), 3);
        let place = ("/p95_ms".to_owned(), "/p95_ms".to_owned(), false);
        assert_eq!(
            reported(&[one(1.0)], &[place]),
            [("/p95_ms".to_owned(), vec![2.0])]
        );
    }

    #[test]
    fn runs_that_were_repeated_are_taken_one_by_one() {
        let document = json!({
            "schema": "evenkeel/bench-oltp-runs/1",
            "runs": [
                {"transactions_per_s": 4, "p95_ms": 1, "p99_ms": 2},
                {"transactions_per_s": 5, "p95_ms": 1, "p99_ms": 2},
            ],
        });
        let found = reported(std::slice::from_ref(&document), &[]);
        assert_eq!(found[0].1, [4.0, 5.0]);
        let place = ("/p99_ms".to_owned(), "/p99_ms".to_owned(), false);
        assert_eq!(reported(&[document], &[place])[0].1, [2.0, 2.0]);
    }

    #[test]
    fn a_showdown_has_a_lot_for_each_method() {
        let document = json!({
            "schema": SHOWDOWN,
            "methods": [
                {"method": "dump", "percents": [80, 81], "restores_s": [3]},
                {"method": "lvm", "percents": [], "restores_s": []},
            ],
        });
        let expected = [
            (
                "dump: % of the undisturbed throughput".to_owned(),
                vec![80.0, 81.0],
            ),
            ("dump: restore, s".to_owned(), vec![3.0]),
        ];
        assert_eq!(reported(&[document], &[]), expected);
    }

    #[test]
    fn an_experiment_has_a_lot_for_each_way() {
        let document = json!({
            "schema": EXPERIMENT,
            "metrics": [{"name": "s", "says": "seconds", "more_is_better": false}],
            "arms": [
                {"name": "a", "runs": {"s": [1, 2]}},
                {"name": "b", "runs": {}},
            ],
        });
        assert_eq!(
            reported(&[document], &[]),
            [("a: seconds".to_owned(), vec![1.0, 2.0])]
        );
    }

    #[test]
    fn what_is_not_known_is_asked_for() {
        let other = json!({"schema": "evenkeel/dump/1", "seconds": 5});
        assert!(lots(std::slice::from_ref(&other), &[]).is_err());
        let of = |place: &str| (place.to_owned(), place.to_owned(), true);
        assert!(lots(std::slice::from_ref(&other), &[of("/schema")]).is_err());
        assert!(lots(&[other], &[of("/seconds")]).is_ok());
    }
}
