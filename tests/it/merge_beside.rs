//! Owns the tests of landing lanes where the base's checkout has local changes that some of them touch: the others land.

use super::plain_refusals::hints;
use super::support::{Output, Sandbox};

/// Three lanes that change a file each, and somebody's own edit of the second.
fn with_an_edit() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("for n in 1 2 3; do seq 20 > f$n; done");
    sandbox.commit_all("base");
    for n in 1..=3 {
        sandbox.lane_of(&format!("l{n}"), &format!("echo x >> f{n}"));
    }
    sandbox.sh("echo mine >> f2");
    sandbox
}

fn subjects(sandbox: &Sandbox) -> String {
    sandbox.git(&["log", "--first-parent", "--format=%s", "main"])
}

/// The exit code, and the first words of each line of the answer.
fn became(out: &Output) -> (i32, Vec<String>) {
    let words = |line: &str| line.split([' ', ':']).take(2).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> =
        out.stdout.lines().filter(|line| !line.starts_with(' ')).map(words).collect();
    lines.sort();
    (out.code, lines)
}

#[test]
fn a_lane_that_touches_an_edit_is_put_aside_and_the_others_land() {
    let sandbox = with_an_edit();
    insta::assert_snapshot!(sandbox.proq(&["merge", "--all", "--dry-run"]).shown(), @r"
    refused l2: local changes in [ROOT]/repo stand in the way: f2
    would land l1 on main
    would land l3 on main
    --- stderr
    hint: commit them first: git -C '[ROOT]/repo' commit -am WIP
    hint: or set them aside: git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    assert_eq!(subjects(&sandbox), "base\nfirst");
    let out = sandbox.proq(&["merge", "--all"]);
    let expected = vec!["landed l1".into(), "landed l3".into(), "refused l2".into()];
    assert_eq!(became(&out), (1, expected), "{}", out.shown());
    let line = "refused l2: local changes in [ROOT]/repo stand in the way: f2\n";
    assert!(out.shown().contains(line), "{}", out.shown());
    assert_eq!(sandbox.sh("tail -qn 1 f1 f2 f3"), "x\nmine\nx");
    assert_eq!(sandbox.git(&["status", "--short"]), " M f2");
    assert_eq!(sandbox.row("l2")["state"], "idle");
    sandbox.assert_healthy();
    // The hint helps.
    let text = sandbox.proq(&["merge", "--all"]).fails(1);
    sandbox.sh(&hints(&sandbox, &text)[1]);
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    assert_eq!(sandbox.sh("tail -qn 1 f2"), "x");
}

#[test]
fn with_atomic_all_are_refused_for_the_lane_that_is_in_the_way() {
    let sandbox = with_an_edit();
    for args in [&["merge", "--all", "--atomic", "--dry-run"][..], &["merge", "--all", "--atomic"]] {
        let out = sandbox.proq(args);
        assert_eq!(became(&out), (1, vec!["refused l1".into(), "refused l2".into(), "refused l3".into()]));
        for lane in ["l1", "l3"] {
            let line =
                format!("refused {lane}: it could land, but --atomic lands all or none, and 'l2' does not");
            assert!(out.stdout.contains(&line), "{}", out.shown());
        }
        assert!(out.stdout.contains("stand in the way: f2"), "{}", out.shown());
        assert_eq!((subjects(&sandbox).as_str(), sandbox.read("f1").lines().count()), ("base\nfirst", 20));
    }
    // So they are where it is the only lane on its base, and another base would move first.
    sandbox.git(&["branch", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "o", "--base", "other"]).ok();
    sandbox.commit_in_lane("o", "echo x >> f1");
    for args in [&["merge", "o", "l2", "--atomic", "--dry-run"][..], &["merge", "o", "l2", "--atomic"]] {
        let out = sandbox.proq(args);
        assert_eq!(became(&out), (1, vec!["refused l2".into(), "refused o".into()]), "{}", out.shown());
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "other"]), "base");
    }
    sandbox.assert_healthy();
}

#[test]
fn each_lane_in_the_way_has_its_own_reason() {
    let sandbox = with_an_edit();
    sandbox.lane_of("l4", "echo lane > new");
    sandbox.lane_of("l5", "echo x >> f1");
    // An ignored file counts as well, and an edit that git was told not to look at.
    sandbox.sh("echo new >> .git/info/exclude; echo own > new; git update-index --assume-unchanged f1; echo own >> f1");
    for args in [&["merge", "--all", "--dry-run"][..], &["merge", "--all"]] {
        let out = sandbox.proq(args);
        let last = if args.len() == 3 { "would land" } else { "landed l3" };
        let mut expected = ["refused l1", "refused l2", "refused l4", "refused l5", last].map(String::from);
        expected.sort();
        assert_eq!(became(&out), (1, expected.to_vec()), "{}", out.shown());
        for (lane, file) in [("l1", "f1"), ("l2", "f2"), ("l4", "new"), ("l5", "f1")] {
            let line = out.stdout.lines().find(|line| line.starts_with(&format!("refused {lane}:")));
            assert!(line.unwrap().ends_with(&format!("stand in the way: {file}")), "{}", out.shown());
        }
    }
    assert_eq!((sandbox.read("new").as_str(), subjects(&sandbox).lines().count()), ("own\n", 3));
    // All of them, each for itself.
    let out = sandbox.proq(&["merge", "l1", "l2"]);
    assert_eq!(became(&out), (1, vec!["refused l1".into(), "refused l2".into()]));
    assert!(out.stdout.contains("way: f1") && out.stdout.contains("way: f2"), "{}", out.shown());
}

#[test]
fn a_lane_that_conflicts_with_one_in_the_way_lands() {
    let sandbox = with_an_edit();
    sandbox.lane_of("l4", "echo other >> f3; sed -i s/^5$/five/ f1");
    sandbox.sh("git checkout -q f2; echo mine >> f1");
    let out = sandbox.proq(&["merge", "l4", "l3", "--order", "given"]);
    assert_eq!(became(&out), (1, vec!["landed l3".into(), "refused l4".into()]), "{}", out.shown());
}

#[test]
fn what_is_in_everybody_s_way_refuses_all() {
    let sandbox = with_an_edit();
    sandbox.sh("git checkout -q f2; git bisect start -q HEAD HEAD~1 2> /dev/null || git bisect start; git checkout -q main");
    let one = sandbox.proq(&["merge", "l1"]);
    let all = sandbox.proq(&["merge", "--all"]);
    assert_eq!(one.code, all.code, "{}{}", one.shown(), all.shown());
    assert_eq!(all.stdout.matches("refused").count(), 3 * one.stdout.matches("refused").count());
}

#[test]
fn checks_run_once_and_without_the_lane_that_is_in_the_way() {
    let sandbox = with_an_edit();
    sandbox.git(&["config", "proq.verify.commands", "tail -qn 1 f1 f2 f3 | tr '\\n' ' ' >> $ROOT/seen"]);
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 1, "{}", out.shown());
    assert_eq!(sandbox.sh("cat $ROOT/seen"), "x 20 x");
}

#[test]
fn an_edit_that_comes_while_checks_run_holds_up_one_lane() {
    let sandbox = with_an_edit();
    sandbox.sh("git checkout -q f2");
    let check = "test -e $ROOT/repo/f2 && echo late >> $ROOT/repo/f2";
    sandbox.git(&["config", "proq.verify.commands", check]);
    let out = sandbox.proq(&["merge", "--all"]);
    let expected = vec!["landed l1".into(), "landed l3".into(), "refused l2".into()];
    assert_eq!(became(&out), (1, expected), "{}", out.shown());
    assert!(sandbox.read("f2").ends_with("late\n"));
    sandbox.assert_healthy();
}
