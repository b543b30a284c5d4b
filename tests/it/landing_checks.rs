//! Owns the tests of which checks a landing has to pass: those of its base, whatever the main checkout has.

use super::support::{Output, Sandbox};
use super::swarm::{planned, worker};

const FILE: &str = "[verify]\ncommands = ['test ! -e bad']\n";

/// A repository with an approved check in its base's `proq.toml`, and a lane that fails it.
fn checked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", FILE);
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.lane_of("bad", "echo bad > bad");
    sandbox
}

/// A landing of the bad lane is foreseen with the check, and fails it.
#[track_caller]
fn assert_checked(sandbox: &Sandbox) {
    let before = sandbox.git(&["rev-parse", "main"]);
    let ahead = sandbox.proq(&["merge", "--dry-run", "bad"]).ok();
    assert!(ahead.contains("would check with: test ! -e bad\n"), "{ahead}");
    let said = sandbox.proq(&["merge", "bad"]).fails(4);
    assert!(said.contains("check failed bad"), "{said}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
}

/// What `config` shows of the checks, with their origin.
fn shown(sandbox: &Sandbox) -> (String, String) {
    let all = sandbox.proq(&["config", "list", "--json"]).json();
    let rows = all["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "verify.commands").unwrap();
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (text("value"), text("origin"))
}

#[test]
fn checks_of_the_base_count_where_its_file_is_not_checked_out() {
    for hide in [
        "git sparse-checkout set --no-cone '/a*'",
        "rm proq.toml",
        "rm proq.toml; ln -s gone proq.toml",
        "git rm -q --cached proq.toml; rm proq.toml",
    ] {
        let sandbox = checked();
        sandbox.sh(hide);
        assert_checked(&sandbox);
        assert_eq!(shown(&sandbox), ("test ! -e bad".to_owned(), "main:proq.toml".to_owned()), "{hide}");
    }
    for hide in [
        "git switch -q --detach",
        "git switch -q --detach; rm proq.toml",
        "git switch -qc old; git rm -q proq.toml; git commit -qm old",
        "git switch -qc old; printf '[verify]\\ncommands = []\\n' > proq.toml; git commit -qam old",
    ] {
        let sandbox = checked();
        sandbox.sh(hide);
        assert_checked(&sandbox);
    }
}

#[test]
fn checks_count_in_a_bare_repository() {
    let sandbox = checked();
    sandbox.sh("git clone -q --bare --single-branch --branch main . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let run = |args: &[&str]| sandbox.proq_in(&bare, args);
    let script = "echo bad > bad; git add bad; git commit -qm bad";
    let _ = run(&["spawn", "-q", "--wait", "-n", "bad", "--", "sh", "-c", script]).ok();
    insta::assert_snapshot!(run(&["merge", "bad"]).shown(), @r"
    --- stderr
    error: main:proq.toml wants lanes checked with commands that you have not approved: test ! -e bad; nothing was moved
    hint: read them and let them run: git proq approve --onto 'main'
    hint: or land without: git proq merge --no-checks …
    --- code 1
    ");
    let _ = run(&["approve", "--yes", "--onto", "main"]).ok();
    let said = run(&["merge", "bad"]).fails(4);
    assert!(said.contains("check failed bad"), "{said}");
    insta::assert_snapshot!(run(&["approve", "--dry-run"]).shown(), @r"
    24be4eed  verify  test ! -e bad  (main:proq.toml; approved)
    --- code 0
    ");
}

/// One lane cannot take its checks off another.
#[test]
fn while_a_lane_is_previewed_the_checks_of_the_base_count() {
    let sandbox = checked();
    sandbox.lane_of("weak", "git rm -q proq.toml");
    sandbox.lane_of("false", "printf '[verify]\\ncommands = [\"true\"]\\n' > proq.toml");
    for lane in ["weak", "false"] {
        let _ = sandbox.proq(&["preview", lane]).ok();
        assert_checked(&sandbox);
        assert_eq!(shown(&sandbox), ("test ! -e bad".to_owned(), "main:proq.toml".to_owned()));
        let script = "echo bad > bad; git add bad; git commit -qm bad";
        let args =
            ["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--base", "main", "--", "sh", "-c", script];
        let _ = sandbox.proq(&args).fails(4);
        assert_eq!(sandbox.row("x")["state"], "check-failed");
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
    }
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "main"]), "a.txt\nproq.toml");
}

#[test]
fn an_edit_counts_at_once_where_the_base_is_checked_out() {
    let sandbox = checked();
    sandbox.write("proq.toml", "[verify]\ncommands = ['true']\n");
    let said = sandbox.proq(&["merge", "bad"]).fails(1);
    assert!(said.contains("/repo/proq.toml wants lanes checked"), "{said}");
    assert!(shown(&sandbox).1.ends_with("/repo/proq.toml"));
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["merge", "bad"]).ok();
    assert_eq!(sandbox.read("bad"), "bad\n");
}

/// The file may be the user's own, and in no commit.
#[test]
fn a_file_that_no_commit_has_counts_whatever_is_checked_out() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo proq.toml >> .git/info/exclude");
    sandbox.write("proq.toml", FILE);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.lane_of("bad", "echo bad > bad");
    sandbox.lane_of("other", "echo other > other");
    let _ = sandbox.proq(&["preview", "other"]).ok();
    assert_checked(&sandbox);
}

#[test]
fn the_users_own_checks_stay_and_each_base_has_its_own() {
    let sandbox = checked();
    sandbox.sh("git switch -qc release; printf '[verify]\\ncommands = [\"test ! -e worse\"]\\n' > proq.toml; git commit -qam r");
    let script = "printf 1 > bad; printf 1 > worse";
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "late", "--base", "release"]).ok();
    sandbox.commit_in_lane("late", script);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "good", "--base", "release"]).ok();
    sandbox.commit_in_lane("good", "printf 1 > bad");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 4, "{}", out.shown());
    let of = |out: &Output, what: &str| out.stdout.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!((of(&out, "landed good on release"), of(&out, "check failed")), (1, 2), "{}", out.shown());
    assert!(out.stdout.contains("`test ! -e worse` failed"), "{}", out.stdout);
    assert!(out.stdout.contains("`test ! -e bad` failed"), "{}", out.stdout);
    // What the user has set is over all of that.
    sandbox.git(&["config", "proq.verify.commands", "true"]);
    assert_eq!(shown(&sandbox), ("true".to_owned(), "git config".to_owned()));
    let _ = sandbox.proq(&["merge", "bad", "late"]).ok();
}

#[test]
fn a_file_of_a_commit_that_cannot_be_used_refuses() {
    let sandbox = checked();
    let tip = sandbox.git(&["rev-parse", "main"]);
    for (make, why) in [
        ("rm proq.toml; ln -s a.txt proq.toml", "it is no regular file"),
        ("rm proq.toml; head -c 2000000 /dev/zero | tr '\\0' '#' > proq.toml", "it is larger than 1 MiB"),
        ("rm proq.toml; printf '[verify' > proq.toml", "main:proq.toml is not valid TOML"),
        ("rm proq.toml; printf '\\377' > proq.toml", "could not read main:proq.toml"),
    ] {
        sandbox.sh(&format!("{make}; git commit -qam odd; git switch -q --detach {tip}"));
        for args in [&["merge", "bad"][..], &["merge", "--dry-run", "bad"]] {
            let out = sandbox.proq(args);
            assert!(out.code == 1 && out.stderr.contains(why), "{make}: {}", out.shown());
            assert!(out.stderr.contains("git show 'main:proq.toml'"), "{}", out.stderr);
        }
        sandbox.sh(&format!("git switch -q main; git reset -q --hard {tip}"));
    }
    assert_checked(&sandbox);
}

/// What lands on the branch of a batch is for the base of the batch, whose file an edit in its checkout is.
#[test]
fn a_batch_is_checked_as_its_base_is() {
    let sandbox =
        planned("format = 1\nsummary = 'One'\nagent = 'worker'\n[[task]]\nid = 'one'\ntitle = 'One'\n");
    worker(&sandbox, "echo bad > bad");
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    sandbox.commit_all("plan");
    sandbox.write("proq.toml", FILE);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let out = sandbox.proq(&["swarm", "plan.toml", "-q", "--ignore-dirty"]);
    assert_eq!(out.code, 4, "{}", out.shown());
    let branch = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads/proq/batch-*"]);
    assert_eq!(sandbox.git(&["rev-parse", &branch]), sandbox.git(&["rev-parse", "main"]), "{}", out.shown());
}

/// A check that times out on the base says nothing about a lane, and nothing for it.
#[test]
fn a_check_that_times_out_on_the_base_too_is_no_evidence() {
    let sandbox = Sandbox::new();
    let check = "sleep 2; test ! -e bad";
    sandbox.git(&["config", "proq.verify.commands", check]);
    sandbox.git(&["config", "proq.verify.timeout", "1"]);
    sandbox.lane_of("bad", "echo bad > bad");
    let before = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "bad"]).shown(), @r"
    refused bad: cannot check lanes on 'main': `sleep 2; test ! -e bad` timed out after 1 s on the base itself; nothing was moved
    --- stderr
    hint: give it more time: git config proq.verify.timeout 3600
    hint: land without checks: git proq merge --no-checks bad
    --- code 1
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    let script = "echo bad > bad; git add bad; git commit -qm bad";
    let _ = sandbox
        .proq(&["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-c", script])
        .fails(1);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    let refused = &sandbox.events("merge.refused")[0];
    assert!(refused["message"].as_str().unwrap().contains("timed out"), "{refused}");
    // The hints do what they are for.
    sandbox.git(&["config", "proq.verify.timeout", "3600"]);
    let said = sandbox.proq(&["merge", "bad"]).fails(4);
    assert!(said.contains("check failed bad"), "{said}");
    let _ = sandbox.proq(&["merge", "--no-checks", "bad"]).ok();
    assert_eq!(sandbox.read("bad"), "bad\n");
}

/// Where an earlier check fails on the base, a later one has not run there yet.
#[test]
fn a_check_fails_on_the_base_only_if_it_has_run_there() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "--add", "proq.verify.commands", "test -e fixed"]);
    sandbox.git(&["config", "--add", "proq.verify.commands", "! grep -q broken a.txt"]);
    sandbox.lane_of("bad", "touch fixed; echo broken > a.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    for _ in 0..2 {
        let out = sandbox.proq(&["merge", "bad"]);
        assert!(!out.stderr.contains("fails on main itself"), "{}", out.stderr);
        let said = out.fails(4);
        assert!(said.contains("check failed bad: `! grep -q broken a.txt` failed (exit code 1)"), "{said}");
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    }
    // One that fails there too does not count, whatever else fails there.
    sandbox.git(&["config", "--add", "proq.verify.commands", "test -e never"]);
    sandbox.lane_of("good", "touch fixed");
    let out = sandbox.proq(&["merge", "good"]);
    assert!(out.stderr.contains("`test -e never` fails on main itself (exit code 1)"), "{}", out.stderr);
    assert!(out.ok().contains("landed good on main"));
}

#[test]
fn the_check_that_timed_out_on_the_base_is_the_one_that_is_named() {
    let sandbox = Sandbox::new();
    let slow = "test -e fixed || sleep 5";
    sandbox.git(&["config", "--add", "proq.verify.commands", slow]);
    sandbox.git(&["config", "--add", "proq.verify.commands", "test ! -e bad"]);
    sandbox.git(&["config", "proq.verify.timeout", "1"]);
    sandbox.lane_of("bad", "touch fixed bad");
    let said = sandbox.proq(&["merge", "bad"]).fails(1);
    assert!(said.contains(&format!("`{slow}` timed out after 1 s on the base itself")), "{said}");
}

/// A repository whose `proq.toml` asks for nothing much, where another check is approved already.
fn approved_ahead(check: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", &format!("[verify]\ncommands = ['{check}']\n"));
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.write("proq.toml", "[verify]\ncommands = ['true']\n");
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox
}

#[test]
fn a_check_that_comes_to_the_base_during_a_check_counts_too() {
    let sandbox = approved_ahead("test ! -e bad");
    sandbox.lane_of("bad", "echo bad > bad");
    let moves = "test -e moved || { cd $ROOT/repo && touch moved && printf \"[verify]\\ncommands = ['test ! -e bad']\\n\" > proq.toml \
                 && git add . && git commit -qm moved; }";
    let said = sandbox.proq(&["merge", "bad", "--verify", moves]).fails(4);
    assert!(said.contains("check failed bad: `test ! -e bad` failed"), "{said}");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "moved");
}
