//! Runner of one history: runs step after step and compares each result with the model.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::Outcome;
use super::model::{Model, collect_tokens, difference};
use super::observe::{Observed, dir_entries, observe};
use super::oracle::{Expectation, ExpectedExit, Oracle};
use super::step::{Change, Edit, MAIN, Step, WorktreeName, path_state_script, token};
use super::test_bench::{CommandOutput, TestBench};
use super::undo::Log;
use super::worktree::{Files, Snapshot};

/// Texts that no output may contain: git's own messages, and messages about incomplete work.
pub(crate) const FORBIDDEN_OUTPUT: &[&str] = &[
    "fatal:",
    "` failed:",
    "error: git ",
    "already exists, no checkout",
    "cannot recover the interrupted command",
    "could not be undone",
    "cannot undo everything",
    "cannot record everything",
    "(os error ",
    "panicked",
    "a mistake in git-proq",
];

/// Step at which the repository differs from the model.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// Index of the step from zero; the number of steps for a fault found at the end.
    pub(crate) step: usize,
    /// Description of the fault.
    pub(crate) text: String,
}

/// Runs a history from the start. Returns none if nothing differs.
pub(crate) fn run_history(bench: &mut TestBench, steps: &[Step]) -> Outcome<Option<Fault>> {
    bench.reset()?;
    let observed = observe(bench)?;
    let model = Model { ..observed.model.clone() };
    let mut run = HistoryRun {
        bench,
        observed,
        model,
        log: Log::default(),
        required_tokens: BTreeSet::new(),
        amended_tokens: BTreeSet::new(),
    };
    for (n, step) in steps.iter().enumerate() {
        let wrong = match step {
            Step::Proq(args) => run.command(args)?,
            other => run.user_step(other)?,
        };
        if let Some(text) = wrong {
            return Ok(Some(Fault { step: n, text }));
        }
    }
    Ok(run.check_end()?.map(|text| Fault { step: steps.len(), text }))
}

struct HistoryRun<'b> {
    bench: &'b TestBench,
    observed: Observed,
    model: Model,
    log: Log,
    required_tokens: BTreeSet<String>,
    /// Tokens that an amend removed. A preview may show them for some time.
    amended_tokens: BTreeSet<String>,
}

impl HistoryRun<'_> {
    /// Runs a step of the user, without git-proq.
    fn user_step(&mut self, step: &Step) -> Outcome<Option<String>> {
        let before = self.tokens()?;
        let before_commit = match step {
            Step::Commit { at, amend: true, .. } => self.committed_tokens(at)?,
            _ => BTreeSet::new(),
        };
        match step {
            Step::Edit { at, edits } => self.edit(at, edits)?,
            Step::SetPathState { at, path, combo } => {
                if self.bench.worktree_path(at).is_dir() {
                    // The state that it starts from may not exist; that is part of the randomness.
                    self.bench.sh(at, &path_state_script(path, *combo))?;
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
            Step::UserGit(args) => self.git(MAIN, args)?,
            Step::Proq(_) => {}
        }
        let observed = observe(self.bench)?;
        self.model.trees.clone_from(&observed.model.trees);
        self.model.refs.clone_from(&observed.model.refs);
        if let Step::Commit { at, amend: true, .. } = step {
            self.amended_tokens.extend(before_commit.difference(&self.committed_tokens(at)?).cloned());
        }
        self.observed = observed;
        let none = BTreeSet::new();
        let wrong = difference(&self.observed.model.image(&none), &self.model.image(&none));
        let after = self.tokens()?;
        // Content that its owner overwrote need not be found.
        self.required_tokens.retain(|token| after.contains(token) || !before.contains(token));
        Ok(wrong)
    }

    fn git(&self, at: WorktreeName, args: &[&str]) -> Outcome<()> {
        // The lane or the path may not exist, or nothing may be staged; that is part of the randomness.
        if self.bench.worktree_path(at).is_dir() {
            self.bench.git(at, args)?;
        }
        Ok(())
    }

    fn edit(&self, at: WorktreeName, edits: &[Edit]) -> Outcome<()> {
        let dir = self.bench.worktree_path(at);
        if dir.is_dir() {
            for edit in edits {
                apply_edit(&dir, edit)?;
            }
        }
        Ok(())
    }

    /// Returns the tokens of the commit that a worktree is at.
    fn committed_tokens(&self, at: WorktreeName) -> Outcome<BTreeSet<String>> {
        let mut out = BTreeSet::new();
        if let Some(id) = self.model.head_commit(at) {
            for file in self.bench.objects()?.files(&id)?.values() {
                collect_tokens(&file.text, &mut out);
            }
        }
        Ok(out)
    }

    /// Returns every token in files, indexes, snapshots and branch tips.
    fn tokens(&self) -> Outcome<BTreeSet<String>> {
        let mut commits = Vec::new();
        for id in self.model.refs.values() {
            commits.push(Files::clone(&*self.bench.objects()?.files(id)?));
        }
        Ok(self.model.tokens(commits.into_iter()))
    }

    /// Runs a command of git-proq.
    fn command(&mut self, args: &[&'static str]) -> Outcome<Option<String>> {
        self.required_tokens.extend(self.tokens()?);
        let oracle = Oracle { objects: self.bench.objects()? };
        let forecast = oracle.predict(&self.model, &self.log, args)?;
        let answer = self.bench.proq(args)?;
        let observed = observe(self.bench)?;
        let before = self.model.clone();
        if let Some(text) = self.check_outcome(forecast, &answer, &observed)? {
            return Ok(Some(format!(
                "{text}\n    ended with {:?}: {}{}",
                answer.code, answer.stdout, answer.stderr
            )));
        }
        let command_name = if args.contains(&"--back") { "preview --back" } else { args[0] };
        self.bench.count_command(command_name, answer.succeeded || self.model != before);
        if observed.operations > self.observed.operations {
            self.log.record(args, before, self.model.clone());
        } else if self.model != before {
            return Ok(Some("something changed, and no operation was logged".to_owned()));
        }
        self.observed = observed;
        Ok(None)
    }

    /// Compares the observed state with the expected one, and continues from it.
    fn check_outcome(
        &mut self,
        forecast: Expectation,
        answer: &CommandOutput,
        observed: &Observed,
    ) -> Outcome<Option<String>> {
        if let Some(left) = observed.leftovers.first() {
            return Ok(Some(format!("left behind: {left}")));
        }
        if !matches!(answer.code, Some(0..=5))
            || FORBIDDEN_OUTPUT.iter().any(|words| answer.stderr.contains(words))
        {
            return Ok(Some("it broke".to_owned()));
        }
        let none = BTreeSet::new();
        let moved = difference(&observed.model.image(&none), &self.observed.model.image(&none));
        let refused = !answer.succeeded && moved.is_none() && observed.records == self.observed.records;
        if forecast.allows_refusal && refused {
            return Ok(None);
        }
        let mut wrong = None;
        let mut found = None;
        for mut then in forecast.states {
            self.align_commit_ids(&mut then.model, &observed.model)?;
            match difference(
                &observed.model.image(&then.unchecked_worktrees),
                &then.model.image(&then.unchecked_worktrees),
            ) {
                None => {
                    found = Some(then);
                    break;
                }
                Some(text) => drop(wrong.get_or_insert(text)),
            }
        }
        let Some(mut then) = found else {
            let message = match wrong {
                Some(text) if refused => format!("should not have been refused:\n    {text}"),
                Some(text) => format!("is not as it should be:\n    {text}"),
                None => {
                    let moved = moved.unwrap_or_else(|| "nothing, or only what is written down".to_owned());
                    format!("should have been refused; changed:\n    {moved}")
                }
            };
            return Ok(Some(message));
        };
        match (forecast.exit, answer.succeeded) {
            (ExpectedExit::Success, false) => {
                return Ok(Some("done, and ended with an error code".to_owned()));
            }
            (ExpectedExit::Failure, true) => {
                return Ok(Some("should have ended with an error code".to_owned()));
            }
            _ => {}
        }
        for name in &then.unchecked_worktrees {
            if let Some(tree) = observed.model.trees.get(name) {
                then.model.trees.insert(name.clone(), tree.clone());
            }
        }
        if then.unchecked_worktrees.contains(MAIN) {
            for (name, lane) in &mut then.model.lanes {
                let count = observed.model.lanes.get(name).map_or(0, |l| l.preview_edits.len());
                lane.preview_edits.resize(count, Snapshot { is_uncertain: true, ..Snapshot::default() });
            }
            if let (Some(open), Some(real)) = (&mut then.model.preview, &observed.model.preview)
                && open.parked.is_some() != real.parked.is_some()
            {
                open.parked =
                    real.parked.as_ref().map(|_| Snapshot { is_uncertain: true, ..Snapshot::default() });
            }
        }
        self.model = then.model;
        Ok(None)
    }

    /// Replaces the ids of commits that the model created with the ids of the real ones.
    fn align_commit_ids(&self, model: &mut Model, observed: &Model) -> Outcome<()> {
        let objects = self.bench.objects()?;
        for (name, id) in model.refs.clone() {
            if let Some(real) = observed.refs.get(&name).filter(|real| **real != id)
                && objects.is_equivalent(&id, real)?
            {
                model.replace_id(&id, real);
            }
        }
        Ok(())
    }

    /// Checks what must hold after the last step.
    fn check_end(&mut self) -> Outcome<Option<String>> {
        self.required_tokens.extend(self.tokens()?);
        let list = self.bench.proq(&["list", "--json"])?;
        if !list.succeeded {
            return Ok(Some(format!("git proq list: {}", list.stderr)));
        }
        let fsck = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
        let fsck = self.bench.git(MAIN, &fsck)?;
        if !fsck.succeeded || !fsck.stderr.is_empty() {
            return Ok(Some(format!("git fsck: {}{}", fsck.stdout, fsck.stderr)));
        }
        let mut found = BTreeSet::new();
        collect_tokens_below(&self.bench.repo(), &mut found);
        collect_tokens_below(&self.bench.repo().join(".git/proq"), &mut found);
        if !self.required_tokens.is_subset(&found) {
            let args = ["rev-list", "--objects", "--no-object-names", "--all", "--indexed-objects"];
            for id in self.bench.git_ok(MAIN, &args)?.lines() {
                collect_tokens(&String::from_utf8_lossy(&self.bench.objects()?.read(id)?), &mut found);
            }
        }
        found.append(&mut self.amended_tokens);
        let lost: Vec<&str> = self.required_tokens.difference(&found).map(String::as_str).collect();
        Ok((!lost.is_empty()).then(|| format!("LOST: {}", lost.join(", "))))
    }
}

/// Collects tokens in all files below a folder, except git's own.
fn collect_tokens_below(dir: &Path, out: &mut BTreeSet<String>) {
    for name in dir_entries(dir) {
        let path = dir.join(&name);
        if name == ".git" {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            collect_tokens_below(&path, out);
        } else if let Ok(bytes) = fs::read(&path) {
            collect_tokens(&String::from_utf8_lossy(&bytes), out);
        }
    }
}

/// Number of lines in a file that an edit creates.
const NEW_FILE_LINES: usize = 8;

fn apply_edit(dir: &Path, edit: &Edit) -> Outcome<()> {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join(edit.path);
    if is_below_link(dir, &path) && matches!(edit.change, Change::Delete | Change::Chmod) {
        return Ok(());
    }
    let old = if is_below_link(dir, &path) { None } else { fs::read_to_string(&path).ok() };
    let text = match edit.change {
        Change::Delete => {
            // The file may not exist.
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
        Change::Overwrite(n) => format!("{}\n", token(n)),
        Change::Line(line, n) => {
            let fresh =
                || (1..=NEW_FILE_LINES).fold(String::new(), |text, n| format!("{text}{} {n}\n", edit.path));
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
    clear_path(dir, &path)?;
    Ok(fs::write(&path, text)?)
}

/// Returns whether a path is a link, or below one.
fn is_below_link(dir: &Path, path: &Path) -> bool {
    path.ancestors().take_while(|up| *up != dir).any(Path::is_symlink)
}

/// Removes what blocks a file or the folders above it.
fn clear_path(dir: &Path, path: &Path) -> Outcome<()> {
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
