//! Does the bank's check pass on what is right, and fail on what is wrong?

use evenkeel_op::ErrorKind;
use evenkeel_testkit::{Bank, Marks, Scratch, servers};

#[test]
fn a_killed_server_recovers_to_a_state_between_the_marks() {
    for server in servers() {
        let scratch = Scratch::new();
        let launch = server.prepare(&scratch.join("data"), &[]);
        let running = server.run(&launch);
        let bank = Bank::load(&mut running.session().unwrap(), 200).unwrap();
        let traffic = bank.start(&running.connect_options(), 3).unwrap();
        traffic.wait_for(50);
        let before = traffic.marks();
        running.kill();
        let after = traffic.stop();

        let running = server.run(&launch);
        let mut session = running.session().unwrap();
        assert_eq!(Bank::find(&mut session).unwrap(), bank);
        let state = bank.check(&mut session).unwrap();
        state.check_between(&before, &after).unwrap();
        assert!(state.transfers >= 50, "{}: {state:?}", server.name);

        // Started again, the clients number on.
        let traffic = bank.start(&running.connect_options(), 3).unwrap();
        traffic.wait_for(20);
        let ended = traffic.stop();
        let state = bank.check(&mut session).unwrap();
        assert_eq!(state.last, ended.acknowledged);
    }
}

#[test]
fn every_kind_of_damage_shows() {
    let server = evenkeel_testkit::servers::mariadb_10_11();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("data"), &[]);
    let mut session = running.session().unwrap();
    let bank = Bank::load(&mut session, 50).unwrap();
    let traffic = bank.start(&running.connect_options(), 2).unwrap();
    traffic.wait_for(20);
    let marks = traffic.stop();
    bank.check(&mut session).unwrap();

    // Each with its repair: CHECK TABLE commits, so there is no rolling back.
    let accounts = "UPDATE bank.accounts_1 SET balance = balance";
    let damages = [
        (
            "add up",
            format!("{accounts} + 1 WHERE id = 1"),
            format!("{accounts} - 1 WHERE id = 1"),
        ),
        (
            "explain",
            format!("{accounts} + IF(id = 1, 1, -1) WHERE id IN (1, 5)"),
            format!("{accounts} - IF(id = 1, 1, -1) WHERE id IN (1, 5)"),
        ),
        (
            "numbered",
            "UPDATE bank.ledger SET seq = 100000 WHERE client = 1 AND seq = 1".to_owned(),
            "UPDATE bank.ledger SET seq = 1 WHERE client = 1 AND seq = 100000".to_owned(),
        ),
        (
            "accounts instead",
            "INSERT INTO bank.accounts_1 VALUES (1001, 0, '')".to_owned(),
            "DELETE FROM bank.accounts_1 WHERE id = 1001".to_owned(),
        ),
    ];
    for (word, damage, repair) in damages {
        session.run(&damage).unwrap();
        let error = bank.check(&mut session).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Differs);
        assert!(error.to_string().contains(word), "{damage}: {error}");
        session.run(&repair).unwrap();
        bank.check(&mut session).unwrap();
    }

    let state = bank.check(&mut session).unwrap();
    let mut later = marks.clone();
    *later.acknowledged.get_mut(&0).unwrap() += 1;
    assert!(state.check_between(&later, &marks).is_err());
    assert!(state.check_between(&marks, &Marks::default()).is_err());
    state.check_between(&marks, &marks).unwrap();
}
