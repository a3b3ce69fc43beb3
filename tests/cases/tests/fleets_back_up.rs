//! Does one command back up servers of every kind that a list names, whichever of them is down, each
//! by its own option file and into its own repository?

use evenkeel_cases::Site;
use evenkeel_cases::leftovers::{assert_only_the_base, assert_unharmed};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_op::exit;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, Scratch};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const GIB: u64 = 1 << 30;
const SECRET: &str = "only in the option file";

struct Case {
    // In the order of the list.
    sites: [(&'static str, Site); 3],
    scratch: Scratch,
    evenkeel: Evenkeel,
}

impl Case {
    fn start() -> Self {
        let start = |server| Site::start(server, LoopFs::xfs(2 * GIB), 500, &[]);
        let case = Self {
            sites: [
                ("maria", start(mariadb_10_11())),
                ("my8", start(mysql_8_0_15())),
                ("my57", start(mysql_5_7_22())),
            ],
            scratch: Scratch::new(),
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
        };
        let mut list = format!(
            "[every]\nrepository = '{0}/{{name}}'\ndefaults-file = '{0}/{{name}}.cnf'\n\
             metrics = '{0}/{{name}}.prom'\nmax-impact = 100\nkeep-last = 2\n",
            case.scratch.path().display()
        );
        for (name, site) in &case.sites {
            list.push_str(&format!("[[server]]\nname = '{name}'\n"));
            let mut session = site.running().session().unwrap();
            for sql in [
                format!("CREATE USER keeper@localhost IDENTIFIED BY '{SECRET}'"),
                "GRANT ALL ON *.* TO keeper@localhost".to_owned(),
            ] {
                session.run(&sql).unwrap();
            }
            case.write_options(name, site);
        }
        fs::write(case.scratch.join("fleet.toml"), list).unwrap();
        case
    }

    fn write_options(&self, name: &str, site: &Site) {
        let socket = site.running().socket().display();
        let options = format!("[client]\nuser=keeper\npassword=\"{SECRET}\"\nsocket={socket}\n");
        let path = self.scratch.join(format!("{name}.cnf"));
        fs::write(&path, options).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn run(&self, jobs: u32, words: &[&str]) -> Ended {
        let mut command = self.evenkeel.command(&["fleet"]);
        command.arg(self.scratch.join("fleet.toml"));
        command.arg(format!("--jobs={jobs}")).arg("--").args(words);
        run(command)
    }

    fn metric(&self, server: &str, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.scratch.join(format!("{server}.prom"))).unwrap();
        let begin = format!("evenkeel_backup_{name}{{");
        let line = text.lines().find(|line| line.starts_with(&begin))?;
        line.rsplit_once(' ').map(|(_, value)| value.to_owned())
    }
}

fn each(ended: &Ended, field: &str) -> Vec<Value> {
    let servers = ended.answer["servers"].as_array().expect("servers");
    servers.iter().map(|one| one[field].clone()).collect()
}

fn each_answer(ended: &Ended, field: &str) -> Vec<Value> {
    let answers = each(ended, "answer");
    answers.iter().map(|answer| answer[field].clone()).collect()
}

#[test]
fn those_that_answer_are_backed_up_and_those_that_do_not_are_named() {
    let mut case = Case::start();
    case.sites[2].1.kill();
    let ended = case.run(3, &["backup"]);
    assert_eq!(ended.code, Some(i32::from(exit::PARTIAL)), "{ended:?}");
    assert_eq!(ended.answer["schema"], "evenkeel/fleet/1");
    assert_eq!(each(&ended, "name"), ["maria", "my8", "my57"]);
    assert_eq!(each(&ended, "exit_code"), [0, 0, exit::UNREACHABLE]);
    assert_eq!(
        each_answer(&ended, "generation"),
        [json!(1), json!(1), Value::Null]
    );
    assert_eq!(each_answer(&ended, "kind"), ["full", "full", "unreachable"]);
    assert_eq!(case.metric("maria", "last_run_exit_code").unwrap(), "0");
    assert_eq!(case.metric("my57", "last_run_exit_code").unwrap(), "13");
    assert_eq!(case.metric("my57", "generation"), None);

    let (_, down) = &mut case.sites[2];
    down.running = Some(down.server.run(&down.launch));
    case.write_options("my57", &case.sites[2].1);
    let ended = case.run(1, &["backup"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(each_answer(&ended, "generation"), [2, 2, 1]);
    let kinds = ["incremental", "incremental", "full"];
    assert_eq!(each_answer(&ended, "kind"), kinds);
    assert_eq!(case.metric("my57", "generation").unwrap(), "1");

    let ended = case.run(2, &["backup"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let gone: Vec<Value> = each_answer(&ended, "forgotten");
    let gone: Vec<&Value> = gone.iter().map(|one| &one["remove"]).collect();
    assert_eq!(gone, [&json!([1]), &json!([1]), &json!([])]);
    let ended = case.run(3, &["verify", "--all"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (name, site) in &case.sites {
        assert_unharmed(site.running(), name);
        assert_only_the_base(site.fs.path(), name);
    }
    assert!(!ended.said.contains(SECRET));
}
