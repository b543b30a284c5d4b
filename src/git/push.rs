//! Owns pushing one branch to where `git push` on it would push it, and never by force.

use super::{Error, Repo, WorktreeList};
use crate::explain::{quoted_path, word};

/// A branch that is not pushed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotPushed {
    /// Why, in a sentence.
    pub(crate) why: String,
    /// What git, a hook or the remote said, without git's advice.
    pub(crate) said: Vec<String>,
    /// The command that helps.
    pub(crate) help: String,
}

/// Where a branch is pushed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The remote.
    pub(crate) remote: String,
    /// The ref there, in full or as it is set.
    there: String,
}

/// The start of a branch's full name.
const HEADS: &str = "refs/heads/";

impl Repo {
    /// Where a branch is pushed to, by `branch.<name>.pushRemote`, `remote.pushDefault` or its upstream's remote, `remote.<name>.push`
    /// and `push.default`; or why `git push` would not do it.
    pub(crate) fn push_destination(&self, branch: &str) -> Result<Destination, NotPushed> {
        let get = |key: String| self.setting_text(&key).filter(|value| !value.is_empty());
        let of_branch = |name: &str| get(format!("branch.{branch}.{name}"));
        let refused = |why: String, help: String| NotPushed { why, said: Vec::new(), help };
        let upstream = of_branch("remote").filter(|name| name != ".");
        let remote = of_branch("pushRemote").or_else(|| get("remote.pushDefault".to_owned()));
        let Some(remote) = remote.or_else(|| upstream.clone()) else {
            let why = "it has no remote to be pushed to".to_owned();
            let help = format!("name one, and push it: git push -u REMOTE {}", word(branch));
            return Err(refused(why, help));
        };
        let same = format!("{HEADS}{branch}");
        let rules = self.setting_texts(&format!("remote.{remote}.push"));
        if !rules.is_empty() {
            let there = rules.iter().find_map(|rule| mapped(rule, branch)).unwrap_or(same);
            return Ok(Destination { remote, there });
        }
        let default = get("push.default".to_owned());
        let there = of_branch("merge").filter(|_| upstream.as_deref() == Some(remote.as_str()));
        let has_other_name = |there: &&String| short(there) != branch;
        let push =
            |there: &str| Destination { remote: remote.clone(), there: there.to_owned() }.command(branch);
        match (default.as_deref(), there.as_ref().filter(has_other_name)) {
            (Some("nothing"), _) => {
                let why = "push.default is nothing, so git push would not push it".to_owned();
                Err(refused(why, format!("push it: {}", push(there.as_ref().unwrap_or(&same)))))
            }
            (Some("upstream" | "tracking"), Some(there)) => Ok(Destination { there: there.clone(), remote }),
            (Some("current"), _) | (_, None) => Ok(Destination { remote, there: same }),
            (_, Some(there)) => {
                let why = format!(
                    "its upstream has another name, {remote}/{}, and push.default does not allow that",
                    short(there)
                );
                Err(refused(why, format!("push it there: {}", push(there))))
            }
        }
    }

    /// The addresses of all remotes, as they are set.
    pub(crate) fn push_addresses(&self) -> Vec<(String, Vec<String>)> {
        let config = self.gix.config_snapshot();
        let remotes = config.sections_by_name("remote").into_iter().flatten();
        let names = remotes.filter_map(|remote| remote.header().subsection_name().map(ToString::to_string));
        let keys =
            names.flat_map(|name| ["pushurl", "url", "push"].map(|key| format!("remote.{name}.{key}")));
        keys.map(|key| (key.clone(), self.setting_texts(&key))).collect()
    }

    /// Pushes a branch and nothing else: no tags, whatever `push.followTags` says, and no submodules; where those would be pushed
    /// too, they have to be there. Both sides are named, so that no setting adds force. The repository's `pre-push` hook has its
    /// say. With `may_ask`, git may ask for a password at the terminal, and Ctrl-C ends it; nothing waits for a person otherwise.
    ///
    /// # Errors
    /// When it was not pushed.
    pub(crate) fn push(&self, branch: &str, to: &Destination, may_ask: bool) -> Result<(), NotPushed> {
        let too = self.gix.config_snapshot().boolean("submodule.recurse") == Some(true);
        let submodules = match self.setting_text("push.recurseSubmodules").as_deref() {
            Some("check" | "on-demand" | "only") => "--recurse-submodules=check",
            None if too => "--recurse-submodules=check",
            _ => "--recurse-submodules=no",
        };
        let call = self.git().args(["push", "--no-progress", "--no-follow-tags", submodules, "--"]);
        let call = call.arg(&to.remote).arg(format!("{HEADS}{branch}:{}", to.there));
        let call = if may_ask { call.env("GIT_TERMINAL_PROMPT", "1") } else { call };
        let (status, stderr) = match call.run() {
            Ok(_) => return Ok(()),
            Err(Error::Command { status, stderr, .. }) => (status, stderr),
            Err(e) => (e.to_string(), String::new()),
        };
        Err(not_pushed(to, &to.command(branch), &self.git_on(branch), &status, &stderr))
    }

    /// How a git command begins that works on a branch where it is checked out.
    fn git_on(&self, branch: &str) -> String {
        if self.here().is_some_and(|here| self.is_on(here, branch)) {
            return "git".to_owned();
        }
        let all = WorktreeList::read(self).ok();
        match all.as_ref().and_then(|all| all.on_branch(branch).next()) {
            Some(place) => format!("git -C {}", quoted_path(&place.path)),
            None => format!("git switch {} && git", word(branch)),
        }
    }
}

impl Destination {
    /// The command that pushes a branch there, and never by force.
    fn command(&self, branch: &str) -> String {
        // A `+` in front is no part of a name.
        let here = if branch.starts_with('+') { format!("{HEADS}{branch}") } else { branch.to_owned() };
        format!("git push {} {}", word(&self.remote), word(&format!("{here}:{}", short(&self.there))))
    }
}

/// The name of a branch by the full one; any other ref's is the full one.
fn short(name: &str) -> &str {
    name.strip_prefix(HEADS).unwrap_or(name)
}

/// The ref of a remote to which a rule of `remote.<name>.push` takes a branch; none when it is about others.
fn mapped(rule: &str, branch: &str) -> Option<String> {
    let rule = rule.strip_prefix('+').unwrap_or(rule);
    let (from, to) = rule.split_once(':').unwrap_or((rule, rule));
    let full = format!("{HEADS}{branch}");
    let there = match from.split_once('*') {
        None => (from == full || from == branch).then(|| to.to_owned()),
        Some((start, end)) => {
            let middle = full.strip_prefix(start)?.strip_suffix(end)?;
            Some(to.replacen('*', middle, 1))
        }
    };
    there.filter(|there| !there.is_empty())
}

/// Why a branch was not pushed, by what git wrote. `push` is the command that pushes it, and `git` how one begins that merges into it.
fn not_pushed(to: &Destination, push: &str, git: &str, status: &str, stderr: &str) -> NotPushed {
    let remote = &to.remote;
    let said: Vec<String> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("hint:"))
        .map(ToOwned::to_owned)
        .collect();
    // ` ! [rejected]        main -> main (fetch first)`
    let verdict = said.iter().find_map(|line| line.trim_start().strip_prefix("! [")?.split_once(']'));
    let reason = verdict.and_then(|(_, rest)| Some(rest.split_once(" (")?.1.trim_end_matches(')')));
    let (why, help) = match (verdict, reason) {
        (Some(_), Some(why @ ("fetch first" | "non-fast-forward"))) => (
            format!("{remote} has commits that it lacks ({why})"),
            format!(
                "bring them together, then push: {git} pull --no-rebase --no-edit {} {} && {push}",
                word(remote),
                word(short(&to.there))
            ),
        ),
        (Some((kind, _)), why) => {
            let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
            (format!("{kind} by {remote}{why}"), format!("once that is settled: {push}"))
        }
        (None, _) => (format!("git push failed: {status}"), format!("once that is settled: {push}")),
    };
    NotPushed { why, said, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_becomes_a_sentence() {
        let to = Destination { remote: "origin".to_owned(), there: "refs/heads/main".to_owned() };
        let not_pushed =
            |stderr: &str| super::not_pushed(&to, &to.command("main"), "git", "exit status 1", stderr);
        let why = |stderr: &str| not_pushed(stderr).why;
        let rejected =
            "To /x\n ! [rejected]        main -> main (fetch first)\nerror: failed to push\nhint: pull\n";
        assert_eq!(why(rejected), "origin has commits that it lacks (fetch first)");
        assert_eq!(not_pushed(rejected).said.len(), 3);
        let hook = "remote: no\n ! [remote rejected] main -> main (pre-receive hook declined)\n";
        assert_eq!(why(hook), "remote rejected by origin (pre-receive hook declined)");
        assert_eq!(why("fatal: could not read"), "git push failed: exit status 1");
    }

    #[test]
    fn a_rule_takes_a_branch_where_git_push_would() {
        for (rule, there) in [
            ("refs/heads/*:refs/heads/*", Some("refs/heads/a/b")),
            ("+refs/heads/*:refs/for/*", Some("refs/for/a/b")),
            ("refs/heads/a/*:refs/heads/qa/*-x", Some("refs/heads/qa/b-x")),
            ("a/b:refs/heads/c", Some("refs/heads/c")),
            ("+a/b", Some("a/b")),
            ("refs/heads/a/b", Some("refs/heads/a/b")),
            ("refs/heads/a:refs/heads/c", None),
            ("^refs/heads/a/b", None),
            (":", None),
            (":refs/heads/a/b", None),
        ] {
            assert_eq!(mapped(rule, "a/b").as_deref(), there, "{rule}");
        }
    }
}
