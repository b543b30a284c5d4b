//! Owns pushing one branch to where `git push` on it would push it, and never by force.

use super::{Error, Repo};

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

impl Repo {
    /// The remote that a branch is pushed to, by `branch.<name>.pushRemote`, `remote.pushDefault` or its upstream's; or why
    /// `git push` would not do it, or not without force.
    pub(crate) fn push_remote(&self, branch: &str) -> Result<String, NotPushed> {
        let get = |key: String| self.setting_text(&key).filter(|value| !value.is_empty());
        let of_branch = |name: &str| get(format!("branch.{branch}.{name}"));
        let refused = |why: String, help: String| NotPushed { why, said: Vec::new(), help };
        let upstream = of_branch("remote").filter(|name| name != ".");
        let remote = of_branch("pushRemote").or_else(|| get("remote.pushDefault".to_owned()));
        let Some(remote) = remote.or_else(|| upstream.clone()) else {
            let why = "it has no remote to be pushed to".to_owned();
            return Err(refused(why, format!("name one, and push it: git push -u REMOTE {branch}")));
        };
        let rules = self.setting_texts(&format!("remote.{remote}.push"));
        if rules.iter().any(|rule| rule.starts_with('+')) {
            let why = format!("remote.{remote}.push says to force it, which is not done for you");
            return Err(refused(why, format!("do it yourself: git push {remote} {branch}")));
        }
        let there = of_branch("merge").filter(|_| upstream.as_deref() == Some(remote.as_str()));
        let there = there.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
        let same_name_only =
            !matches!(get("push.default".to_owned()).as_deref(), Some("upstream" | "tracking" | "current"));
        if let Some(there) = there.filter(|name| *name != branch && same_name_only && rules.is_empty()) {
            let why = format!(
                "its upstream has another name, {remote}/{there}, and push.default does not allow that"
            );
            return Err(refused(why, format!("push it there: git push {remote} {branch}:{there}")));
        }
        Ok(remote)
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

    /// Pushes a branch. The repository's `pre-push` hook has its say. With `may_ask`, git may ask for a password at the
    /// terminal, and Ctrl-C ends it; nothing waits for a person otherwise.
    ///
    /// # Errors
    /// When it was not pushed; what has been pushed of other things, as tags by `push.followTags`, is git's affair.
    pub(crate) fn push(&self, branch: &str, remote: &str, may_ask: bool) -> Result<(), NotPushed> {
        let call = self.git().args(["push", "--no-progress", "--", remote]);
        let call = call.arg(format!("refs/heads/{branch}"));
        let call = if may_ask { call.env("GIT_TERMINAL_PROMPT", "1") } else { call };
        match call.run() {
            Ok(_) => Ok(()),
            Err(Error::Command { status, stderr, .. }) => Err(not_pushed(branch, remote, &status, &stderr)),
            Err(e) => Err(not_pushed(branch, remote, &e.to_string(), "")),
        }
    }
}

fn not_pushed(branch: &str, remote: &str, status: &str, stderr: &str) -> NotPushed {
    let said: Vec<String> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("hint:"))
        .map(ToOwned::to_owned)
        .collect();
    // ` ! [rejected]        main -> main (fetch first)`
    let verdict = said.iter().find_map(|line| line.trim_start().strip_prefix("! [")?.split_once(']'));
    let reason = verdict.and_then(|(_, rest)| Some(rest.split_once(" (")?.1.trim_end_matches(')')));
    let push = format!("git push {remote} {branch}");
    let (why, help) = match (verdict, reason) {
        (Some(_), Some(why @ ("fetch first" | "non-fast-forward"))) => (
            format!("{remote} has commits that it lacks ({why})"),
            format!(
                "bring them together, then push: git pull --no-rebase --no-edit {remote} {branch} && {push}"
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
        let why = |stderr: &str| not_pushed("main", "origin", "exit status 1", stderr).why;
        let rejected =
            "To /x\n ! [rejected]        main -> main (fetch first)\nerror: failed to push\nhint: pull\n";
        assert_eq!(why(rejected), "origin has commits that it lacks (fetch first)");
        assert_eq!(not_pushed("main", "origin", "", rejected).said.len(), 3);
        let hook = "remote: no\n ! [remote rejected] main -> main (pre-receive hook declined)\n";
        assert_eq!(why(hook), "remote rejected by origin (pre-receive hook declined)");
        assert_eq!(why("fatal: could not read"), "git push failed: exit status 1");
    }
}
