//! Scenarios of new lanes: files copied from another checkout, copies and links, output of set-up commands,
//! and the folder of a landed lane reused from the pool.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Outcome;
use super::fixture::Fixture;
use super::scenario::Scenario;
use super::scenarios::{DEFAULT_SCENARIO, prepare_base, prepare_lane};

/// Text in every content that a landed lane had besides its commits.
const OLD_LANE_TEXT: &str = "left by one";

/// Spawn of a new lane. Files of a partly created lane, except git's own, may be in the trash.
const SPAWN_NEW: Scenario = Scenario {
    command: &["spawn", "--empty", "-n", "new"],
    ignored_prefixes: &["trash new-"],
    extra_check: check_doctor,
    ..DEFAULT_SCENARIO
};

/// A pool entry has its folder until the folder is reused; it is removed with the lane that reuses it, and so
/// is the cache in it.
const POOL_PREFIXES: &[&str] = &["trash one-", "trash new-", "lane new: file target"];

/// Scenarios of this module.
pub(super) const NEW_LANE_SCENARIOS: &[Scenario] = &[
    Scenario { name: "spawn-copied", prepare: prepare_many_kinds, extra_check: check_copied, ..SPAWN_NEW },
    Scenario {
        name: "spawn-count",
        prepare: prepare_many_kinds,
        command: &["spawn", "--empty", "-n", "new", "--count", "2"],
        ignored_prefixes: &["trash new-"],
        extra_check: check_copied,
        ..SPAWN_NEW
    },
    Scenario { name: "spawn-set-up", prepare: prepare_set_up, extra_check: check_copied, ..SPAWN_NEW },
    Scenario {
        name: "sync",
        prepare: prepare_outdated_set_up,
        command: &["sync", "one"],
        ignored_prefixes: &["trash one-"],
        extra_check: check_own_version,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "sync-force",
        prepare: prepare_outdated_set_up,
        command: &["sync", "--force", "one"],
        ignored_prefixes: &["trash one-"],
        extra_check: check_own_version,
        ..DEFAULT_SCENARIO
    },
    Scenario {
        name: "spawn-pool",
        prepare: prepare_pooled,
        ignored_prefixes: POOL_PREFIXES,
        extra_check: check_separate,
        ..SPAWN_NEW
    },
    Scenario {
        name: "spawn-pool-changed",
        prepare: prepare_outdated_pool,
        ignored_prefixes: POOL_PREFIXES,
        extra_check: check_separate,
        ..SPAWN_NEW
    },
];

/// Undo of the landing of a lane whose folder another lane reuses. That lane has work that keeps it from
/// being removed.
pub(super) const POOL_UNDO_SCENARIOS: &[Scenario] = &[Scenario {
    name: "undo-landing-pool",
    prepare: prepare_reused_pool,
    command: &["op", "restore", "1", "--force"],
    ignored_prefixes: POOL_PREFIXES,
    extra_check: check_separate,
    ..DEFAULT_SCENARIO
}];

/// Checks that the doctor finds nothing, except that the sweep's disk is small.
fn check_doctor(fixture: &Fixture) -> Outcome<Vec<String>> {
    let mut faults = Vec::new();
    let answer = fixture.proq(&["doctor"])?;
    let output = String::from_utf8_lossy(&answer.stdout);
    let mut wrong = output.lines().filter(|line| line.starts_with("error: ")).peekable();
    let is_only_disk_size =
        wrong.peek().is_some() && wrong.all(|line| line.contains(" MB are free on the disk of "));
    if answer.code != 0 && !is_only_disk_size {
        let (code, output) = (answer.code, output.replace('\n', "; "));
        faults.push(format!("the doctor ends with {code}: {output} {}", answer.stderr.trim()));
    }
    Ok(faults)
}

/// Checks that lanes have their own files: no file of a lane is shared with another lane or the main
/// checkout.
fn check_copied(fixture: &Fixture) -> Outcome<Vec<String>> {
    let mut faults = check_doctor(fixture)?;
    visit_files(&fixture.repo(), &mut |path, _| {
        use std::os::unix::fs::MetadataExt;
        if path.symlink_metadata()?.nlink() > 1 {
            faults.push(format!("{} has two names", path.display()));
        }
        Ok(())
    })?;
    Ok(faults)
}

/// Checks that the lane's own version of a copied file is there or in the trash.
fn check_own_version(fixture: &Fixture) -> Outcome<Vec<String>> {
    let mut faults = check_doctor(fixture)?;
    for own in ["own change of one", "env, first"] {
        let mut found = false;
        for dir in [fixture.lane("one"), fixture.repo().join(".git/proq/trash")] {
            visit_files(&dir, &mut |_, content| {
                found |= contains(content, own);
                Ok(())
            })?;
        }
        if !found {
            faults.push(format!("'{own}' is neither in the lane nor in the trash"));
        }
    }
    Ok(faults)
}

/// Checks that a new lane has nothing of the lane that had its folder, except the cache, and that everything
/// else is in that lane's trash entry, or in the lane where it was restored.
fn check_separate(fixture: &Fixture) -> Outcome<Vec<String>> {
    let mut faults = check_doctor(fixture)?;
    visit_files(&fixture.lane("new"), &mut |path, content| {
        if contains(content, OLD_LANE_TEXT) {
            faults.push(format!("the new lane has {}", path.display()));
        }
        Ok(())
    })?;
    let mut missing = fixture.tokens();
    missing.retain(|token| token.contains(OLD_LANE_TEXT));
    let entries = fs::read_dir(fixture.repo().join(".git/proq/trash"))?.flatten();
    let lane_entries = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("one-"));
    for dir in lane_entries.map(|entry| entry.path()).chain([fixture.lane("one")]) {
        visit_files(&dir, &mut |_, content| {
            missing.retain(|token| !contains(content, token));
            Ok(())
        })?;
    }
    faults.extend(missing.iter().map(|token| format!("not with its lane: {}", token.trim_end())));
    Ok(faults)
}

fn contains(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Visits each file below a folder, except git's own; none if there is no folder.
fn visit_files(dir: &Path, visit: &mut dyn FnMut(&Path, &[u8]) -> Outcome<()>) -> Outcome<()> {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        let meta = path.symlink_metadata()?;
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        if meta.is_dir() {
            visit_files(&path, visit)?;
        } else if meta.is_file() {
            visit(&path, &fs::read(&path)?)?;
        }
    }
    Ok(())
}

/// Prepares a checkout with files of all sizes, one of them changed, so that git's objects are read for it.
fn prepare_many_kinds(fixture: &Fixture) -> Outcome<()> {
    prepare_base(fixture)?;
    fixture.write("big.bin", &"0123456789abcde\n".repeat(20_000))?;
    fixture.write("dir/deep/er/x.txt", "x\n")?;
    fixture.sh("chmod +x run.sh; git add -A; git commit -qm more")?;
    fixture.write_token("b.txt", "b, changed")?;
    fixture.write_token("notes.txt", "untracked")
}

/// Prepares a set-up: a copied file and folder, a link, and the output of a command.
fn prepare_set_up(fixture: &Fixture) -> Outcome<()> {
    prepare_base(fixture)?;
    fixture.write(".gitignore", "*.log\nbuild/\n.env\ncache/\nmade/\n")?;
    fixture.write(".worktreeinclude", ".env\ncache/\n")?;
    fixture.sh("git add -A; git commit -qm includes")?;
    fixture.git(&["config", "proq.lane.copy", "build/"])?;
    fixture.git(&["config", "proq.lane.link", "shared.log"])?;
    fixture.git(&["config", "proq.lane.setup", "mkdir made; echo made > made/out"])?;
    fixture.write_token(".env", "env, first")?;
    fixture.write("cache/a", "cache a, first\n")?;
    fixture.write_token("cache/deep/b", "cache b")?;
    fixture.write("build/out", &"0123456789abcde\n".repeat(20_000))?;
    fs::set_permissions(fixture.repo().join("build/out"), fs::Permissions::from_mode(0o755))?;
    fixture.write_token("shared.log", "linked")
}

/// Prepares a lane that was set up; the main checkout and a file of the lane have changed since.
fn prepare_outdated_set_up(fixture: &Fixture) -> Outcome<()> {
    prepare_set_up(fixture)?;
    prepare_lane(fixture, "one")?;
    fixture.write_token(fixture.lane("one").join("cache/a"), "own change of one")?;
    fixture.write_token(".env", "env, second")?;
    fixture.write_token("cache/a", "cache a, second")?;
    fixture.write_token("cache/new", "cache, new")
}

/// Prepares a landed lane in the trash, with a cache, ignored files, and a file written there later.
fn prepare_pooled(fixture: &Fixture) -> Outcome<()> {
    prepare_base(fixture)?;
    fixture.write(".gitignore", "*.log\nbuild/\n.env\ntarget/\n")?;
    fixture.sh("git commit -qam ignored")?;
    fixture.git(&["config", "proq.pool.keep", "target/"])?;
    prepare_lane(fixture, "one")?;
    let dir = fixture.lane("one");
    fixture.write(dir.join("target/debug/out"), "of the cache\n")?;
    fixture.write_token(dir.join(".env"), &format!("{OLD_LANE_TEXT}, ignored"))?;
    fixture.write_token(dir.join("build/deep/out"), &format!("{OLD_LANE_TEXT}, in an ignored folder"))?;
    fixture.proq_ok(&["merge", "one"])?;
    let note = fixture.new_token(&format!("{OLD_LANE_TEXT}, untracked"));
    fixture.sh(&format!("cd .git/proq/trash/one-2*/worktree; printf '%s' '{note}' > note.txt"))
}

/// Prepares the same; since then files were changed, added and removed on the base.
fn prepare_outdated_pool(fixture: &Fixture) -> Outcome<()> {
    prepare_pooled(fixture)?;
    fixture.write_token("a.txt", "a, committed later")?;
    fixture.write_token("dir/later/new.txt", "new, committed later")?;
    fixture.sh("git rm -q dir/c.txt deep/one.txt; chmod +x b.txt; git add -A; git commit -qm later")
}

/// Prepares another lane that reuses the folder and has work of its own.
fn prepare_reused_pool(fixture: &Fixture) -> Outcome<()> {
    prepare_pooled(fixture)?;
    fixture.proq_ok(&["spawn", "--empty", "-n", "new"])?;
    fixture.write_token(fixture.lane("new").join("mine.txt"), "untracked in the new lane")
}
