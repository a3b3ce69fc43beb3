//! When statements came: so many intervals, which become longer when they do not reach.

/// How many intervals there are.
pub const INTERVALS: usize = 60;
const INTERVALS_I64: i64 = 60;
const SECOND: i64 = 1_000_000_000;

/// Where the intervals lie, the same for all classes.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    pub(super) from_ns: i64,
    pub(super) width_ns: i64,
    is_begun: bool,
}

/// What came in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    /// How many statements.
    pub count: u64,
    /// Those of them whose time is known.
    pub timed: u64,
    /// How long these took in all, in nanoseconds.
    pub sum_ns: u64,
}

/// What came in each interval.
#[derive(Debug, Clone)]
pub struct Series {
    from_ns: i64,
    width_ns: i64,
    /// The intervals; empty before the first statement.
    pub buckets: Vec<Bucket>,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            from_ns: 0,
            width_ns: SECOND,
            is_begun: false,
        }
    }
}

impl Grid {
    /// Returns that of a summary.
    pub(crate) fn of(summary: &super::Summary) -> Self {
        Self {
            from_ns: summary.series_from_ns,
            width_ns: summary.series_width_ns,
            is_begun: true,
        }
    }

    /// Returns one that reaches over all of these, with intervals as long as their longest.
    pub(super) fn over(all: &[super::Summary]) -> Self {
        let mut grid = Self::default();
        for one in all
            .iter()
            .filter(|one| one.total.first_ns <= one.total.last_ns)
        {
            grid.width_ns = grid.width_ns.max(one.series_width_ns);
        }
        for one in all
            .iter()
            .filter(|one| one.total.first_ns <= one.total.last_ns)
        {
            grid.reach(one.total.first_ns);
            grid.reach(one.total.last_ns);
        }
        grid
    }

    /// Makes the intervals reach a time; true when that moved them.
    pub(super) fn reach(&mut self, at_ns: i64) -> bool {
        let begin = |width: i64| at_ns.div_euclid(width).saturating_mul(width);
        if !self.is_begun {
            self.is_begun = true;
            self.from_ns = begin(self.width_ns);
            return false;
        }
        let mut moved = false;
        while !self.has(at_ns) {
            // Where there is room at the end, it is used for what lies before.
            self.width_ns = self.width_ns.saturating_mul(2);
            let from = self.from_ns.min(at_ns);
            self.from_ns = from.div_euclid(self.width_ns).saturating_mul(self.width_ns);
            moved = true;
        }
        moved
    }

    fn has(&self, at_ns: i64) -> bool {
        // Wider than any time is far: a log may name the year 1700 and the year 2200.
        let end = i128::from(self.from_ns) + i128::from(self.width_ns) * i128::from(INTERVALS_I64);
        at_ns >= self.from_ns && i128::from(at_ns) < end
    }

    pub(crate) fn slot(&self, at_ns: i64) -> usize {
        let slot = at_ns.saturating_sub(self.from_ns) / self.width_ns;
        usize::try_from(slot).unwrap_or(0).min(INTERVALS - 1)
    }
}

impl Default for Series {
    fn default() -> Self {
        Self::on(&Grid::default())
    }
}

impl Series {
    pub(super) fn on(grid: &Grid) -> Self {
        Self {
            from_ns: grid.from_ns,
            width_ns: grid.width_ns,
            buckets: Vec::new(),
        }
    }

    /// Returns one with what came in these intervals, which begin and are as long as that.
    pub(crate) fn restored((from_ns, width_ns): (i64, i64), kept: Vec<(usize, Bucket)>) -> Self {
        let mut series = Self {
            from_ns,
            width_ns,
            buckets: Vec::new(),
        };
        for (slot, bucket) in kept {
            series.buckets.resize(INTERVALS, Bucket::default());
            series.buckets[slot.min(INTERVALS - 1)] = bucket;
        }
        series
    }

    /// Counts one statement in an interval of the grid that it follows.
    pub(super) fn add(&mut self, slot: usize, ns: Option<u64>) {
        self.buckets.resize(INTERVALS, Bucket::default());
        let bucket = &mut self.buckets[slot];
        bucket.count += 1;
        bucket.timed += u64::from(ns.is_some());
        bucket.sum_ns = bucket.sum_ns.saturating_add(ns.unwrap_or(0));
    }

    /// Follows the grid where it moved to.
    pub(super) fn follow(&mut self, grid: &Grid) {
        if !self.buckets.is_empty() {
            let mut moved = vec![Bucket::default(); INTERVALS];
            for (number, bucket) in (0_i64..).zip(&self.buckets) {
                if bucket.count > 0 {
                    let at = self
                        .from_ns
                        .saturating_add(self.width_ns.saturating_mul(number));
                    moved[grid.slot(at)].merge(bucket);
                }
            }
            self.buckets = moved;
        }
        (self.from_ns, self.width_ns) = (grid.from_ns, grid.width_ns);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if other.buckets.is_empty() {
            return;
        }
        self.buckets.resize(INTERVALS, Bucket::default());
        for (bucket, other) in self.buckets.iter_mut().zip(&other.buckets) {
            bucket.merge(other);
        }
    }
}

impl Bucket {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.timed += other.timed;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}
