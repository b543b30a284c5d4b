//! Reflogs: reads what git recorded of the earlier positions of a ref.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use proq_base::time_form::unix_seconds;

use crate::{CommitId, Error, Repo};

/// Reflog message of git-proq's own update in a copy of HEAD's log, which makes git show the copy.
const COPY_MESSAGE: &str = "git-proq: copied";

/// Reflog messages of new commits: the prefix, and a text that the message must also contain. Every other
/// entry refers to an existing commit: a checkout, a reset, a fast-forward.
const NEW_COMMIT_MESSAGES: &[(&str, &str)] = &[
    ("commit", ""),
    ("cherry-pick", ""),
    ("revert", ""),
    ("am", ""),
    ("merge", "Merge made"),
    ("pull", "Merge made"),
    ("rebase", "(pick)"),
    ("rebase", "(continue)"),
    ("rebase", "(reword)"),
    ("rebase", "(edit)"),
    ("rebase", "(squash)"),
    ("rebase", "(fixup)"),
    ("rebase", "(merge)"),
];

/// One entry of a reflog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReflogEntry {
    /// Commit that the ref moved to.
    pub new_id: CommitId,
    /// Time of the move, in whole seconds.
    pub time: SystemTime,
    /// Message that git recorded.
    message: String,
}

impl ReflogEntry {
    /// Returns whether this entry created its commit, instead of moving to an existing one.
    pub fn creates_commit(&self) -> bool {
        NEW_COMMIT_MESSAGES.iter().any(|(prefix, required)| {
            let rest = self.message.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(required))
        })
    }

    /// Returns whether this entry records a checkout: HEAD moved to another branch or commit, and no branch
    /// moved.
    pub fn is_checkout(&self) -> bool {
        self.message.starts_with("checkout:")
    }

    /// Returns whether this entry finished a rebase of the branch with this full name.
    pub fn finishes_rebase_of(&self, branch: &str) -> bool {
        let finished =
            self.message.strip_prefix("rebase").and_then(|note| note.split_once("(finish): returning to "));
        finished.is_some_and(|(_, to)| to == branch)
    }

    /// Returns whether git-proq moved the ref.
    pub fn is_by_proq(&self) -> bool {
        self.message.starts_with("git-proq")
    }

    /// Returns whether this entry records a checkout of the given branch.
    pub fn is_checkout_to(&self, branch: &str) -> bool {
        self.message.starts_with("checkout: ") && self.message.ends_with(&format!(" to {branch}"))
    }
}

impl Repo {
    /// Returns the last reflog entry of HEAD of the worktree at `dir`; `None` if git keeps no log of it.
    pub fn last_head_move(&self, dir: &Path) -> Result<Option<ReflogEntry>, Error> {
        // Each start of an agent reads this for every worktree, so git would be started just as often. git is
        // needed only if HEAD has no log, where it uses the branch's log, or if logs are not files.
        if !self.is_reftable()
            && let Ok(text) = std::fs::read(self.worktree_git_dir(dir)?.join("logs/HEAD"))
        {
            return Ok(text.split(|b| *b == b'\n').rfind(|line| !line.is_empty()).and_then(parse_file_line));
        }
        Ok(self.reflog_with_limit(dir, "HEAD", &["--max-count=1"])?.pop())
    }

    /// Returns the reflog of a ref, newest entry first, as the worktree at `dir` has it; empty if git keeps
    /// no log.
    pub fn reflog(&self, dir: &Path, name: &str) -> Result<Vec<ReflogEntry>, Error> {
        self.reflog_with_limit(dir, name, &[])
    }

    fn reflog_with_limit(&self, dir: &Path, name: &str, limit: &[&str]) -> Result<Vec<ReflogEntry>, Error> {
        let call = self.git_in(dir).args(["reflog", "show", "--date=unix", "--no-show-signature", "-z"]);
        let out =
            call.args(limit).args(["--format=%H %gd %gs", name, "--"]).accept_exit_codes(&[128]).run()?;
        Ok(out.stdout.split(|b| *b == 0).filter_map(parse_show_line).collect())
    }

    /// Returns the log of HEAD of the worktree with the admin folder `admin`, oldest entry first. Each line
    /// has the format of git's own file: old and new commit, a tab, the message. This works even if HEAD is
    /// on a deleted branch. `any_commit` is a commit that exists.
    pub fn head_log(&self, admin: &Path, any_commit: CommitId, scratch: &Path) -> Option<String> {
        if self.is_reftable() {
            return self.head_log_from_reftable(admin, any_commit, scratch).ok();
        }
        let log = std::fs::read(admin.join("logs/HEAD")).ok()?;
        Some(String::from_utf8_lossy(&log).into_owned())
    }

    /// Reads HEAD's log from reftable files. git shows no log of a ref that points to nothing. HEAD is
    /// therefore set to `any_commit` in a copy of the tables, which has the same log.
    fn head_log_from_reftable(
        &self,
        admin: &Path,
        any_commit: CommitId,
        scratch: &Path,
    ) -> Result<String, Error> {
        let copy_dir = scratch.join("head");
        let tables = copy_dir.join("reftable");
        let copied = std::fs::create_dir_all(&tables).and_then(|()| {
            for table in std::fs::read_dir(admin.join("reftable"))? {
                let table = table?;
                std::fs::copy(table.path(), tables.join(table.file_name()))?;
            }
            std::fs::copy(admin.join("HEAD"), copy_dir.join("HEAD"))?;
            std::fs::write(copy_dir.join("commondir"), self.common_dir().as_os_str().as_bytes())
        });
        copied.map_err(Error::io("copy", admin))?;
        let git = || self.git().env("GIT_DIR", &copy_dir);
        git()
            .args(["update-ref", "--no-deref", "-m", COPY_MESSAGE, "HEAD", &any_commit.to_string()])
            .run()?;
        let call = git().args(["reflog", "show", "--date=unix", "--no-show-signature", "-z"]);
        let out = call.args(["--format=%H %gd %gs", "HEAD", "--"]).run()?;
        let entries = out
            .stdout
            .split(|b| *b == 0)
            .filter_map(parse_show_line)
            .filter(|entry| entry.message != COPY_MESSAGE);
        let mut entries: Vec<ReflogEntry> = entries.collect();
        entries.reverse();
        let mut old_id = any_commit.null();
        let mut log = String::new();
        for entry in entries {
            let _ = writeln!(log, "{old_id} {} \t{}", entry.new_id, entry.message);
            old_id = entry.new_id;
        }
        Ok(log)
    }
}

/// Parses `<id> <ref>@{<time>} <message>`.
fn parse_show_line(line: &[u8]) -> Option<ReflogEntry> {
    let text = String::from_utf8_lossy(line);
    let (new_id, rest) = text.split_once(' ')?;
    let (selector, message) = rest.split_once("} ").or_else(|| Some((rest.strip_suffix('}')?, "")))?;
    let (_, time) = selector.rsplit_once("@{")?;
    Some(ReflogEntry {
        new_id: CommitId::from_hex(new_id.as_bytes())?,
        time: unix_seconds::to_time(time.parse().ok()?)?,
        message: message.to_owned(),
    })
}

/// Parses a line of a reflog file: old and new commit, identity, time and zone, a tab, the message.
fn parse_file_line(line: &[u8]) -> Option<ReflogEntry> {
    let text = String::from_utf8_lossy(line);
    let (fields, message) = text.split_once('\t').unwrap_or((&text, ""));
    let (new_id, time) = (fields.split(' ').nth(1)?, fields.trim_end().rsplit(' ').nth(1)?);
    Some(ReflogEntry {
        new_id: CommitId::from_hex(new_id.as_bytes())?,
        time: unix_seconds::to_time(time.parse().ok()?)?,
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    fn entry(message: &str) -> ReflogEntry {
        parse_show_line(format!("{} HEAD@{{1700000000}} {message}", "a".repeat(40)).as_bytes()).unwrap()
    }

    #[test]
    fn last_head_move_matches_git() {
        let fixture = TestRepo::new();
        let (main, other) = (fixture.parent_dir.join("repo"), fixture.parent_dir.join("other"));
        for script in [
            "git config user.name 'A > B C'; git config user.email a@b; git commit -q --allow-empty -m 'first of  all'",
            "git switch -q -c new",
            "git update-ref HEAD $(git commit-tree -p HEAD -m y HEAD:)",
            "git worktree add -q ../other; cd ../other; git commit -q --allow-empty -m '}@{ 1'",
            "rm .git/logs/HEAD",
        ] {
            fixture.run_script("repo", script);
            let repo = Repo::discover(&main).unwrap();
            for dir in [&main, &other].into_iter().filter(|dir| dir.exists()) {
                let by_git = repo.reflog(dir, "HEAD").unwrap().into_iter().next();
                assert_eq!(repo.last_head_move(dir).unwrap(), by_git, "{script}");
                assert!(by_git.is_some(), "{script}");
            }
        }
    }

    #[test]
    fn recognizes_messages_of_new_commits() {
        for message in [
            "commit: x",
            "commit (amend): x",
            "cherry-pick: x",
            "merge b: Merge made by the 'ort' strategy.",
            "rebase (pick): x",
        ] {
            assert!(entry(message).creates_commit(), "{message}");
        }
        for message in [
            "checkout: moving from a to commit",
            "reset: moving to HEAD~",
            "merge b: Fast-forward",
            "rebase (start): checkout main",
            "rebase (finish): returning to refs/heads/x",
            "committed by somebody",
            "",
        ] {
            assert!(!entry(message).creates_commit(), "{message}");
        }
        assert_eq!(unix_seconds::from_time(entry("commit: x").time), 1_700_000_000);
    }

    #[test]
    fn recognizes_branch_of_finished_rebase() {
        for (note, rebases) in [
            ("rebase (finish): returning to refs/heads/x", true),
            ("rebase -i (finish): returning to refs/heads/x", true),
            ("rebase (finish): returning to refs/heads/x2", false),
            ("rebase (pick): returning to refs/heads/x", false),
        ] {
            assert_eq!(entry(note).finishes_rebase_of("refs/heads/x"), rebases, "{note}");
        }
    }

    #[test]
    fn recognizes_checkout_to_branch() {
        assert!(entry("checkout: moving from proq/x to feature").is_checkout_to("feature"));
        assert!(!entry("commit: go to feature").is_checkout_to("feature"));
        assert!(!entry("checkout: moving from proq/x to my-feature").is_checkout_to("feature"));
    }
}
