//! Tests of plans in TOML: reading, error messages, and the round trip of writing and reading.

use std::path::Path;

use proptest::prelude::*;
use proq_base::explain::Explain;

use super::write::plan_to_toml;
use super::*;
use crate::dependency_graph::DependencyGraph;
use crate::plan_error::SourceLocation;

fn parse(text: &str) -> Result<Plan, PlanError> {
    read(&Arc::from("plan.toml"), text)
}

/// Returns the error and its hints for each text, concatenated.
fn error_messages(texts: &[&str]) -> String {
    let describe_error = |text: &&str| {
        let error = parse(text).and_then(|plan| DependencyGraph::from_plan(&plan)).expect_err(text);
        format!("{error}\n  {}\n", error.hints().join("\n  "))
    };
    texts.iter().map(describe_error).collect()
}

/// Returns the errors of texts that follow a task with the ID `a`.
fn error_messages_after_task_a(texts: &[&str]) -> String {
    let texts: Vec<String> =
        texts.iter().map(|text| format!("format = 1\n[[task]]\nid = \"a\"\ntitle = \"A\"\n{text}")).collect();
    error_messages(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn reports_invalid_toml_and_versions_with_location() {
    insta::assert_snapshot!(error_messages(&[
        "format = 1\nsummary = \"a\nb\"",
        "format = 1\n[[task]\nid = \"a\"",
        "format = 1\nformat = 1",
        "summary = \"a\"",
        "format = 2",
        "format = \"1\"",
    ]), @r#"
    plan.toml:3:3: key with no value, expected `=`
      this is where it stops being TOML: https://toml.io
    plan.toml:2:8: unclosed array table, expected `]`
      this is where it stops being TOML: https://toml.io
    plan.toml:2:1: duplicate key
      this is where it stops being TOML: https://toml.io
    plan.toml:1:1: a plan without 'format'
      add 'format': the number 1
    plan.toml:1:10: 'format' of a plan is 2
      expected the number 1
    plan.toml:1:10: 'format' of a plan is a text
      expected the number 1
    "#);
}

#[test]
fn reports_invalid_keys_and_values_with_location() {
    insta::assert_snapshot!(error_messages(&[
        "format = 1\nsumary = \"a\"",
        "format = 1\nzzz = 1",
        "format = 1\nsummary = 2024-01-01",
        "format = 1\nsummary = \"\"\"a\nb\"\"\"",
        "format = 1\nsummary = \"  \"",
        "format = 1\nwarnings = \"one\"",
        "format = 1\nwarnings = [\"one\", 2]",
        "format = 1\nagent = \"-x\"",
    ]), @r#"
    plan.toml:2:1: a plan has no 'sumary'
      did you mean 'summary'?
    plan.toml:2:1: a plan has no 'zzz'
      known: format, summary, warnings, criteria, agent, model, phase, group, task
    plan.toml:2:11: 'summary' of a plan is a date
      expected a text of one line
    plan.toml:2:11: 'summary' of a plan is more than one line
      expected a text of one line
    plan.toml:2:11: 'summary' of a plan is empty
      expected a text of one line
    plan.toml:2:12: 'warnings' of a plan is a text
      expected a list of texts of one line, as in ["one", "two"]
    plan.toml:2:20: 'warnings' of a plan is a list with a number in it
      expected a list of texts of one line, as in ["one", "two"]
    plan.toml:2:9: 'agent' of a plan is '-x'
      expected one word that does not begin with '-'
    "#);
    insta::assert_snapshot!(error_messages(&[
        "format = 1\ntask = 1",
        "format = 1\ntask = [1]",
        "format = 1\n[task]\nid = \"a\"",
        "format = 1\n[[task]]\nid = \"a\"\ntitle = \"A\"\n[[phase]]\n",
        "format = 1\n[[phase]]\norder = \"random\"",
        "format = 1\n[[phase]]\n[[phase.group]]\ntasks = []",
    ]), @r#"
    plan.toml:2:8: 'task' of a plan is a number
      expected a list of tables, each a task
    plan.toml:2:9: a task is a table, and this is a number
      write it with keys: id, area, title, prompt, needs, scope, size, agent, model, checks, done
    plan.toml:2:1: 'task' of a plan is a table
      expected a list of tables, each a task
    plan.toml:5:3: a plan has 'task' or 'phase', not both
      move all below 'phase'
    plan.toml:3:9: 'order' of a phase is 'random'
      expected one of: parallel, serial
    plan.toml:4:1: a group has no 'tasks'
      did you mean 'task'?
    "#);
}

#[test]
fn reports_invalid_tasks_with_location() {
    insta::assert_snapshot!(error_messages_after_task_a(&[
        "[[task]]\nid = \"b\"",
        "[[task]]\ntitle = \"b\"",
        "[[task]]\nid = \"b c\"\ntitle = \"B\"",
        "[[task]]\nid = \"\\u001b[2Jb\"\ntitle = \"B\"",
        "\"sc\\u0007ope\" = []",
        "prompt = \"\"",
        "prompt = \"a\\u0000b\"",
        "size = \"XL\"",
        "size = 3",
        "needs = \"b\"",
        "needs = [\"ü/b\"]",
        "scope = [\"../other\"]",
        "scope = [\"src/\", \"!src/x\"]",
        "checks = [\"a\\nb\"]",
        "done = \"yes\"",
        "dependencies = []",
        "shade = 1",
        "neds = []",
    ]), @r#"
    plan.toml:5:1: a task without 'title'
      add 'title': a text of one line
    plan.toml:5:1: a task without 'id'
      add 'id': up to 64 letters, digits, '.', '_' and '-', the first a letter or a digit
    plan.toml:6:6: 'id' of a task is 'b c'
      expected up to 64 letters, digits, '.', '_' and '-', the first a letter or a digit
    plan.toml:6:6: 'id' of a task is '\u{1b}[2Jb'
      expected up to 64 letters, digits, '.', '_' and '-', the first a letter or a digit
    plan.toml:5:1: a task has no 'sc\u{7}ope'
      did you mean 'scope'?
    plan.toml:5:10: 'prompt' of a task is empty
      expected a text
    plan.toml:5:10: 'prompt' of a task is a text with a NUL in it
      expected a text
    plan.toml:5:8: 'size' of a task is 'XL'
      expected one of: S, M, L
    plan.toml:5:8: 'size' of a task is a number
      expected one of: S, M, L
    plan.toml:5:9: 'needs' of a task is a text
      expected a list of tasks, as in ["ID", "area/ID"]
    plan.toml:5:10: 'needs' of a task is 'ü/b'
      expected a list of tasks, as in ["ID", "area/ID"]
    plan.toml:5:10: 'scope' of a task is '../other', and no glob: it must stay inside the repository
      expected a list of globs, as in ["src/pay/", "*.md"]
    plan.toml:5:18: 'scope' of a task is '!src/x', and no glob: a scope has neither exceptions nor pathspec magic
      expected a list of globs, as in ["src/pay/", "*.md"]
    plan.toml:5:11: 'checks' of a task is more than one line
      expected a list of texts of one line, as in ["one", "two"]
    plan.toml:5:8: 'done' of a task is a text
      expected true or false
    plan.toml:5:1: a task has no 'dependencies'
      did you mean 'needs'?
    plan.toml:5:1: a task has no 'shade'
      known: id, area, title, prompt, needs, scope, size, agent, model, checks, done
    plan.toml:5:1: a task has no 'neds'
      did you mean 'needs'?
    "#);
}

#[test]
fn reports_invalid_needs_with_location() {
    insta::assert_snapshot!(error_messages_after_task_a(&[
        "needs = [\"a\"]",
        "needs = [\"b\"]\n[[task]]\nid = \"b\"\ntitle = \"B\"\nneeds = [\"c\"]\n[[task]]\nid = \"c\"\ntitle = \"C\"\nneeds = [\"a\"]",
        "[[task]]\nid = \"A\"\ntitle = \"B\"",
        "[[task]]\nid = \"login-page\"\ntitle = \"B\"\nneeds = [\"logn-page2\", \"a\"]\n[[task]]\nid = \"login-page2\"\ntitle = \"B\"",
        "needs = [\"nothing\"]",
        "needs = [\"web/x\"]\n[[task]]\nid = \"x\"\ntitle = \"X\"\narea = \"api\"",
        "needs = [\"x\"]\n[[task]]\nid = \"x\"\ntitle = \"X\"\narea = \"api\"\n[[task]]\nid = \"X\"\ntitle = \"X\"\narea = \"web\"",
    ]), @r#"
    plan.toml:5:10: these tasks depend on each other: a -> a
      remove it: a task cannot wait for itself
    plan.toml:5:10: these tasks depend on each other: a -> b -> c -> a
      one of them has to come first: for example, let 'c' not need 'a'
    plan.toml:6:6: task 'A' is defined twice; the other definition is at plan.toml:3:6
      give one of the tasks another ID
    plan.toml:8:10: task 'login-page' needs 'logn-page2', which is not a task of this plan
      did you mean 'login-page2'?
    plan.toml:5:10: task 'a' needs 'nothing', which is not a task of this plan
      add a task 'nothing', or remove it from the needs of 'a'
    plan.toml:5:10: task 'a' needs 'web/x', which is not a task of this plan
      did you mean 'api/x'?
    plan.toml:5:10: task 'a' needs 'x', which is ambiguous: api/x, web/X
      use one of: 'api/x' or 'web/X'
    "#);
    let phases = "format = 1\n[[phase]]\n[[phase.task]]\nid = \"a\"\ntitle = \"A\"\nneeds = [\"b\"]\n[[phase]]\n[[phase.task]]\nid = \"b\"\ntitle = \"B\"";
    let serial = "format = 1\n[[phase]]\norder = \"serial\"\n[[phase.task]]\nid = \"a\"\ntitle = \"A\"\nneeds = [\"b\"]\n[[phase.task]]\nid = \"b\"\ntitle = \"B\"";
    insta::assert_snapshot!(error_messages(&[phases, serial]), @r#"
    plan.toml:6:10: task 'a' needs 'b', which comes later: it is in phase 2, and this is phase 1
      move 'b' before 'a', or 'a' behind it
    plan.toml:7:10: task 'a' needs 'b', which comes later: the tasks of phase 1 run one after the other
      move 'b' before 'a', or 'a' behind it
    "#);
    // A task that is done already can be anywhere.
    assert!(
        parse(&format!("{phases}\ndone = true")).and_then(|plan| DependencyGraph::from_plan(&plan)).is_ok()
    );
}

#[test]
fn reads_minimal_plan_of_one_task() {
    let plan = parse("format = 1\n[[task]]\nid = \"a\"\ntitle = \"Do it\"\n").unwrap();
    let plan_task = plan.tasks().next().unwrap();
    assert_eq!(
        (plan_task.task.prompt.as_str(), plan_task.task.size, plan_task.order),
        ("Do it", Size::M, PhaseOrder::Parallel)
    );
    assert_eq!(plan_task.task.location.to_string(), "plan.toml:3:6");
}

#[test]
fn innermost_agent_and_model_apply() {
    let text = "format = 1\nagent = \"a\"\nmodel = \"m\"\n[[group]]\nagent = \"b\"\n[[group.task]]\nid = \"x\"\n\
                title = \"x\"\nmodel = \"n\"\n[[group.task]]\nid = \"y\"\ntitle = \"y\"\nagent = \"c\"\n[[group]]\n\
                [[group.task]]\nid = \"z\"\ntitle = \"z\"";
    let plan = parse(text).unwrap();
    let agents_and_models: Vec<_> =
        plan.tasks().map(|spot| (plan.task_agent(spot), plan.task_model(spot))).collect();
    assert_eq!(agents_and_models, [(Some("b"), Some("n")), (Some("c"), Some("m")), (Some("a"), Some("m"))]);
}

#[test]
fn template_is_valid_and_contains_every_key() {
    let plan = parse(PLAN_TEMPLATE).unwrap();
    let graph = DependencyGraph::from_plan(&plan).unwrap();
    assert_eq!(graph.waves(), [vec![0, 1], vec![2]]);
    assert!(plan.tasks().all(|spot| plan.task_agent(spot).is_some()));
    for table_schema in [&PLAN_SCHEMA, &PHASE_SCHEMA, &GROUP_SCHEMA, &TASK_SCHEMA] {
        for field in table_schema.fields {
            let key = field.key;
            let is_in_template =
                PLAN_TEMPLATE.lines().map(|line| line.trim_start_matches("# ")).any(|line| {
                    line.starts_with(&format!("{key} = "))
                        || line.starts_with('[') && line.contains(&format!("{key}]"))
                });
            assert!(is_in_template, "{}: {key}", table_schema.noun);
        }
    }
}

#[test]
fn checked_in_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/plan.schema.json");
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let generated = format!("{}\n", serde_json::to_string_pretty(&plan_schema()).unwrap());
    assert!(checked_in == generated, "stale; run\n  cargo run -q -- plan --schema > schema/plan.schema.json");
}

/// Clears the locations of a plan, which depend on the file.
fn without_locations(mut plan: Plan) -> Plan {
    let nowhere = SourceLocation { file: Arc::from(""), line: 0, column: 0 };
    for group in plan.phases.iter_mut().flat_map(|phase| &mut phase.groups) {
        for task in &mut group.tasks {
            task.location = nowhere.clone();
            task.needs.iter_mut().for_each(|need| need.location = nowhere.clone());
        }
    }
    plan
}

fn line_strategy() -> impl Strategy<Value = String> {
    "[^\\x00\r\n]{0,12}[^\\x00\\s][^\\x00\r\n]{0,12}"
}

fn text_strategy() -> impl Strategy<Value = String> {
    "[^\\x00]{0,20}[^\\x00\\s][^\\x00]{0,20}"
}

fn line_list_strategy() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(line_strategy(), 0..3)
}

prop_compose! {
    fn task_strategy()(
        names in ("[A-Za-z0-9][A-Za-z0-9._-]{0,10}", proptest::option::of("[a-z0-9][a-z.]{0,5}")),
        texts in (line_strategy(), text_strategy()),
        needs in proptest::collection::vec("([a-z]{1,3}/)?[a-z0-9]{1,5}", 0..3),
        scope in proptest::collection::vec("(src|docs)/[a-z*?]{1,6}", 0..3),
        size in proptest::sample::select(vec![Size::S, Size::M, Size::L]),
        who in (proptest::option::of("[a-z][a-z-]{0,5}"), proptest::option::of("[a-z][a-z-]{0,5}")),
        checks in line_list_strategy(),
        done in any::<bool>(),
    ) -> Task {
        let place = SourceLocation { file: Arc::from(""), line: 0, column: 0 };
        let needs = needs.into_iter().map(|name| Need { name, location: place.clone() }).collect();
        let (agent, model) = who;
        let task = Task::new(names.0, texts.0, place.clone());
        Task { area: names.1, prompt: texts.1, needs, scope, size, agent, model, checks, done, ..task }
    }
}

prop_compose! {
    fn plan_strategy()(
        summary in line_strategy(),
        lists in (line_list_strategy(), line_list_strategy()),
        agent in proptest::option::of("[a-z]{1,4}"),
        phases in proptest::collection::vec(
            (line_strategy(), any::<bool>(), proptest::collection::vec(
                (line_strategy(), text_strategy(), text_strategy(), proptest::collection::vec(task_strategy(), 0..3)), 1..3)),
            1..3),
    ) -> Plan {
        let group = |(theme, rationale, prompt, tasks)| Group {
            theme, rationale, prompt, tasks, agent: None, model: Some("m".to_owned()),
        };
        let phases = phases.into_iter().map(|(title, serial, groups)| Phase {
            title,
            order: if serial { PhaseOrder::Serial } else { PhaseOrder::Parallel },
            groups: groups.into_iter().map(group).collect(),
        });
        Plan {
            summary, warnings: lists.0, criteria: lists.1, agent, model: None, phases: phases.collect(),
            source_notes: Vec::new(),
        }
    }
}

proptest! {
    #[test]
    fn plan_survives_toml_round_trip(plan in plan_strategy()) {
        let written = plan_to_toml(&plan);
        let read = parse(&written).map_err(|e| TestCaseError::fail(format!("{e}\n{written}")))?;
        prop_assert_eq!(without_locations(read), plan);
    }

    #[test]
    fn never_panics_on_any_text(text in any::<String>()) {
        drop(parse(&text));
    }

    #[test]
    fn never_panics_on_plan_like_text(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "format = 1\n", "[[task]]\n", "[[phase]]\n", "[[phase.task]]\n", "id", "title", "needs", " = ", "[", "]", "\"",
            "\"a\"", "{", "}", "1", "é", "\n", "\u{0}", "'''", "\"\"\"", ".", "=", "true", "1979-05-27", "\u{feff}", "#",
        ]), 0..40),
    ) {
        drop(parse(&parts.concat()).and_then(|plan| DependencyGraph::from_plan(&plan)));
    }
}

/// Promise: strangers/plan-limits
#[test]
fn refuses_deeply_nested_tables() {
    for deep in ["x = ".to_owned() + &"[".repeat(100_000), "x = ".to_owned() + &"{a=".repeat(100_000)] {
        assert!(parse(&deep).is_err());
    }
}
