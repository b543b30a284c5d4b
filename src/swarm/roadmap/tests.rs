//! Owns the tests of roadmaps: which milestone, what an item is, and each mistake.

use proptest::prelude::*;

use super::*;
use crate::explain::Explain;
use crate::swarm::Graph;

fn parse(text: &str, asked: Option<&str>) -> Result<Plan, Error> {
    read(&Arc::from("R.md"), text, asked.map_or(Which::First, Which::Like))
}

fn tasks(text: &str) -> Vec<Task> {
    parse(text, None).unwrap().spots().map(|spot| spot.task.clone()).collect()
}

fn said(text: &str, asked: Option<&str>) -> String {
    let error = parse(text, asked).and_then(|plan| Graph::of(&plan)).expect_err(text);
    format!("{error}\n  {}\n", error.hints().join("\n  "))
}

#[test]
fn mistakes_are_named_with_the_fix() {
    let road = "# R\n## 0.1: First\n- [x] a\n## 0.2: Second\n- [ ] b\n## Nothing here\n";
    let all = [
        said(road, Some("0.")),
        said(road, Some("0.1: Frist")),
        said(road, Some("zzz")),
        said(road, Some("nothing here")),
        said("# R\n- [x] a\n", None),
        said("- [x] a\n", None),
        said("# R\n\n- a\n", None),
        said("", None),
        said("- [ ] A-1: one\n- [ ] **a-1** two\n", None),
    ];
    insta::assert_snapshot!(all.concat(), @r"
    R.md has several milestones that '0.' could mean: 0.1: First, 0.2: Second
      type more of its title
    R.md has no milestone '0.1: Frist'
      did you mean '0.1: First'?
    R.md has no milestone 'zzz'
      what there is: 0.1: First, 0.2: Second
    R.md has no milestone 'nothing here'
      what there is: 0.1: First, 0.2: Second
    every item of R.md is ticked
      look at what was done: git proq plan R.md --milestone R
    every item of R.md is ticked
      add what is to be done, as '- [ ] …'
    there is no task in R.md
      see what a plan looks like: git proq plan --init -
    there is no task in R.md
      see what a plan looks like: git proq plan --init -
    R.md:2:7: task 'a-1' is there twice; the other one is at R.md:1:7
      give one of them another ID
    ");
}

#[test]
fn the_milestone_is_the_first_open_one_or_the_one_that_is_named() {
    let road = "# R\n## 0.1: First\n- [x] a\n## 0.2: Second\n- [ ] b\n## 0.2.1: Second again\n- [ ] c\n## 0.2\n- [ ] d";
    let summary = |asked| parse(road, asked).unwrap().summary;
    assert_eq!(summary(None), "0.2: Second");
    assert_eq!(
        [summary(Some("first")), summary(Some("0.2")), summary(Some("2.1"))],
        ["0.1: First", "0.2", "0.2.1: Second again"]
    );
}

#[test]
fn an_item_has_what_stands_below_it() {
    let text = "- [ ] A\n  more\n\n      code\n\n  ```\n  - [ ] no\n  ```\n  - [x] one\n    - [ ] two\n  - plain\n- [ ] B\n\nOther words.\n- [X] C\nlazy\n";
    let tasks = tasks(text);
    let prompts: Vec<&str> = tasks.iter().map(|task| task.prompt.as_str()).collect();
    let below = "A\n\nmore\n\n    code\n\n```\n- [ ] no\n```\n- [x] one\n  - [ ] two\n- plain";
    assert_eq!(prompts, [below, "B", "C\n\nlazy"]);
    assert_eq!(tasks[0].progress, Some(Progress { done: 1, of: 2 }));
    assert_eq!(tasks.iter().map(|task| task.done).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(tasks[1].from.to_string(), "R.md:12:7");
}

#[test]
fn items_below_plain_ones_are_tasks() {
    let titles: Vec<String> = tasks("- Storage\n  - [ ] a\n    - [ ] part\n  - [ ] b\n- Shop\n\t- [ ] c")
        .into_iter()
        .map(|t| t.title)
        .collect();
    assert_eq!(titles, ["a", "b", "c"]);
}

#[test]
fn ids_are_made_of_words_and_are_free() {
    let text = "- [ ] SHOP-5: Five\n- [ ] **SHOP-6** Six\n- [ ] `SHOP-7` - Seven\n- [ ] Pay by card!\n- [x] pay by Card\n\
                - [ ] 価格\n- [ ] 価格\n- [ ] **bold**\n- [ ] UTF-8: not an ID?\n- [ ] add-ons for all\n";
    let ids: Vec<(String, String)> = tasks(text).into_iter().map(|task| (task.id, task.title)).collect();
    let ids: Vec<String> = ids.into_iter().map(|(id, title)| format!("{id} | {title}")).collect();
    insta::assert_snapshot!(ids.join("\n"), @r"
    SHOP-5 | Five
    SHOP-6 | Six
    SHOP-7 | Seven
    pay-by-card | Pay by card!
    pay-by-card-2 | pay by Card
    item-1 | 価格
    item-2 | 価格
    bold | bold
    UTF-8 | not an ID?
    add-ons-for-all | add-ons for all
    ");
}

#[test]
fn headings_are_groups_and_their_words_are_told() {
    let text = "# Roadmap\nNot this.\n## M\nAll of\nit.\n- [ ] a\n### One\nfirst\n- [ ] b\nno\n#### Two\n- [ ] c\n### Empty\n";
    let plan = parse(text, None).unwrap();
    let groups: Vec<(&str, &str)> =
        plan.phases[0].groups.iter().map(|group| (group.theme.as_str(), group.prompt.as_str())).collect();
    assert_eq!(groups, [("", "All of\nit."), ("One", "All of\nit.\nfirst"), ("Two", "All of\nit.")]);
}

#[test]
fn an_item_that_says_nothing_is_told() {
    let plan = parse("- [ ]\n- [ ] a\n", None).unwrap();
    let remarks: Vec<String> = plan.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(remarks, ["R.md:1:6: this item says nothing, and is passed over"]);
}

/// Twenty thousand items take more than a minute where each is held against all before it.
#[test]
fn a_roadmap_is_read_in_linear_time() {
    let items = |count: usize| "- [ ] the same words\n- [ ] others\n".repeat(count / 2);
    let begin = std::time::Instant::now();
    assert_eq!(parse(&items(4_000), None).unwrap().spots().count(), 4_000);
    assert_eq!(parse(&items(40_000), None).unwrap().spots().count(), 40_000);
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        drop(parse(&text, None));
    }

    #[test]
    fn no_text_much_like_a_roadmap_makes_it_panic(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "# ", "## a", "### b", "- [ ] ", "- [x] ", "* ", "1. ", "\n", "\r\n", "\n\n", "  ", "\t", "é", "価", "A-1: ", "**", "`",
            "```\n", "<!--", "-->", "word", "- ", "\u{a0}", "\u{3000}",
        ]), 0..40),
    ) {
        drop(parse(&parts.concat(), None).and_then(|plan| Graph::of(&plan)));
    }
}
