//! Owns the tests of the profiles: every command line as it is started, and what a user may make of them.

use super::super::profile::{Capabilities, Delivery, Permission};
use super::super::stream::{Exit, Progress, Reader, SessionTotals};
use super::super::template::Values;
use super::*;

const LEVELS: [Permission; 3] = [Permission::Read, Permission::Edit, Permission::Full];

fn known() -> BTreeMap<String, Profile> {
    profiles(&Layers::default()).unwrap()
}

/// Values as short as the signs that the documentation uses.
fn values() -> Values {
    let mut values = Values::default();
    let all = [
        ("plugin", "/PL"),
        ("plugin_url", "file:///PL"),
        ("prompt", "PROMPT"),
        ("prompt_file", "/P"),
        ("common_dir", "/common"),
        ("git_dir", "/common/worktrees/x"),
        ("lane", "x"),
        ("lane_dir", "/lane"),
        ("attempt", "1"),
        ("exe", "/bin/git-proq"),
        ("mcp_config", "/M"),
        ("settings", "/S"),
        ("system_prompt", "be \"good\"\nto all"),
        ("system_prompt_file", "/R"),
        ("usage_file", "/F"),
        ("run_dir", "/run"),
        ("records_dir", "/agent"),
        ("session", "U"),
        ("model", "MODEL"),
        ("max_turns", "9"),
        ("budget", "2.5"),
        ("hook_timeout", "10"),
        ("hook_timeout_ms", "10000"),
    ];
    for (name, value) in all {
        values.set(name, value);
    }
    values.set_all("check", vec!["make test".to_owned()]);
    values
}

fn line(profile: &Profile, template: &[String], level: Permission, values: &Values) -> String {
    let words = profile.words(template, level, values);
    let words = words.iter().map(|word| {
        let word = word.to_str().unwrap().to_owned();
        if word.contains([' ', '*', '"', '{', '(', '\n']) { format!("<{word}>") } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// All that is started of one profile: a start for each level, then going on, then both on a terminal.
fn lines(name: &str) -> String {
    let profile = &known()[name];
    let mut out = String::new();
    for level in LEVELS {
        let env = profile.permission.of(level).map(|level| level.env.clone()).unwrap_or_default();
        let env: Vec<String> = env.iter().map(|(key, value)| format!(" ({key}={value})")).collect();
        let text = match profile.permission.of(level) {
            None => "-".to_owned(),
            Some(_) => line(profile, &profile.args.start, level, &values()),
        };
        out.push_str(&format!("{level}: {text}{}\n", env.concat()));
    }
    let more = [
        ("resume", &profile.args.resume),
        ("interactive", &profile.args.interactive),
        ("interactive resume", &profile.args.interactive_resume),
    ];
    for (what, template) in more {
        out.push_str(&format!("{what}: {}\n", line(profile, template, Permission::Edit, &values())));
    }
    out
}

#[test]
fn claude() {
    insta::assert_snapshot!(lines("claude"), @r"
    read: -p --output-format stream-json --verbose --input-format stream-json --permission-mode default --allowedTools <mcp__proq__*> --disallowedTools Edit Write NotebookEdit --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U
    edit: -p --output-format stream-json --verbose --input-format stream-json --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U
    full: -p --output-format stream-json --verbose --input-format stream-json --dangerously-skip-permissions --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U
    resume: -p --output-format stream-json --verbose --input-format stream-json --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --resume U
    interactive: --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> --model MODEL --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U -- PROMPT
    interactive resume: --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> --model MODEL --settings /S --mcp-config /M --append-system-prompt-file /R --resume U
    ");
}

#[test]
fn codex() {
    insta::assert_snapshot!(lines("codex"), @r#"
    read: exec --json -s read-only -m MODEL -c <mcp_servers.proq={command="/bin/git-proq",args=["mcp"],env={PROQ_LANE="x",PROQ_ATTEMPT="1"},default_tools_approval_mode="approve"}> -c <developer_instructions="be \"good\"\nto all"> -
    edit: exec --json -s workspace-write -c <sandbox_workspace_write.writable_roots=["/common","/common/worktrees/x"]> -m MODEL -c <mcp_servers.proq={command="/bin/git-proq",args=["mcp"],env={PROQ_LANE="x",PROQ_ATTEMPT="1"},default_tools_approval_mode="approve"}> -c <developer_instructions="be \"good\"\nto all"> -
    full: exec --json --dangerously-bypass-approvals-and-sandbox -m MODEL -c <mcp_servers.proq={command="/bin/git-proq",args=["mcp"],env={PROQ_LANE="x",PROQ_ATTEMPT="1"},default_tools_approval_mode="approve"}> -c <developer_instructions="be \"good\"\nto all"> -
    resume: exec --json -s workspace-write -c <sandbox_workspace_write.writable_roots=["/common","/common/worktrees/x"]> -m MODEL -c <mcp_servers.proq={command="/bin/git-proq",args=["mcp"],env={PROQ_LANE="x",PROQ_ATTEMPT="1"},default_tools_approval_mode="approve"}> -c <developer_instructions="be \"good\"\nto all"> resume U -
    interactive: -s workspace-write -c <sandbox_workspace_write.writable_roots=["/common","/common/worktrees/x"]> -m MODEL -c <mcp_servers.proq={command="/bin/git-proq",args=["mcp"],env={PROQ_LANE="x",PROQ_ATTEMPT="1"},default_tools_approval_mode="approve"}> -c <developer_instructions="be \"good\"\nto all"> -- PROMPT
    interactive resume: -s workspace-write -c <sandbox_workspace_write.writable_roots=["/common","/common/worktrees/x"]> -m MODEL -c <mcp_servers.proq={command="/bin/git-proq",args=["mcp"],env={PROQ_LANE="x",PROQ_ATTEMPT="1"},default_tools_approval_mode="approve"}> -c <developer_instructions="be \"good\"\nto all"> resume U
    "#);
}

#[test]
fn opencode() {
    insta::assert_snapshot!(lines("opencode"), @r#"
    read: run --format json -m MODEL (OPENCODE_PERMISSION={"edit": "deny", "bash": "deny", "external_directory": "deny"})
    edit: run --format json -m MODEL (OPENCODE_PERMISSION={"external_directory": "deny"})
    full: run --format json --auto -m MODEL
    resume: run --format json -m MODEL -s U
    interactive: -m MODEL --prompt PROMPT
    interactive resume: -m MODEL -s U
    "#);
}

#[test]
fn gemini() {
    insta::assert_snapshot!(lines("gemini"), @r"
    read: -o stream-json --approval-mode default -m MODEL --session-id U
    edit: -o stream-json --approval-mode auto_edit -m MODEL --session-id U
    full: -o stream-json --approval-mode yolo -m MODEL --session-id U
    resume: -o stream-json --approval-mode auto_edit -m MODEL --resume U
    interactive: --approval-mode auto_edit -m MODEL --session-id U -i PROMPT
    interactive resume: --approval-mode auto_edit -m MODEL --resume U
    ");
}

#[test]
fn qwen() {
    insta::assert_snapshot!(lines("qwen"), @r#"
    read: -o stream-json --approval-mode default --model MODEL --mcp-config /M --append-system-prompt <be "good"
    to all> --session-id U
    edit: -o stream-json --approval-mode auto-edit --model MODEL --mcp-config /M --append-system-prompt <be "good"
    to all> --session-id U
    full: -o stream-json --approval-mode yolo --model MODEL --mcp-config /M --append-system-prompt <be "good"
    to all> --session-id U
    resume: -o stream-json --approval-mode auto-edit --model MODEL --mcp-config /M --append-system-prompt <be "good"
    to all> --resume U
    interactive: --approval-mode auto-edit --model MODEL --mcp-config /M --append-system-prompt <be "good"
    to all> --session-id U -i PROMPT
    interactive resume: --approval-mode auto-edit --model MODEL --mcp-config /M --append-system-prompt <be "good"
    to all> --resume U
    "#);
}

#[test]
fn copilot() {
    insta::assert_snapshot!(lines("copilot"), @r"
    read: --output-format json --no-ask-user --allow-tool proq <--deny-tool=shell(git branch)> <--deny-tool=shell(git tag)> --model MODEL --session-id U --additional-mcp-config @/M --usage-output-file /F
    edit: --output-format json --no-ask-user --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> --model MODEL --session-id U --additional-mcp-config @/M --usage-output-file /F
    full: --output-format json --no-ask-user --allow-all-tools --allow-all-paths --model MODEL --session-id U --additional-mcp-config @/M --usage-output-file /F
    resume: --output-format json --no-ask-user --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> --model MODEL --additional-mcp-config @/M --usage-output-file /F --resume=U
    interactive: --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> --model MODEL --session-id U --additional-mcp-config @/M -i PROMPT
    interactive resume: --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> --model MODEL --additional-mcp-config @/M --resume=U
    ");
}

#[test]
fn pi() {
    insta::assert_snapshot!(lines("pi"), @r"
    read: --mode json --tools read,grep,find,ls --model MODEL --append-system-prompt /R -e /PL
    edit: --mode json --model MODEL --append-system-prompt /R -e /PL
    full: --mode json --model MODEL --append-system-prompt /R -e /PL
    resume: --mode json --model MODEL --append-system-prompt /R -e /PL --session U
    interactive: --model MODEL --append-system-prompt /R -e /PL PROMPT
    interactive resume: --model MODEL --append-system-prompt /R -e /PL --session U
    ");
}

#[test]
fn aider() {
    insta::assert_snapshot!(lines("aider"), @r"
    read: --message-file /P --yes-always --no-auto-commits --no-stream --no-pretty --no-check-update --no-analytics --no-show-release-notes --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --dry-run --model MODEL
    edit: --message-file /P --yes-always --no-auto-commits --no-stream --no-pretty --no-check-update --no-analytics --no-show-release-notes --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --model MODEL
    full: --message-file /P --yes-always --no-auto-commits --no-stream --no-pretty --no-check-update --no-analytics --no-show-release-notes --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --model MODEL
    resume: 
    interactive: --no-auto-commits --no-check-update --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --model MODEL
    interactive resume:
    ");
}

#[test]
fn a_prompt_that_an_agent_would_take_for_its_own_command_gets_a_heading() {
    let starts = ["/", "!", "@", "-", "#", "x"];
    let headed = |name: &str| -> String {
        let profile = &known()[name];
        let is_headed = |start: &str| {
            let prompt = format!("  {start}clear the cache");
            let told = profile.as_prompt(prompt.clone());
            assert!(told == prompt || told == format!("# Task\n\n{prompt}"), "{told}");
            told != prompt
        };
        starts.into_iter().filter(|start| is_headed(start)).collect()
    };
    let all = ["claude", "codex", "opencode", "gemini", "qwen", "copilot", "pi", "aider"];
    assert_eq!(all.map(headed), ["/", "", "", "", "/", "", "@", "/!"]);
}

#[test]
fn those_that_are_documented_only() {
    let documented: Vec<String> =
        known().into_iter().filter(|(_, p)| p.documented_only).map(|(name, _)| name).collect();
    assert_eq!(documented, ["amp", "cursor"]);
    insta::assert_snapshot!(lines("amp"), @r"
    read: -
    edit: -x PROMPT --stream-json --mcp-config /M
    full: -x PROMPT --stream-json --settings-file /S --mcp-config /M
    resume: threads continue U -x PROMPT --stream-json --mcp-config /M
    interactive: 
    interactive resume:
    ");
    insta::assert_snapshot!(lines("cursor"), @r"
    read: -
    edit: -p --output-format stream-json --trust --force --sandbox enabled --model MODEL PROMPT
    full: -p --output-format stream-json --trust --force --sandbox disabled --model MODEL PROMPT
    resume: -p --output-format stream-json --trust --force --sandbox enabled --model MODEL --resume U PROMPT
    interactive: --model MODEL PROMPT
    interactive resume: --model MODEL --resume U
    ");
}

#[test]
fn an_option_without_a_value_is_left_out_whole() {
    let mut few = Values::default();
    few.set("session", "U");
    let claude = &known()["claude"];
    insta::assert_snapshot!(line(claude, &claude.args.start, Permission::Edit, &few), @r"
    -p --output-format stream-json --verbose --input-format stream-json --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> --session-id U
    ");
}

/// What goes round an agent's own permissions, whatever it is called.
const LOUD: &[&str] =
    &["dangerous", "yolo", "bypass", "allow-all", "danger-full-access", "--auto", "--force", "-f", "dontAsk"];

#[test]
fn no_profile_goes_round_an_agents_own_permissions_except_at_full() {
    for (name, profile) in known() {
        let templates = [
            &profile.args.start,
            &profile.args.resume,
            &profile.args.interactive,
            &profile.args.interactive_resume,
        ];
        for level in [Permission::Read, Permission::Edit] {
            for template in templates {
                let words = profile.words(template, level, &values());
                // One writes no file without it, and is kept in its sandbox instead.
                let boxed = words.windows(2).any(|two| two == ["--sandbox", "enabled"]);
                for word in words.iter().filter(|word| !boxed || *word != "--force") {
                    let word = word.to_str().unwrap();
                    let loud = LOUD.iter().find(|w| word == **w || (w.len() > 6 && word.contains(*w)));
                    assert!(loud.is_none(), "{name} at {level}: {word}");
                }
            }
            let env = profile.permission.of(level).map(|level| level.env.clone()).unwrap_or_default();
            assert!(env.values().all(|value| !value.contains("allow")), "{name} at {level}");
        }
        let everything = format!("{:?}{:?}{:?}", profile.env, profile.env_default, profile.env_json);
        assert!(!LOUD.iter().any(|w| w.len() > 6 && everything.contains(w)), "{name}");
    }
}

#[test]
fn where_an_agent_has_permissions_full_is_another_command_than_edit() {
    // By the protocol leave is given or not, whatever the command is.
    let by_command =
        |profile: &Profile| profile.capabilities.permissions && profile.prompt != Delivery::Protocol;
    for (name, profile) in known().into_iter().filter(|(_, p)| by_command(p)) {
        let start = |level| line(&profile, &profile.args.start, level, &values());
        assert_ne!(start(Permission::Edit), start(Permission::Full), "{name}");
    }
}

#[test]
fn the_capabilities_are_those_that_the_templates_have() {
    for (name, profile) in known() {
        let can = profile.capabilities;
        let mentions = |template: &[String], name| {
            let words = profile.words(template, Permission::Edit, &values());
            let with = |values: &Values| profile.words(template, Permission::Edit, values);
            let mut without = values();
            without.unset(name);
            words != with(&without)
        };
        assert_eq!(can.resume, profile.goes_on(), "{name}");
        assert!(profile.args.resume.is_empty() || mentions(&profile.args.resume, "session"), "{name}");
        assert_eq!(can.session_id_settable, mentions(&profile.args.start, "session"), "{name}");
        let env = format!("{:?}", profile.env_json);
        let rules = ["system_prompt", "system_prompt_file"];
        let told = rules.iter().any(|r| mentions(&profile.args.start, r) || env.contains(r));
        assert_eq!(can.reads_system_prompt, told, "{name}");
        let stdin = profile.prompt == Delivery::Stdin;
        let argument =
            mentions(&profile.args.start, "prompt") || mentions(&profile.args.start, "prompt_file");
        assert!(profile.program.is_empty() || stdin != argument, "{name}");
        let files = format!("{:?}", profile.files);
        let hooks = |what: &str| files.contains(&format!("_agent-event{what}"));
        assert_eq!(can.hooks, hooks(" ") || hooks("\\\", "), "{name}");
        assert_eq!(can.stop_gate, hooks(" stop"), "{name}");
        let by_protocol = profile.prompt == Delivery::Protocol;
        let fed = profile.takes("two_way") && profile.is_fed();
        assert_eq!(can.two_way, by_protocol || fed, "{name}");
        // No other is known to end by itself when it has cost too much.
        assert_eq!(profile.takes("budget"), name == "claude", "{name}");
        let own_server = format!("{:?}{files}{env}", profile.options).contains("{exe:quoted}");
        assert_eq!(can.mcp, by_protocol || own_server, "{name}");
        let by_level = |level| line(&profile, &profile.args.start, level, &values());
        let told_apart = by_protocol
            || by_level(Permission::Edit) != by_level(Permission::Full)
            || profile.permission.edit != profile.permission.full;
        assert_eq!(can.permissions, told_apart, "{name}");
    }
}

/// What an agent says that it used, as it was recorded; none where nobody has a recording of it.
fn recorded(name: &str, profile: &Profile) -> Option<Progress> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams");
    let dir = dir.join(if name == "pi" { "pi-0.87" } else { name });
    // Several agents speak the protocol, and opencode says all that can be said by it.
    let files = ["ok.jsonl", "ok.txt", "opencode.jsonl"].map(|file| dir.join(file));
    let bytes = files.iter().find_map(|file| std::fs::read(file).ok())?;
    let mut reader = Reader::new(profile.dialect, &SessionTotals::default());
    let mut events = Vec::new();
    reader.feed(&bytes, &mut events);
    if let Ok(usage) = std::fs::read(dir.join("usage-output-file.json")) {
        reader.read_usage_file(&usage, &mut events);
    }
    if name == "aider" {
        // The recording is of a model without a price.
        reader.feed(b"Tokens: 1.2k sent, 50 received. Cost: $0.01 message, $0.02 session.\n", &mut events);
    }
    let _ = reader.finish(Exit { code: Some(0), signal: None }, &mut events);
    Some(reader.progress().clone())
}

#[test]
fn what_an_agent_is_said_to_count_is_in_what_was_recorded_of_it() {
    for (name, profile) in known() {
        let can = profile.capabilities;
        match recorded(&name, &profile) {
            Some(run) => {
                assert_eq!(can.tokens, !run.tokens.is_none(), "{name}");
                assert_eq!(can.cost, run.cost.is_some(), "{name}");
            }
            None => assert!(profile.documented_only || name == "command", "there is no recording of {name}"),
        }
    }
}

#[test]
fn every_capability_is_shown_by_a_name_of_its_own() {
    let every = Capabilities {
        session_id_settable: true,
        resume: true,
        cost: true,
        tokens: true,
        mcp: true,
        hooks: true,
        stop_gate: true,
        two_way: true,
        reads_system_prompt: true,
        permissions: true,
    };
    let names: std::collections::BTreeSet<_> = every.names().into_iter().collect();
    assert_eq!(names.len(), every.names().len());
    let fields = serde_json::to_value(every).unwrap();
    assert_eq!(names.len(), fields.as_object().unwrap().len());
}

#[test]
fn the_files_and_variables_are_json() {
    let mut odd = values();
    odd.set("exe", "/a \"b\"/{lane}/git-proq");
    for (name, profile) in known() {
        let files = profile.files.iter().filter(|(file, _)| *file != "plugin").map(|(_, text)| text);
        for text in files.chain(profile.env_json.values()) {
            let filled = odd.fill(text.as_ref()).unwrap();
            let json: serde_json::Value = serde_json::from_str(filled.to_str().unwrap()).expect(&name);
            let all = json.to_string();
            assert!(
                !all.contains("git-proq") || all.contains(r#"/a \"b\"/{lane}/git-proq"#),
                "{name}: {all}"
            );
        }
        for value in
            profile.permission.edit.iter().chain(&profile.permission.read).flat_map(|l| l.env.values())
        {
            assert!(serde_json::from_str::<serde_json::Value>(value).is_ok(), "{name}");
        }
    }
}

fn with_own(text: &str) -> Result<BTreeMap<String, Profile>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("git-proq/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    profiles(&Layers::read(None, Some(dir.path()), &[], &|_| None).unwrap())
}

#[test]
fn a_user_changes_one_and_adds_another() {
    let all = with_own(
        "[agents.claude]\nmodel = 'opus'\noptions.extra = ['--effort', 'high']\n\
         [agents.mine]\nlike = 'claude'\nprogram = 'my-claude'\npermission.edit.args = ['-e']\n\
         [agents.tool]\nprogram = 'tool'\nargs.start = ['run', '{prompt_file}']\nprompt = 'file'\n",
    )
    .unwrap();
    let start = |name: &str| line(&all[name], &all[name].args.start, Permission::Edit, &Values::default());
    assert!(start("claude").ends_with("<Bash(git *)> --effort high"), "{}", start("claude"));
    assert_eq!(all["claude"].model.as_deref(), Some("opus"));
    assert_eq!(all["claude"].program, "claude");
    assert_eq!(all["mine"].program, "my-claude");
    assert_eq!(all["mine"].model.as_deref(), Some("opus"));
    assert_eq!(all["mine"].tried, [""; 0]);
    assert_eq!(
        start("mine"),
        "-p --output-format stream-json --verbose --input-format stream-json -e --effort high"
    );
    assert_eq!(all["mine"].permission.full, all["claude"].permission.full);
    assert_eq!(all["tool"].args.start.len(), 2);
    assert_eq!(all.len(), known().len() + 2);
}

#[test]
fn what_is_wrong_is_named_with_file_and_key() {
    let said = |text: &str| {
        let error = with_own(text).unwrap_err().to_string();
        let (key, rest) = error.split_once(" (from ").unwrap();
        let (file, why) = rest.split_once(") cannot be used: ").unwrap();
        assert!(file.ends_with("git-proq/config.toml"), "{error}");
        format!("{key}: {why}")
    };
    insta::assert_snapshot!(said("[agents.claude]\nargs = 1\n"), @r"
    agents.claude: invalid type: integer `1`, expected struct Templates in `args`
    ");
    insta::assert_snapshot!(said("[agents.claude]\ncolour = 1\n"), @r"
    agents.claude: unknown field `colour`, expected one of `about`, `program`, `args`, `permission`, `options`, `prompt`, `bare`, `env`, `env_default`, `env_json`, `files`, `env_file`, `dialect`, `capabilities`, `strays`, `model`, `version`, `tried`, `documented_only`, `supervise`, `window`, `tells`, `leaves`, `commands`
    ");
    insta::assert_snapshot!(said("[agents]\nclaude = 1\n"), @r"
    agents.claude: it is no table
    ");
    insta::assert_snapshot!(said("[agents.x]\nlike = 'nobody'\n"), @r"
    agents.x.like: there is no agent 'nobody'
    ");
    insta::assert_snapshot!(said("[agents.x]\nlike = 'y'\n[agents.y]\nlike = 'x'\n"), @r#"
    agents.x.like: it cannot be like "y"
    "#);
    insta::assert_snapshot!(said("[agents.x]\nlike = 'claude'\nprompt = 'argument'\n"), @r#"
    agents.x.args.start: prompt = "argument", and no argument is {prompt}
    "#);
    insta::assert_snapshot!(said("[agents.x]\nargs.start = ['[colour]']\n"), @r"
    agents.x.args.start: there is no options.colour
    ");
    insta::assert_snapshot!(said("[agents.x]\nfiles.secrets = 'x'\n"), @r"
    agents.x.files.secrets: known files are settings, mcp_config, plugin
    ");
}

#[test]
fn codex_starts_hooks_for_those_who_want_them() {
    let all =
        with_own("[agents.codex]\ncapabilities.hooks = true\ncapabilities.stop_gate = true\n[agents.claude]\ncapabilities.hooks = false\n")
            .unwrap();
    let start = |name: &str| line(&all[name], &all[name].args.start, Permission::Edit, &values());
    assert!(start("codex").contains("--dangerously-bypass-hook-trust"), "{}", start("codex"));
    for (event, kind) in [
        ("UserPromptSubmit", "prompt"),
        ("PermissionRequest", "permission"),
        ("PostToolUse", "tool"),
        ("Stop", "stop"),
    ] {
        let words = all["codex"].words(&all["codex"].args.resume, Permission::Edit, &values());
        let word =
            words.iter().find_map(|word| word.to_str()?.strip_prefix(&format!("hooks.{event}="))).unwrap();
        let set: toml::Table = toml::from_str(&format!("x={word}")).unwrap();
        let hook = &set["x"][0]["hooks"][0];
        assert_eq!(hook["command"].as_str(), Some(&*format!("\"$PROQ_PROGRAM\" _agent-event {kind}")));
    }
    assert!(all["codex"].capabilities.stop_gate);
    // Who can say nothing cannot be sent back.
    assert!(!all["claude"].capabilities.stop_gate);
}
