//! Owns the tests of `git proq spawn`.

use super::support::Sandbox;

#[test]
fn a_lane_is_made_and_its_agent_works_there() {
    let sandbox = Sandbox::new();
    let out = sandbox.proq(&["spawn", "--wait", "-n", "pay", "--", "sh", "-c", "echo pay > pay.txt"]);
    insta::assert_snapshot!(out.shown(), @r"
    pay: done
    --- code 0
    ");
    assert_eq!(std::fs::read_to_string(sandbox.lane("pay").join("pay.txt")).unwrap(), "pay\n");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/pay"]), "sh -c echo pay > pay.txt");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}
