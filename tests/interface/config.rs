//! Tests of settings: layers, origins, and invalid values.

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::{PTY_SCRIPT, Sandbox};

#[test]
fn lists_settings_from_agent_to_merge() {
    let sandbox = Sandbox::new();
    let shown = sandbox.proq(&["config", "list"]).to_text();
    let (first, _) = shown.split_at(shown.find("notify.").unwrap());
    insta::assert_snapshot!(first, @"
    SETTING                   VALUE                                                                                              WHAT IT DOES
    agent.abort_grace         60                                                                                                 how long git proq stop --wrap-up waits for an agent to come to its end by itself
    agent.allow                                                                                                                  commands that agents may run without asking, such as 'cargo *'; those of a repository need git proq approve
    agent.autocommit          success                                                                                            commit what an agent left uncommitted: when it ended well, always, or never
    agent.autocommit_limit    10                                                                                                 leave what an agent left uncommitted as it is when a file of it is larger; 0 for no limit
    agent.backoff             30                                                                                                 how long a run waits that the agent's service would not serve; twice as long each further time
    agent.budget              0                                                                                                  end a run that cost more than this; 0 for no limit
    agent.commit_style                                                                                                           how agents are told to write commit messages
    agent.context_stop        0                                                                                                  end a run whose context is this full and go on in a new conversation, where the agent tells; 0 for never
    agent.context_warn        0                                                                                                  have a run wrap up whose context is this full, where the agent tells; 0 for never
    agent.crash_retries       2                                                                                                  how often a run is tried again whose agent died
    agent.default                                                                                                                the agent that git proq spawn starts when none is named
    agent.gate                false                                                                                              send an agent back to work that ends while the lane's checks fail, where the agent can be sent back
    agent.gate_rounds         3                                                                                                  how often agent.gate sends it back at most
    agent.iterations          5                                                                                                  how many runs in a row agent.context_stop makes of one at most
    agent.linger              30                                                                                                 how long an agent may go on after it said that it is done
    agent.max_running         0                                                                                                  how many agents batches let run at the same time, those of other batches and lanes counted; 0 for no limit
    agent.max_time            0                                                                                                  end a run that takes longer; 0 for no limit
    agent.max_turns           200                                                                                                how many turns a run may take, where the agent can be told
    agent.model                                                                                                                  the model that agents are asked to use; without it each has its own
    agent.permission          edit                                                                                               what agents may do: look, change their lane and use git there, or anything
    agent.prompt_append                                                                                                          what every agent is told besides its task
    agent.push                false                                                                                              let agents push their lane's branch; otherwise they are told not to
    agent.rate_limit_retries  5                                                                                                  how often a run is tried again that the agent's service would not serve, or that could not reach it
    agent.reset_wait          30m                                                                                                how long a run may wait for a limit to be lifted, where the agent says when; it ends where that is later
    agent.stall               30m                                                                                                end a run of which nothing came for this long: no output, no commit; 0 for no limit
    agent.stop_grace          10                                                                                                 time between asking an agent to end and ending it
    event.keep                4                                                                                                  how many full files of the event log are kept beside the one that grows
    event.rotate              8192                                                                                               how big a file of the event log may get
    hook.timeout              60                                                                                                 how long one hook may take
    lane.copy                                                                                                                    files of the main checkout that a new lane gets a copy of, beside those of .worktreeinclude, where git ignores them
    lane.env                                                                                                                     the name of a file in each lane with its ports and names as KEY=VALUE, kept out of git; empty for none
    lane.lfs                  full                                                                                               what large files of git-lfs are in a new lane: whole, or the pointers that are committed
    lane.link                                                                                                                    files and folders of the main checkout that a new lane gets a link to, where git ignores them
    lane.location             .proq-worktrees/{lane}                                                                             where new lanes lie, from the main checkout: {lane} is the lane's name, {repo} that of the checkout's folder
    lane.ports                20000-31999                                                                                        from where each lane gets ten ports for servers of its own; empty for none
    lane.prefix               proq                                                                                               lanes' branches are named PREFIX/NAME
    lane.setup                                                                                                                   commands that get a new lane ready, run in it before anything else; those of a repository need git proq approve
    lane.setup_limit          10m                                                                                                how long those commands may take together; 0 for no limit
    lane.setup_lock                                                                                                              lanes with the same name here run those commands one after the other; empty for all at once
    lane.sparse               false                                                                                              check out only the folders of their scope in new lanes that have one, those of a plan's tasks too
    lane.submodules           none                                                                                               the submodules that a new lane gets, copied from the main checkout without the network: none, its own (init), or theirs too
    lock.timeout              30                                                                                                 how long a command waits for another one before it gives up
    merge.co_author                                                                                                              credit the agent in a Co-authored-by trailer, as in {agent} <agents@example.com>; empty for none
    merge.conflict_agent                                                                                                         who is sent at each conflict of a landing; one that a repository names needs git proq approve
    merge.conflict_retries    0                                                                                                  how many more tries such an agent has when its resolution is refused
    merge.message                                                                                                                commit message of a landing, with {agent}, {base}, {body}, {commits}, {lane}, {subject} and {title}; empty for subject and body
    merge.push                false                                                                                              push the base after a landing, to where git push would, never by force
    merge.signoff             false                                                                                              add your Signed-off-by trailer to the commits of a landing
    merge.strategy            merge                                                                                              how a lane lands: with a merge commit, commit by commit on top of the base, or as one commit
    merge.subject                                                                                                                subject of the commits of a landing, as in feat({lane}): {title}, with the placeholders of merge.message; empty for the usual one
    merge.trailers            true                                                                                               name the lane and its agent in trailers of the commits of a landing
    merge.uncommitted         refuse                                                                                             a lane with uncommitted work: refuse to land it, commit the work first, or keep it aside and land the rest
    ");
    let json = sandbox.proq(&["config", "list", "--json"]).json();
    assert_eq!(json["settings"][0]["key"], "agent.abort_grace");
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
    notify.bell               false                                                                                              ring the bell of the terminal in which somebody waits for a lane or follows the events
    notify.desktop            off                                                                                                show a notice: by notify-send, or by the terminal in which somebody waits or follows
    notify.events             run.ended agent.state:needs-approval merge.landed merge.conflict merge.check-failed merge.refused  the events that notifiers tell of
    notify.slack                                                                                                                 where the message is posted as Slack and others like it expect it; never shown
    notify.sound                                                                                                                 a sound that is played, or a command that makes one
    notify.title              false                                                                                              put the message in the title of the terminal in which somebody waits or follows
    notify.webhook                                                                                                               where the event is posted as JSON; never shown
    op.keep                   30                                                                                                 how long operations, and snapshots that came back, are kept
    open.editor                                                                                                                  the command that git proq open --editor starts with the folder of a lane, such as code
    pool.keep                                                                                                                    caches that can be built again and stay in the folder of a landed lane when the next lane gets it, where git ignores them
    pool.size                 2                                                                                                  how many of the youngest folders of landed lanes a new lane may be given one of; 0 for none
    snapshot.ignored          64                                                                                                 how much of ignored files an automatic snapshot copies; 0 for none
    snapshot.interval         0                                                                                                  how often uncommitted changes in the main checkout and in idle lanes are copied while agents run, lanes at work less often; 0 for never
    swarm.agent                                                                                                                  who does tasks of a plan that name no agent
    swarm.areas                                                                                                                  areas of tasks that lie elsewhere than in swarm.tasks
    swarm.auto_merge          false                                                                                              land the tasks of a plan on 'main' itself as they are done, and not on a branch of the batch first
    swarm.budget              0                                                                                                  pause a batch that has cost this; 0 for no limit
    swarm.max_attempts        3                                                                                                  with how many failures, over all batches, a task is set aside until somebody asks for it
    swarm.max_idle            3                                                                                                  after how many iterations in a row without a new box the work at a task folder is given up
    swarm.max_iterations      50                                                                                                 how many iterations the work at a task folder may take
    swarm.max_parallel        3                                                                                                  how many lanes of a batch are at work at the same time
    swarm.mode                continuous                                                                                         what lands together: each task by itself, a wave, a phase, or the whole plan, done in one lane
    swarm.on_merge_failure    pause                                                                                              what becomes of a batch when a task cannot land
    swarm.on_task_failure     skip-dependents                                                                                    what becomes of a batch when a task fails: the rest goes on, nothing more starts, or all is stopped
    swarm.pre_warm                                                                                                               commands that get a new lane of a batch ready; GLOB => COMMAND only for tasks about such files
    swarm.reviewer                                                                                                               the agent that reviews the steps of task folders; without it, the one that does them
    swarm.strategy            affinity-first                                                                                     which lane a task goes to: with what is about the same files, the next in turn, or the one with the least work; where each task lands as it is done it changes little, since most tasks get a lane of their own
    swarm.strict              false                                                                                              a batch of whose criteria not all are met counts as failed, and is not landed without --force
    swarm.tasks               tasks                                                                                              where task folders lie; each folder in it is an area
    swarm.verify_agent                                                                                                           the agent that looks in the end whether criteria are met that are no commands; without it nobody does
    swarm.when_landed         note                                                                                               what becomes of a task in its plan's files once it is on the base: it is noted as done, its folder is archived too, or nothing
    trash.keep                7                                                                                                  how long removed lanes' folders are kept
    verify.base_failures      refuse                                                                                             when a check fails on the base itself: refuse the landing, or warn and ignore that check
    verify.commands                                                                                                              what must succeed, in this order, on exactly what will land; those of a repository need git proq approve
    verify.jobs               1                                                                                                  how many states of a landing are checked at the same time, each in a worktree of its own
    verify.location           ~/.cache/git-proq/verify                                                                           where the worktrees for checks are kept, outside of any repository; without it below $XDG_CACHE_HOME if that is set
    verify.setup                                                                                                                 commands that prepare a worktree for checks, run once in each before the first check; those of a repository need git proq approve
    verify.timeout            1800                                                                                               how long one command of a check may take
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
    --- code 1
    ");
}

#[test]
fn names_invalid_settings_files() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[merge\n");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
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
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    --- stderr
    error: cannot use [ROOT]/repo/proq.toml: a repository may not set trash.keep
    hint: remove it there; you may set it yourself with: git config proq.trash.keep VALUE
    --- code 1
    ");
    // Committed files stay in history, so a cloned repository must not raise the limit for what is committed
    // automatically.
    sandbox.write("proq.toml", "[agent]\nautocommit_limit = 0\n");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
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
    hint: git proq spawn claude "what to do"
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
    files of the main checkout that a new lane gets a copy of, beside those of
    .worktreeinclude, where git ignores them
lane.env
    the name of a file in each lane with its ports and names as KEY=VALUE, kept
    out of git; empty for none
lane.lfs = full
";
    assert!(out.contains(expected), "{out}");
    assert!(!out.contains('…'), "{out}");
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
