//! Owns the tests of `git proq mcp`: what each kind of agent may do by its tools, and how it is told what went wrong.

use std::path::Path;
use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};

use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::PATIENCE;

/// What comes of something, which has to come.
async fn in_time<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.unwrap()
}

/// An agent's end of the line.
struct Agent {
    runtime: tokio::runtime::Runtime,
    line: RunningService<RoleClient, ()>,
}

impl Agent {
    /// One that starts the server in `dir`, with `lane` in its environment.
    fn start(
        sandbox: &Sandbox,
        dir: &Path,
        lane: Option<&str>,
        args: &[&str],
        mode: ClientLifecycleMode,
    ) -> Agent {
        let mut command = sandbox.proq_command(dir, &[&["mcp"][..], args].concat());
        command.envs(lane.map(|lane| ("PROQ_LANE", lane)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let line = runtime.block_on(async {
            let command = tokio::process::Command::from(command);
            let (transport, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().unwrap();
            in_time(().serve_with_lifecycle(transport, mode)).await.unwrap()
        });
        Agent { runtime, line }
    }

    fn in_lane(sandbox: &Sandbox, lane: &str) -> Agent {
        Agent::start(sandbox, &sandbox.lane(lane), Some(lane), &[], ClientLifecycleMode::Initialize)
    }

    fn supervisor(sandbox: &Sandbox) -> Agent {
        Agent::start(sandbox, &sandbox.repo, None, &["--supervisor"], ClientLifecycleMode::Initialize)
    }

    fn tools(&self) -> Vec<rmcp::model::Tool> {
        self.runtime.block_on(in_time(self.line.list_all_tools())).unwrap()
    }

    fn names(&self) -> Vec<String> {
        self.tools().into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    fn try_call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.runtime.block_on(in_time(self.line.call_tool(call)))
    }

    /// Whether a call went wrong, and what was said.
    fn call(&self, tool: &str, arguments: Value) -> (bool, String) {
        let result = self.try_call(tool, arguments).unwrap();
        let texts = result.content.iter().filter_map(|c| c.as_text()).map(|t| t.text.clone());
        (result.is_error == Some(true), texts.collect::<Vec<_>>().join("\n"))
    }

    #[track_caller]
    fn ok(&self, tool: &str, arguments: Value) -> String {
        let (wrong, text) = self.call(tool, arguments);
        assert!(!wrong, "{text}");
        text
    }

    #[track_caller]
    fn fails(&self, tool: &str, arguments: Value) -> String {
        let (wrong, text) = self.call(tool, arguments);
        assert!(wrong, "{text}");
        text
    }

    #[track_caller]
    fn json(&self, tool: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.ok(tool, arguments)).unwrap()
    }
}

/// Both ways to begin: a session with `initialize`, and requests that each stand for themselves.
fn both_eras() -> [ClientLifecycleMode; 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions }]
}

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "echo work > work.txt");
    let _ = sandbox.proq(&["spawn", "--wait", "robot", "-n", "x", "Fix it"]).ok();
    sandbox
}

#[test]
fn an_agent_in_a_lane_reads_its_task_and_reports_in_both_eras() {
    let sandbox = with_lane();
    for mode in both_eras() {
        let agent = Agent::start(&sandbox, &sandbox.lane("x"), Some("x"), &[], mode);
        assert_eq!(agent.names(), ["read_task", "update_task"]);
        let about = agent.line.peer_info().and_then(|info| info.instructions.clone()).unwrap();
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
fn tools_say_what_they_do_to_the_world() {
    let sandbox = with_lane();
    let hints = |agent: &Agent| -> Vec<String> {
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
        hints(&Agent::in_lane(&sandbox, "x")),
        ["read_task Some(true) None Some(false)", "update_task Some(false) Some(false) Some(false)"]
    );
    let lanes = hints(&Agent::supervisor(&sandbox));
    let read_only = |line: &&String| line.contains(" Some(true) None Some(false)");
    let reading: Vec<&str> = lanes.iter().filter(read_only).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(reading, ["diff", "list", "matrix", "show"]);
    for tool in ["merge", "preview", "stop"] {
        assert!(lanes.iter().any(|l| l.starts_with(&format!("{tool} Some(false) Some(true)"))), "{lanes:?}");
    }
}

#[test]
fn an_agent_in_a_lane_has_no_lane_tools_and_cannot_get_them() {
    let sandbox = with_lane();
    let agent = Agent::in_lane(&sandbox, "x");
    for tool in ["list", "merge", "spawn", "stop"] {
        assert!(agent.try_call(tool, json!({})).is_err(), "{tool}");
    }
    let refused = |dir: &Path, lane: Option<&str>| {
        let mut command = sandbox.proq_command(dir, &["mcp", "--supervisor"]);
        command.envs(lane.map(|lane| ("PROQ_LANE", lane)));
        sandbox.output(command).fails(1)
    };
    insta::assert_snapshot!(refused(&sandbox.lane("x"), None), @r"
    error: this is for a person, or for the agent that supervises all lanes, and not for one in lane 'x'
    hint: an agent in a lane reports on its task: git proq task update
    ");
    assert!(refused(&sandbox.repo, Some("x")).contains("not for one in lane 'x'"));
}

#[test]
fn outside_of_its_lane_an_agent_is_told_so() {
    let sandbox = with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let told = |dir: &Path, lane: Option<&str>| {
        let agent = Agent::start(&sandbox, dir, lane, &[], ClientLifecycleMode::Initialize);
        let said = agent.fails("read_task", json!({}));
        assert_eq!(agent.fails("update_task", json!({ "findings": ["a"] })), said);
        said
    };
    assert!(told(&sandbox.lane("x"), Some("y")).contains("this is lane 'x', and PROQ_LANE says 'y'"));
    assert!(told(&sandbox.repo, Some("x")).contains("this is no lane"));
    assert!(told(&sandbox.repo, None).contains("this is no lane"));
    assert!(told(&sandbox.root().join("home"), None).contains("not a git repository"));
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["report"], Value::Null);

    let agent = Agent::in_lane(&sandbox, "y");
    let _ = agent.ok("read_task", json!({}));
    let _ = sandbox.proq(&["discard", "y"]).ok();
    let said = agent.fails("update_task", json!({ "findings": ["a"] }));
    assert!(said.starts_with("error: ") || said.contains("could not be started"), "{said}");
    assert!(!sandbox.repo.join(".git/proq/lanes/y").exists());
}

#[test]
fn what_is_wrong_with_a_call_is_said_in_words() {
    let sandbox = with_lane();
    let agent = Agent::in_lane(&sandbox, "x");
    let _ = agent.ok("update_task", json!({ "findings": ["stays"] }));
    for arguments in
        [json!({ "findings": "one" }), json!({ "lane": "y", "findings": ["a"] }), json!({ "status": 1 })]
    {
        assert!(!agent.fails("update_task", arguments).is_empty());
    }
    assert!(agent.fails("update_task", json!({})).contains("the report says nothing"));
    let long = json!({ "findings": ["x".repeat(1_000_000)] });
    assert!(agent.fails("update_task", long).contains("more than 64 KiB"));
    let text = "a\u{0}\u{1b}[2J";
    assert_eq!(agent.json("read_task", json!({}))["report"]["findings"][0], "stays");
    let _ = agent.ok("update_task", json!({ "findings": [text] }));
    assert_eq!(agent.json("read_task", json!({}))["report"]["findings"][0], text);
    assert!(agent.try_call("nothing", json!({})).is_err());
}

#[test]
fn what_is_no_message_ends_nothing() {
    let sandbox = with_lane();
    let mut command = sandbox.proq_command(&sandbox.lane("x"), &["mcp"]);
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
fn a_supervisor_looks_at_lanes_and_starts_them() {
    let sandbox = with_lane();
    sandbox.agent("claude", "cat > asked.txt");
    let agent = Agent::supervisor(&sandbox);
    assert_eq!(
        agent.names(),
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
fn a_supervisor_passes_no_option_and_starts_no_other_program() {
    let sandbox = with_lane();
    let agent = Agent::supervisor(&sandbox);
    assert!(agent.fails("show", json!({ "lane": "--help" })).contains("there is no lane '--help'"));
    assert!(agent.fails("stop", json!({ "lanes": ["--all"] })).contains("'--all'"));
    assert!(agent.fails("merge", json!({ "strategy": "none" })).contains("none"));
    for name in ["robot", "sh", "--empty", "-h", ""] {
        let said = agent.fails("spawn", json!({ "agent": name, "prompt": "x", "name": "bad" }));
        assert!(said.contains("there is no agent of this name"), "{said}");
    }
    assert_eq!(sandbox.row("bad"), Value::Null);
}

#[test]
fn a_merge_lands_only_what_its_plan_said() {
    let sandbox = with_lane();
    sandbox.lane_of("y", "echo y > y.txt");
    let agent = Agent::supervisor(&sandbox);
    let main = || sandbox.git(&["rev-parse", "main"]);
    let begin = main();
    let plan = agent.json("merge", json!({}));
    assert_eq!(plan["plan"]["lanes"].as_array().unwrap().len(), 2);
    let token = plan["token"].as_str().unwrap().to_owned();
    let with = |token: &str, lanes: &[&str]| agent.json("merge", json!({ "token": token, "lanes": lanes }));

    // Not with a made-up token, not for other arguments, not with the token of another server.
    assert!(with("0123456789abcdef", &[])["plan"].is_object());
    assert!(with(&token, &["x"])["plan"].is_object());
    for other in [json!({ "atomic": true }), json!({ "strategy": "rebase" }), json!({ "verify": ["true"] })] {
        let mut arguments = json!({ "token": token });
        arguments.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        assert!(agent.json("merge", arguments)["plan"].is_object(), "{other}");
        assert_eq!(main(), begin);
    }
    let other = Agent::supervisor(&sandbox);
    assert!(other.json("merge", json!({ "token": token }))["plan"].is_object());
    assert_eq!(main(), begin);

    // A lane that has moved, and then a base that has, make it another plan.
    sandbox.commit_in_lane("y", "echo more > y.txt");
    let moved = with(&token, &[]);
    assert!(moved["next"].as_str().unwrap().contains("another plan"), "{moved}");
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

#[test]
fn what_becomes_done_after_the_plan_does_not_land_with_it() {
    let sandbox = with_lane();
    sandbox.git(&[
        "config",
        "proq.hook.pre-merge",
        "git proq spawn --wait -n late -- sh -c 'echo late > late.txt'",
    ]);
    let agent = Agent::supervisor(&sandbox);
    let plan = agent.json("merge", json!({}));
    let done = agent.json("merge", json!({ "token": plan["token"] }));
    assert_eq!((done["lanes"].as_array().unwrap().len(), &done["lanes"][0]["result"]), (1, &"landed".into()));
    assert_eq!(sandbox.row("late")["state"], "done");
    assert!(sandbox.repo.join("work.txt").exists() && !sandbox.repo.join("late.txt").exists());
}

/// A merge of lane `x` with main takes a program of the user's, and while that runs somebody makes a commit in lane `y`, for as
/// long as there is a file `moving`.
fn with_a_lane_that_moves() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitattributes", "a.txt merge=own\n");
    sandbox.commit_all("attributes");
    sandbox.lane_of("x", "echo lane > a.txt");
    sandbox.lane_of("y", "echo y > y.txt");
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

#[test]
fn a_plan_that_something_moved_under_is_never_landed() {
    let sandbox = with_a_lane_that_moves();
    let agent = Agent::supervisor(&sandbox);
    let main = sandbox.git(&["rev-parse", "main"]);
    let merge = |token: &Value| agent.json("merge", json!({ "lanes": ["x", "y"], "token": token }));
    let moved = || sandbox.git(&["rev-list", "--count", "proq/y"]);
    let begin = moved();
    sandbox.write_in(&sandbox.root(), "moving", "");
    let first = merge(&Value::Null);
    assert_ne!(moved(), begin, "somebody has made a commit meanwhile");
    // One that moves each time is another one each time.
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
fn a_supervisor_tells_an_agent_more_and_stops_another() {
    let sandbox = with_claude("begin; if [ $n = 1 ]; then echo $n > work; fi; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it", "--wait"]).ok();
    let agent = Agent::supervisor(&sandbox);
    let _ = agent.ok("send", json!({ "lane": "x", "text": "--wait" }));
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.note("prompt.2"), "--wait");
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
fn a_conflict_is_an_answer_and_not_an_error() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo lane > a.txt");
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let agent = Agent::supervisor(&sandbox);
    let plan = agent.json("merge", json!({ "lanes": ["x"] }));
    assert_eq!(plan["plan"]["lanes"][0]["result"], "conflict");
    assert_eq!(sandbox.row("x")["state"], "idle");
    let done = agent.json("merge", json!({ "lanes": ["x"], "token": plan["token"] }));
    assert_eq!(done["lanes"][0]["result"], "conflict");
    assert_eq!(sandbox.row("x")["state"], "conflict");
}

#[test]
fn a_plan_covers_how_its_lanes_land() {
    let sandbox = with_lane();
    sandbox.sh("git init -q --bare -b main ../origin.git; git init -q --bare -b main ../other.git");
    sandbox.sh("git remote add origin ../origin.git; git push -q -u origin main");
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let agent = Agent::supervisor(&sandbox);
    let main = || sandbox.git(&["rev-parse", "main"]);
    let begin = main();
    let mut token = agent.json("merge", json!({}))["token"].clone();
    let mut is_another = |what: &str| {
        let plan = agent.json("merge", json!({ "token": token }));
        assert!(plan["plan"].is_object() && plan["token"] != token, "{what}: {plan}");
        assert_eq!(main(), begin, "{what}");
        token = plan["token"].clone();
    };
    for what in [
        "config proq.merge.strategy squash",
        "config proq.verify.commands false",
        "config proq.verify.commands true",
        "config --unset proq.verify.commands",
        "config proq.merge.push true",
        "remote set-url origin ../other.git",
        "config proq.hook.pre-merge true",
        "config proq.merge.conflictAgent robot",
    ] {
        sandbox.git(&what.split(' ').collect::<Vec<_>>());
        is_another(what);
    }
    // What a landing would commit first is part of it, with what is in it.
    for text in ["one", "two"] {
        sandbox.write_in(&sandbox.lane("x"), "more.txt", text);
        is_another(text);
    }
    let done = agent.json("merge", json!({ "token": token }));
    assert_eq!(
        (&done["lanes"][0]["result"], &done["lanes"][0]["method"]),
        (&"landed".into(), &"squash".into())
    );
    assert_eq!(sandbox.sh("git ls-remote ../other.git main | cut -f1").trim(), main());
}
