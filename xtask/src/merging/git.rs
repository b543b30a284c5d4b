//! Verdicts of git on merges. One process computes many merges; it is restarted after the last answer when it
//! crashes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use git_proq::types::CommitId;

use super::{Outcome, fail};

/// Verdict of git on one merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GitVerdict {
    /// The merge is clean and has this tree.
    Clean(String),
    /// The merge conflicts: the tree with conflict markers, and the conflicted paths in order.
    Conflict(String, Vec<Vec<u8>>),
    /// Git refuses the merge, with this text.
    Refused(String),
    /// Git crashed on this merge, with this text.
    Unknown(String),
}

/// Repository in which git computes merges.
#[derive(Debug, Clone)]
pub(crate) struct GitOracle {
    dir: PathBuf,
}

impl GitOracle {
    /// Uses a folder of the repository.
    pub(crate) fn new(dir: &Path) -> GitOracle {
        GitOracle { dir: dir.to_owned() }
    }

    /// Returns git's verdict on each merge, including those of unrelated histories.
    pub(crate) fn verdicts(&self, merges: &[(CommitId, CommitId)]) -> Outcome<Vec<GitVerdict>> {
        let (mut verdicts, failure) = self.run_batch(merges)?;
        let rest = merges.get(verdicts.len()..).unwrap_or_default();
        match rest {
            [] => {}
            [_] => verdicts.push(failure),
            // Answers from before the crash may not have been written, so the merge that failed is not known
            // yet.
            _ => {
                let (first, second) = rest.split_at(rest.len() / 2);
                verdicts.extend(self.verdicts(first)?);
                verdicts.extend(self.verdicts(second)?);
            }
        }
        Ok(verdicts)
    }

    /// Returns git's verdict on one merge, from the call that a landing makes.
    pub(crate) fn verdict(&self, options: &[&str], ours: CommitId, theirs: CommitId) -> Outcome<GitVerdict> {
        let mut git = git(&self.dir);
        git.args(options).args(["merge-tree", "--write-tree", "-z", "--no-messages"]);
        let out = git.args([ours.to_string(), theirs.to_string()]).output()?;
        let Some(clean) = out.status.code().filter(|c| matches!(c, 0 | 1)).map(|code| code == 0) else {
            return Ok(verdict_without_answer(&out));
        };
        let mut fields = out.stdout.split(|b| *b == 0);
        let tree = fields.next().map(lossy_text).unwrap_or_default();
        match parse_answer(clean, tree, fields.take_while(|f| !f.is_empty())) {
            Some(verdict) => Ok(verdict),
            None => fail("git merge-tree answers in another form"),
        }
    }

    /// Returns the answers that git gave, and the verdict for the first missing one.
    fn run_batch(&self, merges: &[(CommitId, CommitId)]) -> Outcome<(Vec<GitVerdict>, GitVerdict)> {
        let mut git = git(&self.dir);
        git.args([
            "merge-tree",
            "--write-tree",
            "-z",
            "--no-messages",
            "--allow-unrelated-histories",
            "--stdin",
        ]);
        let lines: Vec<String> = merges.iter().map(|(ours, theirs)| format!("{ours} {theirs}\n")).collect();
        let out = run_with_input(&mut git, lines.concat().into_bytes())?;
        let verdicts = parse_answers(&out.stdout);
        if out.status.success() && verdicts.len() != merges.len() {
            return fail("git merge-tree answers another number of merges");
        }
        Ok((verdicts, verdict_without_answer(&out)))
    }
}

/// Returns a git command in a folder, without environment variables that point elsewhere.
pub(crate) fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("GIT_") && !name.starts_with("GIT_CONFIG") {
            git.env_remove(&key);
        }
    }
    git.current_dir(dir)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    git
}

/// Writes git's commit-graph for these commits and their ancestors, which makes finding merge bases faster.
pub(crate) fn write_commit_graph(dir: &Path, commits: impl IntoIterator<Item = CommitId>) -> Outcome<()> {
    let lines: Vec<String> = commits.into_iter().map(|id| format!("{id}\n")).collect();
    let mut call = git(dir);
    let out =
        run_with_input(call.args(["commit-graph", "write", "--stdin-commits"]), lines.concat().into_bytes())?;
    if out.status.success() { Ok(()) } else { fail(format!("git commit-graph: {}", exit_reason(&out))) }
}

/// Runs a command with this input. The command may exit without reading all of it.
pub(crate) fn run_with_input(git: &mut Command, input: Vec<u8>) -> Outcome<Output> {
    let mut child = git.stdin(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    let out = std::thread::scope(|scope| {
        if let Some(mut stdin) = stdin {
            scope.spawn(move || drop(stdin.write_all(&input)));
        }
        child.wait_with_output()
    })?;
    Ok(out)
}

/// Describes how a command exited, with git's own message if there is one.
pub(crate) fn exit_reason(out: &Output) -> String {
    let stderr = String::from_utf8_lossy(&out.stderr);
    let fatal = stderr.lines().find(|l| l.starts_with("fatal: "));
    let line = fatal.or(stderr.lines().rfind(|l| !l.trim().is_empty())).unwrap_or_default();
    format!("{}: {line}", out.status)
}

/// Returns the verdict for a call without an answer: git's own refusal, or a crash.
fn verdict_without_answer(out: &Output) -> GitVerdict {
    if out.status.code().is_some() {
        GitVerdict::Refused(exit_reason(out))
    } else {
        GitVerdict::Unknown(exit_reason(out))
    }
}

/// Parses `(<1 or 0>\0 <tree>\0 (<mode> <id> <stage>\t<path>\0)* \0)*`, up to the last complete record.
fn parse_answers(bytes: &[u8]) -> Vec<GitVerdict> {
    let mut out = Vec::new();
    let mut fields: Vec<&[u8]> = bytes.split(|b| *b == 0).collect();
    // The text after the last NUL is empty or incomplete.
    fields.pop();
    let mut rest = &fields[..];
    while let Some(end) = rest.iter().position(|f| f.is_empty()) {
        let (record, after) = rest.split_at(end);
        let [status, tree, stages @ ..] = record else { break };
        let Some(verdict) = parse_answer(*status == b"1", lossy_text(tree), stages.iter().copied()) else {
            break;
        };
        out.push(verdict);
        rest = &after[1..];
    }
    out
}

fn parse_answer<'a>(clean: bool, tree: String, stages: impl Iterator<Item = &'a [u8]>) -> Option<GitVerdict> {
    if tree.len() < 40 || !tree.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut paths = Vec::new();
    for stage in stages {
        let tab = stage.iter().position(|b| *b == b'\t')?;
        paths.push(stage[tab + 1..].to_vec());
    }
    paths.sort_unstable();
    paths.dedup();
    Some(if clean { GitVerdict::Clean(tree) } else { GitVerdict::Conflict(tree, paths) })
}

fn lossy_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_complete_answers_and_drops_a_truncated_one() {
        let id = "a".repeat(40);
        let complete = format!("1\0{id}\0\x000\0{id}\x00100644 {id} 2\tb\nc\x00100644 {id} 1\tb\nc\0\0");
        let wanted =
            [GitVerdict::Clean(id.clone()), GitVerdict::Conflict(id.clone(), vec![b"b\nc".to_vec()])];
        assert_eq!(parse_answers(complete.as_bytes()), wanted);
        assert_eq!(parse_answers(format!("{complete}1\0{id}\0").as_bytes()), wanted);
        assert_eq!(parse_answers(&complete.as_bytes()[..complete.len() - 1]), wanted[..1]);
        assert_eq!(parse_answers(b""), []);
    }
}
