//! Report on a batch: runs with every kind of end, and an HTML page that is safe to open.

use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::{Output, Sandbox};

/// Plan with one task that lands, two that conflict, one that fails, one that depends on it, and one whose
/// check fails; the names need escaping.
const PLAN: &str = r#"format = 1
summary = "A <script>alert(1)</script> shop"
agent = "worker"
[[task]]
id = "fine"
title = "Fine \"& <b>\""
checks = ["test -e fine.txt"]
[[task]]
id = "late"
title = "Late"
needs = ["fine"]
[[task]]
id = "quarrel"
title = "Quarrels with fine"
[[task]]
id = "bad"
title = "Bad"
[[task]]
id = "after"
title = "After bad"
needs = ["bad"]
[[task]]
id = "red"
title = "Red"
checks = ["echo it is red; test -e nowhere"]
"#;

/// Runs the batch to its end and returns the output of the command.
fn finished_batch() -> (Sandbox, Output) {
    let sandbox = repo_with_plan(PLAN);
    // Tasks that run one after the other make the report the same each time.
    install_worker(
        &sandbox,
        r#"log=$ROOT/repo/.git/proq/batches/$PROQ_BATCH/log.jsonl
        until_there() { until [ "$(grep -c "$1" "$2")" -ge "$3" ]; do sleep 0.02; done; }
        case $name in
        bad) echo "no such table" >&2; exit 3 ;;
        fine) echo fine > a.txt ;;
        quarrel) until_there '^late' $ROOT/ran 1; until_there '^bad' $ROOT/ran 3; echo quarrel > a.txt ;;
        red) until_there 'conflict-given-up' "$log" 1 ;;
        esac"#,
    );
    let _ = sandbox.proq(&["approve", "--plan", "plan.toml", "--yes"]).ok();
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    (sandbox, out)
}

/// Returns the text with commits masked, so that it is the same each time.
fn mask_varying_words(sandbox: &Sandbox, text: &str) -> String {
    let text = sandbox.normalize(text.as_bytes());
    let words = |line: &str| -> String {
        let is_commit = |word: &str| word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
        let word = |word: &str| if is_commit(word) { "COMMIT".to_owned() } else { word.to_owned() };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(words).collect::<Vec<_>>().join("\n")
}

#[test]
fn report_lists_landings_and_failures_with_reasons() {
    let (sandbox, out) = finished_batch();
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    let report = sandbox.proq(&["report"]).ok();
    insta::assert_snapshot!(mask_varying_words(&sandbox, &report), @r#"
    batch 20260102-030405  paused: red cannot land
      plan     A <script>alert(1)</script> shop (plan.toml)
      landed   2 of 6 tasks; 3 failed, 1 skipped
      branch   proq/batch-20260102-030405 for main
      took     0s, since 2026-01-02 03:04

    WAVE  TASK     STATE         RUNS  DETAIL
       1  fine     landed           1  Fine "& <b>"
       2  late     landed           1  Late
       1  quarrel  conflict         1  worker could not resolve the conflict of lane 'quarrel' in 1 attempt: .txt is new and is not in conflict; a.txt:1: a conflict marker is left: '<<<<<<< HEAD'
       1  bad      set aside        3  exit code 3
       2  after    skipped             because of bad
       1  red      check failed     1  its own check `echo it is red; test -e nowhere` failed (exit code 1)

    did not land at once
      quarrel  conflict, given up: a.txt
      red  `echo it is red; test -e nowhere` failed; it wrote [ROOT]/repo/.git/proq/lanes/red/checks/[ID].log

    landings
      2026-01-02 03:04  fine  COMMIT  passed `test -e fine.txt`
      2026-01-02 03:04  late  COMMIT
    "#);
}

#[test]
fn report_json_has_counts_runs_and_obstacles() {
    let (sandbox, _) = finished_batch();
    let report = sandbox.proq(&["report", "20260102", "--json"]).json();
    assert_eq!(report["batch"], "20260102-030405");
    assert_eq!(report["summary"], "A <script>alert(1)</script> shop");
    let counts = &report["counts"];
    assert_eq!((&counts["tasks"], &counts["landed"]), (&6.into(), &2.into()), "{counts}");
    assert_eq!(report["waves"], serde_json::json!([["fine", "quarrel", "bad", "red"], ["late", "after"]]));
    let runs = report["runs"].as_array().unwrap();
    let runs_of_task = |name: &str| runs.iter().filter(|run| run["task"] == name).collect::<Vec<_>>();
    assert_eq!(runs_of_task("bad").len(), 3);
    assert_eq!(runs_of_task("bad")[2]["attempt"], 3);
    assert_eq!(runs_of_task("bad")[2]["end"]["well"], false);
    assert_eq!(runs_of_task("fine").len(), 1);
    assert_eq!(runs_of_task("fine")[0]["end"], serde_json::json!({"well": true, "how": "done"}));
    assert!(runs_of_task("after").is_empty());
    let landings = report["landings"].as_array().unwrap();
    assert_eq!(landings[0]["tasks"], serde_json::json!(["fine"]));
    assert_eq!(landings[0]["checks"], serde_json::json!(["test -e fine.txt"]));
    assert_eq!(landings[1]["tasks"], serde_json::json!(["late"]));
    assert_eq!(landings[1].get("checks"), None);
    let tip = sandbox.git(&["rev-parse", "proq/batch-20260102-030405"]);
    assert_eq!((&report["tip"], &landings[1]["tip"]), (&tip.clone().into(), &tip.into()));
    let obstacles = report["obstacles"].as_array().unwrap();
    let red = obstacles.iter().find(|it| it["task"] == "red").unwrap();
    assert_eq!(red["check"], "echo it is red; test -e nowhere");
    let log = red["log"].as_str().unwrap();
    assert!(log.starts_with("[ROOT]/repo/.git/proq/lanes/red/checks/"), "{log}");
    assert!(sandbox.sh("cat .git/proq/lanes/red/checks/*.log").contains("it is red"));
    let quarrel = obstacles.iter().find(|it| it["task"] == "quarrel").unwrap();
    assert_eq!((&quarrel["files"], &quarrel["became"]), (&serde_json::json!(["a.txt"]), &"given up".into()));
}

#[test]
fn html_report_is_self_contained_and_escaped() {
    let (sandbox, _) = finished_batch();
    let page = sandbox.proq(&["report", "--html"]).ok();
    assert!(page.starts_with("<!doctype html>\n"), "{page}");
    assert!(page.contains("A &lt;script&gt;alert(1)&lt;/script&gt; shop"), "{page}");
    assert!(page.contains("Fine &quot;&amp; &lt;b&gt;&quot;"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}: {page}");
    }
    for part in ["Timeline", "Tasks", "Runs", "Conflicts", "Checks that failed", "Landings"] {
        assert!(page.contains(&format!("<h2>{part}</h2>")), "{part}: {page}");
    }
    // One bar for each run and one line for each landing; every opened element is closed.
    assert_eq!(page.matches("<rect ").count(), page.matches("</rect>").count());
    assert_eq!(page.matches("<rect ").count(), 7);
    assert_eq!(page.matches("<line ").count(), 2);
    for mark in ["table", "tr", "td", "ul", "li", "code", "h2", "svg", "div", "body", "html"] {
        let count = |what: String| page.matches(&what).count();
        let open = count(format!("<{mark}>")) + count(format!("<{mark} "));
        assert_eq!(open, count(format!("</{mark}>")), "{mark}");
    }
}

#[test]
fn report_selects_latest_or_named_batch() {
    let sandbox = repo_with_plan("format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n");
    let error = sandbox.proq(&["report"]).fails(1);
    insta::assert_snapshot!(error, @r"
    error: there is no batch yet
    hint: create a plan to run: git proq plan --init
    ");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--new", "-q"]).ok();
    assert_ne!(sandbox.proq(&["report", "--json"]).json()["batch"], "20260102-030405");
    let first = sandbox.proq(&["report", "20260102-030405", "--json"]).json();
    assert_eq!(first["batch"], "20260102-030405");
    let error = sandbox.proq(&["report", "nowhere"]).fails(1);
    insta::assert_snapshot!(error, @r"
    error: there is no batch 'nowhere'; existing: 20260102-030405, [ID]
    hint: list batches: git proq batch status --all
    ");
    // A report on a removed batch still works.
    let _ = sandbox.proq(&["merge", "--batch", "20260102-030405"]).ok();
    let _ = sandbox.proq(&["cleanup", "--batch", "20260102-030405"]).ok();
    assert!(sandbox.proq(&["report", "20260102-030405"]).ok().contains("1 of 1 task"));
}
