//! Owns reading what git remembers of where a ref was: its reflog.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Error, Oid, Repo};

/// The note in the log of a copied HEAD for the move that was made to be able to read it.
const COPIED: &str = "git-proq: copied";

/// How git begins the note of a commit that was made, and what else has to be in the note then. Every other move leads to
/// a commit that was there before: a checkout, a reset, a fast-forward.
const MADE: &[(&str, &str)] = &[
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

/// One move of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    /// Where it went.
    pub(crate) to: Oid,
    /// When, in seconds since 1970.
    pub(crate) at: i64,
    /// What git noted.
    note: String,
}

impl Move {
    /// Whether the commit was made by this move, and not only gone to.
    pub(crate) fn made(&self) -> bool {
        MADE.iter().any(|(start, inside)| {
            let rest = self.note.strip_prefix(start);
            rest.is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(inside))
        })
    }

    /// Whether HEAD went to another branch or commit, and no branch moved.
    pub(crate) fn switches(&self) -> bool {
        self.note.starts_with("checkout:")
    }

    /// Whether a rebase of the branch with this full name ended with it.
    pub(crate) fn rebases(&self, branch: &str) -> bool {
        let done =
            self.note.strip_prefix("rebase").and_then(|note| note.split_once("(finish): returning to "));
        done.is_some_and(|(_, to)| to == branch)
    }

    /// Whether it is HEAD's move to this branch.
    pub(crate) fn enters(&self, branch: &str) -> bool {
        self.note.starts_with("checkout: ") && self.note.ends_with(&format!(" to {branch}"))
    }
}

impl Repo {
    /// The last move of HEAD of the worktree at `dir`; none where git keeps no log of it.
    pub(crate) fn last_move(&self, dir: &Path) -> Result<Option<Move>, Error> {
        // Whenever an agent is started, this is asked of every worktree: git itself would be started as often. It goes by the branch's
        // log where HEAD has none, and reads those that are in no file.
        if !self.is_reftable()
            && let Ok(text) = std::fs::read(self.git_dir_of(dir)?.join("logs/HEAD"))
        {
            return Ok(text.split(|b| *b == b'\n').rfind(|line| !line.is_empty()).and_then(parse_line));
        }
        Ok(self.moves_up_to(dir, "HEAD", &["--max-count=1"])?.pop())
    }

    /// The moves of a ref, the newest first, as the worktree at `dir` has them; none where git keeps no log of it.
    pub(crate) fn moves(&self, dir: &Path, name: &str) -> Result<Vec<Move>, Error> {
        self.moves_up_to(dir, name, &[])
    }

    fn moves_up_to(&self, dir: &Path, name: &str, limit: &[&str]) -> Result<Vec<Move>, Error> {
        let call = self.git_in(dir).args(["reflog", "show", "--date=unix", "--no-show-signature", "-z"]);
        let out = call.args(limit).args(["--format=%H %gd %gs", name, "--"]).accept(&[128]).run()?;
        Ok(out.stdout.split(|b| *b == 0).filter_map(parse).collect())
    }

    /// The log of HEAD of the worktree with the admin folder `admin`, oldest first, a line each as in git's own file: the commits before
    /// and after, a tab, the note. It is there also where HEAD is on a branch that is gone. `any` is a commit that exists.
    pub(crate) fn head_log(&self, admin: &Path, any: Oid, scratch: &Path) -> Option<String> {
        if self.is_reftable() {
            return self.head_log_in_tables(admin, any, scratch).ok();
        }
        let log = std::fs::read(admin.join("logs/HEAD")).ok()?;
        Some(String::from_utf8_lossy(&log).into_owned())
    }

    /// Git shows the log of no ref that leads to nothing. A copy of the tables in which HEAD leads somewhere has the same log.
    fn head_log_in_tables(&self, admin: &Path, any: Oid, scratch: &Path) -> Result<String, Error> {
        let copy = scratch.join("head");
        let tables = copy.join("reftable");
        let made = std::fs::create_dir_all(&tables).and_then(|()| {
            for table in std::fs::read_dir(admin.join("reftable"))? {
                let table = table?;
                std::fs::copy(table.path(), tables.join(table.file_name()))?;
            }
            std::fs::copy(admin.join("HEAD"), copy.join("HEAD"))?;
            std::fs::write(copy.join("commondir"), self.common_dir().as_os_str().as_bytes())
        });
        made.map_err(Error::io("copy", admin))?;
        let git = || self.git().env("GIT_DIR", &copy);
        git().args(["update-ref", "--no-deref", "-m", COPIED, "HEAD", &any.to_string()]).run()?;
        let call = git().args(["reflog", "show", "--date=unix", "--no-show-signature", "-z"]);
        let out = call.args(["--format=%H %gd %gs", "HEAD", "--"]).run()?;
        let moves = out.stdout.split(|b| *b == 0).filter_map(parse).filter(|step| step.note != COPIED);
        let mut moves: Vec<Move> = moves.collect();
        moves.reverse();
        let mut before = any.null();
        let mut log = String::new();
        for step in moves {
            let _ = writeln!(log, "{before} {} \t{}", step.to, step.note);
            before = step.to;
        }
        Ok(log)
    }
}

/// Reads `<id> <ref>@{<time>} <note>`.
fn parse(line: &[u8]) -> Option<Move> {
    let text = String::from_utf8_lossy(line);
    let (to, rest) = text.split_once(' ')?;
    let (before, note) = rest.split_once("} ").or_else(|| Some((rest.strip_suffix('}')?, "")))?;
    let (_, at) = before.rsplit_once("@{")?;
    Some(Move { to: Oid::from_hex(to.as_bytes())?, at: at.parse().ok()?, note: note.to_owned() })
}

/// Reads a line of a log's file: the commits before and after, who it was, the time and its zone, a tab, the note.
fn parse_line(line: &[u8]) -> Option<Move> {
    let text = String::from_utf8_lossy(line);
    let (step, note) = text.split_once('\t').unwrap_or((&text, ""));
    let (to, at) = (step.split(' ').nth(1)?, step.trim_end().rsplit(' ').nth(1)?);
    Some(Move { to: Oid::from_hex(to.as_bytes())?, at: at.parse().ok()?, note: note.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::place::Place;

    fn read(note: &str) -> Move {
        parse(format!("{} HEAD@{{1700000000}} {note}", "a".repeat(40)).as_bytes()).unwrap()
    }

    #[test]
    fn the_last_move_is_the_one_that_git_names() {
        let place = Place::new();
        let (main, other) = (place.top.join("repo"), place.top.join("other"));
        for script in [
            "git config user.name 'A > B C'; git config user.email a@b; git commit -q --allow-empty -m 'first of  all'",
            "git switch -q -c new",
            "git update-ref HEAD $(git commit-tree -p HEAD -m y HEAD:)",
            "git worktree add -q ../other; cd ../other; git commit -q --allow-empty -m '}@{ 1'",
            "rm .git/logs/HEAD",
        ] {
            place.sh("repo", script);
            let repo = Repo::discover(&main).unwrap();
            for dir in [&main, &other].into_iter().filter(|dir| dir.exists()) {
                let by_git = repo.moves(dir, "HEAD").unwrap().into_iter().next();
                assert_eq!(repo.last_move(dir).unwrap(), by_git, "{script}");
                assert!(by_git.is_some(), "{script}");
            }
        }
    }

    #[test]
    fn only_commits_are_made() {
        for made in [
            "commit: x",
            "commit (amend): x",
            "cherry-pick: x",
            "merge b: Merge made by the 'ort' strategy.",
            "rebase (pick): x",
        ] {
            assert!(read(made).made(), "{made}");
        }
        for gone in [
            "checkout: moving from a to commit",
            "reset: moving to HEAD~",
            "merge b: Fast-forward",
            "rebase (start): checkout main",
            "rebase (finish): returning to refs/heads/x",
            "committed by somebody",
            "",
        ] {
            assert!(!read(gone).made(), "{gone}");
        }
        assert_eq!(read("commit: x").at, 1_700_000_000);
    }

    #[test]
    fn the_end_of_a_rebase_names_its_branch() {
        for (note, rebases) in [
            ("rebase (finish): returning to refs/heads/x", true),
            ("rebase -i (finish): returning to refs/heads/x", true),
            ("rebase (finish): returning to refs/heads/x2", false),
            ("rebase (pick): returning to refs/heads/x", false),
        ] {
            assert_eq!(read(note).rebases("refs/heads/x"), rebases, "{note}");
        }
    }

    #[test]
    fn a_branch_is_entered_by_a_checkout() {
        assert!(read("checkout: moving from proq/x to feature").enters("feature"));
        assert!(!read("commit: go to feature").enters("feature"));
        assert!(!read("checkout: moving from proq/x to my-feature").enters("feature"));
    }
}
