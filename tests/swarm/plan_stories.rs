//! Tests of plans that are stories in YAML.

use proq_test_kit::Sandbox;

use super::plan::read_plan_fixture;

#[test]
fn shows_stories_as_plan_dependencies_and_prompts() {
    let sandbox = Sandbox::new();
    sandbox.write("stories.yaml", &read_plan_fixture("stories.yaml"));
    insta::assert_snapshot!(sandbox.proq(&["plan", "stories.yaml"]).to_text(), @r"
    Accounts for the shop
    stories.yaml (YAML): 5 tasks, 1 done, 2 waves

    WAVE  LANE  TASK   SIZE  STEPS  NEEDS         TITLE
    done  -     ACC-1  M     -      -             Sign up by mail
    1     1     ACC-2  M     -      ACC-1         Log in and out
    1     2     ACC-3  M     -      ACC-1         Addresses of an account
    1     3     ACC-5  M     1/2    -             Export of all data of a customer
    2     4     ACC-4  M     -      ACC-2, ACC-3  Check out with the usual address: one click

    Lanes: 3 at a time (--max-parallel 3)
    Critical path: ACC-2 -> ACC-4 (4 of 8 by size)
    Time: as long as 4 small tasks in sequence
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["deps", "stories.yaml"]).to_text(), @r"
    ACC-1 Sign up by mail (done)
    ├─ ACC-2 Log in and out
    │  └─ ACC-4 Check out with the usual address: one click (also after ACC-3)
    └─ ACC-3 Addresses of an account
       └─ ACC-4 Check out with the usual address: one click (also after ACC-2)
    ACC-5 Export of all data of a customer
    --- code 0
    ");
    let answer = sandbox.proq(&["plan", "stories.yaml", "--json"]).json();
    insta::assert_snapshot!(answer["tasks"][0]["prompt"].as_str().unwrap(), @r"
    Sign up by mail

    As a customer I want an account, so that I do not type my address
    each time.

    It is done when:
    - A mail with a link is sent
    - The link works once, for a day
    ");
}

#[test]
fn format_option_reads_a_file_without_extension() {
    let sandbox = Sandbox::new();
    sandbox.write("stories", "- {id: a, title: A}\n");
    let answer = sandbox.proq(&["plan", "--format", "stories", "stories", "--json"]).json();
    assert_eq!(answer["tasks"][0]["name"], "a");
    assert_eq!(answer["source"]["format"], "stories");
}
