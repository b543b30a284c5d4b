//! Owns playing one case: the state is made, its steps follow, and each is held against what it must keep.

use super::apart::{Gone, apart_from, as_filtered};
use super::oracle::{self, Faulty, refusal};
use super::steps::{CLEAN, Case, Disturbed, HOME, START, Step, edit_script};
use crate::checkout::{self, Image, difference};
use crate::states::Attr;
use crate::sweep::place::{Answer, Place};
use crate::sweep::start::{make, own};
use crate::sweep::{Outcome, fail, precious};

/// What came of a case.
#[derive(Debug, Clone, Default)]
pub(super) struct Ending {
    /// What a command that was refused said, with everything as it was.
    pub(super) refused: Option<String>,
    /// What was wrong.
    pub(super) fault: Option<Faulty>,
    /// Whether a command was killed before its end.
    pub(super) was_killed: bool,
}

/// Plays a case from the start.
pub(super) fn play(place: &Place, case: &Case) -> Outcome<Ending> {
    place.begin()?;
    make(place, &case.state)?;
    let mut run = Run {
        place,
        case,
        kept: Vec::new(),
        refused: None,
        commands: 0,
        gone: None,
        was_killed: false,
        is_apart: false,
        said: String::new(),
    };
    run.kept.push((START, run.look()?));
    for (n, step) in case.steps.iter().enumerate() {
        let what = run.step(step)?;
        if let Some(text) = what {
            let told = format!("step {} ({}): {text}", n + 1, shown(step));
            let fault = Some(Faulty::new(&text, told));
            return Ok(Ending { refused: run.refused, fault, was_killed: run.was_killed });
        }
        if run.refused.is_some() {
            break;
        }
    }
    let fault = run.end()?.map(|text| Faulty::new(&text, format!("at the end: {text}")));
    Ok(Ending { refused: run.refused, fault, was_killed: run.was_killed })
}

/// The commands that do the same by hand.
pub(super) fn shell(case: &Case) -> String {
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
        let disturbed = case.disturbed.filter(|(at, _)| is_command && *at == commands);
        commands += usize::from(is_command);
        match disturbed {
            Some((_, Disturbed::Locked)) => {
                add(&format!("touch .git/index.lock; {}; rm .git/index.lock", shown(step)));
            }
            Some((_, Disturbed::Killed(call))) => {
                add(&format!(
                    "# killed before its call {call} that changes a file: {}; git proq list",
                    shown(step)
                ));
            }
            None => {}
        }
        add(&shown(step));
    }
    out
}

/// One step, as a shell command or a comment.
fn shown(step: &Step) -> String {
    match step {
        Step::Proq(args) => format!("git proq {}", args.join(" ")),
        Step::Hand(script) => script.trim_end().to_owned(),
        Step::Edit(spots, removed) => edit_script(spots, *removed).trim_end().to_owned(),
        Step::Commit(script) => {
            format!("(cd .proq-worktrees/one; {script}; git add -A; git commit -q -m later)")
        }
        Step::Keep(name) => format!("# remember: {name}"),
        Step::Is(name) => format!("# must be as at: {name}"),
        Step::FilesAre(name) => format!("# files, index and HEAD must be as at: {name}"),
        Step::Untouched(name) => format!("# but for what landed, must be as at: {name}"),
        Step::Home(name) => format!("# but for what landed, must be as at, with all own edits: {name}"),
    }
}

struct Run<'a> {
    place: &'a Place,
    case: &'a Case,
    kept: Vec<(&'static str, Image)>,
    refused: Option<String>,
    commands: usize,
    /// Set once a person's own git went over files that a snapshot had given back.
    gone: Option<Gone>,
    was_killed: bool,
    /// Whether the last way back has left the user's changes in their snapshot, since they conflict with what has landed.
    is_apart: bool,
    /// The output and the complaints of the last run of the program.
    said: String,
}

impl Run<'_> {
    fn look(&self) -> Outcome<Image> {
        oracle::look(self.place)
    }

    fn kept(&self, name: &str) -> Outcome<Image> {
        match self.kept.iter().rev().find(|(kept, _)| *kept == name) {
            Some((_, image)) => Ok(image.clone()),
            None => fail(format!("nothing is remembered as {name}")),
        }
    }

    /// What is wrong after this step.
    fn step(&mut self, step: &Step) -> Outcome<Option<String>> {
        Ok(match step {
            Step::Proq(args) => self.command(args)?,
            Step::Hand(script) => self.hand(script)?,
            Step::Edit(spots, removed) => self.hand(&edit_script(spots, *removed))?,
            Step::Commit(script) => {
                let dir = self.place.lane("one");
                self.place.sh_in(&dir, &format!("{script}; git add -A; git commit -q -m later"))?;
                None
            }
            Step::Keep(name) => {
                self.kept.push((name, self.look()?));
                None
            }
            Step::Is(name) => self.differs(&self.look()?, &self.kept(name)?).map(|what| changed(&what)),
            Step::FilesAre(name) => {
                let own = |image: Image| -> Image {
                    let own = image.into_iter().filter(|(key, _)| !key.starts_with("ref "));
                    own.map(|(key, value)| if *name == HOME { as_filtered(key, value) } else { (key, value) })
                        .collect()
                };
                let (mut found, wanted) = (own(self.look()?), own(self.kept(name)?));
                self.stays(&mut found, &wanted)?;
                difference(&found, &wanted).map(|what| changed(&what))
            }
            Step::Untouched(name) => self.untouched(&self.kept(name)?)?,
            Step::Home(_) if self.is_apart => self.unclean()?,
            Step::Home(name) => match self.untouched(&self.kept(name)?)? {
                None => self.hidden(&self.kept(name)?)?,
                fault => fault,
            },
        })
    }

    /// How the checkout differs from what is remembered, but for what no snapshot can bring back.
    fn differs(&self, found: &Image, wanted: &Image) -> Option<String> {
        match &self.gone {
            None => difference(found, wanted),
            Some(gone) => difference(&gone.without(found), &gone.without(wanted)),
        }
    }

    /// Leaves out of `found` the ignored files that were there before a preview and are there again in it: an undone way back onto
    /// a commit that has nothing in their place leaves them where they are.
    fn stays(&self, found: &mut Image, wanted: &Image) -> Outcome<()> {
        if !self.case.steps.iter().any(|step| matches!(step, Step::Home(_))) {
            return Ok(());
        }
        let start = self.kept(START)?;
        let is_own = |key: &str, value: &String| {
            key.starts_with("file ") && key.contains("-sparse-ignored") && start.get(key) == Some(value)
        };
        found.retain(|key, value| wanted.contains_key(key) || !is_own(key, value) && key != "file out");
        Ok(())
    }

    /// A person does something without git-proq.
    fn hand(&mut self, script: &str) -> Outcome<Option<String>> {
        let before = self.look()?;
        // Edits may meet what is not there any more; that is as random as the rest.
        let _ = self.place.answer(self.place.command("sh", &self.place.repo()).args(["-c", script]))?;
        // What its owner wrote over is his own affair.
        let gone = precious::lost(self.place, &self.place.tokens())?;
        self.place.forget(&gone);
        own(self.place, script)?;
        if script.contains("git reset -q --hard") {
            self.gone = Some(Gone::between(&before, &self.look()?));
        }
        Ok(None)
    }

    /// Runs the program, disturbed first where the case says so.
    fn command(&mut self, args: &[&str]) -> Outcome<Option<String>> {
        let before = self.look()?;
        let disturbed = self.case.disturbed.filter(|(at, _)| *at == self.commands);
        self.commands += 1;
        let end = match disturbed {
            Some((_, Disturbed::Locked)) => self.locked(args, &before)?,
            Some((_, Disturbed::Killed(call))) => self.killed(args, &before, call)?,
            None => End::TakenBack,
        };
        match end {
            End::TakenBack => {}
            End::Done => return Ok(None),
            End::Fault(what) => return Ok(Some(what)),
        }
        let answer = self.place.proq(args)?;
        self.said = answer.said();
        if let Some(what) = oracle::raw(&answer) {
            return Ok(Some(what));
        }
        if self.is_done(args, answer.code) {
            return Ok(None);
        }
        self.refusal(args, &answer, &before)
    }

    /// Whether a command that ended with this code has done its work: a way back has, too, where it leaves changes that conflict in
    /// their snapshot.
    fn is_done(&mut self, args: &[&str], code: i32) -> bool {
        self.is_apart = code == CONFLICTS && args == BACK;
        code == 0 || self.is_apart
    }

    /// Runs the program under a lock that somebody else holds.
    fn locked(&mut self, args: &[&str], before: &Image) -> Outcome<End> {
        let lock = self.place.repo().join(".git/index.lock");
        std::fs::write(&lock, "")?;
        let answer = self.place.proq(args)?;
        std::fs::remove_file(&lock)?;
        self.said = answer.said();
        if let Some(what) = oracle::raw(&answer) {
            return Ok(End::Fault(format!("under a lock: {what}")));
        }
        if self.is_done(args, answer.code) {
            return Ok(End::Done);
        }
        Ok(match difference(&self.look()?, before) {
            None => End::TakenBack,
            Some(what) => {
                let said = answer.stderr.trim();
                End::Fault(format!("refused under a lock, and something changed: {what}; it said: {said}"))
            }
        })
    }

    /// Kills the program before one of its calls, and lets another command recover.
    fn killed(&mut self, args: &[&str], before: &Image, call: usize) -> Outcome<End> {
        if !crate::sweep::can_trace() {
            return Ok(End::TakenBack);
        }
        let (was_killed, code, said) = self.place.killed(args, call)?;
        self.said = said;
        if !was_killed {
            return Ok(if self.is_done(args, code) { End::Done } else { End::TakenBack });
        }
        self.was_killed = true;
        let lost = precious::lost(self.place, &self.place.tokens())?;
        if !lost.is_empty() {
            return Ok(End::Fault(format!("LOST once killed: {}", lost.join(", "))));
        }
        let answer = self.place.proq(&["list"])?;
        self.said.push_str(&answer.stderr);
        if let Some(what) = oracle::raw(&answer) {
            return Ok(End::Fault(format!("recovery: {what}")));
        }
        if answer.code != 0 {
            return Ok(End::Fault(format!("recovery ended with {}: {}", answer.code, answer.complaint())));
        }
        Ok(if difference(&self.look()?, before).is_none() { End::TakenBack } else { End::Done })
    }

    /// The tracked files that differ from HEAD after a way back which said that the checkout is clean, as a fault; none when none does.
    fn unclean(&self) -> Outcome<Option<String>> {
        let status = ["status", "--porcelain", "--untracked-files=no"];
        let answer = self.place.answer(self.place.command("git", &self.place.repo()).args(status))?;
        let changes = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok((!changes.is_empty()).then(|| format!("not clean: {changes}; it said: {}", self.said.trim())))
    }

    /// The contents that the user had written into files of `before`, and that are neither in a file of the checkout now nor in one that
    /// the last command has named, as a fault; none when there are none.
    fn hidden(&self, before: &Image) -> Outcome<Option<String>> {
        let now: Vec<String> =
            self.look()?.into_iter().filter(|(key, _)| key.starts_with("file ")).map(|(_, v)| v).collect();
        let mut hidden = Vec::new();
        for (path, value) in
            before.iter().filter_map(|(key, value)| Some((key.strip_prefix("file ")?, value)))
        {
            for token in self
                .place
                .tokens()
                .iter()
                .map(|token| token.trim_end())
                .filter(|t| value.contains(*t) && is_edit(t))
            {
                if !now.iter().any(|value| value.contains(token)) && !self.said.contains(path) {
                    hidden.push(format!("{token} of {path}"));
                }
            }
        }
        Ok((!hidden.is_empty()).then(|| {
            format!(
                "not in the checkout, and not named: {}; it said: {}",
                hidden.join(", "),
                self.said.trim()
            )
        }))
    }

    /// A refusal changes nothing and says which path is in the way. An open preview can be left.
    fn refusal(&mut self, args: &[&str], answer: &Answer, before: &Image) -> Outcome<Option<String>> {
        self.refused = Some(answer.complaint());
        let now = self.look()?;
        // A landing leaves the preview of its lane before it can know whether it is refused, and says so.
        let left = [answer.stderr.as_bytes(), &answer.stdout[..]]
            .iter()
            .any(|said| String::from_utf8_lossy(said).contains("left the preview"));
        let home = self.kept(CLEAN).or_else(|_| self.kept(START))?;
        let before = if left { &home } else { before };
        if let Some(what) = refusal(self.place, answer, before, &now)? {
            return Ok(Some(what));
        }
        if args == BACK {
            return self.make_way(&answer.stderr);
        }
        if !now.get("HEAD").is_some_and(|head| head.ends_with("-preview")) {
            return Ok(None);
        }
        let back = self.place.proq(BACK)?;
        if back.code != 0 {
            return Ok(Some(format!("after a refusal the preview cannot be left: {}", back.stderr.trim())));
        }
        let what = difference(&self.look()?, &home);
        Ok(what.map(|what| format!("left after a refusal: {}", changed(&what))))
    }

    /// The way back is refused for files that stand in its way, and these alone: once they are elsewhere it goes.
    fn make_way(&self, said: &str) -> Outcome<Option<String>> {
        let named = said.split_once("in the way: ").map(|(_, rest)| rest.split(';').next().unwrap_or(rest));
        let paths = named.into_iter().flat_map(|names| names.trim().split(", "));
        for (n, path) in paths.enumerate() {
            std::fs::rename(self.place.repo().join(path), self.place.repo().join(format!("moved-{n}")))?;
        }
        let back = self.place.proq(BACK)?;
        let gone = back.code == 0 || back.code == CONFLICTS;
        Ok((!gone).then(|| format!("with nothing in its way any more: {}", back.stderr.trim())))
    }

    /// After a landing: what it did not touch is as it was, what it touched is as the commit has it.
    fn untouched(&self, before: &Image) -> Outcome<Option<String>> {
        let base =
            before.get("ref refs/heads/main").and_then(|value| value.split(' ').next()).unwrap_or_default();
        let names = ["diff", "--name-only", "--no-renames", "-z", base, "main"];
        let answer = self.place.answer(self.place.command("git", &self.place.repo()).args(names))?;
        let changed_names: Vec<String> = answer
            .stdout
            .split(|b| *b == 0)
            .filter(|name| !name.is_empty())
            .map(|name| name.escape_ascii().to_string())
            .collect();
        let sparse = self.case.state.spots.iter().any(|spot| spot.combo.attr == Attr::Sparse);
        let is_marked = |key: &str, value: &str| {
            sparse && key.starts_with("index ") && !key.contains("-sparse") && value.starts_with("S ")
        };
        let marked = before.iter().filter(|(key, value)| is_marked(key, value));
        let marked = marked.filter_map(|(key, _)| key.strip_prefix("index ")?.strip_suffix(" 0"));
        let spared: Vec<String> = marked.map(str::to_owned).chain(changed_names).collect();
        let apart = |image: &Image| -> Image {
            image.iter().filter_map(|(key, value)| apart_from(&spared, key, value)).collect()
        };
        let what = difference(&apart(&self.look()?), &apart(before));
        Ok(what.map(|what| format!("a landing changed what it does not touch: {what}")))
    }

    /// What must hold when everything is over.
    fn end(&self) -> Outcome<Option<String>> {
        let before = self.look()?;
        let list = self.place.proq(&["list"])?;
        if list.code != 0 || !list.stderr.is_empty() && oracle::raw(&list).is_some() {
            return Ok(Some(format!("`list` afterwards ended with {}: {}", list.code, list.stderr.trim())));
        }
        if let Some(what) = difference(&self.look()?, &before) {
            return Ok(Some(format!("`list` afterwards changed something: {what}")));
        }
        let lost = precious::lost(self.place, &self.place.tokens())?;
        if !lost.is_empty() {
            return Ok(Some(format!("LOST: {}", lost.join(", "))));
        }
        let fsck = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"];
        let fsck = self.place.answer(self.place.command("git", &self.place.repo()).args(fsck))?;
        let bad = fsck.code != 0 || !fsck.stderr.is_empty();
        Ok(bad.then(|| format!("git fsck ended with {}: {}", fsck.code, fsck.stderr.trim())))
    }
}

/// The way back, and its exit code where changes conflict with what has landed meanwhile.
const BACK: &[&str] = &["preview", "--back"];
const CONFLICTS: i32 = 3;

/// How a disturbed command ended.
enum End {
    /// Everything is as before.
    TakenBack,
    /// The command has done its work, although it was disturbed.
    Done,
    /// This is wrong.
    Fault(String),
}

/// Whether a content was written in the main checkout, and not committed there or in a lane: by its number.
fn is_edit(token: &str) -> bool {
    token.split(' ').nth(1).and_then(|number| number.parse().ok()).is_some_and(|number: usize| number > 2000)
}

fn changed(what: &str) -> String {
    format!("not as it was: {what}")
}

/// The index of a checkout, with keys that say so.
pub(super) fn index_of(place: &Place) -> Outcome<Image> {
    let answer = place.list_index(&place.repo())?;
    if answer.code != 0 {
        return fail(format!("the index cannot be read: {}", answer.stderr.trim()));
    }
    Ok(checkout::index(&answer.stdout)
        .into_iter()
        .map(|(key, value)| (format!("index {key}"), value))
        .collect())
}
