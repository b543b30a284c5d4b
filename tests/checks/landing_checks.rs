//! Which checks a landing has to pass: those of its base, whatever is in the main checkout.

use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::{Output, Sandbox};

const FILE: &str = "[verify]\ncommands = ['test ! -e bad']\n";

/// Returns a repository with an approved check in its base's `proq.toml`, and a lane that fails it.
fn sandbox_with_check() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", FILE);
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.lane_with_commit("bad", "echo bad > bad");
    sandbox
}

/// Asserts that a landing of the bad lane is forecast with the check, and fails it.
#[track_caller]
fn assert_checked(sandbox: &Sandbox) {
    let before = sandbox.git(&["rev-parse", "main"]);
    let forecast = sandbox.proq(&["merge", "--dry-run", "bad"]).ok();
    assert!(forecast.contains("would check with: test ! -e bad\n"), "{forecast}");
    let output = sandbox.proq(&["merge", "bad"]).fails(4);
    assert!(output.contains("check failed on bad"), "{output}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
}

/// Returns value and origin of the checks as `config list` shows them.
fn configured_checks(sandbox: &Sandbox) -> (String, String) {
    let all = sandbox.proq(&["config", "list", "--json"]).json();
    let rows = all["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "verify.commands").unwrap();
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (text("value"), text("origin"))
}

/// Promise: checks/base-checks
#[test]
fn base_checks_apply_without_checked_out_file() {
    for hide in [
        "git sparse-checkout set --no-cone '/a*'",
        "rm proq.toml",
        "rm proq.toml; ln -s gone proq.toml",
        "git rm -q --cached proq.toml; rm proq.toml",
    ] {
        let sandbox = sandbox_with_check();
        sandbox.sh(hide);
        assert_checked(&sandbox);
        assert_eq!(
            configured_checks(&sandbox),
            ("test ! -e bad".to_owned(), "main:proq.toml".to_owned()),
            "{hide}"
        );
    }
    for hide in [
        "git switch -q --detach",
        "git switch -q --detach; rm proq.toml",
        "git switch -qc old; git rm -q proq.toml; git commit -qm old",
        "git switch -qc old; printf '[verify]\\ncommands = []\\n' > proq.toml; git commit -qam old",
    ] {
        let sandbox = sandbox_with_check();
        sandbox.sh(hide);
        assert_checked(&sandbox);
    }
}

/// Promise: checks/base-checks
#[test]
fn checks_count_in_a_bare_repository() {
    let sandbox = sandbox_with_check();
    sandbox.sh("git clone -q --bare --single-branch --branch main . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let run = |args: &[&str]| sandbox.proq_in(&bare, args);
    let script = "echo bad > bad; git add bad; git commit -qm bad";
    let _ = run(&["spawn", "-q", "--wait", "-n", "bad", "--", "sh", "-c", script]).ok();
    insta::assert_snapshot!(run(&["merge", "bad"]).to_text(), @r"
    --- stderr
    error: cannot merge: you have not approved these checks of main:proq.toml: test ! -e bad
    hint: read and approve them: git proq approve --onto 'main'
    hint: or add --no-checks to merge without them
    --- code 1
    ");
    let _ = run(&["approve", "--yes", "--onto", "main"]).ok();
    let output = run(&["merge", "bad"]).fails(4);
    assert!(output.contains("check failed on bad"), "{output}");
    insta::assert_snapshot!(run(&["approve", "--dry-run"]).to_text(), @r"
    24be4eed  verify  test ! -e bad  (main:proq.toml; approved)
    --- code 0
    ");
}

/// One lane cannot remove the checks of another.
/// Promise: checks/base-checks
#[test]
fn base_checks_apply_during_preview() {
    let sandbox = sandbox_with_check();
    sandbox.lane_with_commit("weak", "git rm -q proq.toml");
    sandbox.lane_with_commit("false", "printf '[verify]\\ncommands = [\"true\"]\\n' > proq.toml");
    for lane in ["weak", "false"] {
        let _ = sandbox.proq(&["preview", lane]).ok();
        assert_checked(&sandbox);
        assert_eq!(configured_checks(&sandbox), ("test ! -e bad".to_owned(), "main:proq.toml".to_owned()));
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
fn edited_checks_apply_on_checked_out_base() {
    let sandbox = sandbox_with_check();
    sandbox.write("proq.toml", "[verify]\ncommands = ['true']\n");
    let output = sandbox.proq(&["merge", "bad"]).fails(1);
    assert!(output.contains("you have not approved these checks of"), "{output}");
    assert!(configured_checks(&sandbox).1.ends_with("/repo/proq.toml"));
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["merge", "bad"]).ok();
    assert_eq!(sandbox.read("bad"), "bad\n");
}

/// The settings file may be the user's own, and in no commit.
#[test]
fn uncommitted_settings_apply_during_preview() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo proq.toml >> .git/info/exclude");
    sandbox.write("proq.toml", FILE);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.lane_with_commit("bad", "echo bad > bad");
    sandbox.lane_with_commit("other", "echo other > other");
    let _ = sandbox.proq(&["preview", "other"]).ok();
    assert_checked(&sandbox);
}

/// Promise: checks/base-checks
#[test]
fn checks_are_per_base_and_user_setting_overrides() {
    let sandbox = sandbox_with_check();
    sandbox.sh("git switch -qc release; printf '[verify]\\ncommands = [\"test ! -e worse\"]\\n' > proq.toml; git commit -qam r");
    let script = "printf 1 > bad; printf 1 > worse";
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "late", "--base", "release"]).ok();
    sandbox.commit_in_lane("late", script);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "good", "--base", "release"]).ok();
    sandbox.commit_in_lane("good", "printf 1 > bad");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 4, "{}", out.to_text());
    let count_lines =
        |out: &Output, prefix: &str| out.stdout.lines().filter(|line| line.starts_with(prefix)).count();
    assert_eq!(
        (count_lines(&out, "landed good on release"), count_lines(&out, "check failed")),
        (1, 2),
        "{}",
        out.to_text()
    );
    assert!(out.stdout.contains("`test ! -e worse` failed"), "{}", out.stdout);
    assert!(out.stdout.contains("`test ! -e bad` failed"), "{}", out.stdout);
    // The user's own setting overrides all of that.
    sandbox.git(&["config", "proq.verify.commands", "true"]);
    assert_eq!(configured_checks(&sandbox), ("true".to_owned(), "git config".to_owned()));
    let _ = sandbox.proq(&["merge", "bad", "late"]).ok();
}

/// Promise: checks/base-checks
#[test]
fn unusable_settings_file_in_commit_refuses_landing() {
    let sandbox = sandbox_with_check();
    let tip = sandbox.git(&["rev-parse", "main"]);
    for (make, reason) in [
        ("rm proq.toml; ln -s a.txt proq.toml", "cannot read main:proq.toml: it is not valid TOML:"),
        ("rm proq.toml; ln -s nothing proq.toml", "it is a link to a file that is in no commit"),
        ("rm proq.toml; ln -s ../x proq.toml", "it is a link that is outside of the repository"),
        ("rm proq.toml; mkdir proq.toml; >proq.toml/x; git add .", "it is a folder, not a regular file"),
        ("rm proq.toml; head -c 2000000 /dev/zero | tr '\\0' '#' > proq.toml", "it is larger than 1 MiB"),
        ("rm proq.toml; printf '[verify' > proq.toml", "cannot read main:proq.toml: it is not valid TOML:"),
        ("rm proq.toml; printf '\\377' > proq.toml", "cannot read main:proq.toml"),
    ] {
        sandbox.sh(&format!("{make}; git commit -qam odd; git switch -q --detach {tip}"));
        for args in [&["merge", "bad"][..], &["merge", "--dry-run", "bad"]] {
            let out = sandbox.proq(args);
            assert!(out.code == 1 && out.stderr.contains(reason), "{make}: {}", out.to_text());
            assert!(out.stderr.contains("git show 'main:proq.toml'"), "{}", out.stderr);
        }
        sandbox.sh(&format!("git switch -q main; git reset -q --hard {tip}"));
    }
    assert_checked(&sandbox);
}

/// Work on a batch's branch is for the base of the batch, and an edit of the settings file in its checkout
/// counts.
/// Promise: checks/base-checks
#[test]
fn batch_uses_checks_of_its_base() {
    let sandbox = repo_with_plan(
        "format = 1\nsummary = 'One'\nagent = 'worker'\n[[task]]\nid = 'one'\ntitle = 'One'\n",
    );
    install_worker(&sandbox, "echo bad > bad");
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    sandbox.commit_all("plan");
    sandbox.write("proq.toml", FILE);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let out = sandbox.proq(&["swarm", "plan.toml", "-q", "--ignore-dirty"]);
    assert_eq!(out.code, 4, "{}", out.to_text());
    let branch = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads/proq/batch-*"]);
    assert_eq!(
        sandbox.git(&["rev-parse", &branch]),
        sandbox.git(&["rev-parse", "main"]),
        "{}",
        out.to_text()
    );
}

/// A check that times out on the base proves nothing for or against a lane.
/// Promise: checks/base-timeout
#[test]
fn timeout_on_base_is_no_evidence() {
    let sandbox = Sandbox::new();
    let check = "sleep 2; test ! -e bad";
    sandbox.git(&["config", "proq.verify.commands", check]);
    sandbox.git(&["config", "proq.verify.timeout", "1"]);
    sandbox.lane_with_commit("bad", "echo bad > bad");
    let before = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "bad"]).to_text(), @r"
    refused bad: cannot check lanes on 'main': `sleep 2; test ! -e bad` timed out after 1 s on 'main' itself; nothing was changed
    --- stderr
    hint: raise the time limit: git config proq.verify.timeout 3600
    hint: merge without checks: git proq merge --no-checks bad
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
    // The hints help as promised.
    sandbox.git(&["config", "proq.verify.timeout", "3600"]);
    let output = sandbox.proq(&["merge", "bad"]).fails(4);
    assert!(output.contains("check failed on bad"), "{output}");
    let _ = sandbox.proq(&["merge", "--no-checks", "bad"]).ok();
    assert_eq!(sandbox.read("bad"), "bad\n");
}

/// Where an earlier check fails on the base, a later one has not run there yet.
/// Promise: checks/blame
#[test]
fn check_fails_on_base_only_if_it_ran_there() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "--add", "proq.verify.commands", "test -e fixed"]);
    sandbox.git(&["config", "--add", "proq.verify.commands", "! grep -q broken a.txt"]);
    sandbox.lane_with_commit("bad", "touch fixed; echo broken > a.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    for _ in 0..2 {
        let out = sandbox.proq(&["merge", "bad"]);
        assert!(!out.stderr.contains("fails on main itself"), "{}", out.stderr);
        let output = out.fails(4);
        assert!(
            output.contains("check failed on bad: `! grep -q broken a.txt` failed (exit code 1)"),
            "{output}"
        );
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    }
    // A check that fails on the base too does not count, whatever else fails there.
    sandbox.git(&["config", "--add", "proq.verify.commands", "test -e never"]);
    sandbox.lane_with_commit("good", "touch fixed");
    let out = sandbox.proq(&["merge", "good", "--ignore-base-failures"]);
    assert!(out.stderr.contains("`test -e never` fails on main itself (exit code 1)"), "{}", out.stderr);
    assert!(out.ok().contains("landed good on main"));
}

/// Promise: checks/base-timeout
#[test]
fn names_the_check_that_timed_out_on_base() {
    let sandbox = Sandbox::new();
    let slow = "test -e fixed || sleep 5";
    sandbox.git(&["config", "--add", "proq.verify.commands", slow]);
    sandbox.git(&["config", "--add", "proq.verify.commands", "test ! -e bad"]);
    sandbox.git(&["config", "proq.verify.timeout", "1"]);
    sandbox.lane_with_commit("bad", "touch fixed bad");
    let output = sandbox.proq(&["merge", "bad"]).fails(1);
    assert!(output.contains(&format!("`{slow}` timed out after 1 s on 'main' itself")), "{output}");
}

/// Returns a repository whose `proq.toml` requires only `true`, and where another check is approved already.
fn sandbox_with_preapproved_check(check: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", &format!("[verify]\ncommands = ['{check}']\n"));
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox.write("proq.toml", "[verify]\ncommands = ['true']\n");
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    sandbox
}

/// Promise: checks/base-checks
#[test]
fn check_added_to_base_during_check_applies() {
    let sandbox = sandbox_with_preapproved_check("test ! -e bad");
    sandbox.lane_with_commit("bad", "echo bad > bad");
    let moves = "test -e moved || { cd $ROOT/repo && touch moved && printf \"[verify]\\ncommands = ['test ! -e bad']\\n\" > proq.toml \
                 && git add . && git commit -qm moved; }";
    let output = sandbox.proq(&["merge", "bad", "--verify", moves]).fails(4);
    assert!(output.contains("check failed on bad: `test ! -e bad` failed"), "{output}");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "moved");
}
