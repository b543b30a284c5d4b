//! Push of one branch, never by force, to the ref to which `git push` would push it.

use proq_base::explain::{shell_quote, shell_quote_path};
use proq_base::hint;
use proq_base::hint::Hint;

use super::worktree::WorktreeList;
use crate::base::head::BRANCH_PREFIX;
use crate::{CommitId, Error, Repo};

/// Reason why a branch was not pushed, with git's output and a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushFailure {
    /// Reason, as a clause without a full stop.
    pub reason: String,
    /// Output lines of git, a hook or the remote, without git's hints.
    pub output: Vec<String>,
    /// Text that introduces and names a command which solves the problem.
    pub hint: Hint,
}

/// Remote and ref that a branch is pushed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushDestination {
    /// Name of the remote.
    pub remote: String,
    /// Ref in the remote, as a full name or as configured.
    remote_ref: String,
}

/// Branch of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteBranch {
    /// Name of the remote.
    pub remote: String,
    /// Name of the branch there, without `refs/heads/`.
    pub branch: String,
}

/// Ref that git's settings choose as the target of a push.
#[derive(Debug, PartialEq, Eq)]
enum PushTarget {
    /// A specific ref of the remote.
    Ref(String),
    /// The branch of the same name, if the remote has one.
    SameNameIfExists,
}

impl Repo {
    /// Returns the push destination of a branch by `branch.<name>.pushRemote`, `remote.pushDefault` or its
    /// upstream's remote, `remote.<name>.push` and `push.default`.
    ///
    /// # Errors
    /// Fails with the reason if `git push` would not push the branch.
    pub fn push_destination(&self, branch: &str) -> Result<PushDestination, PushFailure> {
        let get = |key: String| self.setting_text(&key).filter(|value| !value.is_empty());
        let branch_setting = |name: &str| get(format!("branch.{branch}.{name}"));
        let upstream = branch_setting("remote").filter(|name| name != ".");
        let remote = branch_setting("pushRemote").or_else(|| get("remote.pushDefault".to_owned()));
        let Some(remote) = remote.or(upstream) else {
            let reason = "it has no remote".to_owned();
            let hint = hint!("list the remotes to push to: git remote -v");
            return Err(PushFailure { reason, output: Vec::new(), hint });
        };
        let full_name = format!("{BRANCH_PREFIX}{branch}");
        let destination = |remote_ref: String| PushDestination { remote: remote.clone(), remote_ref };
        let failure = |reason: String, remote_ref: &str| {
            let hint = hint!("push it there: {}", destination(remote_ref.to_owned()).push_command(branch));
            PushFailure { reason, output: Vec::new(), hint }
        };
        let mirror = format!("remote.{remote}.mirror");
        if self.setting_bool(&mirror) == Some(true) {
            let reason = format!("{remote} is a mirror, and git push would push everything to it by force");
            let push = destination(full_name).push_command(branch);
            let push_alone =
                push.replacen("git", &format!("git -c {}", shell_quote(&format!("{mirror}=false"))), 1);
            return Err(PushFailure {
                reason,
                output: Vec::new(),
                hint: hint!("push it alone: {push_alone}"),
            });
        }
        let rules = self.setting_values(&format!("remote.{remote}.push"));
        let target = match rules.as_slice() {
            [] => self
                .default_push_target(branch, &remote)
                .map_err(|(reason, remote_ref)| failure(reason, &remote_ref))?,
            rules => push_target_by_rules(rules, branch).ok_or_else(|| {
                let reason = format!("remote.{remote}.push is set, and by that git push would not push it");
                failure(reason, &full_name)
            })?,
        };
        match target {
            PushTarget::Ref(remote_ref) => Ok(destination(remote_ref)),
            PushTarget::SameNameIfExists if self.is_known_on_remote(&remote, branch) => {
                Ok(destination(full_name))
            }
            PushTarget::SameNameIfExists => {
                let reason = format!("{remote} does not have it, and git push would not create it there");
                Err(failure(reason, &full_name))
            }
        }
    }

    /// Returns the target of a branch by `push.default`; as an error, the reason why there is none and the
    /// ref that it could be pushed to.
    fn default_push_target(&self, branch: &str, remote: &str) -> Result<PushTarget, (String, String)> {
        let full_name = format!("{BRANCH_PREFIX}{branch}");
        let default = self.setting_text("push.default");
        let is_upstream_remote = match self
            .setting_text(&format!("branch.{branch}.remote"))
            .filter(|upstream_remote| !upstream_remote.is_empty())
        {
            Some(upstream_remote) => upstream_remote == remote,
            // git takes the only remote, or `origin`.
            None => remote == "origin" || self.gix.remote_names().len() == 1,
        };
        let upstreams = self.setting_values(&format!("branch.{branch}.merge"));
        let upstream = upstreams.first().filter(|_| is_upstream_remote).unwrap_or(&full_name);
        let refused = |reason: &str| Err((reason.to_owned(), upstream.clone()));
        let by_upstream = match default.as_deref() {
            Some("nothing") => return refused("push.default is nothing, so git push would not push it"),
            Some("matching") => return Ok(PushTarget::SameNameIfExists),
            Some("current") => return Ok(PushTarget::Ref(full_name)),
            other => matches!(other, Some("upstream" | "tracking")),
        };
        match upstreams.as_slice() {
            _ if !is_upstream_remote && by_upstream => {
                refused(&format!("push.default is upstream, and {remote} is not its upstream's remote"))
            }
            _ if !is_upstream_remote => Ok(PushTarget::Ref(full_name)),
            [] if self.setting_bool("push.autoSetupRemote") == Some(true) => Ok(PushTarget::Ref(full_name)),
            [] => refused("it has no upstream, so git push would not push it"),
            [_, _, ..] => refused("it has more than one upstream, so git push would not push it"),
            [upstream] if by_upstream || *upstream == full_name => Ok(PushTarget::Ref(upstream.clone())),
            [upstream] => refused(&format!(
                "its upstream has another name, {remote}/{}, and push.default does not allow that",
                short_ref_name(upstream)
            )),
        }
    }

    /// Returns whether the remote had the branch at the last fetch.
    fn is_known_on_remote(&self, remote: &str, branch: &str) -> bool {
        self.ref_object(&format!("refs/remotes/{remote}/{branch}")).is_ok_and(|found| found.is_some())
    }

    /// Returns the values of `pushurl`, `url` and `push` of every configured remote, by settings key.
    pub fn remote_push_settings(&self) -> Vec<(String, Vec<String>)> {
        let config = self.gix.config_snapshot();
        let remotes = config.sections_by_name("remote").into_iter().flatten();
        let names = remotes.filter_map(|remote| remote.header().subsection_name().map(ToString::to_string));
        let keys =
            names.flat_map(|name| ["pushurl", "url", "push"].map(|key| format!("remote.{name}.{key}")));
        keys.map(|key| (key.clone(), self.setting_values(&key))).collect()
    }

    /// Pushes a branch and nothing else. It pushes no tags, whatever `push.followTags` is, and no submodules;
    /// where submodules would be pushed too, their commits must exist in their remotes. The command names
    /// both refs, so that no setting adds force. The `pre-push` hook of the repository runs. With
    /// `may_prompt`, git may prompt for a password at the terminal, and Ctrl-C stops it; otherwise nothing
    /// waits for input.
    ///
    /// # Errors
    /// Fails if the branch was not pushed.
    pub fn push(
        &self,
        branch: &str,
        destination: &PushDestination,
        may_prompt: bool,
    ) -> Result<(), PushFailure> {
        let refspec = format!("{BRANCH_PREFIX}{branch}:{}", destination.remote_ref);
        let result = self.push_refspec(&destination.remote, &refspec, None, may_prompt);
        result.map_err(|(status, stderr)| {
            classify_push_failure(
                destination,
                &destination.push_command(branch),
                &self.git_command_on_branch(branch),
                &status,
                &stderr,
            )
        })
    }

    /// Pushes a commit to a branch of a remote, and nothing else, as [`Repo::push`] does. `lease` is the
    /// commit that the branch must be at; then it may move to a commit that does not follow that one. Without
    /// a lease it never does. `command` is the git-proq command that pushes again, for hints.
    ///
    /// # Errors
    /// Fails if the commit was not pushed.
    pub fn push_commit(
        &self,
        commit: CommitId,
        to: &RemoteBranch,
        lease: Option<CommitId>,
        may_prompt: bool,
        command: &str,
    ) -> Result<(), PushFailure> {
        let remote_ref = format!("{BRANCH_PREFIX}{}", to.branch);
        let refspec = format!("{commit}:{remote_ref}");
        let lease = lease.map(|id| format!("--force-with-lease={remote_ref}:{id}"));
        let result = self.push_refspec(&to.remote, &refspec, lease.as_deref(), may_prompt);
        result.map_err(|(status, stderr)| {
            let destination = PushDestination { remote: to.remote.clone(), remote_ref };
            let git = self.git_command_on_branch(&to.branch);
            classify_push_failure(&destination, command, &git, &status, &stderr)
        })
    }

    /// Starts `git push` for one refspec. Fails with its exit status and standard error.
    fn push_refspec(
        &self,
        remote: &str,
        refspec: &str,
        lease: Option<&str>,
        may_prompt: bool,
    ) -> Result<(), (String, String)> {
        let recurses = self.gix.config_snapshot().boolean("submodule.recurse") == Some(true);
        let submodules = match self.setting_text("push.recurseSubmodules").as_deref() {
            Some("check" | "on-demand" | "only") => "--recurse-submodules=check",
            None if recurses => "--recurse-submodules=check",
            _ => "--recurse-submodules=no",
        };
        let call = self.git().args(["push", "--no-progress", "--no-follow-tags", submodules]);
        let call = call.args(lease).arg("--").arg(remote).arg(refspec);
        let call = if may_prompt { call.env("GIT_TERMINAL_PROMPT", "1") } else { call };
        match call.run() {
            Ok(_) => Ok(()),
            Err(Error::Command { status, stderr, .. }) => Err((status, stderr)),
            Err(e) => Err((e.to_string(), String::new())),
        }
    }

    /// Returns the remote that a branch which starts at `base` is pushed to: by `branch.<name>.pushRemote`
    /// and `remote.pushDefault`, or else the upstream's remote of the branch or of `base`, the only remote, or
    /// `origin`. As an error, the names of all remotes.
    pub fn lane_remote(&self, branch: &str, base: &str) -> Result<String, Vec<String>> {
        let get = |key: String| self.setting_text(&key).filter(|value| !value.is_empty() && value != ".");
        let keys = [
            format!("branch.{branch}.pushRemote"),
            format!("branch.{base}.pushRemote"),
            "remote.pushDefault".to_owned(),
            format!("branch.{branch}.remote"),
            format!("branch.{base}.remote"),
        ];
        if let Some(remote) = keys.into_iter().find_map(get) {
            return Ok(remote);
        }
        let names: Vec<String> = self.gix.remote_names().iter().map(ToString::to_string).collect();
        match names.as_slice() {
            [only] => Ok(only.clone()),
            _ if names.iter().any(|name| name == "origin") => Ok("origin".to_owned()),
            _ => Err(names),
        }
    }

    /// Returns the remote of a branch's upstream, and the name of the upstream there.
    pub fn upstream_branch(&self, branch: &str) -> Option<RemoteBranch> {
        let get = |key: &str| self.setting_text(&format!("branch.{branch}.{key}"));
        let remote = get("remote").filter(|name| !name.is_empty() && name != ".")?;
        let upstream = get("merge")?;
        Some(RemoteBranch { remote, branch: short_ref_name(&upstream).to_owned() })
    }

    /// Returns the address that git fetches a remote from, with `url.<base>.insteadOf` applied.
    pub fn remote_url(&self, remote: &str) -> Option<String> {
        let remote = self.gix.find_remote(remote).ok()?;
        Some(remote.url(gix::remote::Direction::Fetch)?.to_bstring().to_string())
    }

    /// Returns whether a remote is a mirror, to which `git push` would push everything by force.
    pub fn is_mirror(&self, remote: &str) -> bool {
        self.setting_bool(&format!("remote.{remote}.mirror")) == Some(true)
    }

    /// Returns whether git-proq made all moves of a branch since it was at `since` that left commits behind.
    /// False if the branch's log does not have that commit.
    ///
    /// # Errors
    /// Fails if the log or a commit cannot be read.
    pub fn is_rewritten_by_proq(&self, branch: &str, since: CommitId) -> Result<bool, Error> {
        let log = self.reflog(self.command_dir(), &format!("{BRANCH_PREFIX}{branch}"))?;
        let Some(first) = log.iter().position(|entry| entry.new_id == since) else { return Ok(false) };
        for moves in log[..=first].windows(2) {
            let [later, earlier] = moves else { continue };
            if !later.is_by_proq() && !self.is_ancestor(earlier.new_id, later.new_id)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the first words of a shell command that runs git where `branch` is checked out. They are
    /// `git`, `git -C DIR`, or `git switch BRANCH && git`.
    fn git_command_on_branch(&self, branch: &str) -> String {
        if self.current_worktree().is_some_and(|here| self.is_head_on_branch(here, branch)) {
            return "git".to_owned();
        }
        let worktrees = WorktreeList::read(self).ok();
        match worktrees.as_ref().and_then(|worktrees| worktrees.on_branch(branch).next()) {
            Some(worktree) => format!("git -C {}", shell_quote_path(&worktree.path)),
            None => format!("git switch {} && git", shell_quote(branch)),
        }
    }
}

impl PushDestination {
    /// Returns the command that pushes a branch to this destination, without force.
    fn push_command(&self, branch: &str) -> String {
        // A leading `+` would mean force, so the full name is used.
        let local_ref =
            if branch.starts_with('+') { format!("{BRANCH_PREFIX}{branch}") } else { branch.to_owned() };
        format!(
            "git push {} {}",
            shell_quote(&self.remote),
            shell_quote(&format!("{local_ref}:{}", short_ref_name(&self.remote_ref)))
        )
    }
}

/// Returns a branch's name without `refs/heads/`; any other ref's name unchanged.
fn short_ref_name(name: &str) -> &str {
    name.strip_prefix(BRANCH_PREFIX).unwrap_or(name)
}

/// Returns the target of a checked-out branch by the rules of `remote.<name>.push`. As in git, rules that
/// name the branch take precedence over patterns, and patterns over `:`. Returns `None` if the rules do not
/// push the branch.
fn push_target_by_rules(rules: &[String], branch: &str) -> Option<PushTarget> {
    let full_name = format!("{BRANCH_PREFIX}{branch}");
    let names = [full_name.as_str(), &full_name["refs/".len()..], branch, "HEAD", "@"];
    let (exclusions, rules): (Vec<&str>, Vec<&str>) =
        rules.iter().map(String::as_str).partition(|rule| rule.starts_with('^'));
    let rules: Vec<(&str, &str)> = rules
        .iter()
        .map(|rule| rule.strip_prefix('+').unwrap_or(rule))
        .map(|rule| rule.split_once(':').unwrap_or((rule, "")))
        .collect();
    let by_name = || {
        let (_, to) = rules.iter().find(|(from, _)| names.contains(from))?;
        Some(if to.is_empty() { full_name.clone() } else { (*to).to_owned() })
    };
    let by_pattern = || {
        rules.iter().find_map(|(from, to)| {
            let star_match = match_star(from, &full_name)?;
            Some(if to.is_empty() { from } else { to }.replacen('*', star_match, 1))
        })
    };
    let target = match by_name().or_else(by_pattern) {
        Some(remote_ref) => PushTarget::Ref(remote_ref),
        None if rules.contains(&("", "")) => PushTarget::SameNameIfExists,
        None => return None,
    };
    let target_name = match &target {
        PushTarget::Ref(remote_ref) if remote_ref.starts_with("refs/") => remote_ref.clone(),
        PushTarget::Ref(remote_ref) => format!("{BRANCH_PREFIX}{remote_ref}"),
        PushTarget::SameNameIfExists => full_name.clone(),
    };
    // Versions of git differ in whether exclusions apply to the local or the remote name.
    let is_excluded = |rule: &&str| {
        [&full_name, &target_name]
            .iter()
            .any(|name| rule[1..] == ***name || match_star(&rule[1..], name).is_some())
    };
    (!exclusions.iter().any(is_excluded)).then_some(target)
}

/// Returns the part of a ref's name that the `*` of a pattern such as `refs/heads/*` matches; `None` if the
/// pattern has no `*` or does not match.
fn match_star<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    let (start, end) = pattern.split_once('*')?;
    name.strip_prefix(start)?.strip_suffix(end)
}

/// Converts the output of a failed `git push` to a `PushFailure` with its reason and hint. `push_command` is
/// the command that pushes the branch, and `git_command` the first words of one that merges into it.
fn classify_push_failure(
    destination: &PushDestination,
    push_command: &str,
    git_command: &str,
    status: &str,
    stderr: &str,
) -> PushFailure {
    let remote = &destination.remote;
    let output: Vec<String> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("hint:"))
        .map(ToOwned::to_owned)
        .collect();
    // ` ! [rejected]        main -> main (fetch first)`
    let rejection = output.iter().find_map(|line| line.trim_start().strip_prefix("! [")?.split_once(']'));
    let rejection_reason =
        rejection.and_then(|(_, rest)| Some(rest.split_once(" (")?.1.trim_end_matches(')')));
    let (reason, hint) = match (rejection, rejection_reason) {
        (Some(_), Some(cause @ ("fetch first" | "non-fast-forward"))) => (
            format!("{remote} has commits that it lacks ({cause})"),
            hint!(
                "merge them, then push: {git_command} pull --no-rebase --no-edit {} {} && {push_command}",
                shell_quote(remote),
                shell_quote(short_ref_name(&destination.remote_ref))
            ),
        ),
        (Some((kind, _)), cause) => {
            let suffix = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
            (format!("{kind} by {remote}{suffix}"), hint!("once that is fixed: {push_command}"))
        }
        (None, _) => (format!("git push failed: {status}"), hint!("once that is fixed: {push_command}")),
    };
    PushFailure { reason, output, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summarizes_git_output_as_reason() {
        let destination =
            PushDestination { remote: "origin".to_owned(), remote_ref: "refs/heads/main".to_owned() };
        let classify = |stderr: &str| {
            super::classify_push_failure(
                &destination,
                &destination.push_command("main"),
                "git",
                "exit status 1",
                stderr,
            )
        };
        let reason_of = |stderr: &str| classify(stderr).reason;
        let rejected =
            "To /x\n ! [rejected]        main -> main (fetch first)\nerror: failed to push\nhint: pull\n";
        assert_eq!(reason_of(rejected), "origin has commits that it lacks (fetch first)");
        assert_eq!(classify(rejected).output.len(), 3);
        let hook = "remote: no\n ! [remote rejected] main -> main (pre-receive hook declined)\n";
        assert_eq!(reason_of(hook), "remote rejected by origin (pre-receive hook declined)");
        assert_eq!(reason_of("fatal: could not read"), "git push failed: exit status 1");
    }

    #[test]
    fn rules_select_same_target_as_git_push() {
        let target = |rules: &[&str]| {
            let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
            push_target_by_rules(&rules, "a/b")
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
            assert_eq!(target(rules), there.map(|there| PushTarget::Ref(there.to_owned())), "{rules:?}");
        }
        assert_eq!(target(&[":refs/heads/x", "+:"]), Some(PushTarget::SameNameIfExists));
        assert_eq!(target(&[":", "^refs/heads/a/b"]), None);
    }
}
