//! Does the archive of a server's logs continue with the server that took over, each transaction once,
//! and say where that one lacks something?

use evenkeel_cases::failpoints::LINKING;
use evenkeel_cases::points::{
    Mark, add, archive, archive_command, make_table, mark, restore_to, restore_to_command, rows_of,
};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Bank, By, LoopFs, TestServer, until, wait_until_caught_up};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Stdio};

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// A server with a bank, and its replica.
struct Pair {
    site: Site,
    replica: Option<(Running, Launch)>,
}

fn options(server: &TestServer, id: &'static str) -> Vec<&'static str> {
    let own = SMALL.iter().filter(|arg| !arg.starts_with("--server-id"));
    let mut args: Vec<&str> = own.copied().collect();
    args.extend(By::Gtid.options(server));
    args.push(id);
    args
}

impl Pair {
    fn start(server: TestServer) -> Self {
        let fs = LoopFs::xfs(4 << 30);
        let plan = |name: &str, id: &'static str| {
            let args = options(&server, id);
            server.prepare(&fs.join(name), &args).with_networking()
        };
        let (first, second) = (
            plan("first", "--server-id=1"),
            plan("second", "--server-id=2"),
        );
        let running = server.run(&first);
        let replica = server.run(&second);
        // Their files have other numbers.
        let mut session = replica.session().unwrap();
        for _ in 0..3 {
            session.run("FLUSH LOGS").unwrap();
        }
        By::allow(&running);
        By::Gtid.follow(&running, &replica);
        let bank = Bank::load(&mut running.session().unwrap(), 200).unwrap();
        make_table(&mut running.session().unwrap());
        let site = Site {
            running: Some(running),
            launch: first,
            bank,
            server,
            fs,
        };
        Self {
            site,
            replica: Some((replica, second)),
        }
    }

    fn session(&self) -> Session {
        self.site.running().session().unwrap()
    }

    fn replica(&self) -> &Running {
        &self.replica.as_ref().unwrap().0
    }

    fn catch_up(&self) {
        wait_until_caught_up(self.site.running(), self.replica());
    }

    /// The first server dies, the other takes over.
    fn fail_over(&mut self) {
        let (running, launch) = self.replica.take().unwrap();
        self.site.kill();
        let mut session = running.session().unwrap();
        for sql in ["STOP SLAVE", "RESET SLAVE ALL"] {
            let newer = sql.replace("SLAVE", "REPLICA");
            if session.run(sql).is_err() {
                session.run(&newer).unwrap();
            }
        }
        (self.site.running, self.site.launch) = (Some(running), launch);
    }

    fn restore(&self, to: &str) -> (Ended, String) {
        let target = self.site.fs.join("restored");
        let _ = std::fs::remove_dir_all(&target);
        let ended = restore_to(&evenkeel(), &self.site, &target, to);
        let state = match ended.code {
            Some(0) => {
                let running = self.site.server.run(&self.plain(&target));
                let state = state(&mut running.session().unwrap());
                running.kill();
                state
            }
            _ => String::new(),
        };
        (ended, state)
    }

    fn plain(&self, datadir: &Path) -> Launch {
        let mut launch = self.site.launch.clone();
        launch.datadir = datadir.to_owned();
        launch
    }

    fn on_repository(&self, args: &[&str]) -> Ended {
        let mut command = evenkeel().command(args);
        command.arg(self.site.repository());
        run(command)
    }
}

/// The rows by which a point is known, and checksums of everything else.
fn state(session: &mut Session) -> String {
    let rows = session
        .value("SELECT COALESCE(GROUP_CONCAT(id ORDER BY id), '') FROM points.n")
        .unwrap()
        .unwrap();
    let tables = session
        .rows(
            "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables \
             WHERE table_schema IN ('bank', 'points') ORDER BY 1",
        )
        .unwrap();
    let mut state = rows;
    for table in tables {
        let table = table.at(0).unwrap();
        let sum = session.one(&format!("CHECKSUM TABLE {table}")).unwrap();
        state.push_str(&format!(" {table}={:?}", sum.unwrap().at(1)));
    }
    state
}

fn gtid(mark: &Mark) -> String {
    format!("gtid:{}", mark.gtid)
}

/// GTID of the server's last transaction, of those that it wrote itself.
fn own(session: &mut Session) -> Mark {
    let mut mark = mark(session);
    if mark.gtid.contains(':') {
        let own = session.value("SELECT @@server_uuid").unwrap().unwrap();
        let set = session
            .value("SELECT @@global.gtid_executed")
            .unwrap()
            .unwrap();
        let range = set
            .split(',')
            .find_map(|one| one.trim().strip_prefix(&own)?.strip_prefix(':'))
            .unwrap();
        let last = range.rsplit(['-', ':']).next().unwrap();
        mark.gtid = format!("{own}:{last}");
    }
    mark
}

/// A transaction of several statements.
fn add_two(session: &mut Session) {
    for sql in [
        "BEGIN",
        "INSERT INTO points.n VALUES (2)",
        "INSERT INTO points.n VALUES (3)",
        "COMMIT",
    ] {
        session.run(sql).unwrap();
    }
}

/// Of all histories, one goes on from another.
fn assert_one_link(pair: &Pair) {
    let listed = pair.on_repository(&["binlog", "list"]);
    let links = listed.answer["sources"].as_array().unwrap().iter();
    let links = links.filter_map(|one| one["timelines"][0]["follows"].as_array());
    assert_eq!(links.map(Vec::len).collect::<Vec<_>>(), [1], "{listed:?}");
}

/// Archives the second server's logs; killed behind the link and before the log, a run is as if it had
/// not begun.
fn resume_after_a_kill(pair: &Pair) {
    let command = archive_command(&evenkeel(), &pair.site, &[]);
    let killed = run(killed_at(command, LINKING[0]));
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    let linked = archive(&evenkeel(), &pair.site, &[]);
    assert_eq!(linked.code, Some(0), "{linked:?}");
    assert!(linked.answer["follows"].is_object(), "{linked:?}");
}

/// From a generation of the first server to points on the second: the same rows as there were.
fn followed(server: TestServer) {
    let mut pair = Pair::start(server);
    let mut session = pair.session();
    add(&mut session, 1);
    assert_eq!(run(evenkeel().backup(&pair.site, &[])).generation(), 1);
    let traffic = pair.site.traffic(3);
    traffic.wait_for(60);
    assert_eq!(archive(&evenkeel(), &pair.site, &[]).code, Some(0));
    pair.replica().session().unwrap().run("FLUSH LOGS").unwrap();
    traffic.wait_for(60);
    drop(traffic.stop());
    add_two(&mut session);
    let three = own(&mut session);
    let last = state(&mut session);
    pair.catch_up();
    assert_eq!(archive(&evenkeel(), &pair.site, &[]).code, Some(0));
    drop(session);
    pair.fail_over();

    let mut session = pair.session();
    add(&mut session, 10);
    let (ten, at_ten) = (own(&mut session), state(&mut session));
    resume_after_a_kill(&pair);
    session.run("FLUSH LOGS").unwrap();
    let traffic = pair.site.traffic(3);
    traffic.wait_for(60);
    drop(traffic.stop());
    add(&mut session, 11);
    let (eleven, at_eleven) = (own(&mut session), state(&mut session));
    let resumed = archive(&evenkeel(), &pair.site, &[]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(!resumed.said.contains("new timeline"), "{resumed:?}");
    assert_one_link(&pair);

    // The first point on the second server follows below.
    for (to, wanted) in [
        (gtid(&three), &last),
        (format!("before:{}", ten.gtid), &last),
        (gtid(&eleven), &at_eleven),
    ] {
        let (ended, state) = pair.restore(&to);
        assert_eq!(ended.code, Some(0), "{to}: {ended:?}");
        assert_eq!(state, *wanted, "{to}: {ended:?}");
        if to == gtid(&eleven) {
            let seams = ended.answer["point"]["seams"].as_array().map(Vec::len);
            assert_eq!(seams, Some(1), "{ended:?}");
        }
    }

    // A generation of the second makes the first one's logs no less needed, nor its own.
    // That it took the other's place is what whoever runs it has to say.
    let refused = run(evenkeel().backup(&pair.site, &[]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.message().contains("holds backups of"),
        "{refused:?}"
    );
    let second = run(evenkeel().backup(&pair.site, &["--new-source"]));
    assert_eq!(second.generation(), 2);
    let pruned = pair.on_repository(&["prune", "--execute"]);
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    let sound = pair.on_repository(&["verify", "--all"]);
    assert_eq!(sound.code, Some(0), "{sound:?}");
    let (ended, state) = pair.restore(&gtid(&ten));
    assert_eq!((ended.code, state), (Some(0), at_ten), "{ended:?}");
}

/// What the archive has and the second server lacks is named, and nothing goes on over it.
fn torn(server: TestServer) {
    let mut pair = Pair::start(server);
    let mut session = pair.session();
    add(&mut session, 1);
    assert_eq!(run(evenkeel().backup(&pair.site, &[])).generation(), 1);
    pair.catch_up();
    let mut replica = pair.replica().session().unwrap();
    if replica.run("STOP SLAVE").is_err() {
        replica.run("STOP REPLICA").unwrap();
    }
    add(&mut session, 99);
    let lost = own(&mut session);
    let at_lost = state(&mut session);
    assert_eq!(archive(&evenkeel(), &pair.site, &[]).code, Some(0));
    drop((session, replica));
    pair.fail_over();
    let mut session = pair.session();
    add(&mut session, 10);
    let ten = own(&mut session);
    let archived = archive(&evenkeel(), &pair.site, &[]);
    assert_eq!(archived.code, Some(3), "{archived:?}");
    let why = archived.answer["does_not_follow"]
        .as_str()
        .unwrap_or_default();
    assert!(why.contains(&lost.gtid), "{archived:?}");

    // What was lost is in the archive, and what came after is behind no generation yet.
    let (ended, state_lost) = pair.restore(&gtid(&lost));
    assert_eq!((ended.code, state_lost), (Some(0), at_lost), "{ended:?}");
    let (refused, _) = pair.restore(&gtid(&ten));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    let second = run(evenkeel().backup(&pair.site, &["--new-source"]));
    assert_eq!(second.generation(), 2);
    add(&mut session, 11);
    let (eleven, at_eleven) = (own(&mut session), state(&mut session));
    assert_eq!(archive(&evenkeel(), &pair.site, &[]).code, Some(0));
    let (ended, state) = pair.restore(&gtid(&eleven));
    assert_eq!((ended.code, state), (Some(0), at_eleven), "{ended:?}");
}

/// Who archives may not read the log: what ends a segment's header is enough.
#[test]
fn followed_by_one_who_cannot_read() {
    let mut pair = Pair::start(mysql_8_0_15());
    let identity = |name: &str| {
        let file = pair.site.fs.join(name).display().to_string();
        let made = run(evenkeel().command(&["keys", "generate", "--output", &file]));
        let recipient = made.answer["recipient"].as_str().expect("a recipient");
        (file, recipient.to_owned())
    };
    let ((admin, reader), (host, _)) = (identity("admin.key"), identity("host.key"));
    let flags = ["--identity", &host, "--encrypt-to", &reader];
    assert_eq!(run(evenkeel().backup(&pair.site, &flags)).generation(), 1);
    add(&mut pair.session(), 1);
    pair.catch_up();
    let archived = archive(&evenkeel(), &pair.site, &["--identity", &host]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    pair.fail_over();
    let mut session = pair.session();
    add(&mut session, 2);
    let two = own(&mut session);
    let linked = archive(&evenkeel(), &pair.site, &["--identity", &host]);
    assert_eq!(linked.code, Some(0), "{linked:?}");
    assert!(linked.answer["follows"].is_object(), "{linked:?}");
    let target = pair.site.fs.join("restored");
    let mut command = restore_to_command(&evenkeel(), &pair.site, &target, &gtid(&two));
    command.args(["--identity", &admin]);
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows_of(&pair.site, &target), "1,2");
}

fn stop(follower: Child) -> Ended {
    kill_process(Pid::from_child(&follower), Signal::TERM).unwrap();
    Ended::of(&follower.wait_with_output().unwrap())
}

/// The name that the run was given leads to the other server now: it goes on by itself.
#[test]
fn a_run_that_follows_continues_with_the_other_server() {
    let mut pair = Pair::start(mariadb_10_11());
    let socket = pair.site.fs.join("socket");
    let link = |pair: &Pair| {
        let _ = std::fs::remove_file(&socket);
        std::os::unix::fs::symlink(pair.site.running().socket(), &socket).unwrap();
    };
    link(&pair);
    let mut session = pair.session();
    assert_eq!(run(evenkeel().backup(&pair.site, &[])).generation(), 1);
    let mut command = evenkeel().command(&["binlog", "archive", "--no-defaults", "-u", "root"]);
    command.arg("-S").arg(&socket).arg(pair.site.repository());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let follower = command.spawn().unwrap();
    let one = add(&mut session, 1);
    pair.catch_up();
    let archived = |pair: &Pair, mark: &Mark| {
        let listed = pair.on_repository(&["binlog", "list"]);
        let sources = listed.answer["sources"].as_array().cloned();
        let mut sources = sources.unwrap_or_default().into_iter();
        sources.any(|one| one["timelines"][0]["last_gtid"] == mark.gtid.as_str())
    };
    until("the row is archived", || archived(&pair, &one));
    drop(session);
    pair.fail_over();
    link(&pair);
    let mut session = pair.session();
    let two = add(&mut session, 2);
    let at_two = state(&mut session);
    until("the other server's is archived", || archived(&pair, &two));
    let ended = stop(follower);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.answer["follows"].is_object(), "{ended:?}");
    let (ended, state) = pair.restore(&gtid(&two));
    assert_eq!((ended.code, state), (Some(0), at_two), "{ended:?}");
}

// One of the three servers in each run.

#[test]
fn followed_on_mariadb_10_11() {
    share("followed", &[mariadb_10_11()], Part::new(2, 3))
        .into_iter()
        .for_each(followed);
}

#[test]
fn followed_on_mysql() {
    share(
        "followed",
        &[mysql_8_0_15(), mysql_5_7_22()],
        Part::new(1, 3),
    )
    .into_iter()
    .for_each(followed);
}

// One of the two in each run.

#[test]
fn torn_on_mariadb_10_11() {
    share("torn", &[mariadb_10_11()], Part::new(0, 2))
        .into_iter()
        .for_each(torn);
}

#[test]
fn torn_on_mysql_8_0_15() {
    share("torn", &[mysql_8_0_15()], Part::new(1, 2))
        .into_iter()
        .for_each(torn);
}
