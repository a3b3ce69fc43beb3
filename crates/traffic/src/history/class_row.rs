//! A class as a row. What has no fixed number of values is JSON, which SQLite, MariaDB and MySQL can read.

use super::store::{Value, integer, number, text};
use crate::digest::{Bucket, Class, Names, Sample, Series};
use serde_json::{Value as Json, json};

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Class,
    Total,
    Others,
}

impl Part {
    const ALL: [Self; 3] = [Self::Class, Self::Total, Self::Others];

    fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Total => "total",
            Self::Others => "others",
        }
    }
}

pub(super) const COLUMNS: &str = "part, id, fingerprint, count, prepares, timed, sum_ns, min_ns, max_ns, lock_ns, rows_sent, \
     rows_examined, rows_affected, bytes_in, bytes_out, errors, warnings, first_ns, last_ns, \
     sample_sql, sample_bytes, sample_ns, sample_at_ns, sample_session, sample_schema, latency_us, series, users, \
     hosts, `schemas`";
const COUNT: usize = 30;

/// Returns the statement that adds a class, with its values.
pub(super) fn values_of(period: u64, part: Part, class: &Class) -> (String, Vec<Value>) {
    let known = |value: Option<u64>| value.map_or(Value::Null, integer);
    let sample = class.sample.as_ref();
    let latency = class.latency_us.iter_recorded();
    let latency =
        latency.map(|one| json!([one.value_iterated_to(), one.count_since_last_iteration()]));
    let series = (0_u64..).zip(&class.series.buckets);
    let series = series
        .filter(|(_, bucket)| bucket.count > 0)
        .map(|(slot, bucket)| json!([slot, bucket.count, bucket.timed, bucket.sum_ns]));
    let values = vec![
        integer(period),
        Value::Text(part.name().to_owned()),
        Value::Text(class.id.clone()),
        Value::Text(class.fingerprint.clone()),
        integer(class.count),
        integer(class.prepares),
        integer(class.timed),
        integer(class.sum_ns),
        integer(class.min_ns),
        integer(class.max_ns),
        integer(class.lock_ns),
        known(class.rows_sent),
        known(class.rows_examined),
        known(class.rows_affected),
        integer(class.bytes_in),
        integer(class.bytes_out),
        integer(class.errors),
        integer(class.warnings),
        Value::Integer(class.first_ns),
        Value::Integer(class.last_ns),
        sample.map_or(Value::Null, |one| Value::Text(one.sql.clone())),
        known(sample.map(|one| one.sql_bytes)),
        known(sample.and_then(|one| one.total_ns)),
        sample.map_or(Value::Null, |one| Value::Integer(one.at_ns)),
        known(sample.and_then(|one| one.session).map(u64::from)),
        sample
            .and_then(|one| one.schema.clone())
            .map_or(Value::Null, Value::Text),
        Value::Text(Json::Array(latency.collect()).to_string()),
        Value::Text(Json::Array(series.collect()).to_string()),
        names(&class.users),
        names(&class.hosts),
        names(&class.schemas),
    ];
    let places = "?, ".repeat(COUNT);
    let sql = format!("INSERT INTO digest_class (period, {COLUMNS}) VALUES ({places}?)");
    (sql, values)
}

fn names(names: &Names) -> Value {
    let all = names.all().into_iter();
    let all = all.map(|(name, count)| json!([name, count]));
    let others = (names.others > 0).then(|| json!([null, names.others]));
    Value::Text(Json::Array(all.chain(others).collect()).to_string())
}

/// Reads a class; `series` is where its intervals begin, and how long each is. `None` where it makes no sense.
pub(super) fn class_of(row: &[Value], series: (i64, i64)) -> Option<(Part, Class)> {
    if row.len() != COUNT {
        return None;
    }
    let part = text(&row[0]);
    let part = Part::ALL.into_iter().find(|one| one.name() == part)?;
    let known = |at: usize| match row[at] {
        Value::Integer(_) => Some(number(&row[at])),
        _ => None,
    };
    let signed = |at: usize| match row[at] {
        Value::Integer(value) => Some(value),
        _ => None,
    };
    let mut class = Class {
        id: text(&row[1]),
        fingerprint: text(&row[2]),
        count: number(&row[3]),
        prepares: number(&row[4]),
        timed: number(&row[5]),
        sum_ns: number(&row[6]),
        max_ns: number(&row[8]),
        lock_ns: number(&row[9]),
        rows_sent: known(10),
        rows_examined: known(11),
        rows_affected: known(12),
        bytes_in: number(&row[13]),
        bytes_out: number(&row[14]),
        errors: number(&row[15]),
        warnings: number(&row[16]),
        first_ns: signed(17)?,
        last_ns: signed(18)?,
        users: names_of(&row[27])?,
        hosts: names_of(&row[28])?,
        schemas: names_of(&row[29])?,
        sample: sample_of(&row[19..25]),
        series: Series::restored(series, buckets_of(&row[26])?),
        ..Class::default()
    };
    if class.timed > 0 {
        class.min_ns = number(&row[7]);
    }
    for pair in lists_of(&row[25])? {
        let [value, count] = pair[..] else {
            return None;
        };
        // It grows by itself: nothing is out of its range.
        let _ = class
            .latency_us
            .record_n(value, u32::try_from(count).unwrap_or(u32::MAX));
    }
    Some((part, class))
}

fn sample_of(row: &[Value]) -> Option<Sample> {
    let Value::Text(sql) = &row[0] else {
        return None;
    };
    let Value::Integer(at_ns) = row[3] else {
        return None;
    };
    Some(Sample {
        sql: sql.clone(),
        sql_bytes: number(&row[1]),
        total_ns: matches!(row[2], Value::Integer(_)).then(|| number(&row[2])),
        at_ns,
        session: match row[4] {
            Value::Integer(session) => u32::try_from(session).ok(),
            _ => None,
        },
        schema: match &row[5] {
            Value::Text(schema) => Some(schema.clone()),
            _ => None,
        },
    })
}

fn array(value: &Value) -> Option<Vec<Json>> {
    match serde_json::from_str(&text(value)).ok()? {
        Json::Array(all) => Some(all),
        _ => None,
    }
}

/// Reads lists of numbers.
fn lists_of(value: &Value) -> Option<Vec<Vec<u64>>> {
    let one = |list: Json| list.as_array()?.iter().map(Json::as_u64).collect();
    array(value)?.into_iter().map(one).collect()
}

fn buckets_of(value: &Value) -> Option<Vec<(usize, Bucket)>> {
    let one = |list: Vec<u64>| {
        let [slot, count, timed, sum_ns] = list[..] else {
            return None;
        };
        let bucket = Bucket {
            count,
            timed,
            sum_ns,
        };
        Some((usize::try_from(slot).ok()?, bucket))
    };
    lists_of(value)?.into_iter().map(one).collect()
}

fn names_of(value: &Value) -> Option<Names> {
    let mut names = Names::default();
    for pair in array(value)? {
        let times = pair[1].as_u64()?;
        match pair[0].as_str() {
            Some(name) => names.count(name, times),
            None => names.others += times,
        }
    }
    Some(names)
}
