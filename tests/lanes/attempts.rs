//! Tests of concurrent attempts at one task: all-or-nothing creation, one undo, grouped display.

use proq_test_kit::Sandbox;

/// Creates a sandbox with an agent that leaves an uncommitted file, which git-proq commits.
fn with_robot() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "echo \"$PROQ_LANE\" > made.txt");
    sandbox
}

#[test]
fn attempts_share_start_commit_and_group() {
    let sandbox = with_robot();
    let out = sandbox.proq(&["spawn", "--wait", "--count", "3", "-n", "pay", "robot", "implement payments"]);
    insta::assert_snapshot!(out.to_text(), @r"
    pay-1: done
    pay-2: done
    pay-3: done
    --- stderr
    hint: compare them: git proq compare pay
    --- code 0
    ");
    let main = sandbox.git(&["rev-parse", "main"]);
    for name in ["pay-1", "pay-2", "pay-3"] {
        let lane = sandbox.proq(&["show", "--json", name]).json();
        assert_eq!((&lane["start"], &lane["group"]), (&main.clone().into(), &"pay".into()));
        assert_eq!((&lane["agent"], lane["task"].as_str()), (&"robot".into(), Some("implement payments")));
        assert_eq!(
            std::fs::read_to_string(sandbox.lane_path(name).join("made.txt")).unwrap(),
            format!("{name}\n")
        );
    }
    assert!(sandbox.proq(&["show", "pay-2"]).ok().contains("group      pay: git proq compare pay\n"));
    sandbox.assert_healthy();
}

#[test]
fn agents_list_creates_attempts_per_agent() {
    let sandbox = with_robot();
    sandbox.program("other", "exit 3");
    let args = ["spawn", "--json", "--wait", "--agents", "robot:2,other", "implement payments"];
    let out = sandbox.proq(&args);
    let answer = out.json();
    let _ = out.fails(4);
    assert_eq!((&answer["group"], &answer["dry_run"]), (&"implement-payments".into(), &false.into()));
    let rows = answer["lanes"].as_array().unwrap().iter();
    let lane_states: Vec<[&str; 3]> =
        rows.map(|row| ["lane", "agent", "state"].map(|key| row[key].as_str().unwrap())).collect();
    assert_eq!(
        lane_states,
        [
            ["implement-payments-1", "robot", "done"],
            ["implement-payments-2", "robot", "done"],
            ["implement-payments-3", "other", "failed"]
        ]
    );
    // The next group of that prompt gets a free name that is not a lane's either.
    let answer = sandbox.proq(&["spawn", "--json", "--count", "1", "robot", "implement payments"]).json();
    assert_eq!(answer["group"], "implement-payments-4");
    assert_eq!(answer["lanes"][0]["lane"], "implement-payments-4-1");
    let text = sandbox
        .proq_command(&sandbox.repo, &["spawn", "--wait", "--agents", "robot:2", "-n", "piped", "-f", "-"]);
    let _ = sandbox.output_with(text, b"from a pipe\n").ok();
    assert_eq!(sandbox.proq(&["show", "--json", "piped-2"]).json()["task"], "from a pipe\n");
}

#[test]
fn dry_run_lists_attempts_and_creates_nothing() {
    let sandbox = with_robot();
    let out = sandbox.proq(&[
        "spawn",
        "--dry-run",
        "--count",
        "2",
        "-n",
        "pay",
        "--check",
        "make",
        "--",
        "robot",
        "now",
    ]);
    insta::assert_snapshot!(out.to_text(), @r"
    would create 2 attempts of group 'pay'
      from      7f85e07d (main)
      check     `make`
      pay-1 on proq/pay-1: [ROOT]/bin/robot now
      pay-2 on proq/pay-2: [ROOT]/bin/robot now
    --- code 0
    ");
    let answer = sandbox.proq(&["spawn", "--dry-run", "--json", "--agents", "robot:2", "pay"]).json();
    assert_eq!(answer["lanes"][1]["branch"], "proq/pay-2");
    assert_eq!(answer["dry_run"], true);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

/// Promise: concurrency/attempts-atomic
#[test]
fn creates_nothing_when_one_attempt_is_invalid() {
    let sandbox = with_robot();
    let spawn = |more: &[&str]| sandbox.proq(&[&["spawn"], more].concat());
    let _ = spawn(&["--agents", "robot,no-such-agent", "pay"]).fails(1);
    let _ = spawn(&["--agents", "robot:0", "pay"]).fails(2);
    let _ = spawn(&["--agents", "robot", "robot", "pay"]).fails(2);
    let _ = spawn(&["--count", "0", "robot", "pay"]).fails(2);
    let _ = spawn(&["--count", "2", "--auto-merge", "robot", "pay"]).fails(2);
    let _ = spawn(&["--count", "2", "-n", "../pay", "robot", "pay"]).fails(2);
    let _ = spawn(&["--count", "2", "-n", &"x".repeat(63), "robot", "pay"]).fails(2);
    let _ = spawn(&["--count", "2", "robot"]).fails(2);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    sandbox.git(&["branch", "proq/pay-2"]);
    let out = spawn(&["--count", "3", "-n", "pay", "robot", "pay"]).fails(1);
    assert!(out.contains("cannot create branch 'proq/pay-2': it exists"), "{out}");
    assert_eq!(sandbox.lane_leftovers(), ["refs/heads/proq/pay-2"]);
    // A name derived from the prompt skips the taken branch.
    let answer = sandbox.proq(&["spawn", "--json", "--count", "2", "robot", "pay"]).json();
    assert_eq!(answer["group"], "pay-2");
}

#[test]
fn group_name_is_reserved_while_an_attempt_exists() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "2", "-n", "pay"]).ok();
    let _ = sandbox.proq(&["discard", "pay-1"]).ok();
    let out = sandbox.proq(&["spawn", "--empty", "--count", "1", "-n", "pay"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot create group 'pay': lane 'pay-2' is an attempt of an earlier group with this name
    hint: compare its attempts: git proq compare pay
    --- code 1
    ");
    let _ = sandbox.proq(&["discard", "pay-2"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay"]).ok();
    let out = sandbox.proq(&["spawn", "--empty", "--count", "1", "-n", "pay"]).fails(1);
    assert!(out.contains("a lane with this name exists"), "{out}");
}

#[test]
fn reports_unstartable_attempt_and_runs_the_others() {
    let sandbox = with_robot();
    sandbox.program("broken", "true");
    sandbox.sh_in(&sandbox.root(), "printf '#!/no/such/interpreter\\n' > bin/broken");
    let out = sandbox.proq(&["spawn", "-n", "pay", "--agents", "broken,robot", "pay"]);
    insta::assert_snapshot!(out.to_text(), @r"
    lane 'pay-1' on branch proq/pay-1, from main
    lane 'pay-2' on branch proq/pay-2, from main; robot is running there
    --- stderr
    error: created lane 'pay-1', but its agent did not start: cannot start '[ROOT]/bin/broken': its interpreter '/no/such/interpreter' does not exist
    hint: remove the lane: git proq discard pay-1
    hint: wait for them: git proq wait pay
    hint: compare them: git proq compare pay
    --- code 4
    ");
    assert_eq!(sandbox.proq(&["wait", "pay-2"]).ok(), "pay-2: done\n");
    assert_eq!(sandbox.row("pay-1")["state"], "failed");
}

/// Returns the traces of lanes without those that expire.
fn lasting_traces(sandbox: &Sandbox) -> Vec<String> {
    sandbox.lane_leftovers().into_iter().filter(|t| !t.starts_with("refs/proq/")).collect()
}

/// Promise: concurrency/attempts-atomic
#[test]
fn one_undo_removes_all_attempts_or_none() {
    let sandbox = with_robot();
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(lasting_traces(&sandbox), [""; 0]);
    let _ = sandbox.proq(&["op", "redo"]).ok();
    let rows = sandbox.proq(&["list", "--json"]).json();
    assert_eq!(rows["lanes"].as_array().unwrap().len(), 3);
    let _ = sandbox.proq(&["undo"]).ok();
    // If one of them has work, undo removes none.
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
    sandbox.commit_in_lane("pay-2", "echo work > work.txt");
    let before = lasting_traces(&sandbox);
    let out = sandbox.proq(&["undo"]).fails(1);
    assert!(out.contains("cannot remove lane 'pay-2': 1 commit that is not on main"), "{out}");
    assert_eq!(lasting_traces(&sandbox), before);
    let tip = sandbox.git(&["rev-parse", "proq/pay-2"]);
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let saved = sandbox.git(&["for-each-ref", "--contains", &tip, "--format=%(refname)", "refs/proq/saved"]);
    assert!(saved.starts_with("refs/proq/saved/pay-2-"), "{saved}");
    sandbox.assert_healthy();
}

/// Promise: concurrency/attempts-atomic
#[cfg(debug_assertions)]
#[test]
fn kill_during_creation_leaves_no_attempt() {
    for at in ["worktree.added:2", "step.after:4", "step.before:7"] {
        let sandbox = Sandbox::new();
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "--count", "3", "-n", "pay"]);
        command.env("PROQ_TEST_DIE_AT", at);
        assert_eq!(sandbox.output(command).code, 137, "{at}");
        let _ = sandbox.proq(&["list"]).ok();
        assert_eq!(sandbox.lane_leftovers(), [""; 0], "{at}");
        let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
        sandbox.assert_healthy();
    }
}

#[test]
fn list_groups_attempts_with_the_title_of_each() {
    let sandbox = with_robot();
    let _ =
        sandbox.proq(&["spawn", "--wait", "--count", "10", "-n", "pay", "robot", "implement payments"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay-10-more"]).ok();
    let _ = sandbox.proq(&["edit", "pay-3", "--title", "the long way"]).ok();
    let out = sandbox.proq(&["list"]).ok();
    let shown: Vec<(&str, &str)> = out
        .lines()
        .skip(1)
        .map(|line| (line.split(' ').next().unwrap(), line.rsplit("0s ago").next().unwrap().trim()))
        .collect();
    let names: Vec<&str> = shown.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "pay-1",
            "pay-2",
            "pay-3",
            "pay-4",
            "pay-5",
            "pay-6",
            "pay-7",
            "pay-8",
            "pay-9",
            "pay-10",
            "pay-10-more"
        ]
    );
    let titles: Vec<&str> = shown.iter().take(5).map(|(_, title)| *title).collect();
    assert_eq!(
        titles,
        [
            "implement payments",
            "implement payments",
            "the long way",
            "implement payments",
            "implement payments"
        ]
    );
    assert_eq!(sandbox.row("pay-1")["group"], "pay");
    let out = sandbox.proq(&[]);
    assert!(
        out.stderr.contains("hint: compare the attempts at 'pay': git proq compare pay\n"),
        "{}",
        out.stderr
    );
    assert!(!out.stderr.contains("merge --all"), "{}", out.stderr);
}

/// Promise: concurrency/attempts-choice
#[test]
fn merge_all_leaves_out_rival_attempts() {
    let sandbox = with_robot();
    let _ =
        sandbox.proq(&["spawn", "--wait", "--count", "2", "-n", "pay", "robot", "implement payments"]).ok();
    sandbox.run_lane("other", "echo o > other.txt");
    let out = sandbox.proq(&["merge", "--all"]);
    insta::assert_snapshot!(out.to_text(), @"
    landed other on main (ed3c003d)
    --- stderr
    skipped pay-1: it is one of 2 attempts; to merge it: git proq pick pay-1
    skipped pay-2: it is one of 2 attempts; to merge it: git proq pick pay-2
    hint: undo it: git proq undo
    --- code 0
    ");
    // The last attempt left needs no choice.
    let _ = sandbox.proq(&["discard", "--force", "pay-1"]).ok();
    assert!(sandbox.proq(&["merge", "--all"]).ok().contains("landed pay-2 on main"));
}

#[test]
fn redispatched_attempt_stays_in_group() {
    let sandbox = with_robot();
    let _ =
        sandbox.proq(&["spawn", "--wait", "--count", "2", "-n", "pay", "robot", "implement payments"]).ok();
    let _ = sandbox.proq(&["redispatch", "pay-1"]).ok();
    assert_eq!(sandbox.proq(&["wait", "pay"]).ok(), "pay-1: done\npay-2: done\n");
}
