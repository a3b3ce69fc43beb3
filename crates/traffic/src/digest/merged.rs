//! Several summaries as one.

use super::series::Grid;
use super::{Class, Summary};
use std::collections::HashMap;

/// Returns what the statements of several summaries sum up to: classes of the same identifier are one.
#[must_use]
pub fn merged(mut all: Vec<Summary>) -> Summary {
    if all.len() == 1 {
        return all.remove(0);
    }
    let grid = Grid::over(&all);
    let mut sum = Summary {
        classes: Vec::new(),
        total: Class::default(),
        others: Class::default(),
        folded: 0,
        left_out: 0,
        series_from_ns: grid.from_ns,
        series_width_ns: grid.width_ns,
    };
    sum.total.series.follow(&grid);
    sum.others.series.follow(&grid);
    let mut classes: HashMap<String, Class> = HashMap::new();
    for mut one in all {
        sum.folded += one.folded;
        sum.left_out += one.left_out;
        for class in one
            .classes
            .iter_mut()
            .chain([&mut one.total, &mut one.others])
        {
            class.series.follow(&grid);
        }
        join(&mut sum.total, one.total);
        join(&mut sum.others, one.others);
        for class in one.classes {
            match classes.get_mut(&class.id) {
                Some(there) => join(there, class),
                None => {
                    classes.insert(class.id.clone(), class);
                }
            }
        }
    }
    sum.classes = classes.into_values().collect();
    sum.classes.sort_by(Class::by_time);
    sum
}

/// Adds a class to another, which keeps the slower sample.
fn join(class: &mut Class, other: Class) {
    class.merge(&other);
    let time = |class: &Class| class.sample.as_ref().map(|sample| sample.total_ns);
    if time(&other) > time(class) {
        class.sample = other.sample;
    }
}
