//! How lanes are named in commands: by the beginning of their names, and by the current folder.

use proq_test_kit::Sandbox;

fn with_lanes(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in names {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
    }
    sandbox
}

/// Returns the names of the present lanes.
fn lanes(sandbox: &Sandbox) -> Vec<String> {
    let list = sandbox.proq(&["list", "--json"]).json();
    let names =
        list["lanes"].as_array().unwrap().iter().map(|lane| lane["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn unique_beginning_of_a_name_names_the_lane() {
    let sandbox = with_lanes(&["payments", "pay-2", "docs"]);
    for given in ["d", "do", "DOCS", "proq/do"] {
        assert!(sandbox.proq(&["show", given]).ok().starts_with("lane       docs\n"), "{given}");
    }
    insta::assert_snapshot!(sandbox.proq(&["discard", "pay"]).fails(1), @r"
    error: lane 'pay' is ambiguous; it can be pay-2, payments
    hint: see all lanes: git proq list
    ");
    for command in ["show", "diff", "logs", "preview", "merge", "resolve", "send", "sync", "matrix"] {
        let out = sandbox.proq(&[command, "pay"]).fails(1);
        assert!(out.contains("is ambiguous"), "{command}: {out}");
    }
    let _ = sandbox.proq(&["discard", "paym"]).ok();
    assert_eq!(lanes(&sandbox), ["docs", "pay-2"]);
    let _ = sandbox.proq(&["discard", ""]).fails(1);
    assert_eq!(lanes(&sandbox), ["docs", "pay-2"]);
}

#[test]
fn whole_name_and_group_come_before_a_beginning() {
    let sandbox = with_lanes(&["pay", "payments"]);
    assert!(sandbox.proq(&["show", "pay"]).ok().starts_with("lane       pay\n"));
    let _ = sandbox.proq(&["spawn", "--count", "2", "-n", "pa", "--", "true"]).ok();
    let out = sandbox.proq(&["wait", "pa", "--json"]).json();
    let waited: Vec<&str> =
        out["lanes"].as_array().unwrap().iter().map(|lane| lane["lane"].as_str().unwrap()).collect();
    assert_eq!(waited, ["pa-1", "pa-2"]);
}

#[test]
fn name_of_a_landed_lane_is_no_beginning() {
    let sandbox = with_lanes(&["payments"]);
    sandbox.lane_with_commit("pay", "echo pay > pay");
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    let commit = sandbox.git(&["rev-parse", "--short=8", "main"]);
    for command in ["show", "merge", "discard"] {
        let out = sandbox.proq(&[command, "pay"]).fails(1);
        let problem = format!("error: there is no lane 'pay': it landed on main as {commit} 0s ago\n");
        let hints = "hint: see what it was: git proq show pay@1\nhint: see all: git proq list\n";
        assert_eq!(out, problem + hints, "{command}");
    }
    assert_eq!(lanes(&sandbox), ["payments"]);
}

#[test]
fn agent_lane_is_never_found_by_a_beginning() {
    let sandbox = with_lanes(&["payments"]);
    for args in
        [&["merge", "pay"][..], &["sync", "pay"], &["resolve", "pay", "--abort"], &["redispatch", "pay"]]
    {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PROQ_LANE", "pay").env("PROQ_ATTEMPT", "1");
        let out = sandbox.output(command).fails(1);
        assert!(out.contains("this is the agent of lane 'pay'"), "{out}");
    }
}

#[test]
fn commands_in_a_lane_mean_that_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("docs", "mkdir deep; echo one > deep/one");
    let inside = sandbox.lane_path("docs").join("deep");
    let in_lane = |args: &[&str]| sandbox.proq_in(&inside, args);
    assert!(in_lane(&["show"]).ok().starts_with("lane       docs\n"));
    assert!(in_lane(&["diff", "--stat"]).ok().contains("deep/one"));
    assert_eq!(in_lane(&["stop", "--dry-run", "--json"]).json()["stopped"][0], "docs");
    assert_eq!(in_lane(&["preview", "--dry-run", "--json"]).json()["lane"], "docs");
    assert_eq!(in_lane(&["open"]).ok(), "[ROOT]/repo/.proq-worktrees/docs\n");
    assert_eq!(in_lane(&["edit", "--title", "Deep", "--json"]).json()["lane"], "docs");
    let _ = in_lane(&["discard"]).fails(2);
    assert_eq!(in_lane(&["merge", "--dry-run", "--json"]).json()["lanes"][0]["lane"], "docs");
    for command in ["show", "diff", "logs", "stop", "open", "resolve", "sync"] {
        let out = sandbox.proq(&[command]).fails(2);
        assert!(out.contains("no lane given"), "{command}: {out}");
    }
}

#[test]
fn text_with_a_space_is_sent_to_the_lane_of_the_folder() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("docs", "echo one > one");
    let out = sandbox.proq_in(&sandbox.lane_path("docs"), &["send", "also handle refunds"]).fails(1);
    assert!(!out.contains("there is no lane"), "{out}");
    let out = sandbox.proq(&["send", "also handle refunds"]).fails(2);
    assert!(out.contains("no lane given"), "{out}");
}

#[test]
fn capitals_of_a_name_become_small_letters() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "Payments"]).ok();
    assert_eq!(lanes(&sandbox), ["payments"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "My Lane"]).fails(2), @"
    error: cannot name a lane 'my lane': only lower-case letters, digits, '.', '_' and '-' are allowed
    hint: use a valid name: -n my-lane
    ");
}
