//! Tests of settings: layers, origins, and invalid values.

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::{PTY_SCRIPT, Sandbox};

#[test]
fn lists_settings_of_agents_events_and_hooks() {
    let sandbox = Sandbox::new();
    let shown = sandbox.proq(&["config", "list"]).to_text();
    insta::assert_snapshot!(shown.split_once("lane.").unwrap().0, @"
    SETTING                   VALUE                                                                                              DESCRIPTION
    agent.abort_grace         60                                                                                                 how long git proq stop --wrap-up waits for an agent to finish by itself
    agent.allow                                                                                                                  commands that agents may run without asking, such as 'cargo *'; those of a repository need git proq approve
    agent.autocommit          success                                                                                            when to commit what an agent left uncommitted: after a successful run, always, or never
    agent.autocommit_limit    10                                                                                                 do not commit leftover changes if one of the files is larger; 0 for no limit
    agent.backoff             30                                                                                                 initial retry delay when the provider is unavailable; doubled for each further retry
    agent.budget              0                                                                                                  stop a run that has cost more than this; 0 for no limit
    agent.commit_style                                                                                                           how agents should write commit messages
    agent.context_stop        0                                                                                                  stop a run whose context is this full, and continue in a new conversation, if the agent reports it; 0 for never
    agent.context_warn        0                                                                                                  ask the agent to finish up when its context is this full, if the agent reports it; 0 for never
    agent.crash_retries       2                                                                                                  how often to retry a run whose agent crashed
    agent.default                                                                                                                the agent that git proq spawn starts when none is named
    agent.gate                false                                                                                              send an agent back to work if it stops while the lane's checks fail, if the agent supports it
    agent.gate_rounds         3                                                                                                  how often agent.gate sends an agent back at most
    agent.iterations          5                                                                                                  maximum number of consecutive runs that agent.context_stop starts
    agent.linger              30                                                                                                 how long an agent may keep running after it reported that it is done
    agent.max_running         0                                                                                                  maximum number of agents that batches run at the same time, including those of other batches and lanes; 0 for no limit
    agent.max_time            0                                                                                                  stop a run that takes longer; 0 for no limit
    agent.max_turns           200                                                                                                maximum number of turns of a run, if the agent supports it
    agent.model                                                                                                                  model that agents use; empty for each agent's own default
    agent.permission          edit                                                                                               what agents may do: read files, also edit their lane and run git in it, or everything
    agent.prompt_append                                                                                                          text added to the prompt of every agent
    agent.push                false                                                                                              let agents push the branch of their lane; otherwise their prompt forbids it
    agent.rate_limit_retries  5                                                                                                  how often to retry a run when the provider is unavailable or cannot be reached
    agent.reset_wait          30m                                                                                                how long a run may wait until a rate limit ends, if the agent reports when; it fails if that is later
    agent.stall               30m                                                                                                stop a run without output or commits for this long; 0 for no limit
    agent.stop_grace          10                                                                                                 time between asking an agent to exit and killing it
    event.keep                4                                                                                                  how many full files of the event log to keep beside the current one
    event.rotate              8192                                                                                               maximum size of one file of the event log
    hook.timeout              60                                                                                                 time limit of one hook
    ");
    let json = sandbox.proq(&["config", "list", "--json"]).json();
    assert_eq!(json["settings"][0]["key"], "agent.abort_grace");
}

#[test]
fn lists_settings_of_lanes_and_merges() {
    let shown = Sandbox::new().proq(&["config", "list"]).to_text();
    let (first, _) = shown.split_once("notify.").unwrap();
    insta::assert_snapshot!(first.split_once("hook.timeout").unwrap().1.split_once('\n').unwrap().1, @"
    lane.copy                                                                                                                    files of the main checkout to copy into a new lane, besides those of .worktreeinclude, if git ignores them
    lane.env                                                                                                                     file in each lane with its ports and names as KEY=VALUE, kept out of git; empty for none
    lane.lfs                  full                                                                                               git-lfs files of a new lane: their content, or only the committed pointers
    lane.link                                                                                                                    files and folders of the main checkout to link into a new lane, if git ignores them
    lane.location             .proq-worktrees/{lane}                                                                             where to create lanes, relative to the main checkout: {lane} is the lane's name, {repo} the name of the checkout's folder
    lane.ports                20000-31999                                                                                        range from which each lane gets ten ports for its servers; empty for none
    lane.prefix               proq                                                                                               branches of lanes are named PREFIX/NAME
    lane.setup                                                                                                                   commands that set up a new lane before anything else runs in it; those of a repository need git proq approve
    lane.setup_limit          10m                                                                                                time limit of all set-up commands together; 0 for no limit
    lane.setup_lock                                                                                                              lanes with the same name here run their set-up commands one after another; empty for all at once
    lane.sparse               false                                                                                              in new lanes with a scope, check out only the directories that match it; also for the tasks of a plan
    lane.submodules           none                                                                                               submodules of a new lane, copied from the main checkout without network: none, its own (init), or nested ones too
    lock.timeout              30                                                                                                 how long a command waits for another one before it gives up
    merge.autostash           false                                                                                              save your uncommitted changes that are in the way of a merge, and restore them after it
    merge.co_author                                                                                                              credit the agent in a Co-authored-by trailer, as in {agent} <agents@example.com>; empty for none
    merge.conflict_agent                                                                                                         agent that resolves the conflicts of a merge; one set by a repository needs git proq approve
    merge.conflict_retries    0                                                                                                  how many more attempts that agent has when its resolution is refused
    merge.message                                                                                                                commit message of a landing, with {agent}, {base}, {body}, {commits}, {lane}, {subject} and {title}; empty for subject and body
    merge.pr_command          auto                                                                                               the program that opens pull requests: gh, glab, or the one of the remote's host (auto)
    merge.push                false                                                                                              push the base after a merge, as git push would, never by force
    merge.signoff             false                                                                                              add your Signed-off-by trailer to the commits of a landing
    merge.strategy            merge                                                                                              how to merge a lane: with a merge commit, commit by commit on top of the base, or as one commit
    merge.subject                                                                                                                subject of the commits of a landing, as in feat({lane}): {title}, with the placeholders of merge.message; empty for the usual one
    merge.trailers            true                                                                                               name the lane and its agent in trailers of the commits of a landing
    merge.uncommitted         refuse                                                                                             what to do with uncommitted work of a lane: refuse to merge it, commit it first, or save it and merge the rest
    ");
}

/// Creates a repository with settings in every layer except the environment.
fn with_layered_settings() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[agent]\nstop_grace = 1\nautocommit = 'always'\n[merge]\nuncommitted = 'commit'\n[lane]\nprefix = 'p'\n");
    let user = sandbox.root().join("home/.config/git-proq");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(
        user.join("config.toml"),
        "agent.stop_grace = 2\nmerge.uncommitted = 'snapshot'\nlane.prefix = 'q'\n",
    )
    .unwrap();
    sandbox.git(&["config", "proq.agent.stopGrace", "3"]);
    sandbox.git(&["config", "proq.lane.prefix", "r"]);
    sandbox
}

#[test]
fn lists_settings_from_notify_to_verify() {
    let shown = Sandbox::new().proq(&["config", "list"]).to_text();
    let (_, second) = shown.split_at(shown.find("notify.").unwrap());
    insta::assert_snapshot!(second, @r"
    notify.bell               false                                                                                              ring the bell of a terminal that waits for a lane or follows events
    notify.desktop            off                                                                                                show a desktop notification: with notify-send, or by a terminal that waits or follows
    notify.events             run.ended agent.state:needs-approval merge.landed merge.conflict merge.check-failed merge.refused  events to notify about
    notify.slack                                                                                                                 URL to post messages to, in the format of Slack; never shown
    notify.sound                                                                                                                 sound file to play, or a command that plays one
    notify.title              false                                                                                              show the message in the title of a terminal that waits or follows
    notify.webhook                                                                                                               URL to post events to, as JSON; never shown
    op.keep                   30                                                                                                 how long to keep operations and restored snapshots
    open.editor                                                                                                                  the command that git proq open --editor starts with the folder of a lane, such as code
    pool.keep                                                                                                                    rebuildable caches to keep in the folder of a landed lane when the next lane reuses it, if git ignores them
    pool.size                 2                                                                                                  how many of the latest folders of landed lanes new lanes may reuse; 0 for none
    snapshot.ignored          64                                                                                                 how much of ignored files an automatic snapshot copies; 0 for none
    snapshot.interval         0                                                                                                  how often to snapshot uncommitted changes in the main checkout and in idle lanes while agents run, less often in busy lanes; 0 for never
    swarm.agent                                                                                                                  agent for tasks of a plan that name none
    swarm.areas                                                                                                                  areas of task folders outside of swarm.tasks
    swarm.auto_merge          false                                                                                              land the tasks of a plan directly on the base, not on a branch of the batch first
    swarm.budget              0                                                                                                  pause a batch that has cost this; 0 for no limit
    swarm.max_attempts        3                                                                                                  set a task aside after this many failures, over all batches, until it is retried explicitly
    swarm.max_idle            3                                                                                                  give up a task folder after this many consecutive iterations without a new ticked box
    swarm.max_iterations      50                                                                                                 maximum number of iterations of a task folder
    swarm.max_parallel        3                                                                                                  maximum number of lanes of a batch that work at the same time
    swarm.mode                continuous                                                                                         what lands together: each task by itself, a wave, a phase, or the whole plan, done in one lane
    swarm.on_merge_failure    pause                                                                                              what to do with a batch when a task cannot land
    swarm.on_task_failure     skip-dependents                                                                                    what to do when a task fails: skip the tasks that need it, start nothing more, or stop everything
    swarm.pre_warm                                                                                                               commands that set up a new lane of a batch; GLOB => COMMAND only for tasks that touch such files
    swarm.reviewer                                                                                                               agent that reviews the steps of task folders; empty for the agent that does them
    swarm.strategy            affinity-first                                                                                     how to assign tasks to lanes: with tasks that touch the same files, the next lane in turn, or the lane with the least work; matters only if tasks do not land one by one
    swarm.strict              false                                                                                              a batch fails if some of its criteria are not met, and is not merged without --force
    swarm.tasks               tasks                                                                                              folder of the task folders; each folder in it is an area
    swarm.verify_agent                                                                                                           agent that judges criteria that are not commands, at the end of a batch; empty for none
    swarm.when_landed         note                                                                                               what to do with a task in its plan's files once it is on the base: mark it as done, also archive its folder, or nothing
    trash.keep                7                                                                                                  how long to keep the folders of removed lanes
    verify.base_failures      refuse                                                                                             when a check fails on the base itself: refuse the landing, or warn and ignore that check
    verify.commands                                                                                                              commands that must pass, in this order, on exactly what will land; those of a repository need git proq approve
    verify.jobs               1                                                                                                  how many states of a merge to check in parallel, each in a worktree of its own
    verify.location           ~/.cache/git-proq/verify                                                                           where to keep the worktrees for checks, outside of any repository; the default is below $XDG_CACHE_HOME if that is set
    verify.setup                                                                                                                 commands that prepare a worktree for checks, run once in each before the first check; those of a repository need git proq approve
    verify.timeout            1800                                                                                               time limit of one check command
    --- code 0
    ");
}

#[test]
fn later_layers_win_and_origin_is_shown() {
    let sandbox = with_layered_settings();
    let mut command = sandbox.proq_command(&sandbox.repo, &["config", "list", "--show-origin"]);
    command.env("PROQ_AGENT_STOP_GRACE", "4").env_remove("PROQ_SNAPSHOT_INTERVAL");
    let shown = sandbox.output(command).to_text();
    let set: Vec<&str> = shown.lines().filter(|line| !line.ends_with("built in")).collect();
    insta::assert_snapshot!(set.join("\n"), @r"
    SETTING                   VALUE                                                                                              ORIGIN
    agent.autocommit          always                                                                                             [ROOT]/repo/proq.toml
    agent.stop_grace          4                                                                                                  $PROQ_AGENT_STOP_GRACE
    lane.prefix               r                                                                                                  git config
    merge.uncommitted         snapshot                                                                                           [ROOT]/home/.config/git-proq/config.toml
    --- code 0
    ");
}

#[test]
fn git_config_argument_applies_to_one_command() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("git", &sandbox.repo);
    command.args(["-c", "proq.agent.stopGrace=77", "proq", "config", "list", "--json"]);
    let out = sandbox.output(command).json();
    let row = out["settings"].as_array().unwrap().iter().find(|r| r["key"] == "agent.stop_grace").unwrap();
    assert_eq!((&row["value"], &row["origin"]), (&"77".into(), &"git config".into()));
    let mut command = sandbox.command("git", &sandbox.repo);
    command.args(["-c", "proq.lane.prefix=mine", "proq", "spawn", "--empty", "-n", "x"]);
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.git(&["branch", "--list", "--format=%(refname:short)"]), "main\nmine/x");
}

#[test]
fn lane_uses_settings_file_of_main_checkout() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[agent]\nstop_grace = 1\n");
    sandbox.commit_all("settings");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write_in(&sandbox.lane_path("x"), "proq.toml", "[agent]\nstop_grace = 2\n");
    let out = sandbox.proq_in(&sandbox.lane_path("x"), &["config", "list", "--show-origin"]).ok();
    assert!(out.contains("agent.stop_grace          1") && out.contains("[ROOT]/repo/proq.toml"), "{out}");
}

#[test]
fn unusable_value_stops_the_command() {
    let sandbox = Sandbox::new();
    for (key, value) in [
        ("agent.autocommit", "maybe"),
        ("agent.stopGrace", "-1"),
        ("lock.timeout", "soon"),
        ("merge.conflictAgent", "-x"),
        ("merge.conflictRetries", "-1"),
        ("merge.push", "maybe"),
        ("lane.prefix", ""),
    ] {
        let mut command = sandbox.command("git", &sandbox.repo);
        command.args(["-c", &format!("proq.{key}={value}"), "proq", "cleanup"]);
        let out = sandbox.output(command);
        assert_eq!(out.code, 1);
        assert!(
            out.stderr.contains(" of git config: expected ") && out.stderr.contains("hint:"),
            "{}",
            out.stderr
        );
    }
    let mut command = sandbox.proq_command(&sandbox.repo, &["cleanup"]);
    command.env("PROQ_TRASH_KEEP", "long");
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    --- stderr
    error: cannot use trash.keep = 'long' of $PROQ_TRASH_KEEP: expected a whole number of days
    hint: use the default, '7': unset PROQ_TRASH_KEEP
    --- code 1
    ");
}

#[test]
fn refuses_prefix_invalid_in_branch_names() {
    let sandbox = Sandbox::new();
    for prefix in ["a..b", "-x", "a b", "/", "x/", "x.lock", "@{"] {
        sandbox.git(&["config", "proq.lane.prefix", prefix]);
        let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]);
        assert_eq!(out.code, 1, "{prefix}: {}", out.stderr);
        assert!(
            out.stderr.starts_with("error: ") && out.stderr.contains("hint:"),
            "{prefix}: {}",
            out.stderr
        );
        assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    }
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).to_text(), @r"
    --- stderr
    error: cannot use lane.prefix = '@{' of git config: expected the beginning of a branch name, as in proq or lanes
    hint: show where it is set: git config --show-origin --get-all proq.lane.prefix
    hint: or use the default, 'proq': git config --unset-all proq.lane.prefix
    --- code 1
    ");
}

#[test]
fn names_invalid_settings_files() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[merge\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty"]).to_text(), @r"
    --- stderr
    error: cannot read [ROOT]/repo/proq.toml: it is not valid TOML:
    TOML parse error at line 1, column 7
      |
    1 | [merge
      |       ^
    unclosed table, expected `]`
    hint: correct it, or move it away: mv '[ROOT]/repo/proq.toml' '[ROOT]/repo/proq.toml.broken'
    --- code 1
    ");
    sandbox.write("proq.toml", "[trash]\nkeep = 0\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty"]).to_text(), @r"
    --- stderr
    error: cannot use [ROOT]/repo/proq.toml: a repository may not set trash.keep
    hint: remove it there; you may set it yourself with: git config proq.trash.keep VALUE
    --- code 1
    ");
    // Committed files stay in history, so a cloned repository must not raise the limit for what is committed
    // automatically.
    sandbox.write("proq.toml", "[agent]\nautocommit_limit = 0\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty"]).to_text(), @r"
    --- stderr
    error: cannot use [ROOT]/repo/proq.toml: a repository may not set agent.autocommit_limit
    hint: remove it there; you may set it yourself with: git config proq.agent.autocommitLimit VALUE
    --- code 1
    ");
    sandbox.write("proq.toml", "[merge]\nnovel = 1\n");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r#"
    --- stderr
    warning: unknown setting merge.novel (from [ROOT]/repo/proq.toml)
    no lanes yet
    hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
    --- code 0
    "#);
}

#[test]
fn suggests_setting_for_misspelled_key() {
    let sandbox = Sandbox::new();
    for (given, meant) in [
        ("lane.cpoy", "; did you mean lane.copy?"),
        ("lane.setups", "; did you mean lane.setup?"),
        ("lane.setupLimits", "; did you mean lane.setupLimit?"),
        ("lanes.copy", "; did you mean lane.copy?"),
        ("pool.sise", "; did you mean pool.size?"),
        ("lane.xyz", ""),
    ] {
        sandbox.git(&["config", &format!("proq.{given}"), "x"]);
        let out = sandbox.proq(&["config", "list"]);
        let warning = format!("warning: unknown setting {} (from git config{meant})\n", given.to_lowercase());
        assert_eq!((out.stderr, out.code), (warning, 0));
        sandbox.git(&["config", "--unset", &format!("proq.{given}")]);
    }
    // Git's keys cannot contain `_`, those of a file can.
    sandbox.write("proq.toml", "[lane]\nsetup_limits = '5m'\n");
    let warnings = sandbox.proq(&["config", "list"]).stderr;
    assert!(warnings.ends_with("/proq.toml; did you mean lane.setup_limit?)\n"), "{warnings}");
    let report = sandbox.proq(&["doctor"]).stdout;
    assert!(report.contains("did you mean lane.setup_limit?) is unknown and has no effect"), "{report}");
}

#[test]
fn unusable_value_error_names_the_default() {
    let sandbox = Sandbox::new();
    for (key, value, default) in [("proq.lane.lfs", "pointers", "full"), ("proq.lane.env", "../x", "nothing")]
    {
        sandbox.git(&["config", key, value]);
        let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
        assert!(!sandbox.lane_path("x").exists());
        assert!(out.contains(&format!("or use the default, '{default}': ")), "{out}");
        let hints = hint_commands(&sandbox, &out);
        assert!(sandbox.sh(&hints[0]).contains(value));
        sandbox.sh(&hints[1]);
        let _ = sandbox.proq(&["list"]).ok();
    }
}

#[test]
fn list_is_readable_on_a_narrow_terminal() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.copy", "target/"]);
    let mut command = sandbox.command("python3", &sandbox.repo);
    command.args(["-c", PTY_SCRIPT, "git-proq", "config", "list"]).env("NO_COLOR", "1").env("TERM", "dumb");
    let out = sandbox.output(command).ok().replace('\r', "");
    let expected = "lane.copy = target/
    files of the main checkout to copy into a new lane, besides those of
    .worktreeinclude, if git ignores them
lane.env
    file in each lane with its ports and names as KEY=VALUE, kept out of git;
    empty for none
lane.lfs = full
";
    assert!(out.contains(expected), "{out}");
    assert!(!out.contains('…'), "{out}");
}

/// What was set aside or removed must come back, whatever a file of the repository contains.
#[test]
fn invalid_settings_file_does_not_stop_recovery() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    sandbox.write("a.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    for text in ["[verify\n", "[merge]\nstrategy = 'bogus'\n", "[trash]\nkeep = 0\n"] {
        sandbox.write("proq.toml", text);
        for args in [
            "op log",
            "snap",
            "stop --all",
            "undo",
            "op redo",
            "status",
            "show x",
            "list",
            "config get merge.push",
        ] {
            let out = sandbox.proq(&args.split(' ').collect::<Vec<_>>());
            let warnings: Vec<&str> =
                out.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
            assert!(out.code == 0 && warnings.len() == 1, "{args}: {}", out.to_text());
            assert!(warnings[0].contains("proq.toml") && warnings[0].contains("default"), "{warnings:?}");
        }
        for args in [&["merge", "x"][..], &["spawn", "--empty"]] {
            let out = sandbox.proq(args).fails(1);
            assert!(out.contains("proq.toml") && sandbox.lane_path("x").exists(), "{out}");
        }
    }
    sandbox.write("proq.toml", "[verify\n");
    insta::assert_snapshot!(sandbox.proq(&["snap"]).stderr, @"warning: cannot read [ROOT]/repo/proq.toml: it is not valid TOML: line 1, column 8: unclosed table, expected `]`; until that is corrected, the settings of the repository have their defaults");
}

/// The time must grow linearly with the number of settings; quadratic time would take minutes.
#[test]
fn many_unknown_settings_take_linear_time() {
    let sandbox = Sandbox::new();
    let own = sandbox.read(".git/config");
    let unknown: Vec<String> = (0..20_000).map(|n| format!("\tkey-{n} = 1\n")).collect();
    sandbox.write(".git/config", &format!("{own}[proq]\n{}", unknown.concat()));
    let began = std::time::Instant::now();
    let out = sandbox.proq(&["list"]);
    assert_eq!((out.code, out.stderr.matches("warning: ").count()), (0, 6), "{}", out.stderr);
    assert!(began.elapsed() < std::time::Duration::from_mins(1), "{:?}", began.elapsed());
}
