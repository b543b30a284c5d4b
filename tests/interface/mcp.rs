//! `git proq mcp`: what each kind of agent may do with its tools, and the errors it gets.

use std::path::Path;
use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::waiting::WAIT_LIMIT;
use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};

/// Awaits an answer, within the time limit of a test.
async fn within_limit<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_LIMIT, answer).await.unwrap()
}

/// An agent's end of the connection.
struct Client {
    runtime: tokio::runtime::Runtime,
    service: RunningService<RoleClient, ()>,
}

impl Client {
    /// Starts the server in `dir`, with `lane` in its environment.
    fn start(
        sandbox: &Sandbox,
        dir: &Path,
        lane: Option<&str>,
        args: &[&str],
        mode: ClientLifecycleMode,
    ) -> Client {
        let mut command = sandbox.proq_command(dir, &[&["mcp"][..], args].concat());
        command.envs(lane.map(|lane| ("PROQ_LANE", lane)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let service = runtime.block_on(async {
            let command = tokio::process::Command::from(command);
            let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().unwrap();
            within_limit(().serve_with_lifecycle(transport, mode)).await.unwrap()
        });
        Client { runtime, service }
    }

    fn start_in_lane(sandbox: &Sandbox, lane: &str) -> Client {
        Client::start(sandbox, &sandbox.lane_path(lane), Some(lane), &[], ClientLifecycleMode::Initialize)
    }

    fn start_supervisor(sandbox: &Sandbox) -> Client {
        Client::start(sandbox, &sandbox.repo, None, &["--supervisor"], ClientLifecycleMode::Initialize)
    }

    fn tools(&self) -> Vec<rmcp::model::Tool> {
        self.runtime.block_on(within_limit(self.service.list_all_tools())).unwrap()
    }

    fn tool_names(&self) -> Vec<String> {
        self.tools().into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    fn try_call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.runtime.block_on(within_limit(self.service.call_tool(call)))
    }

    /// Returns whether a call failed, and its text.
    fn call(&self, tool: &str, arguments: Value) -> (bool, String) {
        let result = self.try_call(tool, arguments).unwrap();
        let texts = result.content.iter().filter_map(|c| c.as_text()).map(|t| t.text.clone());
        (result.is_error == Some(true), texts.collect::<Vec<_>>().join("\n"))
    }

    #[track_caller]
    fn ok(&self, tool: &str, arguments: Value) -> String {
        let (failed, text) = self.call(tool, arguments);
        assert!(!failed, "{text}");
        text
    }

    #[track_caller]
    fn fails(&self, tool: &str, arguments: Value) -> String {
        let (failed, text) = self.call(tool, arguments);
        assert!(failed, "{text}");
        text
    }

    #[track_caller]
    fn json(&self, tool: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.ok(tool, arguments)).unwrap()
    }
}

/// Returns both ways to start: a session with `initialize`, and requests that each are self-contained.
fn both_lifecycles() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

fn sandbox_with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "echo work > work.txt");
    let _ = sandbox.proq(&["spawn", "--wait", "robot", "-n", "x", "Fix it"]).ok();
    sandbox
}

#[test]
fn lane_agent_reads_task_and_reports() {
    let sandbox = sandbox_with_lane();
    for mode in both_lifecycles() {
        let agent = Client::start(&sandbox, &sandbox.lane_path("x"), Some("x"), &[], mode);
        assert_eq!(agent.tool_names(), ["read_task", "update_task"]);
        let about = agent.service.peer_info().and_then(|info| info.instructions.clone()).unwrap();
        assert!(about.starts_with("You work in a lane"), "{about}");
        let _ = agent.ok("update_task", json!({ "findings": ["one"], "human_steps": ["two"] }));
        let task = agent.json("read_task", json!({}));
        assert_eq!((&task["lane"], &task["prompt"]), (&"x".into(), &"Fix it".into()));
        assert_eq!(
            (&task["report"]["findings"][0], &task["report"]["human_steps"][0]),
            (&"one".into(), &"two".into())
        );
    }
    sandbox.assert_healthy();
}

#[test]
fn tool_annotations_state_effects() {
    let sandbox = sandbox_with_lane();
    let hints = |agent: &Client| -> Vec<String> {
        let one = |tool: rmcp::model::Tool| {
            let hints = tool.annotations.unwrap();
            format!(
                "{} {:?} {:?} {:?}",
                tool.name, hints.read_only_hint, hints.destructive_hint, hints.open_world_hint
            )
        };
        agent.tools().into_iter().map(one).collect()
    };
    assert_eq!(
        hints(&Client::start_in_lane(&sandbox, "x")),
        ["read_task Some(true) None Some(false)", "update_task Some(false) Some(false) Some(false)"]
    );
    let lanes = hints(&Client::start_supervisor(&sandbox));
    let read_only = |line: &&String| line.contains(" Some(true) None Some(false)");
    let reading: Vec<&str> = lanes.iter().filter(read_only).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(reading, ["diff", "list", "matrix", "show"]);
    for tool in ["merge", "preview", "stop"] {
        assert!(lanes.iter().any(|l| l.starts_with(&format!("{tool} Some(false) Some(true)"))), "{lanes:?}");
    }
}

/// Promise: agent-requests/no-lane-tools
#[test]
fn lane_agent_gets_no_lane_tools() {
    let sandbox = sandbox_with_lane();
    let agent = Client::start_in_lane(&sandbox, "x");
    for tool in ["list", "merge", "spawn", "stop"] {
        assert!(agent.try_call(tool, json!({})).is_err(), "{tool}");
    }
    let refused = |dir: &Path, lane: Option<&str>| {
        let mut command = sandbox.proq_command(dir, &["mcp", "--supervisor"]);
        command.envs(lane.map(|lane| ("PROQ_LANE", lane)));
        sandbox.output(command).fails(1)
    };
    insta::assert_snapshot!(refused(&sandbox.lane_path("x"), None), @r"
    error: cannot do this from lane 'x': only a person or the supervising agent may
    hint: an agent in a lane can report on its task: git proq task update --status TEXT
    ");
    assert!(refused(&sandbox.repo, Some("x")).contains("cannot do this from lane 'x'"));
}

/// Promise: agent-requests/report-own-lane, agent-requests/report-kept
#[test]
fn agent_outside_its_lane_is_refused() {
    let sandbox = sandbox_with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let refusal = |dir: &Path, lane: Option<&str>| {
        let agent = Client::start(&sandbox, dir, lane, &[], ClientLifecycleMode::Initialize);
        let text = agent.fails("read_task", json!({}));
        assert_eq!(agent.fails("update_task", json!({ "findings": ["a"] })), text);
        text
    };
    assert!(refusal(&sandbox.lane_path("x"), Some("y")).contains("PROQ_LANE is 'y', but this is lane 'x'"));
    assert!(refusal(&sandbox.repo, Some("x")).contains("not inside a lane"));
    assert!(refusal(&sandbox.repo, None).contains("not inside a lane"));
    assert!(refusal(&sandbox.root().join("home"), None).contains("not a git repository"));
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["report"], Value::Null);

    let agent = Client::start_in_lane(&sandbox, "y");
    let _ = agent.ok("read_task", json!({}));
    let _ = sandbox.proq(&["discard", "y"]).ok();
    let text = agent.fails("update_task", json!({ "findings": ["a"] }));
    assert!(text.starts_with("error: ") || text.contains("could not be started"), "{text}");
    assert!(!sandbox.repo.join(".git/proq/lanes/y").exists());
}

#[test]
fn invalid_calls_return_error_text() {
    let sandbox = sandbox_with_lane();
    let agent = Client::start_in_lane(&sandbox, "x");
    let _ = agent.ok("update_task", json!({ "findings": ["stays"] }));
    for arguments in
        [json!({ "findings": "one" }), json!({ "lane": "y", "findings": ["a"] }), json!({ "status": 1 })]
    {
        assert!(!agent.fails("update_task", arguments).is_empty());
    }
    assert!(agent.fails("update_task", json!({})).contains("the report: it is empty"));
    let long = json!({ "findings": ["x".repeat(1_000_000)] });
    assert!(agent.fails("update_task", long).contains("more than 64 KiB"));
    let text = "a\u{0}\u{1b}[2J";
    assert_eq!(agent.json("read_task", json!({}))["report"]["findings"][0], "stays");
    let _ = agent.ok("update_task", json!({ "findings": [text] }));
    assert_eq!(agent.json("read_task", json!({}))["report"]["findings"][0], text);
    assert!(agent.try_call("nothing", json!({})).is_err());
}

#[test]
fn invalid_messages_do_not_end_server() {
    let sandbox = sandbox_with_lane();
    let mut command = sandbox.proq_command(&sandbox.lane_path("x"), &["mcp"]);
    command.env("PROQ_LANE", "x");
    let start = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "read_task", "arguments": {} } });
    let lines = format!("{start}\n{ready}\nthis is no JSON\n{{\"half\": \n[1, 2]\n{call}\n");
    let out = sandbox.output_with(command, lines.as_bytes()).ok();
    let last: Value =
        out.lines().map(|l| serde_json::from_str(l).unwrap()).find(|l: &Value| l["id"] == 2).unwrap();
    assert_eq!(last["result"]["isError"], false, "{out}");
    assert_eq!(sandbox.output_with(sandbox.proq_command(&sandbox.repo, &["mcp"]), b"").code, 1);
}

#[test]
fn supervisor_inspects_and_starts_lanes() {
    let sandbox = sandbox_with_lane();
    sandbox.agent("claude", "cat > asked.txt");
    let agent = Client::start_supervisor(&sandbox);
    assert_eq!(
        agent.tool_names(),
        ["diff", "list", "matrix", "merge", "preview", "send", "show", "spawn", "stop"]
    );
    assert_eq!(agent.json("list", json!({}))["lanes"][0]["name"], "x");
    assert_eq!(agent.json("show", json!({ "lane": "x" }))["task"], "Fix it");
    assert!(agent.ok("diff", json!({ "lane": "x" })).contains("+work"));
    assert!(agent.ok("diff", json!({ "lane": "x", "stat": true })).contains("work.txt"));
    let _ = agent.json("matrix", json!({}));
    let new = json!({ "agent": "claude", "name": "new", "prompt": "--force\nis text", "checks": ["true"] });
    assert_eq!(agent.json("spawn", new)["checks"][0], "true");
    let _ = sandbox.proq(&["wait", "new"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/new:asked.txt"]), "--force\nis text");
    let _ = agent.json("preview", json!({ "lane": "new" }));
    assert!(sandbox.repo.join("asked.txt").exists());
    let _ = agent.json("preview", json!({}));
    assert!(!sandbox.repo.join("asked.txt").exists());
    assert!(
        agent.fails("show", json!({ "lane": "nope" })).starts_with("error: there is no lane 'nope'\nhint: ")
    );
    sandbox.assert_healthy();
}

#[test]
fn operations_name_their_origin() {
    let sandbox = sandbox_with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    sandbox.program("editor", "git-proq edit z --title Z; echo 1 > one");
    let _ = sandbox.proq(&["spawn", "--wait", "editor", "-n", "z", "Edit it"]).ok();
    let agent = Client::start_supervisor(&sandbox);
    agent.ok("preview", json!({ "lane": "x" }));
    let log = sandbox.proq(&["op", "log", "--json"]).json();
    let via = |kind: &str| {
        let operations = log["operations"].as_array().unwrap();
        operations.iter().find(|op| op["kind"] == kind).map(|op| op["via"].clone())
    };
    let kinds = ["spawn", "edit", "preview"].map(via);
    assert_eq!(kinds, ["terminal", "agent z", "mcp"].map(|via| Some(via.into())), "{log}");
    let number = log["operations"].as_array().unwrap().iter().find(|op| op["kind"] == "edit").unwrap();
    let shown = sandbox.proq(&["op", "show", &number["operation"].to_string()]).ok();
    assert!(shown.contains("\nvia        agent z\n"), "{shown}");
}

/// Promise: agent-requests/no-options
#[test]
fn supervisor_cannot_pass_options_or_other_programs() {
    let sandbox = sandbox_with_lane();
    let agent = Client::start_supervisor(&sandbox);
    assert!(agent.fails("show", json!({ "lane": "--help" })).contains("there is no lane '--help'"));
    assert!(agent.fails("stop", json!({ "lanes": ["--all"] })).contains("'--all'"));
    assert!(agent.fails("merge", json!({ "strategy": "none" })).contains("none"));
    for name in ["robot", "sh", "--empty", "-h", ""] {
        let text = agent.fails("spawn", json!({ "agent": name, "prompt": "x", "name": "bad" }));
        assert!(text.contains("there is no agent with this name"), "{text}");
    }
    assert_eq!(sandbox.row("bad"), Value::Null);
}

/// Promise: agent-requests/merge-plan
#[test]
fn merge_lands_only_its_plan() {
    let sandbox = sandbox_with_lane();
    sandbox.lane_with_commit("y", "echo y > y.txt");
    let agent = Client::start_supervisor(&sandbox);
    let main = || sandbox.git(&["rev-parse", "main"]);
    let begin = main();
    let plan = agent.json("merge", json!({}));
    assert_eq!(plan["plan"]["lanes"].as_array().unwrap().len(), 2);
    let token = plan["token"].as_str().unwrap().to_owned();
    let with = |token: &str, lanes: &[&str]| agent.json("merge", json!({ "token": token, "lanes": lanes }));

    // Not with an invalid token, not for other arguments, not with the token of another server.
    assert!(with("0123456789abcdef", &[])["plan"].is_object());
    assert!(with(&token, &["x"])["plan"].is_object());
    for other in [json!({ "atomic": true }), json!({ "strategy": "rebase" }), json!({ "verify": ["true"] })] {
        let mut arguments = json!({ "token": token });
        arguments.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        assert!(agent.json("merge", arguments)["plan"].is_object(), "{other}");
        assert_eq!(main(), begin);
    }
    let other = Client::start_supervisor(&sandbox);
    assert!(other.json("merge", json!({ "token": token }))["plan"].is_object());
    assert_eq!(main(), begin);

    // A lane that has moved, and then a base that has, make it another plan.
    sandbox.commit_in_lane("y", "echo more > y.txt");
    let moved = with(&token, &[]);
    assert!(moved["next"].as_str().unwrap().contains("new plan"), "{moved}");
    sandbox.write("main.txt", "main\n");
    sandbox.commit_all("main");
    let moved = with(moved["token"].as_str().unwrap(), &[]);
    assert!(moved["plan"].is_object(), "{moved}");

    let done = with(moved["token"].as_str().unwrap(), &[]);
    let results: Vec<&Value> = done["lanes"].as_array().unwrap().iter().map(|l| &l["result"]).collect();
    assert_eq!(results, ["landed", "landed"], "{done}");
    assert_eq!(sandbox.read("y.txt"), "more\n");
    let nothing = with(moved["token"].as_str().unwrap(), &[]);
    assert_eq!((&nothing["token"], nothing["plan"].is_object()), (&Value::Null, true));
    sandbox.assert_healthy();
}

/// Promise: agent-requests/merge-plan
#[test]
fn lane_finished_after_plan_does_not_land() {
    let sandbox = sandbox_with_lane();
    sandbox.git(&[
        "config",
        "proq.hook.pre-merge",
        "git proq spawn --wait -n late -- sh -c 'echo late > late.txt'",
    ]);
    let agent = Client::start_supervisor(&sandbox);
    let plan = agent.json("merge", json!({}));
    let done = agent.json("merge", json!({ "token": plan["token"] }));
    assert_eq!((done["lanes"].as_array().unwrap().len(), &done["lanes"][0]["result"]), (1, &"landed".into()));
    assert_eq!(sandbox.row("late")["state"], "done");
    assert!(sandbox.repo.join("work.txt").exists() && !sandbox.repo.join("late.txt").exists());
}

/// Returns a sandbox in which a merge of lane `x` with main runs a program of the user's, during which a
/// commit appears in lane `y` as long as a file `moving` exists.
fn sandbox_with_moving_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitattributes", "a.txt merge=own\n");
    sandbox.commit_all("attributes");
    sandbox.lane_with_commit("x", "echo lane > a.txt");
    sandbox.lane_with_commit("y", "echo y > y.txt");
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let commit = "\"$ROOT/repo/.proq-worktrees/y\" commit -q --allow-empty -m more";
    sandbox.program(
        "own-merge",
        &format!(
            "test ! -e \"$ROOT/moving\" || env -i PATH=\"$PATH\" git -c user.name=u -c user.email=u@example.org -C {commit}"
        ),
    );
    sandbox.git(&["config", "merge.own.driver", "own-merge"]);
    sandbox
}

/// Promise: agent-requests/merge-plan
#[test]
fn outdated_plan_is_never_landed() {
    let sandbox = sandbox_with_moving_lane();
    let agent = Client::start_supervisor(&sandbox);
    let main = sandbox.git(&["rev-parse", "main"]);
    let merge = |token: &Value| agent.json("merge", json!({ "lanes": ["x", "y"], "token": token }));
    let moved = || sandbox.git(&["rev-list", "--count", "proq/y"]);
    let begin = moved();
    sandbox.write_in(&sandbox.root(), "moving", "");
    let first = merge(&Value::Null);
    assert_ne!(moved(), begin, "somebody has made a commit meanwhile");
    // A lane that moves each time gives another plan each time.
    let second = merge(&first["token"]);
    assert!(second["plan"].is_object(), "{second}");
    std::fs::remove_file(sandbox.root().join("moving")).unwrap();
    let third = merge(&second["token"]);
    assert!(third["plan"].is_object(), "{third}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    let done = merge(&third["token"]);
    assert_eq!(done["lanes"][1]["result"], "landed", "{done}");
}

#[test]
fn supervisor_sends_message_and_stops_agent() {
    let sandbox = sandbox_with_claude("begin; if [ $n = 1 ]; then echo $n > work; fi; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it", "--wait"]).ok();
    let agent = Client::start_supervisor(&sandbox);
    let _ = agent.ok("send", json!({ "lane": "x", "text": "--wait" }));
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.agent_record("prompt.2"), "--wait");
    for name in ["y", "z"] {
        sandbox.start_lane(name, "exec sleep 600");
        let _ = sandbox.started_row(name);
    }
    let _ = agent.ok("stop", json!({ "lanes": ["y"] }));
    assert_eq!(
        (&sandbox.row("y")["state"], &sandbox.row("z")["state"]),
        (&"stopped".into(), &"running".into())
    );
}

#[test]
fn conflict_is_a_result_not_an_error() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo lane > a.txt");
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let agent = Client::start_supervisor(&sandbox);
    let plan = agent.json("merge", json!({ "lanes": ["x"] }));
    assert_eq!(plan["plan"]["lanes"][0]["result"], "conflict");
    assert_eq!(sandbox.row("x")["state"], "idle");
    let done = agent.json("merge", json!({ "lanes": ["x"], "token": plan["token"] }));
    assert_eq!(done["lanes"][0]["result"], "conflict");
    assert_eq!(sandbox.row("x")["state"], "conflict");
}

#[test]
fn plan_covers_merge_settings() {
    let sandbox = sandbox_with_lane();
    sandbox.sh("git init -q --bare -b main ../origin.git; git init -q --bare -b main ../other.git");
    sandbox.sh("git remote add origin ../origin.git; git push -q -u origin main");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let agent = Client::start_supervisor(&sandbox);
    let main = || sandbox.git(&["rev-parse", "main"]);
    let begin = main();
    let mut token = agent.json("merge", json!({}))["token"].clone();
    let mut is_another = |change: &str| {
        let plan = agent.json("merge", json!({ "token": token }));
        assert!(plan["plan"].is_object() && plan["token"] != token, "{change}: {plan}");
        assert_eq!(main(), begin, "{change}");
        token = plan["token"].clone();
    };
    for setting in [
        "config proq.merge.strategy squash",
        "config proq.verify.commands false",
        "config proq.verify.commands true",
        "config --unset proq.verify.commands",
        "config proq.merge.push true",
        "remote set-url origin ../other.git",
        "config proq.hook.pre-merge true",
        "config proq.merge.conflictAgent robot",
    ] {
        sandbox.git(&setting.split(' ').collect::<Vec<_>>());
        is_another(setting);
    }
    // Changes that a landing would commit first are part of the plan, with their content.
    for text in ["one", "two"] {
        sandbox.write_in(&sandbox.lane_path("x"), "more.txt", text);
        is_another(text);
    }
    let done = agent.json("merge", json!({ "token": token }));
    assert_eq!(
        (&done["lanes"][0]["result"], &done["lanes"][0]["method"]),
        (&"landed".into(), &"squash".into())
    );
    assert_eq!(sandbox.sh("git ls-remote ../other.git main | cut -f1").trim(), main());
}
