//! Tests of what a forecast has of the result of a landing: the tree of the base and the size of the differences.

use proq_test_kit::Sandbox;
use serde_json::{Value, json};

/// Creates lanes `one` and `two`, and `clash`, which conflicts with `one`, on a base that has moved since.
fn three_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 30 > long.txt; seq 20 > old.txt; echo gone > gone.txt; printf 'a\\0b' > binary");
    sandbox.commit_all("base");
    sandbox
        .lane_with_commit("one", "sed -i 1s/.*/one/ long.txt; echo one > one.txt; printf 'c\\0d' > binary");
    sandbox
        .lane_with_commit("two", "sed -i 15s/.*/two/ long.txt; git mv old.txt new.txt; git rm -q gone.txt");
    sandbox.lane_with_commit("clash", "sed -i 1s/.*/clash/ long.txt; echo 1 > 1; echo 2 > 2; echo 3 > 3");
    sandbox.sh("sed -i 30s/.*/main/ long.txt; git commit -qam main");
    sandbox
}

/// Returns the size of a difference as git prints it, and as JSON.
fn diffstat(sandbox: &Sandbox, from: &str, to: &str) -> (String, Value) {
    let text = sandbox.git(&["diff", "--shortstat", from, to]).trim().to_owned();
    let count = |word: &str| {
        let part = text.split(", ").find(|part| part.contains(word));
        part.map_or(0, |part| part.split(' ').next().unwrap().parse::<usize>().unwrap())
    };
    let value =
        json!({ "files": count("file"), "insertions": count("insertion"), "deletions": count("deletion") });
    (text, value)
}

/// Compares the forecast of a landing by `args` with the landing.
#[track_caller]
fn assert_forecast_matches(sandbox: &Sandbox, args: &[&str]) {
    let before = sandbox.git(&["rev-parse", "main"]);
    let forecast = |flags: &[&str]| sandbox.proq(&[args, flags].concat());
    let text = forecast(&["--dry-run"]).stdout;
    let plan = forecast(&["--dry-run", "--json"]).json();
    let landing = forecast(&["--json"]).json();
    let (size, total) = diffstat(sandbox, &before, "main");
    let tree = sandbox.git(&["rev-parse", "main^{tree}"]);
    let last_line = text.lines().last().unwrap_or_default();
    assert_eq!(last_line.rsplit("would land: ").next(), Some(size.as_str()), "{args:?}");
    let method = landing["lanes"][0]["method"].clone();
    let base = json!({ "onto": "main", "method": method, "tree": tree, "diffstat": total, "checks": [] });
    assert_eq!((&plan["bases"], &plan["diffstat"]), (&json!([base]), &total), "{args:?}");
    assert_eq!((&landing["bases"], &landing["diffstat"]), (&Value::Null, &Value::Null));
    for (planned, landed) in
        plan["lanes"].as_array().unwrap().iter().zip(landing["lanes"].as_array().unwrap())
    {
        assert_eq!((&planned["lane"], &planned["result"]), (&landed["lane"], &landed["result"]), "{args:?}");
        let commit = landed["commit"].as_str();
        let size = commit.map(|commit| diffstat(sandbox, &format!("{commit}^1"), commit).1);
        assert_eq!(planned["diffstat"], size.unwrap_or_default(), "{args:?} {planned}");
    }
}

#[test]
fn forecast_has_tree_and_diffstat_of_landing() {
    for strategy in ["merge", "squash", "rebase"] {
        for lane in ["one", "two", "--all"] {
            let sandbox = three_lanes();
            assert_forecast_matches(&sandbox, &["merge", lane, "--strategy", strategy]);
            if lane == "--all" {
                assert_eq!(sandbox.row("clash")["state"], "conflict");
            }
            assert_eq!(sandbox.repo.join("new.txt").exists(), lane != "one");
        }
    }
}

#[test]
fn diffstat_follows_the_settings_of_git() {
    for (key, value) in
        [("diff.renames", "false"), ("diff.renames", "copies"), ("diff.algorithm", "patience")]
    {
        let sandbox = three_lanes();
        sandbox.git(&["config", key, value]);
        assert_forecast_matches(&sandbox, &["merge", "two"]);
    }
}

#[test]
fn forecast_sums_bases_and_has_none_where_nothing_lands() {
    let sandbox = three_lanes();
    sandbox.git(&["branch", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "far", "--base", "other"]).ok();
    sandbox.commit_in_lane("far", "echo far > far.txt");
    let plan = sandbox.proq(&["merge", "one", "far", "--dry-run", "--json"]).json();
    let bases = plan["bases"].as_array().unwrap();
    assert_eq!(bases.iter().map(|base| &base["onto"]).collect::<Vec<_>>(), ["main", "other"]);
    assert_eq!(plan["diffstat"], json!({ "files": 4, "insertions": 3, "deletions": 1 }), "{plan:#}");
    let plan = sandbox.proq(&["merge", "one", "clash", "--atomic", "--dry-run", "--json"]).json();
    assert_eq!((&plan["bases"], &plan["diffstat"]), (&Value::Null, &Value::Null), "{plan:#}");
}
