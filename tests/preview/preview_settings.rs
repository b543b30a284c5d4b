//! Tests of a preview of a lane with a `proq.toml` of its own: it decides nothing while it is shown.

use proq_test_kit::Sandbox;

/// Returns the value of a setting.
fn value(sandbox: &Sandbox, key: &str) -> String {
    sandbox.proq(&["config", "get", key]).ok().trim().to_owned()
}

#[test]
fn previewed_lane_decides_nothing_about_others() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("p", "printf '[merge]\nuncommitted = \"commit\"\n' > proq.toml");
    sandbox.lane_with_commit("o", "echo o > o");
    sandbox.lane_with_commit("q", "printf '[merge]\nstrategy = \"squash\"\n' > proq.toml");
    sandbox.write_in(&sandbox.lane_path("o"), "unfinished", "");
    let _ = sandbox.proq(&["preview", "p"]).ok();
    assert_eq!(value(&sandbox, "merge.uncommitted"), "refuse");
    let refused = sandbox.proq(&["merge", "o"]).fails(1);
    assert!(refused.contains("it has uncommitted work: unfinished"), "{refused}");
    let _ = sandbox.proq(&["preview", "q"]).ok();
    assert_eq!(value(&sandbox, "merge.strategy"), "merge");
    // An edit of the lane's file does not count either.
    sandbox.write("proq.toml", "[merge]\nstrategy = 'rebase'\n");
    assert_eq!(value(&sandbox, "merge.strategy"), "merge");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn settings_of_the_user_count_during_a_preview() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[merge]\nstrategy = 'squash'\n[agent]\nmax_turns = 7\n");
    sandbox.commit_all("settings");
    sandbox.lane_with_commit("p", "rm proq.toml");
    let _ = sandbox.proq(&["preview", "p"]).ok();
    assert_eq!(value(&sandbox, "merge.strategy"), "squash");
    let list = sandbox.proq(&["config", "list", "--show-origin"]).ok();
    assert!(list.contains("main:proq.toml"), "{list}");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    for (edit, strategy) in [("[merge]\nstrategy = 'rebase'\n", "rebase"), ("", "merge")] {
        sandbox.write("proq.toml", edit);
        let _ = sandbox.proq(&["preview", "p"]).ok();
        assert_eq!(
            (value(&sandbox, "merge.strategy"), value(&sandbox, "agent.max_turns")),
            (strategy.into(), "200".into())
        );
        let _ = sandbox.proq(&["preview", "--back"]).ok();
    }
}

#[test]
fn uncommitted_file_of_the_user_counts_in_preview() {
    for ignored in ["", "proq.toml\n"] {
        let sandbox = Sandbox::new();
        sandbox.write(".git/info/exclude", ignored);
        sandbox.lane_with_commit("p", "echo p > p");
        sandbox.write("proq.toml", "[merge]\nstrategy = 'squash'\n");
        let _ = sandbox.proq(&["preview", "p"]).ok();
        assert_eq!(value(&sandbox, "merge.strategy"), "squash", "{ignored:?}");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.read("proq.toml"), "[merge]\nstrategy = 'squash'\n");
    }
}

#[test]
fn preview_does_not_hold_automatic_merges() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("p", "printf '[merge]\nstrategy = \"squash\"\n' > proq.toml");
    let script = "git-proq -C \"$ROOT/repo\" list > /dev/null; echo x > x; git add x; git commit -qm x";
    let _ = sandbox.proq(&["preview", "p"]).ok();
    sandbox.run_lane("x", script);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert!(sandbox.repo.join("x").exists());
}

#[test]
fn invalid_file_of_a_lane_stays_out_and_blocks_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("bad", "printf '[verify\n' > proq.toml");
    sandbox.lane_with_commit("wrong", "printf '[merge]\nstrategy = \"bogus\"\n' > proq.toml");
    sandbox.lane_with_commit("good", "echo good > good");
    sandbox.write("a.txt", "mine\n");
    for lane in ["bad", "wrong"] {
        let shown = sandbox.proq(&["preview", lane]);
        let warning =
            format!("warning: the proq.toml of '{lane}' is not valid, so '{lane}' cannot be merged:");
        assert!(shown.code == 0 && shown.stderr.contains(&warning), "{}", shown.to_text());
    }
    let _ = sandbox.proq(&["merge", "good"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
    for args in [&["merge", "bad", "wrong"][..], &["merge", "--dry-run", "bad", "wrong"]] {
        let out = sandbox.proq(args).to_text().replace("0 of 2 lanes would land\n", "");
        insta::allow_duplicates! { insta::assert_snapshot!(out, @r"
        refused bad: its proq.toml is not valid: line 1, column 8: unclosed table, expected `]`
        refused wrong: its proq.toml is not valid: cannot use merge.strategy = 'bogus' of proq.toml: expected one of: merge, rebase, squash
        --- stderr
        hint: see the file: git show proq/bad:proq.toml
        hint: see the file: git show proq/wrong:proq.toml
        --- code 1
        ") };
    }
}

#[test]
fn branch_made_of_a_preview_has_no_settings() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[merge]\nuncommitted = 'commit'\n");
    sandbox.commit_all("settings");
    sandbox.lane_with_commit("p", "printf '[merge]\nstrategy = \"squash\"\n' > proq.toml");
    let _ = sandbox.proq(&["preview", "p"]).ok();
    sandbox.git(&["switch", "-q", "-c", "foo"]);
    for edit in ["", "# edit\n", "[agent]\nmax_turns = 7\n"] {
        sandbox.write("proq.toml", &format!("[merge]\nstrategy = 'squash'\n{edit}"));
        assert_eq!(
            (value(&sandbox, "merge.strategy"), value(&sandbox, "merge.uncommitted")),
            ("merge".into(), "commit".into())
        );
    }
    // What the user commits is the user's.
    sandbox.commit_all("my settings");
    assert_eq!(
        (value(&sandbox, "merge.strategy"), value(&sandbox, "agent.max_turns")),
        ("squash".into(), "7".into())
    );
}

#[test]
fn linked_file_of_the_user_counts_in_a_preview_too() {
    for (ignored, is_committed) in
        [("", true), ("", false), ("proq.toml\n", false), ("conf\n", false), ("proq.toml\nconf\n", false)]
    {
        let sandbox = Sandbox::new();
        sandbox.write(".git/info/exclude", ignored);
        sandbox.lane_with_commit("p", "echo p > p");
        sandbox.lane_with_commit(
            "q",
            "mkdir -p conf; printf '[merge]\nstrategy = \"rebase\"\n' > conf/own.toml; git add -f conf",
        );
        sandbox.sh("mkdir conf; printf '[merge]\nstrategy = \"squash\"\n' > conf/own.toml; ln -s ./conf/own.toml proq.toml");
        if is_committed {
            sandbox.commit_all("settings");
        }
        let case = format!("{ignored:?} {is_committed}");
        assert_eq!(value(&sandbox, "merge.strategy"), "squash", "{case}");
        let _ = sandbox.proq(&["preview", "p"]).ok();
        assert_eq!(value(&sandbox, "merge.strategy"), "squash", "{case}");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        // The lane has another file where the link leads.
        // Where git ignores the folder, the user's file is in the way of the lane's.
        if sandbox.proq(&["preview", "q"]).code != 0 {
            continue;
        }
        let out = sandbox.proq(&["config", "get", "merge.strategy"]).to_text();
        assert!(!out.contains("rebase"), "{case}: {out}");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(value(&sandbox, "merge.strategy"), "squash", "{case}");
    }
}
