//! Owns what a shim does: find out whose repository it was started in, our own part, then the repository's own hook.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{after_commit, by_hand, escape, guard, keep};
use crate::agent::Error;
use crate::git::{self, HookPlace};
use crate::lane::Project;
use crate::note::Listener;
use crate::process::PassOn;
use crate::store::records::FenceRecord;
use crate::store::{Layout, Record};

/// The hook that is asked about every change of refs.
const REFERENCES: &str = "reference-transaction";

/// The hook that is asked before a push.
const PUSH: &str = "pre-push";

/// What a hook has to say, and its exit code.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Answer {
    /// Lines for whoever runs git.
    pub(crate) words: Vec<String>,
    /// The exit code.
    pub(crate) code: u8,
}

/// A hook that git has started in front of the repository's own.
pub(super) struct Hook<'a> {
    pub(super) fence: PathBuf,
    pub(super) record: FenceRecord,
    pub(super) place: HookPlace,
    pub(super) args: &'a [OsString],
}

impl Hook<'_> {
    /// Whether git is at work where the run has nothing to write: one that only looks is a guest in the main checkout.
    fn is_elsewhere(&self) -> bool {
        let is_guest = self.record.branch.is_none() && self.place.git_dir == self.place.common_dir;
        is_guest || self.place.git_dir != self.record.git_dir
    }

    /// Whether git asks about refs that it holds the locks of.
    pub(super) fn is_transaction(&self) -> bool {
        self.args.first().is_some_and(|step| step == "prepared")
    }

    /// Whether the repository had a hook of this name when the run began. To look again means to start git each time.
    fn had(&self, name: &str) -> bool {
        self.record.own_hooks.iter().any(|own| own == name)
    }
}

/// Answers git, which has started the hook `shim` of a fence in `dir`. Where the repository has a hook of its own by that
/// name this process becomes that, and does not return.
///
/// # Errors
/// When the repository's own hook cannot be found or started. Git must not go on then as if there were none.
pub(crate) fn answer(dir: &Path, shim: &Path, args: &[OsString]) -> Result<Answer, Error> {
    let name = shim.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let Some(hook) = of_our_repository(dir, shim, args) else {
        return chain(dir, name, args);
    };
    match name {
        REFERENCES => references(dir, &hook),
        PUSH => push(dir, &hook),
        "post-commit" => {
            let own = if hook.had(name) { git::own_hook(dir, name)? } else { None };
            // The one that people have by `git proq hooks install` does the same.
            if !own.as_ref().is_some_and(|own| by_hand::is_ours(&dir.join(own))) {
                after_commit::by_agent(dir, &hook);
            }
            go_on(own, args)
        }
        _ => chain(dir, name, args),
    }
}

/// The hook with what it knows; none where git is at work in some other repository.
fn of_our_repository<'a>(dir: &Path, shim: &Path, args: &'a [OsString]) -> Option<Hook<'a>> {
    let (fence, common) = Layout::fence_of_hook(shim)?;
    let place = HookPlace::of(dir)?;
    if place.common_dir != common.canonicalize().ok()? {
        return None;
    }
    let record = FenceRecord::find(&Layout::fence_record(&fence)).ok().flatten()?;
    Some(Hook { fence, record, place, args })
}

/// Goes on as the repository's own hook, where it has one: with the environment that git would have given it.
fn chain(dir: &Path, name: &str, args: &[OsString]) -> Result<Answer, Error> {
    go_on(git::own_hook(dir, name)?, args)
}

fn go_on(own: Option<PathBuf>, args: &[OsString]) -> Result<Answer, Error> {
    match own {
        Some(own) => Err(passed_on(&own, args).become_it().into()),
        None => Ok(Answer::default()),
    }
}

fn passed_on(own: &Path, args: &[OsString]) -> PassOn {
    PassOn::to(own, args, (git::HOOKS_VARIABLE, git::own_parameters().as_deref()))
}

/// Asked up to three times about each change, most of which are nobody's business: whatever can be seen without opening
/// anything is decided first.
fn references(dir: &Path, hook: &Hook<'_>) -> Result<Answer, Error> {
    let own = hook.had(REFERENCES);
    let step = hook.args.first().and_then(|arg| arg.to_str()).unwrap_or_default();
    let elsewhere = hook.is_elsewhere();
    // Git has let go of its locks by now.
    if matches!(step, "committed" | "aborted")
        && keep::has_noted(&hook.fence)
        && let Ok(project) = Project::open(dir, Listener::silent())
    {
        keep::keep_noted(&project, &hook.fence);
    }
    if !own && step != "prepared" && !(step == "committed" && elsewhere) {
        return Ok(Answer::default());
    }
    let mut input = Vec::new();
    // What cannot be read cannot be judged; git itself has the same trouble then.
    drop(std::io::stdin().read_to_end(&mut input));
    if step == "prepared"
        && let Some(refused) = guard::judge(dir, hook, &input)
    {
        return Ok(Answer { words: refused, code: 1 });
    }
    if step == "committed" && elsewhere {
        escape::tell_of_head(dir, hook, &input);
    }
    hand_on(dir, hook, REFERENCES, &input)
}

/// A push into the repository itself writes refs by a git that gets none of the run's settings, so it is judged before it begins.
fn push(dir: &Path, hook: &Hook<'_>) -> Result<Answer, Error> {
    let mut input = Vec::new();
    drop(std::io::stdin().read_to_end(&mut input));
    if hook.args.get(1).is_some_and(|to| hook.place.is_at(dir, to)) {
        let updates = guard::of_push(&input);
        if let Some(refused) = guard::judge(dir, hook, &updates) {
            return Ok(Answer { words: refused, code: 1 });
        }
    }
    hand_on(dir, hook, PUSH, &input)
}

/// Goes on as the repository's own hook, where it has one, with what was read already.
fn hand_on(dir: &Path, hook: &Hook<'_>, name: &str, input: &[u8]) -> Result<Answer, Error> {
    let own = if hook.had(name) { git::own_hook(dir, name)? } else { None };
    match own {
        Some(file) => Ok(Answer { code: passed_on(&file, hook.args).feed(input)?, ..Answer::default() }),
        None => Ok(Answer::default()),
    }
}
