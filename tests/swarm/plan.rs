//! Tests of `git proq plan` with plans in TOML: its output and the files it writes.

use proq_test_kit::Sandbox;

/// Returns the text of a plan in the fixtures.
pub(super) fn read_plan_fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/plans/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// Creates a repository with a shop and the plan for it.
pub(super) fn sandbox_with_shop_plan() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["src/store/money.rs", "src/store/orders.rs", "src/mail/send.rs", "src/shop/routes.rs"] {
        sandbox.write(path, "1\n");
    }
    sandbox.commit_all("shop");
    sandbox.write("shop.toml", &read_plan_fixture("shop.toml"));
    sandbox
}

#[test]
fn shows_tasks_waves_lanes_and_longest_path() {
    insta::assert_snapshot!(sandbox_with_shop_plan().proq(&["plan", "shop.toml"]).to_text(), @r"
    Card payments and refunds for the shop
    shop.toml (TOML): 10 tasks, 1 done, 5 waves

    Warnings:
      The sandbox of the payment service takes 100 calls a day.
      docs/ is published on every push to main.

    Phases:
      1. Groundwork
        Storage: store/orders-table, store/payments-table, store/ledger. Everything that touches the schema, so that migrations are written in one place.
        Service: pay/client, pay/fake. The client of the payment service knows nothing of the shop.
      2. Flows
        Shop: shop/checkout, shop/refund, shop/receipts
      3. Release, one task after the other

    WAVE  LANE  TASK                  SIZE  AGENT   NEEDS                                         SCOPE                                     TITLE
    done  -     store/orders-table    M     codex   -                                             src/store/, migrations/                   A state column for orders
    1     1     store/payments-table  M     codex   store/orders-table                            src/store/payments.rs, migrations/        A table of payments
    1     2     store/ledger          L     codex   store/orders-table                            src/**/money*.rs, src/store/orders.rs     Money as whole cents everywhere
    1     3     pay/client            L     claude  -                                             src/pay/client.rs, src/pay/client/        A client for the payment service
    2     4     pay/fake              S     claude  pay/client                                    tests/fake_pay/                           A payment service for tests
    3     5     shop/checkout         L     claude  store/payments-table, store/ledger, pay/fake  src/shop/checkout.rs, src/shop/routes.rs  Pay an order by card
    3     5     shop/refund           M     gemini  store/payments-table, pay/client              src/shop/refund.rs, src/shop/routes.rs    Refund an order
    3     6     shop/receipts         S     claude  -                                             src/mail/*.rs                             Receipts by mail
    4     7     docs                  S     claude  -                                             docs/                                     Describe payments in the manual
    5     7     changelog             S     claude  shop/checkout, shop/refund, docs              CHANGELOG.md                              Write the changelog

    Lanes: 3 at a time (--max-parallel 3)
    One lane for shop/checkout, shop/refund, one after the other:
      shop/checkout and shop/refund both have src/shop/routes.rs
    Critical path: pay/client -> pay/fake -> shop/checkout -> docs -> changelog (11 of 20 by size)
    Time: as long as 13 small tasks in sequence

    Criteria:
      cargo test passes
      An order can be paid by card and refunded in the demo shop.
    --- code 0
    ");
}

#[test]
fn max_parallel_limits_the_lanes() {
    let sandbox = sandbox_with_shop_plan();
    let lanes = |n: &str| {
        let out = sandbox.proq(&["plan", "shop.toml", "--max-parallel", n]).ok();
        out.lines().find(|line| line.starts_with("Lanes:")).unwrap().to_owned()
    };
    assert_eq!(lanes("1"), "Lanes: 1 at a time, of 3 that could run (--max-parallel 1)");
    assert_eq!(lanes("9"), "Lanes: 3 at a time (--max-parallel 9)");
    let text = sandbox.proq(&["plan", "shop.toml", "--max-parallel", "0"]).fails(2);
    assert!(text.contains("expected a number from 1 to 65535"), "{text}");
}

#[test]
fn json_contains_tasks_waves_and_source() {
    let answer = sandbox_with_shop_plan().proq(&["plan", "shop.toml", "--json"]).json();
    assert_eq!(answer["source"], serde_json::json!({"format": "toml", "names": ["shop.toml"]}));
    assert_eq!(answer["waves"][0], serde_json::json!(["store/payments-table", "store/ledger", "pay/client"]));
    assert_eq!(answer["max_parallel"], 3);
    assert_eq!(answer["longest"]["tasks"][0], "pay/client");
    let task = &answer["tasks"][6];
    assert_eq!(task["name"], "shop/refund");
    assert_eq!(task["needs"], serde_json::json!(["store/payments-table", "pay/client"]));
    assert_eq!((&task["agent"], &task["phase"]), (&"gemini".into(), &2.into()));
    assert_eq!(task["from"], serde_json::json!({"file": "shop.toml", "line": 86}));
    assert_eq!(answer["tasks"][0]["done"], true);
    assert_eq!(answer["tasks"][0].get("wave"), None);
    let shared = &answer["shared_lanes"][0];
    assert_eq!(
        shared["because"][0]["globs"],
        serde_json::json!(["src/shop/routes.rs", "src/shop/routes.rs"])
    );
}

#[test]
fn init_writes_a_valid_plan_and_overwrites_nothing() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["plan", "--init"]).to_text(), @r"
    wrote plan.toml
    --- stderr
    hint: show it: git proq plan plan.toml
    --- code 0
    ");
    assert_eq!(sandbox.read("plan.toml"), sandbox.proq(&["plan", "--init", "-"]).ok());
    insta::assert_snapshot!(sandbox.proq(&["plan", "plan.toml"]).to_text(), @r"
    Documents for newcomers
    plan.toml (TOML): 3 tasks, 0 done, 2 waves

    Warnings:
      Only files below docs/ are written.

    Phases:
      1. Find out
        Guides: building, map. Each task writes its own file, so the tasks do not conflict.
      2. Put together

    WAVE  LANE  TASK        SIZE  AGENT   NEEDS          SCOPE             TITLE
    1     1     building    M     claude  -              docs/BUILDING.md  How to build and test this repository
    1     2     map         M     claude  -              docs/MAP.md       Where things are in this repository
    2     3     docs/start  S     claude  building, map  docs/README.md    An entry page

    Lanes: 2 at a time (--max-parallel 3)
    Critical path: building -> docs/start (3 of 5 by size)
    Time: as long as 3 small tasks in sequence

    Criteria:
      A person who has never seen this repository can build and test it by docs/BUILDING.md alone.
      Every link in docs/README.md leads somewhere.
    --- code 0
    ");
    // An existing file stays unchanged.
    sandbox.write("plan.toml", "mine\n");
    insta::assert_snapshot!(sandbox.proq(&["plan", "--init"]).fails(1), @r"
    error: cannot write [ROOT]/repo/plan.toml: it exists already
    hint: write another file: git proq plan --init plan-2.toml
    ");
    assert_eq!(sandbox.read("plan.toml"), "mine\n");
    let _ = sandbox.proq(&["plan", "--init", "other.toml"]).ok();
    assert!(sandbox.repo.join("other.toml").is_file());
}

#[test]
fn toml_output_is_an_equivalent_plan() {
    let sandbox = sandbox_with_shop_plan();
    let toml = sandbox.proq(&["plan", "shop.toml", "--toml"]).ok();
    sandbox.write("again.toml", &toml);
    let answer = |file: &str| {
        let mut answer = sandbox.proq(&["plan", file, "--json"]).json();
        answer["source"] = serde_json::Value::Null;
        for task in answer["tasks"].as_array_mut().unwrap() {
            task["from"] = serde_json::Value::Null;
        }
        answer
    };
    assert_eq!(answer("shop.toml"), answer("again.toml"));
}

#[test]
fn prints_the_schema_outside_a_repository() {
    let sandbox = Sandbox::empty();
    let schema: serde_json::Value =
        serde_json::from_str(&sandbox.proq_in(&sandbox.root(), &["plan", "--schema"]).ok()).unwrap();
    assert_eq!(schema["properties"]["format"]["const"], 1);
    assert_eq!(schema["$defs"]["task"]["additionalProperties"], false);
}

/// Runs each command line and returns its standard error and exit code as a transcript.
pub(super) fn transcript(sandbox: &Sandbox, command_lines: &[&[&str]]) -> String {
    let run_command = |args: &&[&str]| {
        let out = sandbox.proq(args);
        format!("$ {}\n{}--- code {}\n", args.join(" "), out.stderr, out.code)
    };
    command_lines.iter().map(run_command).collect()
}

#[test]
fn refuses_invalid_plans_with_a_hint() {
    let sandbox = Sandbox::new();
    sandbox.write("empty.toml", "format = 1\n");
    sandbox.write("wrong.toml", "format = 1\n\n[[task]]\nid = \"a\"\ntitel = \"A\"\n");
    std::fs::write(sandbox.repo.join("bytes.toml"), b"format = \xff").unwrap();
    insta::assert_snapshot!(transcript(&sandbox, &[
        &["plan"],
        &["deps"],
        &["plan", "nothing.toml"],
        &["plan", "nothing"],
        &["plan", "a.txt"],
        &["plan", "empty.toml", "wrong.toml"],
    ]), @r"
    $ plan
    error: no plan given
    hint: for example: git proq plan plan.toml
    --- code 2
    $ deps
    error: no plan given
    hint: for example: git proq deps plan.toml
    --- code 2
    $ plan nothing.toml
    error: cannot find the plan 'nothing.toml'
    hint: create one: git proq plan --init
    --- code 1
    $ plan nothing
    error: cannot find the plan 'nothing'
    hint: create one: git proq plan --init
    --- code 1
    $ plan a.txt
    error: cannot tell the format of plan 'a.txt' from its name
    hint: name the format: git proq plan --format toml a.txt
    --- code 2
    $ plan empty.toml wrong.toml
    error: a plan in TOML is one file, but 2 were given
    hint: name one file
    --- code 2
    ");
    insta::assert_snapshot!(transcript(&sandbox, &[
        &["plan", "empty.toml"],
        &["plan", "wrong.toml"],
        &["plan", "bytes.toml"],
    ]), @r"
    $ plan empty.toml
    error: there is no task in empty.toml
    hint: show an example of a plan: git proq plan --init -
    --- code 1
    $ plan wrong.toml
    error: wrong.toml:5:1: a task has no 'titel'
    hint: did you mean 'title'?
    --- code 1
    $ plan bytes.toml
    error: [ROOT]/repo/bytes.toml is not UTF-8 text
    hint: save it as UTF-8
    --- code 1
    ");
}

/// Promise: strangers/plan-text-escapes
#[test]
fn escapes_terminal_control_characters() {
    let sandbox = Sandbox::new();
    let title =
        "format = 1\nsummary = \"\\u001b[2Jgone\"\n[[task]]\nid = \"a\"\ntitle = \"\\u202etitle\\u0007\"\n";
    sandbox.write("a\u{1b}[1m.toml", title);
    for command in [&["plan"][..], &["deps"], &["deps", "--dot"]] {
        let out = sandbox.proq(&[command, &["a\u{1b}[1m.toml"]].concat());
        let text = format!("{}{}", out.stdout, out.stderr);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        assert_eq!(out.code, 0);
    }
}

/// Promise: strangers/plan-limits
#[test]
fn refuses_devices_and_oversized_plan_files() {
    let sandbox = Sandbox::new();
    let refusal = sandbox.proq(&["plan", "--format", "toml", "/dev/zero"]).fails(1);
    assert!(refusal.contains("it is a device, not a regular file"), "{refusal}");
    sandbox.sh("truncate -s 1T large.toml");
    let refusal = sandbox.proq(&["plan", "large.toml"]).fails(1);
    assert!(refusal.contains("large.toml is larger than 4 MiB"), "{refusal}");
    // A file that the shell opened for the command has the same limit.
    let mut command = sandbox.command("sh", &sandbox.repo);
    command.args(["-c", "yes | git-proq plan --format toml /dev/stdin"]);
    let refusal = sandbox.output(command).fails(1);
    assert!(refusal.contains("/dev/stdin is larger than 4 MiB"), "{refusal}");
}
