use super::*;
use crate::prewarm::job::jobs;
use evenkeel_op::{Cancel, Progress, Silent};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

struct Scene {
    dir: TempDir,
    cancel: Cancel,
}

impl Scene {
    /// A directory with some files of 100 KB.
    fn with(files: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..files {
            fs::write(dir.path().join(number.to_string()), vec![7; 100_000]).unwrap();
        }
        let cancel = Cancel::new();
        Self { dir, cancel }
    }

    fn step(&self, names: impl IntoIterator<Item = usize>) -> Step {
        let path = |number: usize| Arc::new(self.dir.path().join(number.to_string()));
        let jobs: Vec<Job> = names
            .into_iter()
            .flat_map(|number| jobs(&path(number), 0, 64 << 10))
            .collect();
        Step {
            name: "files",
            files: jobs.len(),
            jobs,
        }
    }

    fn reading<'a>(&'a self, limits: &Limits, progress: &'a dyn Progress) -> Reading<'a> {
        let run = Run {
            progress,
            cancel: &self.cancel,
        };
        Reading::within(limits, Instant::now(), run).unwrap()
    }
}

/// Both ways to read; the ring is wanted here, not only tried.
fn both_ways(test: impl Fn(Limits)) {
    for reader in [Reader::Threads, Reader::IoUring] {
        test(Limits {
            reader,
            ..Limits::default()
        });
    }
}

#[test]
fn every_byte_is_read_however_many_files_there_are() {
    let scene = Scene::with(1000);
    both_ways(|limits| {
        let mut reading = scene.reading(&limits, &Silent);
        reading.step(scene.step(0..1000)).unwrap();
        assert_eq!(reading.steps[0].bytes_read, 1000 << 16);
        assert_eq!(reading.outcome.limit, None);
        assert!(reading.outcome.depth > 1);
    });
}

#[test]
fn files_that_went_or_cannot_be_read_stop_nothing() {
    let scene = Scene::with(40);
    fs::create_dir(scene.dir.path().join("100")).unwrap();
    both_ways(|limits| {
        let mut reading = scene.reading(&limits, &Silent);
        // 40 to 49 are not there any more, and 100 is no file.
        reading.step(scene.step((0..50).chain([100]))).unwrap();
        assert_eq!(reading.steps[0].bytes_read, 40 << 16);
        assert_eq!(reading.outcome.gone_files(), 10);
        assert_eq!(reading.outcome.unread_files(), 1);
        assert!(reading.outcome.unread[0].path.ends_with("100"));
    });
}

#[test]
fn no_more_memory_is_filled_than_was_allowed() {
    let scene = Scene::with(40);
    both_ways(|limits| {
        let limits = Limits {
            memory_bytes: Some(10 << 16),
            ..limits
        };
        let mut reading = scene.reading(&limits, &Silent);
        reading.step(scene.step(0..7)).unwrap();
        reading.step(scene.step(7..20)).unwrap();
        let bytes: Vec<u64> = reading.steps.iter().map(|step| step.bytes_read).collect();
        assert_eq!(bytes, [7 << 16, 3 << 16]);
        assert_eq!(reading.outcome.limit, Some(Limit::Memory));
    });
}

#[test]
fn time_that_is_up_ends_it() {
    let scene = Scene::with(40);
    both_ways(|limits| {
        let limits = Limits {
            deadline: Some(Duration::ZERO),
            ..limits
        };
        let mut reading = scene.reading(&limits, &Silent);
        reading.step(scene.step(0..40)).unwrap();
        assert!(reading.steps[0].bytes_read < 40 << 16);
        assert_eq!(reading.outcome.limit, Some(Limit::Time));
    });
}

#[test]
fn a_wish_to_stop_ends_it() {
    let scene = Scene::with(4);
    scene.cancel.cancel(15);
    both_ways(|limits| {
        let mut reading = scene.reading(&limits, &Silent);
        let error = reading.step(scene.step(0..4)).unwrap_err();
        assert_eq!(error.kind(), evenkeel_op::ErrorKind::Terminated);
    });
}

#[test]
fn a_large_file_is_read_in_several_places() {
    let dir = tempfile::tempdir().unwrap();
    let path: &Path = &dir.path().join("large");
    fs::write(path, vec![1; 3_000_000]).unwrap();
    let cut: Vec<(u64, u64)> = jobs(&Arc::new(path.to_owned()), 0, 3_000_000)
        .map(|job| (job.start, job.length))
        .collect();
    let mib = 1 << 20;
    assert_eq!(cut, [(0, mib), (mib, mib), (2 * mib, 3_000_000 - 2 * mib)]);
}
