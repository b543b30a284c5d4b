//! Names that production code joins onto paths, and names of files below `proq/` that it repeats.

use std::collections::{BTreeMap, BTreeSet};

use super::source_code::{Source, product_sources, test_files};

/// Names that code outside of `crates/store` joins onto paths, by where these are. `crates/store` joins none
/// of them.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("worktree", &[".DONE", ".git", ".gitignore", ".reviews", ".worktreeinclude", "archive", "proq.toml"]),
    ("worktree", &["PROMPT.md", "STATUS.md", ".{name}"]),
    ("folder of worktrees", &[".look", ".proq-worktrees", ".resolve", "CACHEDIR.TAG", "{stem}{FOLDER_NAME}"]),
    ("folder of worktrees", &[".trash-{name}-{}", "{name}-{number}", "{name}.old", "{name}.old{number}"]),
    ("git's directory", &["config", "exclude", "gitdir", "index.lock", "info", "info/exclude"]),
    ("git's directory", &["locked", "post-commit", "worktrees"]),
    (
        "HOME",
        &[".cache", ".claude", ".claude.json", ".codex", ".config", "config.toml", "git-proq/agents.toml"],
    ),
    ("/proc", &["comm", "cwd"]),
    ("PATH", &["git-proq", "sh"]),
];

/// Files all of whose names are elsewhere, unless `crates/store` joins the name too.
const OTHER_FILES: &[(&str, &str)] = &[
    ("crates/lib/src/agent/git_guard/post_commit_hook.rs", "git's folder of hooks"),
    ("src/cli/set_up/demo.rs", "the folder of the demonstration"),
    ("src/cli/set_up/setup.rs", "completions and man pages in HOME"),
];

/// Names that `crates/store` joins too, and that have another meaning in these files.
const OTHER_MEANINGS: &[(&str, &str)] = &[
    ("crates/lib/src/agent/command/startup_question.rs", "settings.json"),
    ("crates/lib/src/agent/git_guard/worktree_baseline.rs", "index"),
    ("crates/lib/src/agent/profiles/profile.rs", "settings.json"),
    ("crates/lib/src/lane/context/shared_state.rs", "hooks"),
    ("crates/lib/src/operation/locked_worktree.rs", "index"),
    ("crates/lib/src/lane/worktree/rollback_create.rs", ".{name}.{}"),
    ("crates/lib/src/lane/worktree/trash.rs", "gone"),
    ("crates/lib/src/session/in_place_commit.rs", "index"),
    ("src/cli/plans/plan_args.rs", "plan.toml"),
];

/// Calls that put their argument into a path, in code without white space.
const CALLS: &[&str] =
    &[".join(", ".with_file_name(", ".with_extension(", ".set_file_name(", "Path::new(", "PathBuf::from("];

/// Returns the names that production code outside of `crates/store` joins onto a path although no list allows
/// it, and the names of files of the store that it repeats. Also returns what the lists allow in vain.
pub(crate) fn misplaced_names() -> Vec<String> {
    let (all, tests) = (product_sources(), test_files());
    let constants = constants(&all);
    let production = all.iter().copied().filter(|source| !source.is_one_of(&tests));
    let (store, others): (Vec<&Source>, Vec<&Source>) =
        production.partition(|source| source.relative_path().starts_with("crates/store/"));
    let store_names: BTreeSet<String> =
        store.iter().flat_map(|source| joined_names(source, &constants)).collect();
    let last_part = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let mut file_names: BTreeSet<String> = store_names.iter().map(|name| last_part(name)).collect();
    file_names.retain(|name| name.contains('.') && !name.contains('{'));
    let mut used = BTreeSet::new();
    let mut out = Vec::new();
    for source in others {
        let file = source.relative_path();
        // No path below `proq/` is known there: callers pass the folders.
        let is_lower = ["crates/base/", "crates/git/"].iter().any(|lower| file.starts_with(lower));
        let mut names = if is_lower { BTreeSet::new() } else { joined_names(source, &constants) };
        let literals = source.string_literals().into_iter().map(|literal| literal.text);
        names.extend(literals.filter(|text| file_names.contains(&last_part(text))));
        for name in names {
            let is_listed = OTHER_NAMES.iter().any(|(_, names)| names.contains(&&*name));
            let is_in_listed_file = OTHER_FILES.iter().any(|(other, _)| *other == file);
            let allowed_by = match store_names.contains(&name) || file_names.contains(&name) {
                true => OTHER_MEANINGS.contains(&(&file, &name)).then(|| format!("{file}: {name}")),
                false if is_listed => Some(name.clone()),
                false => is_in_listed_file.then(|| file.clone()),
            };
            match allowed_by {
                Some(entry) => drop(used.insert(entry)),
                None => out.push(format!("{file}: {name}")),
            }
        }
    }
    let names = OTHER_NAMES.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned());
    let files = OTHER_FILES.iter().map(|(file, _)| (*file).to_owned());
    let meanings = OTHER_MEANINGS.iter().map(|(file, name)| format!("{file}: {name}"));
    let unused = names.chain(files).chain(meanings).filter(|entry| !used.contains(entry));
    out.extend(unused.map(|entry| format!("allowed in vain: {entry}")));
    out
}

/// Returns the texts of the constants of the product, by name.
fn constants(all: &[&Source]) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for literal in all.iter().flat_map(|source| source.string_literals()) {
        let before = literal.before.strip_suffix(":&str=").or(literal.before.strip_suffix(":&'staticstr="));
        if let Some((_, name)) = before.and_then(|before| before.rsplit_once("const")) {
            out.entry(name.to_owned()).or_default().insert(literal.text);
        }
    }
    out
}

/// Returns the names that the production code of a file joins onto a path: literals, formats and constants.
fn joined_names(source: &Source, constants: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for literal in source.string_literals() {
        let before = literal.before.strip_suffix("format!(").unwrap_or(&literal.before).trim_end_matches('&');
        if CALLS.iter().any(|call| before.ends_with(call)) {
            out.insert(literal.text);
        }
    }
    let code: String = source.production.split_whitespace().collect();
    for call in CALLS {
        for (at, _) in code.match_indices(call) {
            let argument = code[at + call.len()..].split([')', ',', '.']).next().unwrap_or_default();
            let name = argument.rsplit("::").next().unwrap_or_default();
            out.extend(constants.get(name).into_iter().flatten().cloned());
        }
    }
    // Texts without a letter, with a space or with an escape separate the items of a list.
    out.retain(|text| {
        text.contains(char::is_alphanumeric) && !text.contains(|c: char| c.is_whitespace() || c == '\\')
    });
    out
}

#[test]
fn finds_the_names_that_are_joined() {
    let text = r#"
        const NAMED: &str = "named";
        fn f(dir: &Path, n: u32) -> String { // .join("comment")
            dir.join("literal").join(
                "next-line",
            );
            dir.join(format!("format-{n}")).join(&format!("borrowed-{n}")).join(module::NAMED);
            Path::new("first").with_extension("extension");
            ["no name"].join(", ") + &["c"].join("\n") + "no join"
        }
        #[cfg(test)]
        fn g(dir: &Path) { dir.join("test"); }
    "#;
    let source = Source::new("src/x.rs".into(), text.to_owned());
    let found = joined_names(&source, &constants(&[&source]));
    let names = ["borrowed-{n}", "extension", "first", "format-{n}", "literal", "named", "next-line"]
        .map(str::to_owned);
    assert_eq!(found, names.into());
}
