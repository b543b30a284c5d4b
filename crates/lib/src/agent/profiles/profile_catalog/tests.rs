//! Tests of the profiles: the command lines of each agent, and the changes that a user can make.

mod hooks;

use proq_stream::base::progress::Progress;
use proq_stream::base::run_end::Exit;
use proq_stream::reader::OutputReader;

use super::*;
use crate::agent::profiles::profile::permission::Permission;
use crate::agent::profiles::profile::{Capabilities, PromptDelivery};
use crate::agent::profiles::template::PlaceholderValues;

const LEVELS: [Permission; 3] = [Permission::Read, Permission::Edit, Permission::Full];

fn built_in_profiles() -> BTreeMap<String, Profile> {
    load_profiles(&Layers::default()).unwrap()
}

/// Returns template values as short as the placeholders in the documentation.
fn samples() -> PlaceholderValues {
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
    let mut values = PlaceholderValues::default();
    for (name, value) in all {
        values.set(name, value);
    }
    values.set_list("check", vec!["make test".to_owned()]);
    values.set_list("allow", vec!["cargo".to_owned(), "npm run".to_owned()]);
    values.set_list("allow_exact", vec!["npm ci".to_owned()]);
    values
}

fn command_line(
    profile: &Profile,
    template: &[String],
    level: Permission,
    values: &PlaceholderValues,
) -> String {
    let words = profile.expand_args(template, level, values);
    let words = words.iter().map(|word| {
        let word = word.to_str().unwrap().to_owned();
        if word.contains([' ', '*', '"', '{', '(', '\n']) { format!("<{word}>") } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns all command lines of a profile: a start at each level, a resume, and both on a terminal.
fn command_lines(name: &str) -> String {
    let profile = &built_in_profiles()[name];
    let mut out = String::new();
    for level in LEVELS {
        let env = profile.permission.level_settings(level).map(|level| level.env.clone()).unwrap_or_default();
        let env: Vec<String> = env.iter().map(|(key, value)| format!(" ({key}={value})")).collect();
        let text = match profile.permission.level_settings(level) {
            None => "-".to_owned(),
            Some(_) => command_line(profile, &profile.args.start, level, &samples()),
        };
        out.push_str(&format!("{level}: {text}{}\n", env.concat()));
    }
    let other_templates = [
        ("resume", &profile.args.resume),
        ("interactive", &profile.args.interactive),
        ("interactive resume", &profile.args.interactive_resume),
    ];
    for (label, template) in other_templates {
        out.push_str(&format!(
            "{label}: {}\n",
            command_line(profile, template, Permission::Edit, &samples())
        ));
    }
    out
}

#[test]
fn claude() {
    insta::assert_snapshot!(command_lines("claude"), @"
    read: -p --output-format stream-json --verbose --input-format stream-json --permission-mode default --allowedTools <mcp__proq__*> --disallowedTools Edit Write NotebookEdit --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U
    edit: -p --output-format stream-json --verbose --input-format stream-json --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> <Bash(cargo *)> <Bash(npm run *)> <Bash(npm ci)> --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U
    full: -p --output-format stream-json --verbose --input-format stream-json --dangerously-skip-permissions --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U
    resume: -p --output-format stream-json --verbose --input-format stream-json --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> <Bash(cargo *)> <Bash(npm run *)> <Bash(npm ci)> --model MODEL --max-turns 9 --max-budget-usd 2.5 --settings /S --mcp-config /M --append-system-prompt-file /R --resume U
    interactive: --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> <Bash(cargo *)> <Bash(npm run *)> <Bash(npm ci)> --model MODEL --settings /S --mcp-config /M --append-system-prompt-file /R --session-id U -- PROMPT
    interactive resume: --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> <Bash(make test)> <Bash(cargo *)> <Bash(npm run *)> <Bash(npm ci)> --model MODEL --settings /S --mcp-config /M --append-system-prompt-file /R --resume U
    ");
}

#[test]
fn codex() {
    insta::assert_snapshot!(command_lines("codex"), @r#"
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
    insta::assert_snapshot!(command_lines("opencode"), @r#"
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
    insta::assert_snapshot!(command_lines("gemini"), @"
    read: -o stream-json --approval-mode default -m MODEL --session-id U
    edit: -o stream-json --approval-mode auto_edit <--allowed-tools=run_shell_command(git)> <--allowed-tools=run_shell_command(cargo)> <--allowed-tools=run_shell_command(npm run)> -m MODEL --session-id U
    full: -o stream-json --approval-mode yolo -m MODEL --session-id U
    resume: -o stream-json --approval-mode auto_edit <--allowed-tools=run_shell_command(git)> <--allowed-tools=run_shell_command(cargo)> <--allowed-tools=run_shell_command(npm run)> -m MODEL --resume U
    interactive: --approval-mode auto_edit <--allowed-tools=run_shell_command(git)> <--allowed-tools=run_shell_command(cargo)> <--allowed-tools=run_shell_command(npm run)> -m MODEL --session-id U -i PROMPT
    interactive resume: --approval-mode auto_edit <--allowed-tools=run_shell_command(git)> <--allowed-tools=run_shell_command(cargo)> <--allowed-tools=run_shell_command(npm run)> -m MODEL --resume U
    ");
}

#[test]
fn qwen() {
    insta::assert_snapshot!(command_lines("qwen"), @r#"
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
    insta::assert_snapshot!(command_lines("copilot"), @"
    read: --output-format json --no-ask-user --allow-tool proq <--deny-tool=shell(git branch)> <--deny-tool=shell(git tag)> --model MODEL --session-id U --additional-mcp-config @/M --usage-output-file /F
    edit: --output-format json --no-ask-user --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> <--allow-tool=shell(cargo:*)> <--allow-tool=shell(npm run:*)> --model MODEL --session-id U --additional-mcp-config @/M --usage-output-file /F
    full: --output-format json --no-ask-user --allow-all-tools --allow-all-paths --model MODEL --session-id U --additional-mcp-config @/M --usage-output-file /F
    resume: --output-format json --no-ask-user --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> <--allow-tool=shell(cargo:*)> <--allow-tool=shell(npm run:*)> --model MODEL --additional-mcp-config @/M --usage-output-file /F --resume=U
    interactive: --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> <--allow-tool=shell(cargo:*)> <--allow-tool=shell(npm run:*)> --model MODEL --session-id U --additional-mcp-config @/M -i PROMPT
    interactive resume: --allow-tool proq --allow-tool write --allow-tool <shell(git:*)> <--allow-tool=shell(make test)> <--allow-tool=shell(cargo:*)> <--allow-tool=shell(npm run:*)> --model MODEL --additional-mcp-config @/M --resume=U
    ");
}

#[test]
fn pi() {
    insta::assert_snapshot!(command_lines("pi"), @r"
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
    insta::assert_snapshot!(command_lines("aider"), @r"
    read: --message-file /P --yes-always --no-auto-commits --no-stream --no-pretty --no-check-update --no-analytics --no-show-release-notes --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --dry-run --model MODEL
    edit: --message-file /P --yes-always --no-auto-commits --no-stream --no-pretty --no-check-update --no-analytics --no-show-release-notes --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --model MODEL
    full: --message-file /P --yes-always --no-auto-commits --no-stream --no-pretty --no-check-update --no-analytics --no-show-release-notes --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --model MODEL
    resume: 
    interactive: --no-auto-commits --no-check-update --no-gitignore --chat-history-file /run/chat.md --input-history-file /run/input --model MODEL
    interactive resume:
    ");
}

#[test]
fn prompt_that_looks_like_agent_command_gets_heading() {
    let starts = ["/", "!", "@", "-", "#", "x"];
    let headed_starts = |name: &str| -> String {
        let profile = &built_in_profiles()[name];
        let is_headed = |start: &str| {
            let prompt = format!("  {start}clear the cache");
            let composed = profile.escape_command_prompt(prompt.clone());
            assert!(composed == prompt || composed == format!("# Task\n\n{prompt}"), "{composed}");
            composed != prompt
        };
        starts.into_iter().filter(|start| is_headed(start)).collect()
    };
    let all = ["claude", "codex", "opencode", "gemini", "qwen", "copilot", "pi", "aider"];
    assert_eq!(all.map(headed_starts), ["/", "", "", "", "/", "", "@", "/!"]);
}

#[test]
fn documented_only_profiles() {
    let documented: Vec<String> =
        built_in_profiles().into_iter().filter(|(_, p)| p.documented_only).map(|(name, _)| name).collect();
    assert_eq!(documented, ["amp", "cursor"]);
    insta::assert_snapshot!(command_lines("amp"), @r"
    read: -
    edit: -x PROMPT --stream-json --mcp-config /M
    full: -x PROMPT --stream-json --settings-file /S --mcp-config /M
    resume: threads continue U -x PROMPT --stream-json --mcp-config /M
    interactive: 
    interactive resume:
    ");
    insta::assert_snapshot!(command_lines("cursor"), @r"
    read: -
    edit: -p --output-format stream-json --trust --force --sandbox enabled --model MODEL PROMPT
    full: -p --output-format stream-json --trust --force --sandbox disabled --model MODEL PROMPT
    resume: -p --output-format stream-json --trust --force --sandbox enabled --model MODEL --resume U PROMPT
    interactive: --model MODEL PROMPT
    interactive resume: --model MODEL --resume U
    ");
}

#[test]
fn omits_option_without_value() {
    let mut sparse_values = PlaceholderValues::default();
    sparse_values.set("session", "U");
    let claude = &built_in_profiles()["claude"];
    insta::assert_snapshot!(command_line(claude, &claude.args.start, Permission::Edit, &sparse_values), @r"
    -p --output-format stream-json --verbose --input-format stream-json --permission-mode acceptEdits --allowedTools <mcp__proq__*> <Bash(git *)> --session-id U
    ");
}

/// Parts of arguments that bypass an agent's own permissions, whatever their names.
const PERMISSION_BYPASSES: &[&str] =
    &["dangerous", "yolo", "bypass", "allow-all", "danger-full-access", "--auto", "--force", "-f", "dontAsk"];

/// Promise: checks/repository-settings
#[test]
fn no_profile_bypasses_permissions_below_full() {
    for (name, profile) in built_in_profiles() {
        let templates = [
            &profile.args.start,
            &profile.args.resume,
            &profile.args.interactive,
            &profile.args.interactive_resume,
        ];
        for level in [Permission::Read, Permission::Edit] {
            for template in templates {
                let words = profile.expand_args(template, level, &samples());
                // One agent writes no file without this argument, and is confined by its sandbox instead.
                let is_sandboxed = words.windows(2).any(|pair| pair == ["--sandbox", "enabled"]);
                for word in words.iter().filter(|word| !is_sandboxed || *word != "--force") {
                    let word = word.to_str().unwrap();
                    let bypass = PERMISSION_BYPASSES
                        .iter()
                        .find(|w| word == **w || (w.len() > 6 && word.contains(*w)));
                    assert!(bypass.is_none(), "{name} at {level}: {word}");
                }
            }
            let env = profile.permission.level_settings(level).map(|s| s.env.clone()).unwrap_or_default();
            assert!(env.values().all(|value| !value.contains("allow")), "{name} at {level}");
        }
        let variables = format!("{:?}{:?}{:?}", profile.env, profile.env_default, profile.env_json);
        assert!(!PERMISSION_BYPASSES.iter().any(|w| w.len() > 6 && variables.contains(w)), "{name}");
    }
}

#[test]
fn full_differs_from_edit_where_permissions_exist() {
    // With the protocol, permission is granted per request, whatever the command line.
    let is_limited_by_command =
        |profile: &Profile| profile.capabilities.permissions && profile.prompt != PromptDelivery::Protocol;
    for (name, profile) in built_in_profiles().into_iter().filter(|(_, p)| is_limited_by_command(p)) {
        let start = |level| command_line(&profile, &profile.args.start, level, &samples());
        assert_ne!(start(Permission::Edit), start(Permission::Full), "{name}");
    }
}

#[test]
fn capabilities_match_templates() {
    for (name, profile) in built_in_profiles() {
        let declared = profile.capabilities;
        let mentions = |template: &[String], name| {
            let words = profile.expand_args(template, Permission::Edit, &samples());
            let with = |values: &PlaceholderValues| profile.expand_args(template, Permission::Edit, values);
            let mut without = samples();
            without.unset(name);
            words != with(&without)
        };
        assert_eq!(declared.resume, profile.can_resume(), "{name}");
        assert!(profile.args.resume.is_empty() || mentions(&profile.args.resume, "session"), "{name}");
        assert_eq!(declared.session_id_settable, mentions(&profile.args.start, "session"), "{name}");
        let env = format!("{:?}", profile.env_json);
        let rules = ["system_prompt", "system_prompt_file"];
        let has_rules = rules.iter().any(|r| mentions(&profile.args.start, r) || env.contains(r));
        assert_eq!(declared.reads_system_prompt, has_rules, "{name}");
        let stdin = profile.prompt == PromptDelivery::Stdin;
        let argument =
            mentions(&profile.args.start, "prompt") || mentions(&profile.args.start, "prompt_file");
        assert!(profile.program.is_empty() || stdin != argument, "{name}");
        let files = format!("{:?}", profile.files);
        let hooks = |what: &str| files.contains(&format!("_agent-event{what}"));
        assert_eq!(declared.hooks, hooks(" ") || hooks("\\\", "), "{name}");
        assert_eq!(declared.stop_gate, hooks(" stop"), "{name}");
        let by_protocol = profile.prompt == PromptDelivery::Protocol;
        let reads_stdin_prompts = profile.has_option("two_way") && profile.reads_prompts_on_stdin();
        assert_eq!(declared.two_way, by_protocol || reads_stdin_prompts, "{name}");
        // No other agent is known to stop automatically at a cost limit.
        assert_eq!(profile.has_option("budget"), name == "claude", "{name}");
        let names_mcp_server = format!("{:?}{files}{env}", profile.options).contains("{exe:quoted}");
        assert_eq!(declared.mcp, by_protocol || names_mcp_server, "{name}");
        let by_level = |level| command_line(&profile, &profile.args.start, level, &samples());
        let differs_by_level = by_protocol
            || by_level(Permission::Edit) != by_level(Permission::Full)
            || profile.permission.edit != profile.permission.full;
        assert_eq!(declared.permissions, differs_by_level, "{name}");
    }
}

/// Returns the progress and usage that an agent reported in its recorded output; none where no recording
/// exists.
fn recorded_progress(name: &str, profile: &Profile) -> Option<Progress> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/streams");
    let dir = dir.join(if name == "pi" { "pi-0.87" } else { name });
    // Several agents speak the protocol; opencode uses every message of it.
    let files = ["ok.jsonl", "ok.txt", "opencode.jsonl"].map(|file| dir.join(file));
    let bytes = files.iter().find_map(|file| std::fs::read(file).ok())?;
    let mut reader = OutputReader::new(profile.dialect, &proq_base::usage::SessionTotals::default());
    let mut events = Vec::new();
    reader.feed_stdout(&bytes, &mut events);
    if let Ok(usage) = std::fs::read(dir.join("usage-output-file.json")) {
        reader.read_usage_file(&usage, &mut events);
    }
    if name == "aider" {
        // The recording is of a model without a price.
        reader.feed_stdout(
            b"Tokens: 1.2k sent, 50 received. Cost: $0.01 message, $0.02 session.\n",
            &mut events,
        );
    }
    let _ = reader.finish(Exit { code: Some(0), signal: None }, &mut events);
    Some(reader.progress().clone())
}

#[test]
fn declared_usage_is_in_recordings() {
    for (name, profile) in built_in_profiles() {
        let declared = profile.capabilities;
        match recorded_progress(&name, &profile) {
            Some(run) => {
                assert_eq!(declared.tokens, !run.tokens.is_zero(), "{name}");
                assert_eq!(declared.cost, run.cost.is_some(), "{name}");
            }
            None => assert!(profile.documented_only || name == "command", "there is no recording of {name}"),
        }
    }
}

#[test]
fn every_capability_has_a_unique_name() {
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
fn files_and_variables_are_valid_json() {
    let mut unusual_values = samples();
    unusual_values.set("exe", "/a \"b\"/{lane}/git-proq");
    for (name, profile) in built_in_profiles() {
        let files = profile.files.iter().filter(|(file, _)| *file != "plugin").map(|(_, text)| text);
        for text in files.chain(profile.env_json.values()) {
            let expanded = unusual_values.expand(text.as_ref()).unwrap();
            let json: serde_json::Value = serde_json::from_str(expanded.to_str().unwrap()).expect(&name);
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

fn profiles_with_user_config(text: &str) -> Result<BTreeMap<String, Profile>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("git-proq/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    load_profiles(&Layers::read(None, Some(dir.path()), &[], &|_| None).unwrap())
}

#[test]
fn user_config_changes_and_adds_profiles() {
    let all = profiles_with_user_config(
        "[agents.claude]\nmodel = 'opus'\noptions.extra = ['--effort', 'high']\n\
         [agents.mine]\nlike = 'claude'\nprogram = 'my-claude'\npermission.edit.args = ['-e']\n\
         [agents.tool]\nprogram = 'tool'\nargs.start = ['run', '{prompt_file}']\nprompt = 'file'\n",
    )
    .unwrap();
    let start = |name: &str| {
        command_line(&all[name], &all[name].args.start, Permission::Edit, &PlaceholderValues::default())
    };
    assert!(start("claude").ends_with("<Bash(git *)> --effort high"), "{}", start("claude"));
    assert_eq!(all["claude"].model.as_deref(), Some("opus"));
    assert_eq!(all["claude"].program, "claude");
    assert_eq!(all["mine"].program, "my-claude");
    assert_eq!(all["mine"].model.as_deref(), Some("opus"));
    assert_eq!(all["mine"].tested_versions, [""; 0]);
    assert_eq!(
        start("mine"),
        "-p --output-format stream-json --verbose --input-format stream-json -e --effort high"
    );
    assert_eq!(all["mine"].permission.full, all["claude"].permission.full);
    assert_eq!(all["tool"].args.start.len(), 2);
    assert_eq!(all.len(), built_in_profiles().len() + 2);
}

#[test]
fn profile_error_names_file_and_key() {
    let error_text = |text: &str| {
        let error = profiles_with_user_config(text).unwrap_err().to_string();
        let (key, remainder) = error.strip_prefix("cannot use ").unwrap().split_once(" of ").unwrap();
        let (file, why) = remainder.split_once(": ").unwrap();
        assert!(file.ends_with("git-proq/config.toml"), "{error}");
        format!("{key}: {why}")
    };
    insta::assert_snapshot!(error_text("[agents.claude]\nargs = 1\n"), @r"
    agents.claude: invalid type: integer `1`, expected struct ArgTemplates in `args`
    ");
    insta::assert_snapshot!(error_text("[agents.claude]\nshade = 1\n"), @"
    agents.claude: unknown field `shade`, expected one of `about`, `program`, `args`, `permission`, `options`, `prompt`, `bare`, `env`, `env_default`, `env_json`, `files`, `env_file`, `dialect`, `capabilities`, `strays`, `model`, `install`, `version`, `tried`, `documented_only`, `supervise`, `window`, `tells`, `leaves`, `commands`
    ");
    insta::assert_snapshot!(error_text("[agents]\nclaude = 1\n"), @r"
    agents.claude: it is no table
    ");
    insta::assert_snapshot!(error_text("[agents.x]\nlike = 'nobody'\n"), @r"
    agents.x.like: there is no agent 'nobody'
    ");
    insta::assert_snapshot!(error_text("[agents.x]\nlike = 'y'\n[agents.y]\nlike = 'x'\n"), @r#"
    agents.x.like: it cannot be based on "y"
    "#);
    insta::assert_snapshot!(error_text("[agents.x]\nlike = 'claude'\nprompt = 'argument'\n"), @r#"
    agents.x.args.start: prompt = "argument", and no argument is {prompt}
    "#);
    insta::assert_snapshot!(error_text("[agents.x]\nargs.start = ['[shade]']\n"), @r"
    agents.x.args.start: there is no options.shade
    ");
    insta::assert_snapshot!(error_text("[agents.x]\nfiles.secrets = 'x'\n"), @r"
    agents.x.files.secrets: known files are settings, mcp_config, plugin
    ");
}
