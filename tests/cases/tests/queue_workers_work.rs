//! Do the workers in Python, PHP and Perl do each job once, whoever is killed meanwhile?

use evenkeel_cases::queues::QueueSite;
use evenkeel_server::connect::Session;
use evenkeel_testkit::{Scratch, until};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

/// What each job does: it says that it has begun, and for which worker. A job whose text is a gate's waits
/// until that file is there, and is given up when its worker is gone. One that is to fail does so once.
const JOB: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 9
echo "$PPID $1" >>begun
case $2 in
gate*)
    until [ -e "$2" ]; do
        kill -0 "$PPID" || exit 8
        sleep 0.02
    done
    kill -0 "$PPID" || exit 8 ;;
fails)
    if [ ! -e failed ]; then
        touch failed
        exit 7
    fi ;;
esac
echo "$1" >>done
"#;

/// One language's queue and workers.
struct Trial<'a> {
    site: &'a QueueSite,
    session: Session,
    scratch: Scratch,
    queue: String,
    script: PathBuf,
}

impl<'a> Trial<'a> {
    fn new(site: &'a QueueSite, script: &str) -> Self {
        let scratch = Scratch::new();
        let queue = format!("jobs_{}", script.replace('.', "_"));
        let mut session = site.session();
        let sql = format!("CREATE TABLE {queue} (id INT NOT NULL, what VARCHAR(20)) ENGINE=QUEUE");
        session.run(&sql).unwrap();
        let job = scratch.join("job");
        fs::write(&job, JOB).unwrap();
        fs::set_permissions(&job, fs::Permissions::from_mode(0o755)).unwrap();
        let workers = evenkeel_testkit::checkout().join("queue/workers");
        Self {
            site,
            session,
            queue,
            script: workers.join(script),
            scratch,
        }
    }

    fn worker(&self) -> Child {
        let mut log = fs::File::options();
        log.create(true).append(true);
        let log = log.open(self.scratch.join("log")).unwrap();
        Command::new(&self.script)
            .arg(self.site.running.socket())
            .args(["root", &format!("shop.{}", self.queue)])
            .arg(self.scratch.join("job"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|why| panic!("{}: {why}: run testkit/setup", self.script.display()))
    }

    fn insert(&mut self, jobs: &[(i32, &str)]) {
        let rows = jobs.iter().map(|(id, what)| format!("({id}, '{what}')"));
        let rows: Vec<String> = rows.collect();
        let sql = format!("INSERT INTO {} VALUES {}", self.queue, rows.join(", "));
        self.session.run(&sql).unwrap();
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.scratch.join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The workers that have begun a job, in that order.
    fn begun(&self, id: i32) -> Vec<u32> {
        let of = |line: String| {
            let (worker, job) = line.split_once(' ').unwrap();
            (job == id.to_string()).then(|| worker.parse().unwrap())
        };
        self.lines("begun").into_iter().filter_map(of).collect()
    }

    fn stat(&mut self, name: &str) -> u64 {
        let sql = format!("SELECT queue_stats('{}')", self.queue);
        let text = self.session.value(&sql).unwrap().unwrap();
        let begin = format!("{name}: ");
        let line = text.lines().find_map(|line| line.strip_prefix(&begin));
        line.unwrap().parse().unwrap()
    }

    fn idle(&mut self, waiters: u64) {
        until("all is done, and they wait", || {
            self.stat("rows") == 0 && self.stat("waiters") == waiters
        });
    }

    fn open(&self, gate: &str) {
        fs::write(self.scratch.join(gate), "").unwrap();
    }

    /// Each job was done so often.
    fn done(&self) -> BTreeMap<i32, usize> {
        let mut done = BTreeMap::new();
        for line in self.lines("done") {
            *done.entry(line.parse().unwrap()).or_default() += 1;
        }
        done
    }

    fn run(mut self) {
        let mut jobs: Vec<(i32, &str)> = (2..=20).map(|id| (id, "quick")).collect();
        jobs.insert(0, (1, "gate1"));
        jobs[9].1 = "fails";
        self.insert(&jobs);
        let mut workers = [self.worker(), self.worker()];
        until("the slow job is in hand", || self.begun(1).len() == 1);
        // Killed in the middle: another does it.
        let holder = self.begun(1)[0];
        let (killed, other) = match workers.iter().position(|one| one.id() == holder) {
            Some(0) => (0, 1),
            Some(_) => (1, 0),
            None => panic!("{holder} is none of ours"),
        };
        workers[killed].kill().unwrap();
        workers[killed].wait().unwrap();
        until("another has it", || self.begun(1).len() == 2);
        assert_eq!(self.begun(1)[1], workers[other].id());
        self.open("gate1");
        self.idle(1);
        assert_eq!(self.begun(10).len(), 2, "one failed, and came again");
        // A connection that is lost is made again.
        let sql = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT queue_wait(%{}%'",
            self.queue
        );
        let ids = self.session.rows(&sql).unwrap();
        let ids: Vec<String> = ids
            .iter()
            .map(|row| row.at(0).unwrap().to_owned())
            .collect();
        let own = self.session.id().to_string();
        let others: Vec<&String> = ids.iter().filter(|id| **id != own).collect();
        assert_eq!(others.len(), 1, "idle is one query: {ids:?}");
        self.session.run(&format!("KILL {}", others[0])).unwrap();
        self.insert(&[(21, "gate2")]);
        until("it works again", || self.begun(21).len() == 1);
        // Told to end with a job in hand: that one is done, and no other.
        self.insert(&[(22, "quick")]);
        let pid = workers[other].id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(sent.success());
        self.open("gate2");
        let ended = workers[other].wait().unwrap();
        assert!(ended.success(), "{ended:?}: {:?}", self.lines("log"));
        let expected: BTreeMap<i32, usize> = (1..=21).map(|id| (id, 1)).collect();
        assert_eq!(self.done(), expected, "{:?}", self.lines("log"));
        until("one row is left", || {
            self.stat("rows") == 1 && self.stat("rows_owned") == 0
        });
        // Idle, it ends at once.
        let mut last = self.worker();
        self.idle(1);
        let pid = last.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        assert!(last.wait().unwrap().success());
        assert_eq!(self.done().get(&22), Some(&1));
    }
}

#[test]
fn in_each_language() {
    let site = QueueSite::start(&[]);
    thread::scope(|scope| {
        for script in ["worker.py", "worker.php", "worker.pl"] {
            let trial = Trial::new(&site, script);
            scope.spawn(move || trial.run());
        }
    });
}
