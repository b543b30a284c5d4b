//! Tests of roadmaps: selection of the milestone, content of an item, and every error.

use proptest::prelude::*;
use proq_base::explain::Explain;

use super::*;
use crate::dependency_graph::DependencyGraph;

fn parse(text: &str, requested: Option<&str>) -> Result<Plan, PlanError> {
    read(
        &Arc::from("R.md"),
        text,
        requested.map_or(MilestoneSelector::FirstOpen, MilestoneSelector::Matching),
    )
}

fn tasks(text: &str) -> Vec<Task> {
    parse(text, None).unwrap().tasks().map(|spot| spot.task.clone()).collect()
}

fn error_text(text: &str, requested: Option<&str>) -> String {
    let error = parse(text, requested).and_then(|plan| DependencyGraph::from_plan(&plan)).expect_err(text);
    format!("{error}\n  {}\n", error.hints().join("\n  "))
}

#[test]
fn reports_errors_with_hints() {
    let roadmap = "# R\n## 0.1: First\n- [x] a\n## 0.2: Second\n- [ ] b\n## Nothing here\n";
    let all = [
        error_text(roadmap, Some("0.")),
        error_text(roadmap, Some("0.1: Frist")),
        error_text(roadmap, Some("zzz")),
        error_text(roadmap, Some("nothing here")),
        error_text("# R\n- [x] a\n", None),
        error_text("- [x] a\n", None),
        error_text("# R\n\n- a\n", None),
        error_text("", None),
        error_text("- [ ] A-1: one\n- [ ] **a-1** two\n", None),
    ];
    insta::assert_snapshot!(all.concat(), @r"
    R.md has several milestones that match '0.': 0.1: First, 0.2: Second
      type more of the title
    R.md has no milestone '0.1: Frist'
      did you mean '0.1: First'?
    R.md has no milestone 'zzz'
      milestones: 0.1: First, 0.2: Second
    R.md has no milestone 'nothing here'
      milestones: 0.1: First, 0.2: Second
    all items of R.md are done
      show a milestone: git proq plan R.md --milestone R
    all items of R.md are done
      add an item that starts with '- [ ]'
    there is no task in R.md
      show an example of a plan: git proq plan --init -
    there is no task in R.md
      show an example of a plan: git proq plan --init -
    R.md:2:7: task 'a-1' is defined twice; the other definition is at R.md:1:7
      give one of the tasks another ID
    ");
}

#[test]
fn picks_first_open_or_named_milestone() {
    let roadmap = "# R\n## 0.1: First\n- [x] a\n## 0.2: Second\n- [ ] b\n## 0.2.1: Second again\n- [ ] c\n## 0.2\n- [ ] d";
    let summary = |requested| parse(roadmap, requested).unwrap().summary;
    assert_eq!(summary(None), "0.2: Second");
    assert_eq!(
        [summary(Some("first")), summary(Some("0.2")), summary(Some("2.1"))],
        ["0.1: First", "0.2", "0.2.1: Second again"]
    );
}

#[test]
fn items_include_text_below_them() {
    let text = "- [ ] A\n  more\n\n      code\n\n  ```\n  - [ ] no\n  ```\n  - [x] one\n    - [ ] two\n  - plain\n- [ ] B\n\nOther words.\n- [X] C\nlazy\n";
    let tasks = tasks(text);
    let prompts: Vec<&str> = tasks.iter().map(|task| task.prompt.as_str()).collect();
    let below = "A\n\nmore\n\n    code\n\n```\n- [ ] no\n```\n- [x] one\n  - [ ] two\n- plain";
    assert_eq!(prompts, [below, "B", "C\n\nlazy"]);
    assert_eq!(tasks[0].progress, Some(BoxProgress { done: 1, total: 2 }));
    assert_eq!(tasks.iter().map(|task| task.done).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(tasks[1].location.to_string(), "R.md:12:7");
}

#[test]
fn reads_items_below_plain_items_as_tasks() {
    let titles: Vec<String> = tasks("- Storage\n  - [ ] a\n    - [ ] part\n  - [ ] b\n- Shop\n\t- [ ] c")
        .into_iter()
        .map(|t| t.title)
        .collect();
    assert_eq!(titles, ["a", "b", "c"]);
}

#[test]
fn derives_unique_ids_from_titles() {
    let text = "- [ ] SHOP-5: Five\n- [ ] **SHOP-6** Six\n- [ ] `SHOP-7` - Seven\n- [ ] Pay by card!\n- [x] pay by Card\n\
                - [ ] 価格\n- [ ] 価格\n- [ ] **bold**\n- [ ] UTF-8: not an ID?\n- [ ] add-ons for all\n";
    let ids: Vec<(String, String)> = tasks(text).into_iter().map(|task| (task.id, task.title)).collect();
    let ids: Vec<String> = ids.into_iter().map(|(id, title)| format!("{id} | {title}")).collect();
    insta::assert_snapshot!(ids.join("\n"), @"
    SHOP-5 | Five
    SHOP-6 | Six
    SHOP-7 | Seven
    pay-by-card | Pay by card!
    pay-by-card-2 | pay by Card
    jia-ge | 価格
    jia-ge-2 | 価格
    bold | bold
    UTF-8 | not an ID?
    add-ons-for-all | add-ons for all
    ");
}

#[test]
fn reads_headings_as_groups_with_text() {
    let text = "# Roadmap\nNot this.\n## M\nAll of\nit.\n- [ ] a\n### One\nfirst\n- [ ] b\nno\n#### Two\n- [ ] c\n### Empty\n";
    let plan = parse(text, None).unwrap();
    let groups: Vec<(&str, &str)> =
        plan.phases[0].groups.iter().map(|group| (group.theme.as_str(), group.prompt.as_str())).collect();
    assert_eq!(groups, [("", "All of\nit."), ("One", "All of\nit.\nfirst"), ("Two", "All of\nit.")]);
}

#[test]
fn notes_items_without_text() {
    let plan = parse("- [ ]\n- [ ] a\n", None).unwrap();
    let notes: Vec<String> = plan.source_notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes, ["R.md:1:6: this item is empty and is skipped"]);
}

/// Twenty thousand items take more than a minute where each is compared with all items before it.
#[test]
fn a_roadmap_is_read_in_linear_time() {
    let items = |count: usize| "- [ ] the same words\n- [ ] others\n".repeat(count / 2);
    let begin = std::time::Instant::now();
    assert_eq!(parse(&items(4_000), None).unwrap().tasks().count(), 4_000);
    assert_eq!(parse(&items(40_000), None).unwrap().tasks().count(), 40_000);
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

proptest! {
    #[test]
    fn never_panics_on_any_text(text in any::<String>()) {
        drop(parse(&text, None));
    }

    #[test]
    fn never_panics_on_roadmap_like_text(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "# ", "## a", "### b", "- [ ] ", "- [x] ", "* ", "1. ", "\n", "\r\n", "\n\n", "  ", "\t", "é", "価", "A-1: ", "**", "`",
            "```\n", "<!--", "-->", "word", "- ", "\u{a0}", "\u{3000}",
        ]), 0..40),
    ) {
        drop(parse(&parts.concat(), None).and_then(|plan| DependencyGraph::from_plan(&plan)));
    }
}
