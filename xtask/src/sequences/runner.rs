//! Runner of one case: creates the state, runs the steps and checks after each what must hold.

use super::normalize::{LostByReset, as_checked_out, untouched_entry};
use super::oracle::{self, CaseFault, refusal_fault};
use super::steps::{CLEAN, Case, Disturbance, HOME, START, Step, edit_script};
use crate::checkout::{self, Image, difference};
use crate::states::Attr;
use crate::sweep::fixture::{CommandOutput, Fixture};
use crate::sweep::start_state::{create_state, record_tokens};
use crate::sweep::{Outcome, fail, lost_contents};

/// Result of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct CaseResult {
    /// Message of a command that was refused and changed nothing.
    pub(super) refused: Option<String>,
    /// Fault, if any.
    pub(super) fault: Option<CaseFault>,
    /// Whether a command was killed before its end.
    pub(super) was_killed: bool,
}

/// Runs a case from the start.
pub(super) fn run_case(fixture: &Fixture, case: &Case) -> Outcome<CaseResult> {
    fixture.init()?;
    create_state(fixture, &case.state)?;
    let mut run = CaseRun {
        fixture,
        case,
        remembered: Vec::new(),
        refused: None,
        commands: 0,
        lost_by_reset: None,
        was_killed: false,
        has_saved_conflict: false,
        last_output: String::new(),
    };
    run.remembered.push((START, run.read_checkout()?));
    for (n, step) in case.steps.iter().enumerate() {
        let problem = run.run_step(step)?;
        if let Some(text) = problem {
            let message = format!("step {} ({}): {text}", n + 1, step_text(step));
            let fault = Some(CaseFault::new(&text, message));
            return Ok(CaseResult { refused: run.refused, fault, was_killed: run.was_killed });
        }
        if run.refused.is_some() {
            break;
        }
    }
    let fault = run.check_end()?.map(|text| CaseFault::new(&text, format!("at the end: {text}")));
    Ok(CaseResult { refused: run.refused, fault, was_killed: run.was_killed })
}

/// Returns a shell script that repeats the case by hand.
pub(super) fn shell_script(case: &Case) -> String {
    let mut out = "git init -q -b main r; cd r\n".to_owned();
    let mut add = |script: &str| {
        for line in script.lines().filter(|line| !line.is_empty()) {
            out.push_str(line);
            out.push('\n');
        }
    };
    add(&case.state.base());
    add("git proq spawn --empty -n one; git proq spawn --empty -n two\n(cd .proq-worktrees/one");
    add(&case.state.lane());
    add(
        ")\n(cd .proq-worktrees/two; echo two > two.txt; echo two > shared; git add -A; git commit -q -m two)",
    );
    add(&case.state.dirty());
    let mut commands = 0;
    for step in &case.steps {
        let is_command = matches!(step, Step::Proq(_));
        let disturbed = case.disturbance.filter(|(at, _)| is_command && *at == commands);
        commands += usize::from(is_command);
        match disturbed {
            Some((_, Disturbance::Locked)) => {
                add(&format!("touch .git/index.lock; {}; rm .git/index.lock", step_text(step)));
            }
            Some((_, Disturbance::Killed(call))) => {
                add(&format!(
                    "# killed before its call {call} that changes a file: {}; git proq list",
                    step_text(step)
                ));
            }
            None => {}
        }
        add(&step_text(step));
    }
    out
}

/// Returns one step as a shell command or a comment.
fn step_text(step: &Step) -> String {
    match step {
        Step::Proq(args) => format!("git proq {}", args.join(" ")),
        Step::UserScript(script) => script.trim_end().to_owned(),
        Step::Edit(spots, removed) => edit_script(spots, *removed).trim_end().to_owned(),
        Step::Commit(script) => {
            format!("(cd .proq-worktrees/one; {script}; git add -A; git commit -q -m later)")
        }
        Step::Remember(name) => format!("# remember: {name}"),
        Step::Matches(name) => format!("# must be as at: {name}"),
        Step::FilesMatch(name) => format!("# files, index and HEAD must be as at: {name}"),
        Step::UntouchedByLanding(name) => format!("# but for what landed, must be as at: {name}"),
        Step::EditsRestored(name) => {
            format!("# but for what landed, must be as at, with all own edits: {name}")
        }
    }
}

struct CaseRun<'a> {
    fixture: &'a Fixture,
    case: &'a Case,
    remembered: Vec<(&'static str, Image)>,
    refused: Option<String>,
    commands: usize,
    /// Set after the user's own git overwrote files that a snapshot had restored.
    lost_by_reset: Option<LostByReset>,
    was_killed: bool,
    /// Whether the last return from a preview left the user's changes in their snapshot, since they conflict
    /// with what has landed.
    has_saved_conflict: bool,
    /// Output and error output of the last git-proq command.
    last_output: String,
}

impl CaseRun<'_> {
    fn read_checkout(&self) -> Outcome<Image> {
        oracle::read_checkout(self.fixture)
    }

    fn recall(&self, name: &str) -> Outcome<Image> {
        match self.remembered.iter().rev().find(|(kept, _)| *kept == name) {
            Some((_, image)) => Ok(image.clone()),
            None => fail(format!("nothing is remembered as {name}")),
        }
    }

    /// Runs a step and describes what is wrong after it.
    fn run_step(&mut self, step: &Step) -> Outcome<Option<String>> {
        Ok(match step {
            Step::Proq(args) => self.run_command(args)?,
            Step::UserScript(script) => self.run_by_hand(script)?,
            Step::Edit(spots, removed) => self.run_by_hand(&edit_script(spots, *removed))?,
            Step::Commit(script) => {
                let dir = self.fixture.lane("one");
                self.fixture.sh_in(&dir, &format!("{script}; git add -A; git commit -q -m later"))?;
                None
            }
            Step::Remember(name) => {
                self.remembered.push((name, self.read_checkout()?));
                None
            }
            Step::Matches(name) => self
                .difference_from(&self.read_checkout()?, &self.recall(name)?)
                .map(|what| not_as_before(&what)),
            Step::FilesMatch(name) => {
                let without_refs = |image: Image| -> Image {
                    let entries = image.into_iter().filter(|(key, _)| !key.starts_with("ref "));
                    entries
                        .map(
                            |(key, value)| {
                                if *name == HOME { as_checked_out(key, value) } else { (key, value) }
                            },
                        )
                        .collect()
                };
                let (mut found, wanted) =
                    (without_refs(self.read_checkout()?), without_refs(self.recall(name)?));
                self.drop_kept_ignored(&mut found, &wanted)?;
                difference(&found, &wanted).map(|what| not_as_before(&what))
            }
            Step::UntouchedByLanding(name) => self.landing_fault(&self.recall(name)?)?,
            Step::EditsRestored(_) if self.has_saved_conflict => self.dirty_fault()?,
            Step::EditsRestored(name) => match self.landing_fault(&self.recall(name)?)? {
                None => self.missing_edits(&self.recall(name)?)?,
                fault => fault,
            },
        })
    }

    /// Describes how the checkout differs from a remembered one, except for what no snapshot can restore.
    fn difference_from(&self, found: &Image, wanted: &Image) -> Option<String> {
        match &self.lost_by_reset {
            None => difference(found, wanted),
            Some(gone) => difference(&gone.without(found), &gone.without(wanted)),
        }
    }

    /// Removes from `found` the ignored files that existed before a preview and exist again in it. If the
    /// commit has nothing in their place, an undone return leaves them where they are.
    fn drop_kept_ignored(&self, found: &mut Image, wanted: &Image) -> Outcome<()> {
        if !self.case.steps.iter().any(|step| matches!(step, Step::EditsRestored(_))) {
            return Ok(());
        }
        let start = self.recall(START)?;
        let is_own = |key: &str, value: &String| {
            key.starts_with("file ") && key.contains("-sparse-ignored") && start.get(key) == Some(value)
        };
        found.retain(|key, value| wanted.contains_key(key) || !is_own(key, value) && key != "file out");
        Ok(())
    }

    /// Runs a script of the user, without git-proq.
    fn run_by_hand(&mut self, script: &str) -> Outcome<Option<String>> {
        let before = self.read_checkout()?;
        // Edits may apply to paths that do not exist; that is part of the randomness.
        let _ = self.fixture.output(self.fixture.command("sh", &self.fixture.repo()).args(["-c", script]))?;
        // Content that its owner overwrote need not be found.
        let overwritten = lost_contents::find_lost(self.fixture, &self.fixture.tokens())?;
        self.fixture.forget_tokens(&overwritten);
        record_tokens(self.fixture, script)?;
        if script.contains("git reset -q --hard") {
            self.lost_by_reset = Some(LostByReset::between(&before, &self.read_checkout()?));
        }
        Ok(None)
    }

    /// Runs git-proq, with the case's disturbance first.
    fn run_command(&mut self, args: &[&str]) -> Outcome<Option<String>> {
        let before = self.read_checkout()?;
        let disturbed = self.case.disturbance.filter(|(at, _)| *at == self.commands);
        self.commands += 1;
        let end = match disturbed {
            Some((_, Disturbance::Locked)) => self.run_locked(args, &before)?,
            Some((_, Disturbance::Killed(call))) => self.run_killed(args, &before, call)?,
            None => DisturbedEnd::NoEffect,
        };
        match end {
            DisturbedEnd::NoEffect => {}
            DisturbedEnd::Done => return Ok(None),
            DisturbedEnd::Fault(what) => return Ok(Some(what)),
        }
        let answer = self.fixture.proq(args)?;
        self.last_output = answer.all_output();
        if let Some(what) = oracle::forbidden_output(&answer) {
            return Ok(Some(what));
        }
        if self.is_done(args, answer.code) {
            return Ok(None);
        }
        self.check_refusal(args, &answer, &before)
    }

    /// Returns whether a command with this exit code has done its work. So has a return from a preview that
    /// leaves conflicting changes in their snapshot.
    fn is_done(&mut self, args: &[&str], code: i32) -> bool {
        self.has_saved_conflict = code == CONFLICT_EXIT_CODE && args == PREVIEW_BACK;
        code == 0 || self.has_saved_conflict
    }

    /// Runs git-proq while another process holds the index lock.
    fn run_locked(&mut self, args: &[&str], before: &Image) -> Outcome<DisturbedEnd> {
        let lock = self.fixture.repo().join(".git/index.lock");
        std::fs::write(&lock, "")?;
        let answer = self.fixture.proq(args)?;
        std::fs::remove_file(&lock)?;
        self.last_output = answer.all_output();
        if let Some(what) = oracle::forbidden_output(&answer) {
            return Ok(DisturbedEnd::Fault(format!("under a lock: {what}")));
        }
        if self.is_done(args, answer.code) {
            return Ok(DisturbedEnd::Done);
        }
        Ok(match difference(&self.read_checkout()?, before) {
            None => DisturbedEnd::NoEffect,
            Some(what) => {
                let stderr = answer.stderr.trim();
                DisturbedEnd::Fault(format!(
                    "refused under a lock, and something changed: {what}; it said: {stderr}"
                ))
            }
        })
    }

    /// Kills git-proq before one of its calls, and runs a command that recovers.
    fn run_killed(&mut self, args: &[&str], before: &Image, call: usize) -> Outcome<DisturbedEnd> {
        if !crate::sweep::can_trace() {
            return Ok(DisturbedEnd::NoEffect);
        }
        let (was_killed, code, output) = self.fixture.run_killed(args, call)?;
        self.last_output = output;
        if !was_killed {
            return Ok(if self.is_done(args, code) { DisturbedEnd::Done } else { DisturbedEnd::NoEffect });
        }
        self.was_killed = true;
        let lost = lost_contents::find_lost(self.fixture, &self.fixture.tokens())?;
        if !lost.is_empty() {
            return Ok(DisturbedEnd::Fault(format!("LOST once killed: {}", lost.join(", "))));
        }
        let answer = self.fixture.proq(&["list"])?;
        self.last_output.push_str(&answer.stderr);
        if let Some(what) = oracle::forbidden_output(&answer) {
            return Ok(DisturbedEnd::Fault(format!("recovery: {what}")));
        }
        if answer.code != 0 {
            return Ok(DisturbedEnd::Fault(format!(
                "recovery ended with {}: {}",
                answer.code,
                answer.first_error_line()
            )));
        }
        Ok(if difference(&self.read_checkout()?, before).is_none() {
            DisturbedEnd::NoEffect
        } else {
            DisturbedEnd::Done
        })
    }

    /// Describes the tracked files that differ from HEAD after a return that reported a clean checkout.
    fn dirty_fault(&self) -> Outcome<Option<String>> {
        let status = ["status", "--porcelain", "--untracked-files=no"];
        let answer = self.fixture.output(self.fixture.command("git", &self.fixture.repo()).args(status))?;
        let changes = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok((!changes.is_empty())
            .then(|| format!("not clean: {changes}; it said: {}", self.last_output.trim())))
    }

    /// Describes contents that the user had written to files of `before` and that are neither in a file of
    /// the checkout nor in a file that the last command named.
    fn missing_edits(&self, before: &Image) -> Outcome<Option<String>> {
        let now: Vec<String> = self
            .read_checkout()?
            .into_iter()
            .filter(|(key, _)| key.starts_with("file "))
            .map(|(_, v)| v)
            .collect();
        let mut missing = Vec::new();
        for (path, value) in
            before.iter().filter_map(|(key, value)| Some((key.strip_prefix("file ")?, value)))
        {
            for token in self
                .fixture
                .tokens()
                .iter()
                .map(|token| token.trim_end())
                .filter(|t| value.contains(*t) && is_user_edit(t))
            {
                if !now.iter().any(|value| value.contains(token)) && !self.last_output.contains(path) {
                    missing.push(format!("{token} of {path}"));
                }
            }
        }
        Ok((!missing.is_empty()).then(|| {
            format!(
                "not in the checkout, and not named: {}; it said: {}",
                missing.join(", "),
                self.last_output.trim()
            )
        }))
    }

    /// Checks that a refusal changes nothing and names the blocking path, and that an open preview can be
    /// left.
    fn check_refusal(
        &mut self,
        args: &[&str],
        answer: &CommandOutput,
        before: &Image,
    ) -> Outcome<Option<String>> {
        self.refused = Some(answer.first_error_line());
        let now = self.read_checkout()?;
        // A landing leaves the preview of its lane before it knows whether it is refused, and reports that.
        let has_left_preview = [answer.stderr.as_bytes(), &answer.stdout[..]]
            .iter()
            .any(|text| String::from_utf8_lossy(text).contains("left the preview"));
        let clean_image = self.recall(CLEAN).or_else(|_| self.recall(START))?;
        let before = if has_left_preview { &clean_image } else { before };
        if let Some(what) = refusal_fault(self.fixture, answer, before, &now)? {
            return Ok(Some(what));
        }
        if args == PREVIEW_BACK {
            return self.clear_way_back(&answer.stderr);
        }
        if !now.get("HEAD").is_some_and(|head| head.ends_with("-preview")) {
            return Ok(None);
        }
        let back = self.fixture.proq(PREVIEW_BACK)?;
        if back.code != 0 {
            return Ok(Some(format!("after a refusal the preview cannot be left: {}", back.stderr.trim())));
        }
        let what = difference(&self.read_checkout()?, &clean_image);
        Ok(what.map(|what| format!("left after a refusal: {}", not_as_before(&what))))
    }

    /// Checks that a return is refused only because of the files it names: after they are moved, it succeeds.
    fn clear_way_back(&self, stderr: &str) -> Outcome<Option<String>> {
        let named = stderr.split_once("in the way: ").map(|(_, rest)| rest.split(';').next().unwrap_or(rest));
        let paths = named.into_iter().flat_map(|names| names.trim().split(", "));
        for (n, path) in paths.enumerate() {
            std::fs::rename(self.fixture.repo().join(path), self.fixture.repo().join(format!("moved-{n}")))?;
        }
        let back = self.fixture.proq(PREVIEW_BACK)?;
        let has_left = back.code == 0 || back.code == CONFLICT_EXIT_CODE;
        Ok((!has_left).then(|| format!("with nothing in its way any more: {}", back.stderr.trim())))
    }

    /// Checks after a landing that untouched paths are as before and touched paths are as in the commit.
    fn landing_fault(&self, before: &Image) -> Outcome<Option<String>> {
        let base =
            before.get("ref refs/heads/main").and_then(|value| value.split(' ').next()).unwrap_or_default();
        let names = ["diff", "--name-only", "--no-renames", "-z", base, "main"];
        let answer = self.fixture.output(self.fixture.command("git", &self.fixture.repo()).args(names))?;
        let changed_names: Vec<String> = answer
            .stdout
            .split(|b| *b == 0)
            .filter(|name| !name.is_empty())
            .map(|name| name.escape_ascii().to_string())
            .collect();
        let sparse = self.case.state.paths.iter().any(|spot| spot.state.attr == Attr::Sparse);
        let is_marked = |key: &str, value: &str| {
            sparse && key.starts_with("index ") && !key.contains("-sparse") && value.starts_with("S ")
        };
        let marked = before.iter().filter(|(key, value)| is_marked(key, value));
        let marked = marked.filter_map(|(key, _)| key.strip_prefix("index ")?.strip_suffix(" 0"));
        let spared: Vec<String> = marked.map(str::to_owned).chain(changed_names).collect();
        let untouched = |image: &Image| -> Image {
            image.iter().filter_map(|(key, value)| untouched_entry(&spared, key, value)).collect()
        };
        let what = difference(&untouched(&self.read_checkout()?), &untouched(before));
        Ok(what.map(|what| format!("a landing changed what it does not touch: {what}")))
    }

    /// Checks what must hold after the last step.
    fn check_end(&self) -> Outcome<Option<String>> {
        let before = self.read_checkout()?;
        let list = self.fixture.proq(&["list"])?;
        if list.code != 0 || !list.stderr.is_empty() && oracle::forbidden_output(&list).is_some() {
            return Ok(Some(format!("`list` afterwards ended with {}: {}", list.code, list.stderr.trim())));
        }
        if let Some(what) = difference(&self.read_checkout()?, &before) {
            return Ok(Some(format!("`list` afterwards changed something: {what}")));
        }
        let lost = lost_contents::find_lost(self.fixture, &self.fixture.tokens())?;
        if !lost.is_empty() {
            return Ok(Some(format!("LOST: {}", lost.join(", "))));
        }
        let fsck = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
        let fsck = self.fixture.output(self.fixture.command("git", &self.fixture.repo()).args(fsck))?;
        let bad = fsck.code != 0 || !fsck.stderr.is_empty();
        Ok(bad.then(|| format!("git fsck ended with {}: {}", fsck.code, fsck.stderr.trim())))
    }
}

/// Command that leaves a preview, and its exit code when parked changes conflict with what has landed.
const PREVIEW_BACK: &[&str] = &["preview", "--back"];
const CONFLICT_EXIT_CODE: i32 = 3;

/// Outcome of a disturbed command.
enum DisturbedEnd {
    /// Everything is as before.
    NoEffect,
    /// The command did its work although it was disturbed.
    Done,
    /// The command did something wrong.
    Fault(String),
}

/// Returns whether a content was written in the main checkout and not committed; its number shows that.
fn is_user_edit(token: &str) -> bool {
    token.split(' ').nth(1).and_then(|number| number.parse().ok()).is_some_and(|number: usize| number > 2000)
}

fn not_as_before(what: &str) -> String {
    format!("not as it was: {what}")
}

/// Returns the index of the main checkout, with keys that start with `index`.
pub(super) fn index_image(fixture: &Fixture) -> Outcome<Image> {
    let answer = fixture.list_index(&fixture.repo())?;
    if answer.code != 0 {
        return fail(format!("the index cannot be read: {}", answer.stderr.trim()));
    }
    Ok(checkout::index(&answer.stdout)
        .into_iter()
        .map(|(key, value)| (format!("index {key}"), value))
        .collect())
}
