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

/// Where git pushes a branch by its settings.
#[derive(Debug, PartialEq, Eq)]
enum Goal {
    /// To this ref.
    Ref(String),
    /// To the branch of the same name, if the remote has one.
    SameIfThere,
}

impl Repo {
    /// Where a branch is pushed to, by `branch.<name>.pushRemote`, `remote.pushDefault` or its upstream's remote, `remote.<name>.push`
    /// and `push.default`; or why `git push` would not do it.
    pub(crate) fn push_destination(&self, branch: &str) -> Result<Destination, NotPushed> {
        let get = |key: String| self.setting_text(&key).filter(|value| !value.is_empty());
        let of_branch = |name: &str| get(format!("branch.{branch}.{name}"));
        let upstream = of_branch("remote").filter(|name| name != ".");
        let remote = of_branch("pushRemote").or_else(|| get("remote.pushDefault".to_owned()));
        let Some(remote) = remote.or(upstream) else {
            let why = "it has no remote to be pushed to".to_owned();
            let help = format!("name one, and push it: git push -u REMOTE {}", word(branch));
            return Err(NotPushed { why, said: Vec::new(), help });
        };
        let same = format!("{HEADS}{branch}");
        let to = |there: String| Destination { remote: remote.clone(), there };
        let refused = |why: String, there: &str| {
            let help = format!("push it there: {}", to(there.to_owned()).command(branch));
            NotPushed { why, said: Vec::new(), help }
        };
        let mirror = format!("remote.{remote}.mirror");
        if self.setting_bool(&mirror) == Some(true) {
            let why = format!("{remote} is a mirror, and git push would push everything to it by force");
            let push = to(same).command(branch);
            let alone = push.replacen("git", &format!("git -c {}", word(&format!("{mirror}=false"))), 1);
            return Err(NotPushed { why, said: Vec::new(), help: format!("push it alone: {alone}") });
        }
        let rules = self.setting_texts(&format!("remote.{remote}.push"));
        let goal = match rules.as_slice() {
            [] => self.goal_by_default(branch, &remote).map_err(|(why, there)| refused(why, &there))?,
            rules => goal_by_rules(rules, branch).ok_or_else(|| {
                let why = format!("remote.{remote}.push is set, and by that git push would not push it");
                refused(why, &same)
            })?,
        };
        match goal {
            Goal::Ref(there) => Ok(to(there)),
            Goal::SameIfThere if self.is_known_at(&remote, branch) => Ok(to(same)),
            Goal::SameIfThere => {
                let why = format!("{remote} is not known to have it, and git push would not make it there");
                Err(refused(why, &same))
            }
        }
    }

    /// Where `push.default` takes a branch; or why nowhere, and the ref that it could be pushed to.
    fn goal_by_default(&self, branch: &str, remote: &str) -> Result<Goal, (String, String)> {
        let same = format!("{HEADS}{branch}");
        let default = self.setting_text("push.default");
        let own = match self.setting_text(&format!("branch.{branch}.remote")).filter(|own| !own.is_empty()) {
            Some(own) => own == remote,
            // Git takes the only remote there is, or this one.
            None => remote == "origin" || self.gix.remote_names().len() == 1,
        };
        let upstreams = self.setting_texts(&format!("branch.{branch}.merge"));
        let upstream = upstreams.first().filter(|_| own).unwrap_or(&same);
        let refused = |why: &str| Err((why.to_owned(), upstream.clone()));
        let by_upstream = match default.as_deref() {
            Some("nothing") => return refused("push.default is nothing, so git push would not push it"),
            Some("matching") => return Ok(Goal::SameIfThere),
            Some("current") => return Ok(Goal::Ref(same)),
            other => matches!(other, Some("upstream" | "tracking")),
        };
        match upstreams.as_slice() {
            _ if !own && by_upstream => {
                refused(&format!("push.default is upstream, and {remote} is not its upstream's remote"))
            }
            _ if !own => Ok(Goal::Ref(same)),
            [] if self.setting_bool("push.autoSetupRemote") == Some(true) => Ok(Goal::Ref(same)),
            [] => refused("it has no upstream, so git push would not push it"),
            [_, _, ..] => refused("it has more than one upstream, so git push would not push it"),
            [upstream] if by_upstream || *upstream == same => Ok(Goal::Ref(upstream.clone())),
            [upstream] => refused(&format!(
                "its upstream has another name, {remote}/{}, and push.default does not allow that",
                short(upstream)
            )),
        }
    }

    /// Whether a remote had a branch when that was last seen.
    fn is_known_at(&self, remote: &str, branch: &str) -> bool {
        self.ref_object(&format!("refs/remotes/{remote}/{branch}")).is_ok_and(|found| found.is_some())
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

/// Where the rules of `remote.<name>.push` take a branch where it is checked out: those that name it before patterns, and those before
/// `:`, as git has it. None where they do not push it.
fn goal_by_rules(rules: &[String], branch: &str) -> Option<Goal> {
    let full = format!("{HEADS}{branch}");
    let names = [full.as_str(), &full["refs/".len()..], branch, "HEAD", "@"];
    let (without, rules): (Vec<&str>, Vec<&str>) =
        rules.iter().map(String::as_str).partition(|rule| rule.starts_with('^'));
    let rules: Vec<(&str, &str)> = rules
        .iter()
        .map(|rule| rule.strip_prefix('+').unwrap_or(rule))
        .map(|rule| rule.split_once(':').unwrap_or((rule, "")))
        .collect();
    let named = || {
        let (_, to) = rules.iter().find(|(from, _)| names.contains(from))?;
        Some(if to.is_empty() { full.clone() } else { (*to).to_owned() })
    };
    let by_pattern = || {
        rules.iter().find_map(|(from, to)| {
            let middle = in_place_of_star(from, &full)?;
            Some(if to.is_empty() { from } else { to }.replacen('*', middle, 1))
        })
    };
    let goal = match named().or_else(by_pattern) {
        Some(there) => Goal::Ref(there),
        None if rules.contains(&("", "")) => Goal::SameIfThere,
        None => return None,
    };
    let there = match &goal {
        Goal::Ref(there) if there.starts_with("refs/") => there.clone(),
        Goal::Ref(there) => format!("{HEADS}{there}"),
        Goal::SameIfThere => full.clone(),
    };
    // Gits differ in whether these are about the name here or there.
    let is_left_out = |rule: &&str| {
        [&full, &there]
            .iter()
            .any(|name| rule[1..] == ***name || in_place_of_star(&rule[1..], name).is_some())
    };
    (!without.iter().any(is_left_out)).then_some(goal)
}

/// The part of a ref's name that the `*` of a pattern such as `refs/heads/*` stands for; none where the pattern has no `*` or does not
/// match the name.
fn in_place_of_star<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let (start, end) = pattern.split_once('*')?;
    name.strip_prefix(start)?.strip_suffix(end)
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
    fn rules_take_a_branch_where_git_push_would() {
        let goal = |rules: &[&str]| {
            let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
            goal_by_rules(&rules, "a/b")
        };
        for (rules, there) in [
            (&["refs/heads/*:refs/heads/*"][..], Some("refs/heads/a/b")),
            (&["+refs/heads/*:refs/for/*"], Some("refs/for/a/b")),
            (&["refs/heads/a/*:refs/heads/qa/*-x"], Some("refs/heads/qa/b-x")),
            (&["refs/heads/*"], Some("refs/heads/a/b")),
            (&["a/b:refs/heads/c"], Some("refs/heads/c")),
            (&["+a/b"], Some("refs/heads/a/b")),
            (&["refs/heads/a/b"], Some("refs/heads/a/b")),
            (&["heads/a/b:c"], Some("c")),
            (&["HEAD"], Some("refs/heads/a/b")),
            (&["HEAD:refs/for/a/b"], Some("refs/for/a/b")),
            (&["refs/heads/*:refs/heads/q/*", "@:refs/for/x"], Some("refs/for/x")),
            (&["refs/heads/a:refs/heads/c"], None),
            (&["^refs/heads/a/b"], None),
            (&["refs/heads/*:refs/heads/*", "^refs/heads/a/*"], None),
            (&["HEAD:q", "^refs/heads/q"], None),
            (&["refs/heads/*", "^refs/heads/c"], Some("refs/heads/a/b")),
            (&[":refs/heads/a/b"], None),
            (&["a/b~:refs/heads/old"], None),
        ] {
            assert_eq!(goal(rules), there.map(|there| Goal::Ref(there.to_owned())), "{rules:?}");
        }
        assert_eq!(goal(&[":refs/heads/x", "+:"]), Some(Goal::SameIfThere));
        assert_eq!(goal(&[":", "^refs/heads/a/b"]), None);
    }
}
