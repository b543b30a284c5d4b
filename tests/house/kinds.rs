//! Rule about the kinds of values: lanes, batches, runs, commits and trees have types of their own.

use std::collections::BTreeMap;

use super::guard::source_code::sources;

/// Names of parameters and fields, and the types that are too wide for what they are called.
const TOO_WIDE: &[(&[&str], &[&str])] = &[
    (
        &["lane", "lanes", "lane_name", "lane_names", "batch", "batch_id", "batches"],
        &[
            "&str",
            "&'a str",
            "String",
            "&String",
            "&[String]",
            "Vec<String>",
            "Option<&str>",
            "Option<String>",
        ],
    ),
    (&["run", "run_number"], &["u32", "Option<u32>"]),
    (
        &["commit", "tip", "base_tip", "lane_tip", "head_commit", "tree", "index_tree"],
        &["Oid", "Option<Oid>"],
    ),
];

/// How many such parameters and fields a file may have, and why: text that was typed or written, which may
/// name no lane at all, and objects of any kind.
const ALLOWED: &[(&str, usize, &str)] = &[
    ("crates/git/src/checkout/partial_files.rs", 1, "also a tree"),
    ("crates/git/src/history/graph.rs", 1, "an object of any kind is tried"),
    ("crates/git/src/history/tree_diff.rs", 1, "also a commit"),
    ("crates/lib/src/event/log.rs", 2, "the log takes any text"),
    ("crates/lib/src/facade.rs", 1, "what the caller typed"),
    ("crates/lib/src/health/check_context.rs", 2, "names of folders"),
    ("crates/lib/src/health/conflicts.rs", 1, "a name in a ref"),
    ("crates/lib/src/lane/context/veto_hooks.rs", 1, "arguments of a hook"),
    ("crates/lib/src/lane/removal/op_log_expiry.rs", 1, "what a ref names"),
    ("crates/lib/src/lane/removal/saved_refs.rs", 2, "what a ref names"),
    ("crates/lib/src/merge/comparison/overlap.rs", 1, "a key of a record"),
    ("crates/lib/src/merge/queue/queue_turn.rs", 1, "also the name of a check of criteria"),
    ("crates/lib/src/ops/land/merge.rs", 1, "what the user typed"),
    ("crates/lib/src/ops/land/pick.rs", 1, "what the user typed"),
    ("crates/lib/src/ops/land/resolve.rs", 1, "what the user typed"),
    ("crates/lib/src/ops/pull_request/open_request.rs", 1, "what the user typed"),
    ("crates/lib/src/swarm/batch/error.rs", 1, "names joined for a text"),
    ("crates/lib/src/swarm/landing/batch_landing.rs", 1, "a name that may be of any lane"),
    ("crates/lib/src/swarm/status/batch_history.rs", 1, "empty before the first run"),
    ("crates/lib/src/lane/steps/switch_undo.rs", 1, "a name in a ref"),
    ("crates/store/src/locks/merge_queue.rs", 1, "also the name of a check of criteria"),
];

/// Returns whether a line declares a parameter or field `name` of the type `kind`.
fn declares(line: &str, name: &str, kind: &str) -> bool {
    let declaration = format!("{name}: {kind}");
    line.match_indices(&declaration).any(|(at, _)| {
        let starts = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = &line[at + declaration.len()..];
        starts && (rest.is_empty() || rest.starts_with([',', ')', '|', ' ']))
    })
}

#[test]
fn lanes_batches_runs_and_commits_have_types() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for folder in ["crates/git/src", "crates/store/src", "crates/lib/src"] {
        for source in sources(folder) {
            let count = source.production.lines().filter(|line| {
                TOO_WIDE.iter().any(|(names, kinds)| {
                    names.iter().any(|name| kinds.iter().any(|kind| declares(line, name, kind)))
                })
            });
            found.insert(source.relative_path(), count.count());
        }
    }
    found.retain(|_, count| *count > 0);
    let allowed = ALLOWED.iter().map(|(file, count, _)| ((*file).to_owned(), *count)).collect();
    assert_eq!(found, allowed);
}

#[test]
fn declarations_differ_from_longer_names_and_values() {
    assert!(declares("fn show(lane: &str) {", "lane", "&str"));
    assert!(declares("    pub lane: String,", "lane", "String"));
    assert!(!declares("    pub past_lane: String,", "lane", "String"));
    assert!(!declares("    lane: String::new(),", "lane", "String"));
}
