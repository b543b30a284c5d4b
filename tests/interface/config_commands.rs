//! `git proq config`: get, set, unset, describe, and what a wrong value of another setting does.

use proq_test_kit::faults::{assert_tidy, kill_at, recover, with_git_wrapper};
use proq_test_kit::{Sandbox, file_names};

#[test]
fn sets_gets_and_unsets_a_setting() {
    let sandbox = Sandbox::new();
    let config = |args: &[&str]| sandbox.proq(&[&["config"], args].concat());
    insta::assert_snapshot!(config(&[]).to_text(), @r"
    SETTING            VALUE  ORIGIN
    snapshot.interval  0      $PROQ_SNAPSHOT_INTERVAL
    --- stderr
    hint: see all settings: git proq config list
    --- code 0
    ");
    assert_eq!(config(&["get", "merge.strategy"]).ok(), "merge\n");
    insta::assert_snapshot!(config(&["set", "merge.strategy", "squash", "--dry-run"]).to_text(), @r"
    would run: git config --local proq.merge.strategy squash
    --- code 0
    ");
    assert_eq!(config(&["get", "merge.strategy"]).ok(), "merge\n");
    insta::assert_snapshot!(config(&["set", "merge.strategy", "squash"]).to_text(), @r"
    set merge.strategy to squash
    --- stderr
    it was merge
    --- code 0
    ");
    assert_eq!(sandbox.git(&["config", "--local", "proq.merge.strategy"]), "squash");
    insta::assert_snapshot!(config(&[]).to_text(), @r"
    SETTING            VALUE   ORIGIN
    merge.strategy     squash  git config
    snapshot.interval  0       $PROQ_SNAPSHOT_INTERVAL
    --- stderr
    hint: see all settings: git proq config list
    --- code 0
    ");
    insta::assert_snapshot!(config(&["describe", "proq.merge.strategy"]).to_text(), @"
    merge.strategy: how to merge a lane: with a merge commit, commit by commit on top of the base, or as one commit
    value      squash (git config)
    default    merge
    type       one of: merge, rebase, squash
    set by     git config proq.merge.strategy, or $PROQ_MERGE_STRATEGY
    proq.toml  may set it
    --- code 0
    ");
    insta::assert_snapshot!(config(&["unset", "merge.strategy"]).to_text(), @r"
    unset merge.strategy; its value is now merge (built in)
    --- code 0
    ");
    insta::assert_snapshot!(config(&["unset", "merge.strategy"]).fails(1), @r"
    error: cannot unset merge.strategy: it is not set with git config --local
    hint: see where its value comes from: git proq config describe merge.strategy
    ");
    insta::assert_snapshot!(config(&["set", "merge.strategy", "fast"]).fails(2), @r"
    error: cannot set merge.strategy to 'fast': it takes one of: merge, rebase, squash
    hint: see what it does: git proq config describe merge.strategy
    ");
    insta::assert_snapshot!(config(&["get", "merge.stratgy"]).fails(2), @r"
    error: there is no setting 'merge.stratgy'
    hint: did you mean merge.strategy? see what it does: git proq config describe merge.strategy
    hint: see all settings: git proq config list
    ");
    let _ = config(&["set", "lock.timeout", "1", "2"]).fails(2);
}

#[test]
fn list_and_hook_take_several_values_and_files_differ() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["config", "set", "verify.commands", "make a", "make b"]).ok();
    assert_eq!(sandbox.git(&["config", "--get-all", "proq.verify.commands"]), "make a\nmake b");
    let _ = sandbox.proq(&["config", "set", "verify.commands", "make c"]).ok();
    assert_eq!(sandbox.git(&["config", "--get-all", "proq.verify.commands"]), "make c");
    let _ = sandbox.proq(&["config", "set", "hook.run.ended", "true"]).ok();
    assert_eq!(sandbox.git(&["config", "proq.hook.run.ended"]), "true");
    let _ = sandbox.proq(&["config", "set", "--global", "agent.conflict", "x"]).fails(2);
    let _ = sandbox.proq(&["config", "set", "--global", "agent.stop_grace", "3"]).ok();
    assert_eq!(sandbox.git(&["config", "--global", "proq.agent.stopGrace"]), "3");
    let mut command = sandbox.proq_command(&sandbox.repo, &["config", "set", "agent.stop_grace", "4"]);
    command.env("PROQ_AGENT_STOP_GRACE", "9");
    let out = sandbox.output(command);
    assert!(out.stderr.contains("agent.stop_grace is still 9: $PROQ_AGENT_STOP_GRACE"), "{}", out.stderr);
}

#[test]
fn several_values_are_written_at_once_or_not_at_all() {
    let sandbox = Sandbox::new();
    sandbox.sh("printf '# mine\n[include]\n\tpath = other\n' >> .git/config");
    let before = sandbox.read(".git/config");
    let args = ["config", "set", "agent.allow", "make *", "npm *"];
    let mut command = with_git_wrapper(&sandbox, "--add", "exit 1", &args);
    command.env("PROQ_LOCK_TIMEOUT", "1");
    let _ = sandbox.output(command).fails(1);
    assert_eq!(sandbox.read(".git/config"), before);
    sandbox.write(".git/config.lock", "");
    let _ = sandbox.proq(&args).fails(1);
    assert_eq!(sandbox.read(".git/config"), before);
    std::fs::remove_file(sandbox.repo.join(".git/config.lock")).unwrap();
    let _ = sandbox.proq(&args).ok();
    let added = "[proq \"agent\"]\n\tallow = make *\n\tallow = npm *\n";
    assert_eq!(sandbox.read(".git/config"), before + added);
    assert!(!sandbox.repo.join(".git/config.lock").exists());
}

#[test]
fn stronger_file_of_git_is_named() {
    let sandbox = Sandbox::new();
    let set = |args: &[&str]| sandbox.proq(&[&["config", "set"], args].concat());
    sandbox.git(&["config", "extensions.worktreeConfig", "true"]);
    sandbox.git(&["config", "--worktree", "proq.merge.strategy", "rebase"]);
    let out = set(&["merge.strategy", "squash"]);
    assert!(out.code == 0 && out.stdout == "set merge.strategy to squash\n", "{}", out.to_text());
    let warning = "warning: merge.strategy is still rebase: .git/config.worktree overrides it\n";
    assert!(out.stderr.starts_with(warning), "{}", out.stderr);
    let _ = set(&["lock.timeout", "3"]).ok();
    let out = set(&["--global", "lock.timeout", "4", "--json"]).json();
    assert_eq!((&out["overridden_by"], &out["value"]), (&".git/config".into(), &"3".into()));
}

#[test]
fn other_files_of_a_list_are_named() {
    let sandbox = Sandbox::new();
    let set = |args: &[&str]| sandbox.proq(&[&["config", "set"], args].concat());
    let out = set(&["agent.allow", "npm *", "go *"]);
    assert!(!out.stderr.contains("warning"), "{}", out.stderr);
    let _ = set(&["--global", "agent.push", "true"]).ok();
    let out = set(&["agent.push", "false"]);
    assert!(!out.stderr.contains("warning"), "{}", out.stderr);
    // A list has the items of all files.
    let out = set(&["--global", "agent.allow", "make *"]);
    let warning = "warning: agent.allow is make *; npm *; go *: a list also has the items of .git/config\n";
    assert!(out.code == 0 && out.stderr.starts_with(warning), "{}", out.to_text());
    sandbox.sh(
        "printf '[include]\n\tpath = more\n' >> .git/config; git config -f .git/more proq.agent.allow 'x *'",
    );
    let out = set(&["agent.allow", "go *", "--json"]).json();
    assert_eq!(out["value"], "make *\ngo *\nx *");
    let others = out["extended_by"].as_str().unwrap();
    assert!(others.ends_with("/.gitconfig, .git/more"), "{others}");
    // An empty value restarts the list.
    let out = set(&["agent.allow", "", "go *"]);
    assert!(
        out.stderr.contains("warning: agent.allow is go *; x *: a list also has the items of .git/more\n"),
        "{}",
        out.stderr
    );
    sandbox.git(&["config", "--unset", "include.path"]);
    let out = set(&["agent.allow", "", "go *", "--json"]).json();
    assert_eq!((&out["value"], out.get("extended_by")), (&"go *".into(), None));
}

#[test]
fn own_settings_are_changed_outside_of_repositories() {
    let sandbox = Sandbox::new();
    let outside = sandbox.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let config = |args: &[&str]| sandbox.proq_in(&outside, &[&["config"], args].concat());
    assert_eq!(
        config(&["set", "--global", "merge.strategy", "squash"]).ok(),
        "set merge.strategy to squash\n"
    );
    assert_eq!(config(&["set", "--global", "agent.allow", "make *", "npm *"]).code, 0);
    assert_eq!(sandbox.git(&["config", "--global", "--get-all", "proq.agent.allow"]), "make *\nnpm *");
    let planned = config(&["unset", "--global", "merge.strategy", "--dry-run"]).ok();
    assert_eq!(planned, "would run: git config --global --unset-all proq.merge.strategy\n");
    let out = config(&["unset", "--global", "merge.strategy"]).ok();
    assert_eq!(out, "unset merge.strategy; its value is now merge (built in)\n");
    let _ = config(&["unset", "--global", "merge.strategy"]).fails(1);
    let _ = config(&["set", "--global", "merge.strategy", "fast"]).fails(2);
    let _ = config(&["set", "merge.strategy", "squash"]).fails(1);
}

#[test]
fn misspelled_hook_and_pattern_for_all_are_refused() {
    let sandbox = Sandbox::new();
    let set = |key: &str, value: &str| sandbox.proq(&["config", "set", key, value]).fails(2);
    insta::assert_snapshot!(set("agent.allow", "*") + &set("hook.Merge.Landed", "true"), @"
    error: cannot set agent.allow to '*': it matches every command; use --permission full instead
    hint: see what it does: git proq config describe agent.allow
    error: there is no setting 'hook.Merge.Landed'
    hint: did you mean hook.merge.landed? see what it does: git proq config describe hook.merge.landed
    hint: see all settings: git proq config list
    ");
    let _ = set("hook.nothing.here", "true");
    // What git or an earlier version wrote can be removed.
    sandbox.git(&["config", "proq.hook.nothing.here", "true"]);
    let _ = sandbox.proq(&["config", "unset", "hook.nothing.here"]).ok();
}

#[test]
fn wrong_value_warns_readers_and_stops_changes() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.merge.strategy", "fast"]);
    for args in [&["list"][..], &["status"], &["config", "get", "lock.timeout"]] {
        let out = sandbox.proq(args);
        let warning = "warning: cannot use merge.strategy = 'fast' of git config: expected one of: merge, rebase, squash; its default is used\n";
        assert!(out.code == 0 && out.stderr.starts_with(warning), "{args:?}: {}", out.stderr);
    }
    let out = sandbox.proq(&["cleanup"]).fails(1);
    assert!(out.contains("git config --unset-all proq.merge.strategy"), "{out}");
    let _ = sandbox.proq(&["config", "unset", "merge.strategy"]).ok();
    let _ = sandbox.proq(&["cleanup"]).ok();
}

#[test]
fn agent_of_a_lane_may_not_change_settings() {
    let sandbox = Sandbox::new();
    for args in [&["config", "set", "verify.commands", "true"][..], &["config", "unset", "verify.commands"]] {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PROQ_LANE", "x").env("PROQ_ATTEMPT", "1");
        let out = sandbox.output(command).fails(1);
        assert!(out.contains("cannot change other lanes"), "{out}");
    }
}

#[test]
fn killed_set_of_several_values_leaves_no_lock() {
    let sandbox = Sandbox::new();
    let before = sandbox.read(".git/config");
    for kill in ["kill -9 $PPID; exit 0", "kill -9 $$"] {
        let args = ["config", "set", "verify.commands", "make", "make test"];
        let out = sandbox.output(with_git_wrapper(&sandbox, " --file ", kill, &args));
        assert_ne!(out.code, 0, "{}", out.to_text());
        assert_eq!(sandbox.read(".git/config"), before);
        let _ = sandbox.proq(&args).ok();
        sandbox.git(&["config", "--unset-all", "proq.verify.commands"]);
        sandbox.write(".git/config", &before);
    }
}

/// Returns the files beside git's settings that were not there before git-proq changed them.
fn files_beside_config(sandbox: &Sandbox, dir: &str) -> Vec<String> {
    let mut names = file_names(&sandbox.repo.join(dir));
    names.retain(|name| name.contains("config.") && name != "config.worktree");
    names
}

#[test]
fn next_command_removes_files_of_a_killed_set() {
    let sandbox = Sandbox::new();
    let before = sandbox.read(".git/config");
    let args = ["config", "set", "verify.commands", "make", "make test"];
    let killed = sandbox.output(with_git_wrapper(&sandbox, "--add", "kill -9 $PPID; exit 0", &args));
    assert_eq!(killed.code, 137, "{}", killed.to_text());
    assert_eq!(files_beside_config(&sandbox, ".git").len(), 1);
    let _ = recover(&sandbox);
    assert_eq!(files_beside_config(&sandbox, ".git"), [""; 0]);

    kill_at(&sandbox, "settings.locked", &args);
    assert_eq!(files_beside_config(&sandbox, ".git").len(), 2);
    assert_eq!(sandbox.read(".git/config"), before);
    let _ = recover(&sandbox);
    assert_eq!(files_beside_config(&sandbox, ".git"), [""; 0]);
    sandbox.git(&["config", "user.nickname", "a"]);
}

#[test]
fn lock_of_settings_that_may_be_held_is_kept() {
    let sandbox = Sandbox::new();
    let args = ["config", "set", "verify.commands", "make", "make test"];
    kill_at(&sandbox, "settings.locked", &args);
    sandbox.sh("cp .git/config.lock c; rm .git/config.lock; mv c .git/config.lock");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(files_beside_config(&sandbox, ".git"), ["config.lock"], "git may have it");
    sandbox.sh("rm .git/config.lock");

    let mut command = sandbox.proq_command(&sandbox.repo, &args);
    command.env("PROQ_TEST_STAND_AT", "settings.locked");
    let mut stopped_command = command.spawn().unwrap();
    let stopped = sandbox.wait_until_stopped(stopped_command.id());
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(files_beside_config(&sandbox, ".git").len(), 2, "a stopped process has it");
    drop(stopped);
    assert!(stopped_command.wait().unwrap().success());
    assert_eq!(files_beside_config(&sandbox, ".git"), [""; 0]);
    assert_eq!(sandbox.git(&["config", "--get-all", "proq.verify.commands"]), "make\nmake test");
}

#[test]
fn files_of_a_killed_global_set_are_removed() {
    let sandbox = Sandbox::new();
    let args = ["config", "set", "--global", "verify.commands", "make", "make test"];
    kill_at(&sandbox, "settings.locked", &args);
    let home = sandbox.root().join("home");
    let left = || file_names(&home).into_iter().filter(|name| name.starts_with(".gitconfig.")).count();
    assert_eq!(left(), 2);
    let _ = sandbox.proq(&["config", "set", "--global", "lock.timeout", "3"]).ok();
    assert_eq!(left(), 0);
    assert_tidy(&sandbox);
}
