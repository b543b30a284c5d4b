//! Owns playing one history: step after step, each one held against the model.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Outcome;
use super::bench::{Answer, Bench};
use super::expect::{Ending, Forecast, Oracle};
use super::look::{Seen, look, names};
use super::model::{Model, difference, tokens_in};
use super::parts::{Files, Snap};
use super::step::{At, Change, Edit, MAIN, Step, odd_script, token};
use super::undo::Log;

/// What no output may contain: words of git's own, and of work that was left half-done.
pub(crate) const RAW: &[&str] = &[
    "fatal:",
    "` failed:",
    "error: git ",
    "already exists, no checkout",
    "could not be put right",
    "could not all be taken back",
    "not everything could be",
    "(os error ",
    "panicked",
    "a mistake in git-proq",
];

/// Where a history went another way than the model.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The step, counted from zero; as many as there are for what was found at the end.
    pub(crate) step: usize,
    /// What was wrong.
    pub(crate) text: String,
}

/// Plays a history from the start. None when nothing differed.
pub(crate) fn play(bench: &mut Bench, steps: &[Step]) -> Outcome<Option<Fault>> {
    bench.reset()?;
    let seen = look(bench)?;
    let model = Model { ..seen.model.clone() };
    let mut stage = Stage {
        bench,
        seen,
        model,
        log: Log::default(),
        precious: BTreeSet::new(),
        amended: BTreeSet::new(),
    };
    for (n, step) in steps.iter().enumerate() {
        let wrong = match step {
            Step::Proq(args) => stage.command(args)?,
            other => stage.user(other)?,
        };
        if let Some(text) = wrong {
            return Ok(Some(Fault { step: n, text }));
        }
    }
    Ok(stage.end()?.map(|text| Fault { step: steps.len(), text }))
}

struct Stage<'b> {
    bench: &'b Bench,
    seen: Seen,
    model: Model,
    log: Log,
    precious: BTreeSet<String>,
    /// What was amended away. A preview may show it for a while.
    amended: BTreeSet<String>,
}

impl Stage<'_> {
    /// Somebody does something without git-proq.
    fn user(&mut self, step: &Step) -> Outcome<Option<String>> {
        let before = self.tokens()?;
        let before_commit = match step {
            Step::Commit { at, amend: true, .. } => self.committed(at)?,
            _ => BTreeSet::new(),
        };
        match step {
            Step::Edit { at, edits } => self.edit(at, edits)?,
            Step::Odd { at, path, combo } => {
                if self.bench.dir(at).is_dir() {
                    // What it starts from may not be there; that is as random as the rest.
                    self.bench.sh(at, &odd_script(path, *combo))?;
                }
            }
            Step::Stage { at, path } => self.git(at, &["add", "-A", "--", path])?,
            Step::Commit { at, edits, amend } => {
                self.edit(at, edits)?;
                self.git(at, &["add", "-A"])?;
                let amend: &[&str] = if *amend { &["--amend"] } else { &[] };
                self.git(at, &[&["commit", "-q", "-m", "work"], amend].concat())?;
            }
            Step::CommitStaged { at } => self.git(at, &["commit", "-q", "-m", "staged"])?,
            Step::Hand(args) => self.git(MAIN, args)?,
            Step::Proq(_) => {}
        }
        let seen = look(self.bench)?;
        self.model.trees.clone_from(&seen.model.trees);
        self.model.refs.clone_from(&seen.model.refs);
        if let Step::Commit { at, amend: true, .. } = step {
            self.amended.extend(before_commit.difference(&self.committed(at)?).cloned());
        }
        self.seen = seen;
        let none = BTreeSet::new();
        let wrong = difference(&self.seen.model.image(&none), &self.model.image(&none));
        let after = self.tokens()?;
        // What its owner wrote over is his own affair.
        self.precious.retain(|token| after.contains(token) || !before.contains(token));
        Ok(wrong)
    }

    fn git(&self, at: At, args: &[&str]) -> Outcome<()> {
        // A lane may be gone, a path may not be there, nothing may be staged: that is as random as the rest.
        if self.bench.dir(at).is_dir() {
            self.bench.git(at, args)?;
        }
        Ok(())
    }

    fn edit(&self, at: At, edits: &[Edit]) -> Outcome<()> {
        let dir = self.bench.dir(at);
        if dir.is_dir() {
            for edit in edits {
                change(&dir, edit)?;
            }
        }
        Ok(())
    }

    /// The tokens of the commit that a worktree is at.
    fn committed(&self, at: At) -> Outcome<BTreeSet<String>> {
        let mut out = BTreeSet::new();
        if let Some(id) = self.model.commit_of(at) {
            for file in self.bench.objects()?.files(&id)?.values() {
                tokens_in(&file.text, &mut out);
            }
        }
        Ok(out)
    }

    /// Every token there is now, in files, indexes, snapshots and at the tips of branches.
    fn tokens(&self) -> Outcome<BTreeSet<String>> {
        let mut commits = Vec::new();
        for id in self.model.refs.values() {
            commits.push(Files::clone(&*self.bench.objects()?.files(id)?));
        }
        Ok(self.model.tokens(commits.into_iter()))
    }

    /// The program under test does something.
    fn command(&mut self, args: &[&'static str]) -> Outcome<Option<String>> {
        self.precious.extend(self.tokens()?);
        let oracle = Oracle { objects: self.bench.objects()? };
        let forecast = oracle.foresee(&self.model, &self.log, args)?;
        let answer = self.bench.proq(args)?;
        let seen = look(self.bench)?;
        let before = self.model.clone();
        if let Some(text) = self.judge(forecast, &answer, &seen)? {
            return Ok(Some(format!(
                "{text}\n    ended with {:?}: {}{}",
                answer.code, answer.stdout, answer.stderr
            )));
        }
        let word = if args.contains(&"--back") { "preview --back" } else { args[0] };
        self.bench.count(word, answer.good || self.model != before);
        if seen.operations > self.seen.operations {
            self.log.add(args, before, self.model.clone());
        } else if self.model != before {
            return Ok(Some("something changed, and no operation was logged".to_owned()));
        }
        self.seen = seen;
        Ok(None)
    }

    /// Holds what has come against what was expected, and goes on from there.
    fn judge(&mut self, forecast: Forecast, answer: &Answer, seen: &Seen) -> Outcome<Option<String>> {
        if let Some(left) = seen.leftovers.first() {
            return Ok(Some(format!("left behind: {left}")));
        }
        if !matches!(answer.code, Some(0..=5)) || RAW.iter().any(|words| answer.stderr.contains(words)) {
            return Ok(Some("it broke".to_owned()));
        }
        let none = BTreeSet::new();
        let moved = difference(&seen.model.image(&none), &self.seen.model.image(&none));
        let refused = !answer.good && moved.is_none() && seen.records == self.seen.records;
        if forecast.refusal && refused {
            return Ok(None);
        }
        let mut wrong = None;
        let mut found = None;
        for mut then in forecast.then {
            self.align(&mut then.model, &seen.model)?;
            match difference(&seen.model.image(&then.blind), &then.model.image(&then.blind)) {
                None => {
                    found = Some(then);
                    break;
                }
                Some(text) => drop(wrong.get_or_insert(text)),
            }
        }
        let Some(mut then) = found else {
            let what = match wrong {
                Some(text) if refused => format!("should not have been refused:\n    {text}"),
                Some(text) => format!("is not as it should be:\n    {text}"),
                None => {
                    let moved = moved.unwrap_or_else(|| "nothing, or only what is written down".to_owned());
                    format!("should have been refused; changed:\n    {moved}")
                }
            };
            return Ok(Some(what));
        };
        match (forecast.ending, answer.good) {
            (Ending::Good, false) => return Ok(Some("done, and ended with an error code".to_owned())),
            (Ending::Complaint, true) => return Ok(Some("should have ended with an error code".to_owned())),
            _ => {}
        }
        for name in &then.blind {
            if let Some(tree) = seen.model.trees.get(name) {
                then.model.trees.insert(name.clone(), tree.clone());
            }
        }
        if then.blind.contains(MAIN) {
            for (name, lane) in &mut then.model.lanes {
                let count = seen.model.lanes.get(name).map_or(0, |l| l.edits.len());
                lane.edits.resize(count, Snap { unsure: true, ..Snap::default() });
            }
            if let (Some(open), Some(real)) = (&mut then.model.open, &seen.model.open)
                && open.waiting.is_some() != real.waiting.is_some()
            {
                open.waiting = real.waiting.as_ref().map(|_| Snap { unsure: true, ..Snap::default() });
            }
        }
        self.model = then.model;
        Ok(None)
    }

    /// Commits that the model made are called by the names that they really have.
    fn align(&self, model: &mut Model, seen: &Model) -> Outcome<()> {
        let objects = self.bench.objects()?;
        for (name, id) in model.refs.clone() {
            if let Some(real) = seen.refs.get(&name).filter(|real| **real != id)
                && objects.same(&id, real)?
            {
                model.rename(&id, real);
            }
        }
        Ok(())
    }

    /// What must hold when everything is over.
    fn end(&mut self) -> Outcome<Option<String>> {
        self.precious.extend(self.tokens()?);
        let list = self.bench.proq(&["list", "--json"])?;
        if !list.good {
            return Ok(Some(format!("git proq list: {}", list.stderr)));
        }
        let fsck = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
        let fsck = self.bench.git(MAIN, &fsck)?;
        if !fsck.good || !fsck.stderr.is_empty() {
            return Ok(Some(format!("git fsck: {}{}", fsck.stdout, fsck.stderr)));
        }
        let mut found = BTreeSet::new();
        read_below(&self.bench.repo(), &mut found);
        read_below(&self.bench.repo().join(".git/proq"), &mut found);
        if !self.precious.is_subset(&found) {
            let args = ["rev-list", "--objects", "--no-object-names", "--all", "--indexed-objects"];
            for id in self.bench.git_ok(MAIN, &args)?.lines() {
                tokens_in(&String::from_utf8_lossy(&self.bench.objects()?.read(id)?), &mut found);
            }
        }
        found.append(&mut self.amended);
        let lost: Vec<&str> = self.precious.difference(&found).map(String::as_str).collect();
        Ok((!lost.is_empty()).then(|| format!("LOST: {}", lost.join(", "))))
    }
}

/// Finds tokens in all files below a folder, git's own left out.
fn read_below(dir: &Path, out: &mut BTreeSet<String>) {
    for name in names(dir) {
        let path = dir.join(&name);
        if name == ".git" {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            read_below(&path, out);
        } else if let Ok(bytes) = fs::read(&path) {
            tokens_in(&String::from_utf8_lossy(&bytes), out);
        }
    }
}

/// How many lines a file has that somebody begins.
const LINES: usize = 8;

fn change(dir: &Path, edit: &Edit) -> Outcome<()> {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(edit.path);
    if links(dir, &path) && matches!(edit.change, Change::Delete | Change::Chmod) {
        return Ok(());
    }
    let old = if links(dir, &path) { None } else { fs::read_to_string(&path).ok() };
    let text = match edit.change {
        Change::Delete => {
            // It may not be there.
            drop(fs::remove_file(&path));
            return Ok(());
        }
        Change::Chmod => {
            if let Ok(meta) = fs::metadata(&path).map(|m| m.permissions())
                && old.is_some()
            {
                fs::set_permissions(&path, fs::Permissions::from_mode(meta.mode() ^ 0o111))?;
            }
            return Ok(());
        }
        Change::Whole(n) => format!("{}\n", token(n)),
        Change::Line(line, n) => {
            let fresh = || (1..=LINES).fold(String::new(), |text, n| format!("{text}{} {n}\n", edit.path));
            let text = old.unwrap_or_else(fresh);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let at = line.min(lines.len().saturating_sub(1));
            match lines.get_mut(at) {
                Some(line) => *line = token(n),
                None => lines.push(token(n)),
            }
            lines.join("\n") + "\n"
        }
    };
    make_room(dir, &path)?;
    Ok(fs::write(&path, text)?)
}

/// Whether a path is a link, or below one.
fn links(dir: &Path, path: &Path) -> bool {
    path.ancestors().take_while(|up| *up != dir).any(Path::is_symlink)
}

/// Takes away what stands where a file or the folders above it should be.
fn make_room(dir: &Path, path: &Path) -> Outcome<()> {
    let above = path.ancestors().skip(1).take_while(|up| *up != dir);
    for up in above.filter(|up| up.is_file() || up.is_symlink()) {
        fs::remove_file(up)?;
    }
    if path.is_symlink() {
        fs::remove_file(path)?;
    } else if path.is_dir() {
        fs::remove_dir_all(path)?;
    }
    Ok(fs::create_dir_all(path.parent().unwrap_or(dir))?)
}
