//! Tests of plans that are roadmaps in Markdown.

use proq_test_kit::Sandbox;

use super::plan::{read_plan_fixture, transcript};

fn sandbox_with_roadmap() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("ROADMAP.md", &read_plan_fixture("ROADMAP.md"));
    sandbox.commit_all("roadmap");
    sandbox
}

#[test]
fn plans_the_first_milestone_with_open_items() {
    insta::assert_snapshot!(sandbox_with_roadmap().proq(&["plan", "ROADMAP.md"]).to_text(), @r"
    0.2: Orders
    ROADMAP.md (Markdown): 8 tasks, 1 done, 1 wave

    Groups:
      Basket: SHOP-4, SHOP-5, show-what-it-costs
      Checkout: SHOP-7, confirm-by-mail, confirm-by-mail-2, groesse, jia-ge

    WAVE  LANE  TASK                SIZE  STEPS  TITLE
    done  -     SHOP-4              M     -      Put an article into the basket
    1     1     SHOP-5              M     -      Change how many of it
    1     2     show-what-it-costs  M     1/3    Show what it costs
    1     3     SHOP-7              M     -      Address and postage
    1     4     confirm-by-mail     M     -      Confirm by mail
    1     5     confirm-by-mail-2   M     -      Confirm by mail
    1     6     groesse             M     -      Größe
    1     7     jia-ge              M     -      価格

    Lanes: 3 at a time, of 7 that could run (--max-parallel 3)
    Critical path: SHOP-5 (2 of 14 by size)
    Time: as long as 6 small tasks in sequence
    --- code 0
    ");
}

#[test]
fn selects_a_milestone_by_title() {
    let sandbox = sandbox_with_roadmap();
    let answer = sandbox.proq(&["plan", "ROADMAP.md", "--milestone", "0.3", "--json"]).json();
    assert_eq!(answer["summary"], "0.3: Payments");
    assert_eq!(answer["waves"], serde_json::json!([["pay-by-card", "refunds"]]));
    sandbox.write("plan.toml", "format = 1\n[[task]]\nid = \"a\"\ntitle = \"a\"\n");
    insta::assert_snapshot!(transcript(&sandbox, &[
        &["plan", "ROADMAP.md", "--milestone", "0.4"],
        &["deps", "ROADMAP.md", "--milestone", "0."],
        &["plan", "plan.toml", "--milestone", "0.3"],
    ]), @r"
    $ plan ROADMAP.md --milestone 0.4
    error: ROADMAP.md has no milestone '0.4'
    hint: milestones: 0.1: A shop that can be looked at, 0.2: Orders, 0.3: Payments
    --- code 1
    $ deps ROADMAP.md --milestone 0.
    error: ROADMAP.md has several milestones that match '0.': 0.1: A shop that can be looked at, 0.2: Orders, 0.3: Payments
    hint: type more of the title
    --- code 1
    $ plan plan.toml --milestone 0.3
    error: cannot use --milestone: only a roadmap has milestones, and this plan is in TOML
    hint: leave --milestone out
    --- code 2
    ");
}

#[test]
fn toml_output_keeps_tasks_and_prompts() {
    let sandbox = sandbox_with_roadmap();
    let toml = sandbox.proq(&["plan", "ROADMAP.md", "--toml"]).ok();
    sandbox.write("plan.toml", &toml);
    let prompts = |file: &str| {
        let answer = sandbox.proq(&["plan", file, "--json"]).json();
        let tasks = answer["tasks"].as_array().unwrap();
        tasks.iter().map(|task| (task["id"].clone(), task["prompt"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(prompts("plan.toml"), prompts("ROADMAP.md"));
    assert_eq!(prompts("ROADMAP.md").len(), 8);
}
