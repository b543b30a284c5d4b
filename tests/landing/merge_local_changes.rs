//! Tests of landing when local changes in the base's checkout block some of the lanes: the other lanes land.

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::{Output, Sandbox};

/// Creates three lanes that change a file each, with an uncommitted edit of the second lane's file in the
/// main checkout.
fn lanes_with_local_edit() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("for n in 1 2 3; do seq 20 > f$n; done");
    sandbox.commit_all("base");
    for n in 1..=3 {
        sandbox.lane_with_commit(&format!("l{n}"), &format!("echo x >> f{n}"));
    }
    sandbox.sh("echo mine >> f2");
    sandbox
}

fn subjects(sandbox: &Sandbox) -> String {
    sandbox.git(&["log", "--first-parent", "--format=%s", "main"])
}

/// Returns the exit code and the first two words of each line of output about a lane, sorted.
fn code_and_results(out: &Output) -> (i32, Vec<String>) {
    let words = |line: &str| line.split([' ', ':']).take(2).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> =
        out.stdout.lines().filter(|line| !line.starts_with([' ', '0', '1'])).map(words).collect();
    lines.sort();
    (out.code, lines)
}

#[test]
fn refuses_only_the_lane_that_touches_an_edit() {
    let sandbox = lanes_with_local_edit();
    insta::assert_snapshot!(sandbox.proq(&["merge", "--all", "--dry-run"]).to_text(), @"
    refused l2: local changes in [ROOT]/repo are in the way: f2
    would land l1 on main
    would land l3 on main
    2 of 3 lanes would land: 2 files changed, 2 insertions(+)
    --- stderr
    hint: commit them first: git -C '[ROOT]/repo' commit -am WIP
    hint: or stash them (`git stash pop` restores them): git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    assert_eq!(subjects(&sandbox), "base\nfirst");
    let out = sandbox.proq(&["merge", "--all"]);
    let expected = vec!["landed l1".into(), "landed l3".into(), "refused l2".into()];
    assert_eq!(code_and_results(&out), (1, expected), "{}", out.to_text());
    let line = "refused l2: local changes in [ROOT]/repo are in the way: f2\n";
    assert!(out.to_text().contains(line), "{}", out.to_text());
    assert_eq!(sandbox.sh("tail -qn 1 f1 f2 f3"), "x\nmine\nx");
    assert_eq!(sandbox.git(&["status", "--short"]), " M f2");
    assert_eq!(sandbox.row("l2")["state"], "idle");
    sandbox.assert_healthy();
    // The hint works when pasted.
    let text = sandbox.proq(&["merge", "--all"]).fails(1);
    sandbox.sh(&hint_commands(&sandbox, &text)[1]);
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.sh("tail -qn 1 f2"), "x");
}

#[test]
fn atomic_refuses_all_for_one_blocked_lane() {
    let sandbox = lanes_with_local_edit();
    for args in [&["merge", "--all", "--atomic", "--dry-run"][..], &["merge", "--all", "--atomic"]] {
        let out = sandbox.proq(args);
        assert_eq!(
            code_and_results(&out),
            (1, vec!["refused l1".into(), "refused l2".into(), "refused l3".into()])
        );
        for lane in ["l1", "l3"] {
            let line = format!(
                "refused {lane}: it could be merged, but --atomic merges all or none, and 'l2' does not"
            );
            assert!(out.stdout.contains(&line), "{}", out.to_text());
        }
        assert!(out.stdout.contains("are in the way: f2"), "{}", out.to_text());
        assert_eq!((subjects(&sandbox).as_str(), sandbox.read("f1").lines().count()), ("base\nfirst", 20));
    }
    // All are refused as well when the blocked lane is the only one on its base, and another base would be
    // moved first.
    sandbox.git(&["branch", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "o", "--base", "other"]).ok();
    sandbox.commit_in_lane("o", "echo x >> f1");
    for args in [&["merge", "o", "l2", "--atomic", "--dry-run"][..], &["merge", "o", "l2", "--atomic"]] {
        let out = sandbox.proq(args);
        assert_eq!(
            code_and_results(&out),
            (1, vec!["refused l2".into(), "refused o".into()]),
            "{}",
            out.to_text()
        );
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "other"]), "base");
    }
    sandbox.assert_healthy();
}

#[test]
fn each_blocked_lane_names_its_own_file() {
    let sandbox = lanes_with_local_edit();
    sandbox.lane_with_commit("l4", "echo lane > new");
    sandbox.lane_with_commit("l5", "echo x >> f1");
    // An ignored file blocks a lane too, and so does an edit of a file that is marked assume-unchanged.
    sandbox.sh("echo new >> .git/info/exclude; echo own > new; git update-index --assume-unchanged f1; echo own >> f1");
    for args in [&["merge", "--all", "--dry-run"][..], &["merge", "--all"]] {
        let out = sandbox.proq(args);
        let last_result = if args.len() == 3 { "would land" } else { "landed l3" };
        let mut expected =
            ["refused l1", "refused l2", "refused l4", "refused l5", last_result].map(String::from);
        expected.sort();
        assert_eq!(code_and_results(&out), (1, expected.to_vec()), "{}", out.to_text());
        for (lane, file) in [("l1", "f1"), ("l2", "f2"), ("l4", "new"), ("l5", "f1")] {
            let line = out.stdout.lines().find(|line| line.starts_with(&format!("refused {lane}:")));
            assert!(line.unwrap().ends_with(&format!("are in the way: {file}")), "{}", out.to_text());
        }
    }
    assert_eq!((sandbox.read("new").as_str(), subjects(&sandbox).lines().count()), ("own\n", 3));
    // When all lanes are blocked, each one is refused for its own file.
    let out = sandbox.proq(&["merge", "l1", "l2"]);
    assert_eq!(code_and_results(&out), (1, vec!["refused l1".into(), "refused l2".into()]));
    assert!(out.stdout.contains("way: f1") && out.stdout.contains("way: f2"), "{}", out.to_text());
}

#[test]
fn lane_conflicting_with_a_blocked_one_lands() {
    let sandbox = lanes_with_local_edit();
    sandbox.lane_with_commit("l4", "echo other >> f3; sed -i s/^5$/five/ f1");
    sandbox.sh("git checkout -q f2; echo mine >> f1");
    let out = sandbox.proq(&["merge", "l4", "l3", "--order", "given"]);
    assert_eq!(
        code_and_results(&out),
        (1, vec!["landed l3".into(), "refused l4".into()]),
        "{}",
        out.to_text()
    );
}

#[test]
fn bisect_in_the_checkout_refuses_every_lane() {
    let sandbox = lanes_with_local_edit();
    sandbox.sh("git checkout -q f2; git bisect start -q HEAD HEAD~1 2> /dev/null || git bisect start; git checkout -q main");
    let one = sandbox.proq(&["merge", "l1"]);
    let all = sandbox.proq(&["merge", "--all"]);
    assert_eq!(one.code, all.code, "{}{}", one.to_text(), all.to_text());
    assert_eq!(all.stdout.matches("refused").count(), 3 * one.stdout.matches("refused").count());
}

#[test]
fn checks_run_once_without_the_blocked_lane() {
    let sandbox = lanes_with_local_edit();
    sandbox.git(&["config", "proq.verify.commands", "tail -qn 1 f1 f2 f3 | tr '\\n' ' ' >> $ROOT/seen"]);
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 1, "{}", out.to_text());
    assert_eq!(sandbox.sh("cat $ROOT/seen"), "x 20 x");
}

#[test]
fn edit_made_while_checks_run_blocks_one_lane() {
    let sandbox = lanes_with_local_edit();
    sandbox.sh("git checkout -q f2");
    let check = "test -e $ROOT/repo/f2 && echo late >> $ROOT/repo/f2";
    sandbox.git(&["config", "proq.verify.commands", check]);
    let out = sandbox.proq(&["merge", "--all"]);
    let expected = vec!["landed l1".into(), "landed l3".into(), "refused l2".into()];
    assert_eq!(code_and_results(&out), (1, expected), "{}", out.to_text());
    assert!(sandbox.read("f2").ends_with("late\n"));
    sandbox.assert_healthy();
}
