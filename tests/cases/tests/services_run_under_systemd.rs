//! Do services do under a real systemd what their units and pages say, confined as the units say?

use evenkeel_cases::house::House;

/// A host with a server, and with the service as `systemctl enable --now` starts it.
fn host(options: &str) -> House {
    let house = House::new("db1", env!("CARGO_BIN_EXE_evenkeel-under-test"));
    house.start_mariadb();
    house.bring_unit("evenkeel-health.service");
    let settings = format!("OPTIONS=\"{options}\"\n");
    house.write("/etc/evenkeel/health.conf", &settings, "600");
    house.run("systemctl enable --now evenkeel-health");
    house.run("systemctl is-active --quiet evenkeel-health");
    house
}

/// Waits for what takes systemd or the service seconds: programs that look for it again at once take a processor.
#[track_caller]
fn until(house: &House, line: &str) {
    house.until(&format!("{line} || {{ sleep 0.3; false; }}"));
}

/// What a load balancer is told: the code of the answer.
#[track_caller]
fn says(house: &House, code: u32) {
    let fetch = "curl -s -o /dev/null -w '%{http_code}' http://localhost:9200/any";
    until(house, &format!("test $({fetch}) = {code}"));
}

fn shown(house: &House, property: &str) -> String {
    let shown = house.run(&format!(
        "systemctl show --value -p {property} evenkeel-health"
    ));
    shown.trim().to_owned()
}

/// Waits until systemd has started the service again for the `times`th time, and says whether it is up.
fn is_started_again(house: &House, times: u32) {
    let restarts = "systemctl show --value -p NRestarts evenkeel-health";
    until(house, &format!("test $({restarts}) = {times}"));
    until(house, "systemctl is-active --quiet evenkeel-health");
}

#[test]
fn it_runs_as_its_unit_says() {
    let house = host("--http=:9200");
    // Ready is said after the first verdict, and its word is shown.
    says(&house, 200);
    assert_eq!(shown(&house, "StatusText"), "1 of 1 servers are up");
    house.run("systemctl stop mariadb");
    says(&house, 503);
    assert_eq!(shown(&house, "StatusText"), "0 of 1 servers are up");
    house.run("systemctl start mariadb");
    says(&house, 200);

    // A drain outlasts the service.
    house.run("evenkeel health drain --reason 'an upgrade'");
    says(&house, 404);
    house.run("systemctl restart evenkeel-health");
    says(&house, 404);
    house.run("evenkeel health undrain");
    says(&house, 200);

    // What others on the host may see of it.
    house.run("test $(stat -c %a /var/lib/private/evenkeel/health /var/lib/evenkeel/health 2>/dev/null | head -n 1) = 700");

    house.run("systemctl stop evenkeel-health");
    assert_eq!(shown(&house, "Result"), "success");
    assert_eq!(shown(&house, "ActiveState"), "inactive");
}

#[test]
fn it_is_started_again() {
    let house = host("--http=:9200");
    // More often than systemd allows a unit that says nothing about it.
    for times in 1..=6 {
        house.run("systemctl kill --signal=KILL evenkeel-health");
        is_started_again(&house, times);
    }
    // Frozen, it feeds no watchdog.
    house.run("systemctl kill --signal=STOP evenkeel-health");
    is_started_again(&house, 7);
    says(&house, 200);
}

/// Options that it does not understand are not tried again each second.
#[test]
fn it_is_not_started_again_with_wrong_options() {
    let house = host("--http=:9200");
    house.write(
        "/etc/evenkeel/health.conf",
        "OPTIONS=--no-such-option\n",
        "600",
    );
    assert!(
        !house
            .output("systemctl restart evenkeel-health")
            .status
            .success()
    );
    house.until("systemctl is-failed --quiet evenkeel-health");
    assert_eq!(shown(&house, "NRestarts"), "0");
    assert_eq!(shown(&house, "ActiveState"), "failed");
}

/// The port is closed by the service itself, once it may do so as the page says.
#[test]
fn it_closes_the_port_only_where_it_may() {
    let house = host("--http=:9200");
    let settings = "OPTIONS=\"--http=:9200 --block 3306\"\n";
    house.write("/etc/evenkeel/health.conf", settings, "600");
    let refused = house.output("systemctl restart evenkeel-health");
    assert!(!refused.status.success(), "it may change rules");

    let page = evenkeel_testkit::checkout().join("docs/src/tasks/health.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, block) = page.split_once("```text\n[Service]\n").unwrap();
    let (drop_in, _) = block.split_once("```").unwrap();
    let place = "/etc/systemd/system/evenkeel-health.service.d/override.conf";
    house.write(place, &format!("[Service]\n{drop_in}"), "644");
    house.run("systemctl daemon-reload; systemctl restart evenkeel-health");
    says(&house, 200);
    house.run("systemctl stop mariadb");
    says(&house, 503);
    let rules = house.run("nft list table inet evenkeel_health_3306");
    assert!(rules.contains("reset"), "{rules}");
    house.run("systemctl start mariadb");
    says(&house, 200);
    house.until("! nft list table inet evenkeel_health_3306 | grep -q reset");
}

/// Over ssh and without, in one run that a timer would start.
#[test]
fn the_fleet_is_backed_up() {
    let house = House::new("db1", env!("CARGO_BIN_EXE_evenkeel-under-test"));
    house.start_mariadb();
    house.start_sshd();
    for unit in ["evenkeel-fleet.service", "evenkeel-fleet.timer"] {
        house.bring_unit(unit);
    }
    house.run("mkdir -p /backup /var/lib/prometheus/node-exporter");
    let list = "[every]\nrepository = \"/backup/{name}\"\n\
                metrics = \"/var/lib/prometheus/node-exporter/evenkeel-{name}.prom\"\n\
                [[server]]\nname = \"shop\"\nssh = \"root@shop.example\"\n\
                [[server]]\nname = \"wiki\"\n";
    house.write("/etc/evenkeel/fleet.toml", list, "600");
    house.run("systemctl enable --now evenkeel-fleet.timer");
    let timers = house.run("systemctl list-timers --no-pager evenkeel-fleet.timer");
    assert!(timers.contains("evenkeel-fleet.service"), "{timers}");
    house.run("systemctl start evenkeel-fleet");
    for name in ["shop", "wiki"] {
        house.run(&format!("evenkeel verify /backup/{name}"));
        house.run(&format!(
            "test -e /var/lib/prometheus/node-exporter/evenkeel-{name}.prom"
        ));
        // Nobody else reads what is backed up.
        house.run(&format!(
            "! setpriv --reuid=nobody --clear-groups ls /backup/{name}"
        ));
    }
    // A member that fails makes the service fail.
    house.run("sed -i 's/shop.example/nowhere.example/' /etc/evenkeel/fleet.toml");
    let failed = house.output("systemctl start evenkeel-fleet");
    assert!(!failed.status.success());
    let said = house.run("journalctl -u evenkeel-fleet -o cat");
    assert!(said.contains("nowhere.example"), "{said}");
}
