//! Owns the tests of plans that an agent makes: asked for, mended, changed, kept, saved and approved.

use serde_json::{Value, json};

use super::looking::repository;
use super::profiles::configure;
use super::support::{Output, Sandbox};

/// An agent that notes what it is told and with which words it is started, and says what lies in `say.N`, or else in `say`.
const AGENT: &str = r#"n=$(($(ls "$ROOT/told" | wc -l) + 1)); cat > "$ROOT/told/$n"; printf '%s\n' "$@" > "$ROOT/args.$n"
    echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
    if [ -e "$ROOT/before" ]; then . "$ROOT/before"; fi
    if [ -e "$ROOT/say.$n" ]; then cat "$ROOT/say.$n"; else cat "$ROOT/say"; fi"#;

/// Two tasks.
pub const PLAN: &str = r#"{"summary": "Payments", "warnings": ["no test account"], "criteria": ["all green"], "phases": [{"title": "One", "groups": [
    {"theme": "store", "rationale": "one\nreviewer", "tasks": [
        {"id": "a", "title": "A table", "prompt": "Make it.", "scope": ["src/db/"], "size": "S", "checks": ["make test-db"]},
        {"id": "b", "title": "A form", "needs": ["a"], "scope": ["src/web/"], "agent": "codex"}]}]}]}"#;

/// The same, changed.
const CHANGED: &str = r#"{"summary": "Payments", "warnings": ["no test account"], "criteria": ["all green"], "phases": [{"title": "One", "groups": [
    {"theme": "store", "rationale": "one\nreviewer", "tasks": [
        {"id": "c", "title": "A client"},
        {"id": "b", "title": "A form", "needs": ["c"], "scope": ["src/web/"], "agent": "codex", "size": "L"}]}]}]}"#;

/// A plan that needs what is not there.
const BROKEN: &str = r#"{"task": [{"id": "a", "title": "A", "needs": ["nowhere"]}]}"#;

/// A sandbox whose `claude` answers this.
pub fn planner(answer: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("claude", AGENT);
    std::fs::create_dir(sandbox.root().join("told")).unwrap();
    says(&sandbox, "say", answer);
    sandbox
}

/// Has the agent say this in its last message.
pub fn says(sandbox: &Sandbox, file: &str, text: &str) {
    let line = json!({
        "type": "result", "subtype": "success", "is_error": false, "session_id": "s-1", "result": text,
        "total_cost_usd": 0.01, "usage": {"input_tokens": 1000, "output_tokens": 50},
    });
    sandbox.write_in(&sandbox.root(), file, &format!("{line}\n"));
}

/// What the agent was told at its n-th start.
pub fn told(sandbox: &Sandbox, n: u32) -> String {
    std::fs::read_to_string(sandbox.root().join(format!("told/{n}"))).unwrap()
}

/// How often it was started.
pub fn times(sandbox: &Sandbox) -> usize {
    std::fs::read_dir(sandbox.root().join("told")).unwrap().count()
}

fn args(sandbox: &Sandbox, n: u32) -> String {
    std::fs::read_to_string(sandbox.root().join(format!("args.{n}"))).unwrap()
}

pub fn make(sandbox: &Sandbox) -> Output {
    sandbox.proq(&["plan", "--ai", "pay by card"])
}

/// All drafts.
#[track_caller]
pub fn drafts(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.proq(&["plan", "--drafts", "--json"]).json()["drafts"].as_array().unwrap().clone()
}

fn ids(answer: &Value) -> Vec<&str> {
    answer["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

#[test]
fn a_plan_is_made_shown_and_kept_and_nothing_else_changes() {
    let sandbox = planner(&format!("Here it is:\n```json\n{PLAN}\n```\nTell me {{what}} you think."));
    sandbox.write("AGENTS.md", "Use tabs.\n");
    sandbox.write("docs/NOTES.md", "Cards only.\n");
    sandbox.commit_all("second");
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository(&sandbox);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--ai", "pay by card", "--from", "docs/NOTES.md", "--agent", "claude"]).shown(), @r#"
    Payments
    draft plan-pay-by-card, by claude, not approved
    planning took 1 run, 0s, 1000 tokens in, 50 out, $0.0100

    Before it is run:
      no test account

    1. One
    └─ store: one reviewer
       ├─ a A table (wave 1, S)
       │    about  src/db/
       │    checks make test-db
       └─ b A form (wave 2, M, by codex)
            after  a
            about  src/web/

    In the end:
      all green

    2 tasks, 2 waves. Lanes: 1 at a time (--max-parallel 3)
    Longest way: a -> b (3 of 3 by size)
    --- stderr
    warning: the plan is made without your uncommitted changes (a.txt)
    claude makes a plan: draft 'plan-pay-by-card'
    hint: change it: git proq plan --feedback "…" plan-pay-by-card   keep it: git proq plan -o plan.toml plan-pay-by-card
    --- code 0
    "#);
    assert_eq!(repository(&sandbox), before);
    let told = told(&sandbox, 1);
    for wanted in [
        "pay by card\n\n# What is wanted",
        "Use tabs.",
        "docs/NOTES.md, which the plan is to follow",
        "Cards only.",
        "a.txt\n",
        " second\n",
        "\"needs\": [",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert!(!told.contains("an edit of mine"), "{told}");
    assert!(args(&sandbox, 1).contains("--disallowedTools\nEdit"), "{}", args(&sandbox, 1));
    sandbox.assert_healthy();
}

#[test]
fn a_draft_that_is_kept_is_shown_again_without_its_agent() {
    let sandbox = planner(PLAN);
    let _ = make(&sandbox).ok();
    insta::assert_snapshot!(sandbox.proq(&["plan", "--drafts"]).shown(), @r"
    DRAFT             STATE  TASKS  AGENT   COST     AGE  GOAL
    plan-pay-by-card  ready  2      claude  $0.0100  0s   pay by card
    --- code 0
    ");
    let again = sandbox.proq(&["plan", "plan-pay-by-card"]);
    assert!(
        again.stdout.starts_with("Payments\ndraft plan-pay-by-card, by claude, not approved\n"),
        "{}",
        again.shown()
    );
    assert_eq!(times(&sandbox), 1);
    assert!(sandbox.proq(&["deps", "plan-pay-by-card"]).ok().contains("└─ b A form"));
    sandbox.assert_healthy();
}

#[test]
fn programs_get_the_plan_and_the_draft() {
    let sandbox = planner(PLAN);
    let made = sandbox.proq(&["plan", "--ai", "pay by card", "--json"]).json();
    assert_eq!(ids(&made), ["a", "b"]);
    assert_eq!(made["waves"], json!([["a"], ["b"]]));
    let draft = &made["draft"];
    assert_eq!((&draft["name"], &draft["state"]), (&json!("plan-pay-by-card"), &json!("ready")));
    assert_eq!((&draft["session"], &draft["costs"]["cost"]["nanos"]), (&json!("s-1"), &json!(10_000_000)));
    let shown = sandbox.proq(&["plan", "plan-pay-by-card", "--json"]).json();
    assert_eq!((&shown["draft"], &shown["tasks"]), (draft, &made["tasks"]));
    assert_eq!(drafts(&sandbox), std::slice::from_ref(draft));
    let would = sandbox.proq(&["plan", "--ai", "more", "--dry-run", "--json"]).json();
    assert!(would["prompt"].as_str().unwrap().starts_with("more\n"));
    assert_eq!((times(&sandbox), drafts(&sandbox).len()), (1, 1));
}

#[test]
fn an_answer_that_is_wrong_is_mended_in_the_same_conversation() {
    let sandbox = planner(PLAN);
    says(&sandbox, "say.1", &format!("```\n{BROKEN}\n```"));
    let out = make(&sandbox);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stderr.contains("what claude answered is not a plan, it is asked again: $.task[0].needs[0]: task 'a' needs 'nowhere'"), "{}", out.stderr);
    let told = told(&sandbox, 2);
    assert!(told.starts_with("That answer cannot be used: $.task[0].needs[0]: task 'a' needs 'nowhere', which is no task of this plan (add"), "{told}");
    assert!(args(&sandbox, 2).contains("--resume\ns-1"), "{}", args(&sandbox, 2));
    assert_eq!(drafts(&sandbox)[0]["costs"]["runs"], 2);
}

#[test]
fn what_is_never_a_plan_is_kept_and_can_be_gone_on_with() {
    let sandbox = planner("Sorry, {no} plan.");
    insta::assert_snapshot!(make(&sandbox).shown(), @r#"
    --- stderr
    claude makes a plan: draft 'plan-pay-by-card'
    what claude answered is not a plan, it is asked again: there is no JSON in it
    what claude answered is not a plan, it is asked again: there is no JSON in it
    error: claude did not come to a plan: there is no JSON in it
    hint: what it said: [ROOT]/repo/.git/proq/lanes/plan-pay-by-card/runs/3.answer.md
    hint: ask again, and say how: git proq plan --feedback "…" plan-pay-by-card
    hint: see how it went: git proq logs plan-pay-by-card
    --- code 4
    "#);
    assert_eq!(times(&sandbox), 3);
    let said = sandbox.repo.join(".git/proq/lanes/plan-pay-by-card/runs/3.answer.md");
    assert_eq!(std::fs::read_to_string(said).unwrap(), "Sorry, {no} plan.\n");
    let draft = &drafts(&sandbox)[0];
    assert_eq!((&draft["state"], &draft["wrong"]), (&json!("empty"), &json!("there is no JSON in it")));
    for args in
        [&["plan", "plan-pay-by-card"][..], &["plan", "--approve", "--yes"], &["plan", "-o", "p.toml"]]
    {
        let said = sandbox.proq(args).fails(1);
        assert!(said.contains("draft 'plan-pay-by-card' has no plan yet: there is no JSON in it"), "{said}");
    }
    assert!(!sandbox.repo.join("p.toml").exists());
    says(&sandbox, "say", PLAN);
    let _ = sandbox.proq(&["plan", "--feedback", "in JSON, please"]).ok();
    assert!(told(&sandbox, 4).starts_with("in JSON, please\n"));
    assert_eq!(
        (&drafts(&sandbox)[0]["state"], &drafts(&sandbox)[0]["wrong"]),
        (&json!("ready"), &Value::Null)
    );
    sandbox.assert_healthy();
}

#[test]
fn an_agent_that_fails_is_named_and_not_asked_again() {
    let sandbox = planner("");
    says(&sandbox, "say", PLAN);
    let error = json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "session_id": "s-1", "result": "no luck"});
    sandbox.write_in(&sandbox.root(), "say.1", &error.to_string());
    let said = make(&sandbox).fails(4);
    assert!(said.contains("claude did not come to a plan"), "{said}");
    assert_eq!(times(&sandbox), 1);
    assert_eq!(drafts(&sandbox)[0]["state"], "empty");
    let _ = sandbox.proq(&["plan", "--feedback", "once more"]).ok();
    assert_eq!(drafts(&sandbox)[0]["state"], "ready");
}

#[test]
fn feedback_goes_on_in_the_conversation_and_says_what_has_changed() {
    let sandbox = planner(PLAN);
    let _ = make(&sandbox).ok();
    let _ = sandbox.proq(&["plan", "--approve", "--yes"]).ok();
    assert_eq!(drafts(&sandbox)[0]["state"], "approved");
    let same = sandbox.proq(&["plan", "--feedback", "is that all?"]);
    assert!(same.stderr.contains("the plan is as it was"), "{}", same.shown());
    assert_eq!(drafts(&sandbox)[0]["state"], "approved", "it is the same plan");
    says(&sandbox, "say", CHANGED);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--feedback", "a client first", "plan-pay-by-card"]).shown(), @r#"
    Payments
    draft plan-pay-by-card, by claude, not approved
    planning took 3 runs, 0s, 3000 tokens in, 150 out, $0.0100

    Before it is run:
      no test account

    1. One
    └─ store: one reviewer
       ├─ c A client (wave 1, M)
       └─ b A form (wave 2, L, by codex)
            after  c
            about  src/web/

    In the end:
      all green

    2 tasks, 2 waves. Lanes: 1 at a time (--max-parallel 3)
    Longest way: c -> b (6 of 6 by size)

    What has changed:
      + c
      ~ b (needs, size)
      - a
    --- stderr
    claude changes draft 'plan-pay-by-card'
    hint: change it: git proq plan --feedback "…" plan-pay-by-card   keep it: git proq plan -o plan.toml plan-pay-by-card
    --- code 0
    "#);
    assert!(told(&sandbox, 3).starts_with("a client first\n\nChange the plan accordingly"));
    assert!(args(&sandbox, 3).contains("--resume\ns-1"));
    let draft = &drafts(&sandbox)[0];
    assert_eq!(
        (&draft["state"], &draft["feedback"]),
        (&json!("ready"), &json!(["is that all?", "a client first"]))
    );
    let answer = sandbox.proq(&["plan", "--feedback", "back", "--json"]).json();
    assert_eq!(answer["changes"], Value::Null);
}

#[test]
fn an_agent_that_cannot_go_on_is_told_the_plan_again() {
    let sandbox = planner(PLAN);
    configure(&sandbox, "[agents.other]\nlike = \"claude\"\nargs.resume = []\n");
    let _ = sandbox.proq(&["plan", "--ai", "pay by card", "--agent", "other"]).ok();
    says(&sandbox, "say.2", BROKEN);
    says(&sandbox, "say", CHANGED);
    let out = sandbox.proq(&["plan", "--feedback", "a client first"]);
    assert!(out.stdout.contains("\n  + c\n"), "{}", out.shown());
    let second = told(&sandbox, 2);
    for wanted in [
        "pay by card\n",
        "# What to answer",
        "The plan as it is, in TOML",
        "title = \"A table\"",
        "a client first",
    ] {
        assert!(second.contains(wanted), "{wanted}: {second}");
    }
    let third = told(&sandbox, 3);
    for wanted in
        ["pay by card\n", "An answer that cannot be used", "nowhere", "That answer cannot be used: $.task[0]"]
    {
        assert!(third.contains(wanted), "{wanted}: {third}");
    }
    assert!(!args(&sandbox, 2).contains("--resume") && !args(&sandbox, 3).contains("--resume"));
}

#[test]
fn where_the_conversation_is_gone_another_one_is_begun() {
    let sandbox = planner(PLAN);
    configure(&sandbox, "agent.crash_retries = 0\n");
    let _ = make(&sandbox).ok();
    // The agent does not know its session any more.
    says(&sandbox, "say", CHANGED);
    sandbox.write_in(
        &sandbox.root(),
        "before",
        "case \" $* \" in *--resume*) echo 'no such session' >&2; exit 1;; esac\n",
    );
    let out = sandbox.proq(&["plan", "--feedback", "a client first"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stderr.contains("claude could not go on, it is asked anew"), "{}", out.stderr);
    assert_eq!(times(&sandbox), 3);
    assert!(
        told(&sandbox, 3).contains("title = \"A table\"") && told(&sandbox, 3).contains("a client first")
    );
    // Its lane is gone.
    std::fs::remove_file(sandbox.root().join("before")).unwrap();
    let _ = sandbox.proq(&["discard", "plan-pay-by-card"]).ok();
    says(&sandbox, "say", PLAN);
    let out = sandbox.proq(&["plan", "--feedback", "a table first", "--json"]).json();
    assert_eq!(ids(&out), ["a", "b"]);
    assert!(told(&sandbox, 4).contains("title = \"A client\""));
    assert_eq!(out["draft"]["costs"]["runs"], 4);
    assert_eq!(sandbox.row("plan-pay-by-card")["state"], "done");
    sandbox.assert_healthy();
}

#[test]
fn a_plan_is_saved_once_and_over_nothing() {
    let sandbox = planner(PLAN);
    sandbox.write("mine.toml", "mine\n");
    // Before anything is spent.
    for file in ["mine.toml", ".", "no/where.toml"] {
        let _ = sandbox.proq(&["plan", "--ai", "pay by card", "-o", file]).fails(1);
    }
    assert_eq!((times(&sandbox), sandbox.read("mine.toml").as_str()), (0, "mine\n"));
    let _ = sandbox.proq(&["plan", "--ai", "pay by card\nand = 'x'", "-o", "plan.toml"]).ok();
    let text = sandbox.read("plan.toml");
    let head = "# A plan by claude, made with git proq plan --ai (draft plan-pay-by-card).\n# Goal: pay by card\n# and = 'x'\n#\n";
    assert!(text.starts_with(head), "{text}");
    let saved = sandbox.proq(&["plan", "plan.toml", "--json"]).json();
    let draft = sandbox.proq(&["plan", "plan-pay-by-card", "--json"]).json();
    for key in ["summary", "warnings", "criteria", "phases", "waves", "longest"] {
        assert_eq!(saved[key], draft[key], "{key}");
    }
    assert_eq!(ids(&saved), ids(&draft));
    let _ = sandbox.proq(&["plan", "--save", "plan.toml", "plan-pay-by-card"]).fails(1);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--save", "mine.toml", "--force"]).shown(), @r"
    wrote mine.toml
    --- stderr
    what was there before is kept: [ROOT]/repo/.git/proq/replaced/[ID]
    hint: see what it comes to: git proq plan mine.toml
    --- code 0
    ");
    assert!(sandbox.read("mine.toml").starts_with("# A plan by claude"));
    let kept = sandbox.repo.join(".git/proq/replaced");
    let kept = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "mine\n");
    // Any other plan, too.
    sandbox.write("ROADMAP.md", "# Next\n\n- [ ] one thing\n");
    let _ = sandbox.proq(&["plan", "ROADMAP.md", "-o", "road.toml"]).ok();
    assert_eq!(ids(&sandbox.proq(&["plan", "road.toml", "--json"]).json()), ["one-thing"]);
    sandbox.assert_healthy();
}

#[test]
fn a_draft_is_approved_by_a_person_as_it_was_shown() {
    let sandbox = planner(PLAN);
    let _ = make(&sandbox).ok();
    let said = sandbox.proq(&["plan", "--approve"]).fails(1);
    assert!(
        said.contains(
            "error: nobody can be asked whether draft 'plan-pay-by-card' may be run; nothing was approved"
        ),
        "{said}"
    );
    assert!(said.contains("checks make test-db") && said.contains("by codex"), "{said}");
    assert_eq!(drafts(&sandbox)[0]["state"], "ready");
    // An agent in a lane is nobody who could agree.
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--approve", "--yes"]);
    command.env("PROQ_LANE", "plan-pay-by-card");
    assert!(sandbox.output(command).fails(1).contains("this is for a person"));
    assert_eq!(drafts(&sandbox)[0]["state"], "ready");
    let _ = sandbox.proq(&["plan", "--approve", "--yes", "plan-pay-by-card"]).ok();
    assert_eq!(drafts(&sandbox)[0]["state"], "approved");
    says(&sandbox, "say", CHANGED);
    let _ = sandbox.proq(&["plan", "--feedback", "a client first"]).ok();
    assert_eq!(drafts(&sandbox)[0]["state"], "ready", "it is another plan");
    // Neither does an agent in a lane agree by running it; where a person does, that is told.
    sandbox.program("codex", "exit 0");
    let swarm = ["swarm", "plan-pay-by-card", "--yes", "--detach", "--agent", "claude", "--ignore-dirty"];
    let mut command = sandbox.proq_command(&sandbox.repo, &swarm);
    command.env("PROQ_LANE", "plan-pay-by-card");
    let said = sandbox.output(command).fails(1);
    assert!(said.contains("this is for a person"), "{said}");
    assert_eq!(drafts(&sandbox)[0]["state"], "ready");
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["batches"], json!([]));
    let out = sandbox.proq(&swarm);
    let line = "the plan 'plan-pay-by-card', which an agent made, is approved by --yes\n";
    assert!(out.code == 0 && out.stderr.contains(line), "{}", out.shown());
    let _ = sandbox.proq(&["abort", "--hard"]);
}

#[test]
fn a_draft_is_named_where_there_are_several() {
    let sandbox = planner(PLAN);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--feedback", "x"]).shown(), @r#"
    --- stderr
    error: there is no draft of a plan
    hint: have one made: git proq plan --ai "payments by card"
    --- code 2
    "#);
    let _ = make(&sandbox).ok();
    let _ = sandbox.proq(&["plan", "--ai", "pay by card"]).ok();
    let names: Vec<Value> = drafts(&sandbox).iter().map(|draft| draft["name"].clone()).collect();
    assert_eq!(names, ["plan-pay-by-card-2", "plan-pay-by-card"]);
    insta::assert_snapshot!(sandbox.proq(&["plan", "--approve", "--yes"]).shown(), @r"
    --- stderr
    error: there are several drafts, and none was named: plan-pay-by-card-2, plan-pay-by-card
    hint: name one of them; the last one changed is plan-pay-by-card-2
    --- code 2
    ");
    insta::assert_snapshot!(sandbox.proq(&["plan", "--feedback", "x", "../lanes"]).shown(), @r"
    --- stderr
    error: there is no draft '../lanes'
    hint: see those that there are: git proq plan --drafts
    --- code 1
    ");
    let _ = sandbox.proq(&["plan", "--ai", " "]).fails(2);
    let _ = sandbox.proq(&["plan", "--feedback", " "]).fails(2);
    assert_eq!(times(&sandbox), 2);
}
