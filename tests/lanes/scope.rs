//! Scope of a lane: warnings about other lanes that work on the same files, and where the scope is shown.

use proq_test_kit::Sandbox;
use proq_test_kit::runs::sandbox_with_old_lane;

/// Returns a repository with the files of a shop.
fn sandbox_with_shop() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["src/pay/api.rs", "src/pay/api.md", "src/auth/api.rs"] {
        sandbox.write(path, "1\n");
    }
    sandbox.commit_all("shop");
    sandbox
}

/// Creates a lane with a scope and without work.
#[track_caller]
fn spawn_lane(sandbox: &Sandbox, name: &str, scope: &str) {
    let _ = sandbox.proq(&["spawn", "--empty", "-n", name, "--scope", scope]).ok();
}

/// Returns the warnings for a new lane of this scope; no lane is created.
#[track_caller]
fn scope_warnings(sandbox: &Sandbox, scope: &[&str]) -> String {
    let globs = scope.iter().flat_map(|glob| ["--scope", glob]);
    let args: Vec<&str> = ["spawn", "--empty", "-n", "new", "--dry-run"].into_iter().chain(globs).collect();
    let out = sandbox.proq(&args);
    assert_eq!(out.code, 0, "{}", out.stderr);
    out.stderr
}

/// Starts a lane whose agent has changed something and keeps running.
fn start_working_lane(sandbox: &Sandbox, name: &str, script: &str, more: &[&str]) {
    sandbox.pipe("up");
    let script = format!("{script}; echo up > $ROOT/up; exec sleep 600");
    let mut args = vec!["spawn", "-n", name];
    args.extend(more);
    args.extend(["--", "sh", "-ec", &script]);
    let _ = sandbox.proq(&args).ok();
    assert_eq!(sandbox.read_pipe("up"), "up\n");
    std::fs::remove_file(sandbox.root().join("up")).unwrap();
}

#[test]
fn warns_about_lanes_that_changed_files_in_scope() {
    let sandbox = sandbox_with_shop();
    sandbox.lane_with_commit("zeal", "echo zeal >> src/pay/api.md; echo zeal >> src/pay/api.rs");
    sandbox.lane_with_commit("auth", "echo auth >> src/auth/api.rs");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "nothing"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "by-hand"]).ok();
    sandbox.write_in(&sandbox.lane_path("by-hand"), "src/pay/new.rs", "new\n");
    start_working_lane(&sandbox, "refunds", "echo refunds >> src/pay/api.rs", &[]);
    insta::assert_snapshot!(scope_warnings(&sandbox, &["src/pay/"]), @r"
    warning: lane 'refunds' also works in src/pay/ (src/pay/api.rs); they may conflict: git proq matrix
    warning: lane 'by-hand' has unmerged work in src/pay/ (src/pay/new.rs); they may conflict: git proq matrix
    warning: lane 'zeal' has unmerged work in src/pay/ (src/pay/api.md, src/pay/api.rs); they may conflict: git proq matrix
    ");
    insta::assert_snapshot!(scope_warnings(&sandbox, &["docs", "src/pay/api.md"]), @"warning: lane 'zeal' has unmerged work in src/pay/api.md; they may conflict: git proq matrix");
    assert_eq!(scope_warnings(&sandbox, &["docs/"]), "");
    // The overlap is only a warning: the lane is created.
    let out = sandbox.proq(&["spawn", "--empty", "-n", "made", "--scope", "src/auth/"]);
    assert!(out.stderr.contains("warning: lane 'auth' has unmerged work in src/auth/"), "{}", out.stderr);
    assert_eq!(sandbox.row("made")["state"], "idle");
    // Landed work overlaps with nothing.
    let _ = sandbox.proq(&["merge", "zeal", "--no-cleanup", "--strategy", "squash"]).ok();
    assert!(!scope_warnings(&sandbox, &["src/pay/"]).contains("zeal"));
    assert_eq!(scope_warnings(&sandbox, &[]), "");
    let _ = sandbox.proq(&["stop", "refunds"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn warns_about_lanes_with_overlapping_scope() {
    let sandbox = sandbox_with_shop();
    start_working_lane(&sandbox, "refunds", ":", &["--scope", "src/pay/**"]);
    start_working_lane(&sandbox, "texts", ":", &["--scope", "*.md"]);
    spawn_lane(&sandbox, "idle", "src/pay/");
    spawn_lane(&sandbox, "worked", "src/pay/");
    sandbox.commit_in_lane("worked", "echo elsewhere > elsewhere.txt");
    insta::assert_snapshot!(scope_warnings(&sandbox, &["src/pay/"]), @r"
    warning: lane 'refunds' is working with the scope src/pay/**, which meets src/pay/; they may conflict: git proq matrix
    warning: lane 'texts' is working with the scope *.md, which meets src/pay/; they may conflict: git proq matrix
    warning: lane 'worked' is not merged and has the scope src/pay/ too; they may conflict: git proq matrix
    ");
    // Overlap is computed from existing files: no text file is in this folder.
    let warnings = scope_warnings(&sandbox, &["src/auth/"]);
    assert_eq!(warnings, "");
    let warnings = scope_warnings(&sandbox, &["api.*", "src/*/api.md"]);
    assert!(
        warnings.contains("'texts' is working with the scope *.md, which meets src/*/api.md"),
        "{warnings}"
    );
    let _ = sandbox.proq(&["stop", "--all"]).ok();
    assert!(!scope_warnings(&sandbox, &["src/pay/"]).contains("refunds"));
}

#[test]
fn limits_number_of_warned_lanes() {
    let sandbox = sandbox_with_shop();
    for n in 0..7 {
        sandbox.lane_with_commit(&format!("l{n}"), &format!("echo {n} > src/pay/{n}.rs"));
    }
    let warnings = scope_warnings(&sandbox, &["src"]);
    assert_eq!(warnings.lines().count(), 6, "{warnings}");
    assert!(
        warnings.ends_with("warning: 2 more lanes may conflict with it as well: git proq matrix\n"),
        "{warnings}"
    );
}

#[test]
fn spawn_and_show_print_scope_and_refuse_non_globs() {
    let sandbox = sandbox_with_shop();
    let spawn_args = ["spawn", "--empty", "-n", "pay", "--scope", "src/pay/", "--scope", "*.md"];
    let out = sandbox.proq(&[&spawn_args[..], &["--dry-run"]].concat()).ok();
    assert!(out.ends_with("  runs      nothing\n  scope     src/pay/\n  scope     *.md\n"), "{out}");
    let spawned = sandbox.proq(&[&spawn_args[..], &["--json"]].concat()).json();
    assert_eq!(spawned["scope"], serde_json::json!(["src/pay/", "*.md"]));
    let shown = sandbox.proq(&["show", "pay"]).ok();
    assert!(shown.contains("\nscope      src/pay/\nscope      *.md\n"), "{shown}");
    assert_eq!(sandbox.proq(&["show", "pay", "--json"]).json()["scope"], spawned["scope"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x", "--scope", "../other"]).to_text(), @r"
    --- stderr
    error: cannot use '../other' as a scope: it must stay inside the repository
    hint: use paths from the top of the repository: --scope src/pay/ --scope '*.md'
    --- code 2
    ");
    assert!(sandbox.row("x").is_null());
}

#[test]
fn redispatched_lane_keeps_scope() {
    let sandbox = sandbox_with_old_lane();
    let record = sandbox.repo.join(".git/proq/lanes/old/lane.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("attempt =", "scope = ['src/pay/']\nattempt =", 1)).unwrap();
    let _ = sandbox.proq(&["redispatch", "old"]).ok();
    let _ = sandbox.proq(&["wait", "old"]).ok();
    let shown = sandbox.proq(&["show", "old", "--json"]).json();
    assert_eq!(shown["scope"], serde_json::json!(["src/pay/"]));
}
