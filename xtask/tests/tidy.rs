//! Are the rules of the house kept?

#[test]
fn every_rule_is_kept() {
    evenkeel_xtask::tidy::check(&evenkeel_xtask::root()).unwrap();
}
