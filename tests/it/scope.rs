//! Owns the tests of a lane's scope: which other lanes are named that are about the same files, and where it is told.

use super::redispatch::old_lane;
use super::support::Sandbox;

/// A repository with files of a shop.
fn shop() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["src/pay/api.rs", "src/pay/api.md", "src/auth/api.rs"] {
        sandbox.write(path, "1\n");
    }
    sandbox.commit_all("shop");
    sandbox
}

/// Makes a lane with a scope and without work.
#[track_caller]
fn lane(sandbox: &Sandbox, name: &str, scope: &str) {
    let _ = sandbox.proq(&["spawn", "--empty", "-n", name, "--scope", scope]).ok();
}

/// What a new lane of this scope is warned of. None is made.
#[track_caller]
fn warned(sandbox: &Sandbox, scope: &[&str]) -> String {
    let globs = scope.iter().flat_map(|glob| ["--scope", glob]);
    let args: Vec<&str> = ["spawn", "--empty", "-n", "new", "--dry-run"].into_iter().chain(globs).collect();
    let out = sandbox.proq(&args);
    assert_eq!(out.code, 0, "{}", out.stderr);
    out.stderr
}

/// A lane whose agent has changed something and goes on.
fn at_work(sandbox: &Sandbox, name: &str, script: &str, more: &[&str]) {
    sandbox.pipe("up");
    let script = format!("{script}; echo up > $ROOT/up; exec sleep 600");
    let mut args = vec!["spawn", "-n", name];
    args.extend(more);
    args.extend(["--", "sh", "-ec", &script]);
    let _ = sandbox.proq(&args).ok();
    assert_eq!(sandbox.hear("up"), "up\n");
    std::fs::remove_file(sandbox.root().join("up")).unwrap();
}

#[test]
fn lanes_that_have_changed_files_in_it_are_named() {
    let sandbox = shop();
    sandbox.lane_of("zeal", "echo zeal >> src/pay/api.md; echo zeal >> src/pay/api.rs");
    sandbox.lane_of("auth", "echo auth >> src/auth/api.rs");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "nothing"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "by-hand"]).ok();
    sandbox.write_in(&sandbox.lane("by-hand"), "src/pay/new.rs", "new\n");
    at_work(&sandbox, "refunds", "echo refunds >> src/pay/api.rs", &[]);
    insta::assert_snapshot!(warned(&sandbox, &["src/pay/"]), @r"
    warning: lane 'refunds' is at work in src/pay/ too (src/pay/api.rs); they may conflict: git proq matrix
    warning: lane 'by-hand' has work in src/pay/ that has not landed (src/pay/new.rs); they may conflict: git proq matrix
    warning: lane 'zeal' has work in src/pay/ that has not landed (src/pay/api.md, src/pay/api.rs); they may conflict: git proq matrix
    ");
    insta::assert_snapshot!(warned(&sandbox, &["docs", "src/pay/api.md"]), @"warning: lane 'zeal' has work in src/pay/api.md that has not landed; they may conflict: git proq matrix");
    assert_eq!(warned(&sandbox, &["docs/"]), "");
    // It is only said: the lane is made.
    let out = sandbox.proq(&["spawn", "--empty", "-n", "made", "--scope", "src/auth/"]);
    assert!(out.stderr.contains("warning: lane 'auth' has work in src/auth/"), "{}", out.stderr);
    assert_eq!(sandbox.row("made")["state"], "idle");
    // What has landed is in nobody's way.
    let _ = sandbox.proq(&["merge", "zeal", "--no-cleanup", "--strategy", "squash"]).ok();
    assert!(!warned(&sandbox, &["src/pay/"]).contains("zeal"));
    assert_eq!(warned(&sandbox, &[]), "");
    let _ = sandbox.proq(&["stop", "refunds"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn lanes_whose_scope_meets_it_are_named() {
    let sandbox = shop();
    at_work(&sandbox, "refunds", ":", &["--scope", "src/pay/**"]);
    at_work(&sandbox, "texts", ":", &["--scope", "*.md"]);
    lane(&sandbox, "idle", "src/pay/");
    lane(&sandbox, "worked", "src/pay/");
    sandbox.commit_in_lane("worked", "echo elsewhere > elsewhere.txt");
    insta::assert_snapshot!(warned(&sandbox, &["src/pay/"]), @r"
    warning: lane 'refunds' is at work with the scope src/pay/**, which meets src/pay/; they may conflict: git proq matrix
    warning: lane 'texts' is at work with the scope *.md, which meets src/pay/; they may conflict: git proq matrix
    warning: lane 'worked' has not landed and has the scope src/pay/ too; they may conflict: git proq matrix
    ");
    // By the files that there are: none of this one in the folder of texts.
    let said = warned(&sandbox, &["src/auth/"]);
    assert_eq!(said, "");
    let said = warned(&sandbox, &["api.*", "src/*/api.md"]);
    assert!(said.contains("'texts' is at work with the scope *.md, which meets src/*/api.md"), "{said}");
    let _ = sandbox.proq(&["stop", "--all"]).ok();
    assert!(!warned(&sandbox, &["src/pay/"]).contains("refunds"));
}

#[test]
fn of_many_lanes_a_handful_is_named() {
    let sandbox = shop();
    for n in 0..7 {
        sandbox.lane_of(&format!("l{n}"), &format!("echo {n} > src/pay/{n}.rs"));
    }
    let said = warned(&sandbox, &["src"]);
    assert_eq!(said.lines().count(), 6, "{said}");
    assert!(
        said.ends_with("warning: 2 more lanes may conflict with it as well: git proq matrix\n"),
        "{said}"
    );
}

#[test]
fn spawn_and_show_tell_it_and_what_is_no_glob_is_refused() {
    let sandbox = shop();
    let asked = ["spawn", "--empty", "-n", "pay", "--scope", "src/pay/", "--scope", "*.md"];
    let out = sandbox.proq(&[&asked[..], &["--dry-run"]].concat()).ok();
    assert!(out.ends_with("  runs      nothing\n  scope     src/pay/\n  scope     *.md\n"), "{out}");
    let made = sandbox.proq(&[&asked[..], &["--json"]].concat()).json();
    assert_eq!(made["scope"], serde_json::json!(["src/pay/", "*.md"]));
    let shown = sandbox.proq(&["show", "pay"]).ok();
    assert!(shown.contains("\nscope      src/pay/\nscope      *.md\n"), "{shown}");
    assert_eq!(sandbox.proq(&["show", "pay", "--json"]).json()["scope"], made["scope"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x", "--scope", "../other"]).shown(), @r"
    --- stderr
    error: '../other' names no files: it is read from the top of the repository and cannot leave it; nothing was made
    hint: name files from the top of the repository: --scope src/pay/ --scope '*.md'
    --- code 2
    ");
    assert!(sandbox.row("x").is_null());
}

#[test]
fn a_task_that_starts_afresh_keeps_it() {
    let sandbox = old_lane();
    let record = sandbox.repo.join(".git/proq/lanes/old/lane.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("attempt =", "scope = ['src/pay/']\nattempt =", 1)).unwrap();
    let _ = sandbox.proq(&["redispatch", "old"]).ok();
    let _ = sandbox.proq(&["wait", "old"]).ok();
    let shown = sandbox.proq(&["show", "old", "--json"]).json();
    assert_eq!(shown["scope"], serde_json::json!(["src/pay/"]));
}
