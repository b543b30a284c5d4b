//! Owns the scenarios of what new lanes are given: files of another checkout, copies and links, what commands make, and the folder
//! of a lane that has landed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Outcome;
use super::place::Place;
use super::scene::Scene;
use super::table::{PLAIN, base, lane};

/// What every content says that a landed lane had besides its commits.
const LEFT: &str = "left by one";

/// A new lane, however it is made. What was in a half-made one besides git's own files may be in the trash.
const NEW: Scene =
    Scene { command: &["spawn", "--empty", "-n", "new"], spare: &["trash new-"], holds: healthy, ..PLAIN };

/// An entry has its folder until that is given away; it goes with the lane that got it, and so does the cache in it.
const POOLED: &[&str] = &["trash one-", "trash new-", "lane new: file target"];

/// The scenarios.
pub(super) const FRESH: &[Scene] = &[
    Scene { name: "spawn-copied", prepare: many_kinds, holds: copied, ..NEW },
    Scene {
        name: "spawn-count",
        prepare: many_kinds,
        command: &["spawn", "--empty", "-n", "new", "--count", "2"],
        spare: &["trash new-"],
        holds: copied,
        ..NEW
    },
    Scene { name: "spawn-set-up", prepare: set_up, holds: copied, ..NEW },
    Scene {
        name: "sync",
        prepare: gone_on,
        command: &["sync", "one"],
        spare: &["trash one-"],
        holds: given,
        ..PLAIN
    },
    Scene {
        name: "sync-force",
        prepare: gone_on,
        command: &["sync", "--force", "one"],
        spare: &["trash one-"],
        holds: given,
        ..PLAIN
    },
    Scene { name: "spawn-pool", prepare: pooled, spare: POOLED, holds: apart, ..NEW },
    Scene { name: "spawn-pool-changed", prepare: pooled_long_ago, spare: POOLED, holds: apart, ..NEW },
];

/// The landing of a lane is taken back whose folder another one has got. That lane has what keeps it from going again.
pub(super) const BACK: &[Scene] = &[Scene {
    name: "undo-landing-pool",
    prepare: passed_on,
    command: &["op", "restore", "1", "--force"],
    spare: POOLED,
    holds: apart,
    ..PLAIN
}];

/// The doctor finds nothing, but that a disk made for the sweep is small.
fn healthy(place: &Place) -> Outcome<Vec<String>> {
    let mut faults = Vec::new();
    let answer = place.proq(&["doctor"])?;
    let said = String::from_utf8_lossy(&answer.stdout);
    let mut wrong = said.lines().filter(|line| line.starts_with("error: ")).peekable();
    let is_small = wrong.peek().is_some() && wrong.all(|line| line.contains(" MB are free on the disk of "));
    if answer.code != 0 && !is_small {
        let (code, said) = (answer.code, said.replace('\n', "; "));
        faults.push(format!("the doctor ends with {code}: {said} {}", answer.stderr.trim()));
    }
    Ok(faults)
}

/// Lanes have their own files: what is written to one is in no other, and not in the main checkout.
fn copied(place: &Place) -> Outcome<Vec<String>> {
    let mut faults = healthy(place)?;
    each_file(&place.repo(), &mut |path, _| {
        use std::os::unix::fs::MetadataExt;
        if path.symlink_metadata()?.nlink() > 1 {
            faults.push(format!("{} has two names", path.display()));
        }
        Ok(())
    })?;
    Ok(faults)
}

/// The lane's own version of a file that was copied is there, or in the trash.
fn given(place: &Place) -> Outcome<Vec<String>> {
    let mut faults = healthy(place)?;
    for own in ["own change of one", "env, first"] {
        let mut found = false;
        for dir in [place.lane("one"), place.repo().join(".git/proq/trash")] {
            each_file(&dir, &mut |_, content| {
                found |= holds(content, own);
                Ok(())
            })?;
        }
        if !found {
            faults.push(format!("'{own}' is neither in the lane nor in the trash"));
        }
    }
    Ok(faults)
}

/// A new lane has nothing of the lane that had its folder, but for its cache, and all that lane had is in its entry, or in
/// the lane itself where it has come back.
fn apart(place: &Place) -> Outcome<Vec<String>> {
    let mut faults = healthy(place)?;
    each_file(&place.lane("new"), &mut |path, content| {
        if holds(content, LEFT) {
            faults.push(format!("the new lane has {}", path.display()));
        }
        Ok(())
    })?;
    let mut missing = place.tokens();
    missing.retain(|token| token.contains(LEFT));
    let entries = fs::read_dir(place.repo().join(".git/proq/trash"))?.flatten();
    let of_one = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("one-"));
    for dir in of_one.map(|entry| entry.path()).chain([place.lane("one")]) {
        each_file(&dir, &mut |_, content| {
            missing.retain(|token| !holds(content, token));
            Ok(())
        })?;
    }
    faults.extend(missing.iter().map(|token| format!("not with its lane: {}", token.trim_end())));
    Ok(faults)
}

fn holds(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Looks at each file below a folder, git's own left out; none where there is no folder.
fn each_file(dir: &Path, see: &mut dyn FnMut(&Path, &[u8]) -> Outcome<()>) -> Outcome<()> {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry?.path();
        let meta = path.symlink_metadata()?;
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        if meta.is_dir() {
            each_file(&path, see)?;
        } else if meta.is_file() {
            see(&path, &fs::read(&path)?)?;
        }
    }
    Ok(())
}

/// A checkout with files of all lengths, one of them changed, so that it is made of git's objects.
fn many_kinds(place: &Place) -> Outcome<()> {
    base(place)?;
    place.write("big.bin", &"0123456789abcde\n".repeat(20_000))?;
    place.write("dir/deep/er/x.txt", "x\n")?;
    place.sh("chmod +x run.sh; git add -A; git commit -qm more")?;
    place.keep("b.txt", "b, changed")?;
    place.keep("notes.txt", "untracked")
}

/// What lanes are given besides: a copied file and folder, a link, and what a command makes.
fn set_up(place: &Place) -> Outcome<()> {
    base(place)?;
    place.write(".gitignore", "*.log\nbuild/\n.env\ncache/\nmade/\n")?;
    place.write(".worktreeinclude", ".env\ncache/\n")?;
    place.sh("git add -A; git commit -qm includes")?;
    place.git(&["config", "proq.lane.copy", "build/"])?;
    place.git(&["config", "proq.lane.link", "shared.log"])?;
    place.git(&["config", "proq.lane.setup", "mkdir made; echo made > made/out"])?;
    place.keep(".env", "env, first")?;
    place.write("cache/a", "cache a, first\n")?;
    place.keep("cache/deep/b", "cache b")?;
    place.write("build/out", &"0123456789abcde\n".repeat(20_000))?;
    fs::set_permissions(place.repo().join("build/out"), fs::Permissions::from_mode(0o755))?;
    place.keep("shared.log", "linked")
}

/// A lane that was set up; the main checkout has gone on since, and so has a file of the lane.
fn gone_on(place: &Place) -> Outcome<()> {
    set_up(place)?;
    lane(place, "one")?;
    place.keep(place.lane("one").join("cache/a"), "own change of one")?;
    place.keep(".env", "env, second")?;
    place.keep("cache/a", "cache a, second")?;
    place.keep("cache/new", "cache, new")
}

/// A lane that has landed and lies in the trash, with a cache, ignored files, and one that was written there since.
fn pooled(place: &Place) -> Outcome<()> {
    base(place)?;
    place.write(".gitignore", "*.log\nbuild/\n.env\ntarget/\n")?;
    place.sh("git commit -qam ignored")?;
    place.git(&["config", "proq.pool.keep", "target/"])?;
    lane(place, "one")?;
    let dir = place.lane("one");
    place.write(dir.join("target/debug/out"), "of the cache\n")?;
    place.keep(dir.join(".env"), &format!("{LEFT}, ignored"))?;
    place.keep(dir.join("build/deep/out"), &format!("{LEFT}, in an ignored folder"))?;
    place.proq_ok(&["merge", "one"])?;
    let note = place.precious(&format!("{LEFT}, untracked"));
    place.sh(&format!("cd .git/proq/trash/one-2*/worktree; printf '%s' '{note}' > note.txt"))
}

/// The same; since it landed files were changed, added and removed on the base.
fn pooled_long_ago(place: &Place) -> Outcome<()> {
    pooled(place)?;
    place.keep("a.txt", "a, committed later")?;
    place.keep("dir/later/new.txt", "new, committed later")?;
    place.sh("git rm -q dir/c.txt deep/one.txt; chmod +x b.txt; git add -A; git commit -qm later")
}

/// Another lane has got the folder, and has work of its own.
fn passed_on(place: &Place) -> Outcome<()> {
    pooled(place)?;
    place.proq_ok(&["spawn", "--empty", "-n", "new"])?;
    place.keep(place.lane("new").join("mine.txt"), "untracked in the new lane")
}
