//! Tests of stories in YAML: supported variants and error messages.

use proptest::prelude::*;
use proq_base::explain::Explain;

use super::*;
use crate::dependency_graph::DependencyGraph;

fn parse(text: &str) -> Result<Plan, PlanError> {
    read(&Arc::from("s.yaml"), text)
}

fn error_messages(texts: &[&str]) -> String {
    let describe_error = |text: &&str| {
        let error = parse(text).and_then(|plan| DependencyGraph::from_plan(&plan)).expect_err(text);
        format!("{error}\n  {}\n", error.hints().join("\n  "))
    };
    texts.iter().map(describe_error).collect()
}

#[test]
fn reports_invalid_story_lists_with_location_and_hint() {
    insta::assert_snapshot!(error_messages(&[
        "",
        "# nothing\n---\n",
        "stories: [",
        "stories:\n  - id: a\n title: b\n",
        "just words",
        "storys:\n  - id: a",
        "zzz: 1",
        "stories: 1",
        "stories:\n  - US-1\n",
        "stories: &all\n  - id: a\n    title: a\nmore: *all\n",
        "stories: []\nstories: []\n",
        "? [a]\n: 1\n",
        "- id: a\n  title: a\n---\n- id: b\n",
    ]), @r"
    there is no task in s.yaml
      show an example of a plan: git proq plan --init -
    s.yaml:3:1: stories are a list, and this is nothing
      begin with 'stories:' and '- id: …' below it
    s.yaml:2:1: while parsing a node, did not find expected node content
      this is where it stops being YAML: https://yaml.org
    s.yaml:3:2: while parsing a block mapping, did not find expected key
      this is where it stops being YAML: https://yaml.org
    s.yaml:1:1: stories are a list, and this is a text
      begin with 'stories:' and '- id: …' below it
    s.yaml:1:1: there is no list of stories in it
      did you mean 'stories' by 'storys'?
    s.yaml:1:1: there is no list of stories in it
      write them below 'stories:', each as '- id: …'
    s.yaml:1:10: stories are a list, and this is a number
      begin each with '- id: …'
    s.yaml:2:5: a story is a table, and this is a text
      write it with keys: id, title, status, dependsOn, acceptanceCriteria
    s.yaml:4:7: an alias (*) cannot be used here
      write its value instead
    s.yaml:2:1: 'stories' is defined twice
      leave one of them out
    s.yaml:1:3: a key is a text, and this is a list
      put quotes around it, or write it as a list
    s.yaml:3:1: the file has a second document
      leave one in each file
    ");
}

#[test]
fn reports_invalid_stories_with_location_and_hint() {
    let story = |extra_line: &str| format!("stories:\n  - id: US-1\n    title: One\n    {extra_line}\n");
    let texts: Vec<String> = [
        "status: dnoe",
        "status: cancelled",
        "status: [done]",
        "dependsOn: [US-2]",
        "dependsOn: US-1",
        "dependsOn: ['a b']",
        "dependsOn: {a: b}",
        "acceptanceCriteria: [[a]]",
        "description: 1",
        "title: Two",
    ]
    .map(story)
    .to_vec();
    insta::assert_snapshot!(error_messages(&texts.iter().map(String::as_str).collect::<Vec<_>>()), @r"
    s.yaml:4:13: there is no status 'dnoe'
      did you mean 'done'?
    s.yaml:4:13: there is no status 'cancelled'
      done is: done, complete, completed, merged, closed, passed; to be done is: todo, to-do, open, new, draft, backlog, pending, planned, ready, approved, in-progress, doing, started, review, in-review, blocked
    s.yaml:4:13: 'status' of a story is a list
      expected a word, as in done or todo
    s.yaml:4:17: task 'US-1' needs 'US-2', which is not a task of this plan
      add a task 'US-2', or remove it from the needs of 'US-1'
    s.yaml:4:16: these tasks depend on each other: US-1 -> US-1
      remove it: a task cannot wait for itself
    s.yaml:4:17: 'a b' cannot be the ID of a story
      name another story by its ID, as in [US-1, US-2]
    s.yaml:4:16: 'dependsOn' of a story is a table
      expected a text or a list of texts
    s.yaml:4:26: 'acceptanceCriteria' of a story is a list
      expected a text or a list of texts
    s.yaml:4:18: 'description' of a story is a number
      expected a text
    s.yaml:4:5: 'title' is defined twice
      leave one of them out
    ");
    insta::assert_snapshot!(error_messages(&[
        "- title: One\n",
        "- id: ''\n  title: One\n",
        "- id: a/b\n  title: One\n",
        "- id: [a]\n  title: One\n",
        "- id: US-1\n",
        "- id: 1\n  title: One\n- id: '1'\n  title: Two\n",
    ]), @r"
    s.yaml:1:3: a story without 'id'
      add 'id: …'
    s.yaml:1:3: a story without 'id'
      add 'id: …'
    s.yaml:1:7: 'a/b' cannot be the ID of a story
      expected up to 64 letters, digits, '.', '_' and '-', the first a letter or a digit
    s.yaml:1:7: 'id' of a story is a list
      expected a text
    s.yaml:1:3: a story without 'title'
      add 'title: …'
    s.yaml:3:7: task '1' is defined twice; the other definition is at s.yaml:1:7
      give one of the tasks another ID
    ");
}

#[test]
fn reads_every_supported_story_form() {
    let text = "project: |\n  Shop\n  of all\nuserStories:\n  - id: 7\n    title: One\n    description: |\n      As a clerk\n      I want one.\n    acceptance_criteria:\n      - it is there\n      - >\n        it\n        works\n    status: In Progress\n    priority: 1\n    tasks: [{done: true}, {done: false}]\n  - {id: b, title: 2, depends_on: 7, passes: true}\n  - {id: c, title: C, status: DONE, dependsOn: null, acceptanceCriteria: all of it}\n";
    let plan = parse(text).unwrap();
    let tasks: Vec<&Task> = plan.tasks().map(|spot| spot.task).collect();
    assert_eq!(plan.summary, "Shop");
    let prompt = "One\n\nAs a clerk\nI want one.\n\nIt is done when:\n- it is there\n- it works";
    assert_eq!((tasks[0].id.as_str(), tasks[0].prompt.as_str(), tasks[0].done), ("7", prompt, false));
    assert_eq!(tasks[0].progress, Some(BoxProgress { done: 1, total: 2 }));
    assert_eq!((tasks[1].title.as_str(), tasks[1].needs[0].name.as_str(), tasks[1].done), ("2", "7", true));
    assert_eq!((tasks[2].needs.len(), tasks[2].done), (0, true));
    assert_eq!(tasks[1].location.to_string(), "s.yaml:18:10");
}

#[test]
fn uses_first_line_of_multiline_title() {
    let plan = parse("- id: a\n  title: |\n    One\n    two\n").unwrap();
    let task = plan.tasks().next().unwrap().task.clone();
    assert_eq!((task.title.as_str(), task.prompt.as_str()), ("One", "One\ntwo\n"));
    assert!(crate::toml_plan::read(&Arc::from("f"), &crate::toml_plan::write::plan_to_toml(&plan)).is_ok());
}

/// Promise: strangers/plan-limits
#[test]
fn refuses_oversized_and_deeply_nested_yaml() {
    for deep in [
        "[".repeat(100_000),
        "{a: ".repeat(10_000),
        "- ".repeat(10_000),
        format!("stories: {}", "[".repeat(70) + &"]".repeat(70)),
    ] {
        assert!(parse(&deep).is_err());
    }
    let mut billion_laughs = "a: &a [x, x]\n".to_owned();
    for n in 0..30 {
        billion_laughs.push_str(&format!("b{n}: &b{n} [*a, *a]\n"));
    }
    assert!(parse(&billion_laughs).is_err_and(|error| error.to_string().contains("alias")));
}

proptest! {
    #[test]
    fn never_panics_on_any_text(text in any::<String>()) {
        drop(parse(&text));
    }

    #[test]
    fn never_panics_on_story_like_text(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "stories:", "\n", "  ", "- ", "id: ", "title: ", "a", "1", "dependsOn: ", "[", "]", "{", "}", ",", ": ", "&a ", "*a", "|\n",
            ">\n", "---\n", "...\n", "!!str ", "%YAML 1.2\n", "\"", "'", "#", "é", "\t", "? ", "~", "<<: ", "\u{feff}", "\r",
        ]), 0..40),
    ) {
        drop(parse(&parts.concat()).and_then(|plan| DependencyGraph::from_plan(&plan)));
    }
}
