//! Owns git's own word about merges: many in one start of it, resumed behind the last answer when it does not come to
//! an end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use git_proq::Oid;

use super::{Outcome, fail};

/// What git says about one merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// It merges, to this tree.
    Clean(String),
    /// It conflicts: the tree with markers, and the conflicted paths in order.
    Conflict(String, Vec<Vec<u8>>),
    /// It refuses it, in these words.
    Refused(String),
    /// It came to no end with this very merge; how, in these words.
    Unknown(String),
}

/// A repository to ask git about.
#[derive(Debug, Clone)]
pub(crate) struct Judge {
    dir: PathBuf,
}

impl Judge {
    /// Asks in a folder of the repository.
    pub(crate) fn new(dir: &Path) -> Judge {
        Judge { dir: dir.to_owned() }
    }

    /// Git's word about each of these merges, histories that have nothing in common included.
    pub(crate) fn all(&self, merges: &[(Oid, Oid)]) -> Outcome<Vec<Said>> {
        let (mut said, end) = self.batch(merges)?;
        let rest = merges.get(said.len()..).unwrap_or_default();
        match rest {
            [] => {}
            [_] => said.push(end),
            // What was answered when git ended may not have been written: where it failed is not known yet.
            _ => {
                let (one, two) = rest.split_at(rest.len() / 2);
                said.extend(self.all(one)?);
                said.extend(self.all(two)?);
            }
        }
        Ok(said)
    }

    /// Git's word about one merge, as an answer to the call that a landing makes.
    pub(crate) fn one(&self, options: &[&str], ours: Oid, theirs: Oid) -> Outcome<Said> {
        let mut git = git(&self.dir);
        git.args(options).args(["merge-tree", "--write-tree", "-z", "--no-messages"]);
        let out = git.args([ours.to_string(), theirs.to_string()]).output()?;
        let Some(clean) = out.status.code().filter(|c| matches!(c, 0 | 1)).map(|code| code == 0) else {
            return Ok(unanswered(&out));
        };
        let mut fields = out.stdout.split(|b| *b == 0);
        let tree = fields.next().map(text).unwrap_or_default();
        match answer(clean, tree, fields.take_while(|f| !f.is_empty())) {
            Some(said) => Ok(said),
            None => fail("git merge-tree answers in another form"),
        }
    }

    /// The answers that came, and what the lack of another one means.
    fn batch(&self, merges: &[(Oid, Oid)]) -> Outcome<(Vec<Said>, Said)> {
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
        let out = feed(&mut git, lines.concat().into_bytes())?;
        let said = parse(&out.stdout);
        if out.status.success() && said.len() != merges.len() {
            return fail("git merge-tree answers another number of merges");
        }
        Ok((said, unanswered(&out)))
    }
}

/// A call of git in a folder, with nothing of the environment that points elsewhere.
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

/// Writes git's table of who is whose parent for these commits and all before them, which merge bases are found by faster.
pub(crate) fn write_graph(dir: &Path, commits: impl IntoIterator<Item = Oid>) -> Outcome<()> {
    let lines: Vec<String> = commits.into_iter().map(|id| format!("{id}\n")).collect();
    let mut call = git(dir);
    let out = feed(call.args(["commit-graph", "write", "--stdin-commits"]), lines.concat().into_bytes())?;
    if out.status.success() { Ok(()) } else { fail(format!("git commit-graph: {}", why(&out))) }
}

/// Runs a call with this input. It may end without reading all of it.
pub(crate) fn feed(git: &mut Command, input: Vec<u8>) -> Outcome<Output> {
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

/// How a call ended, in git's words if it has any.
pub(crate) fn why(out: &Output) -> String {
    let said = String::from_utf8_lossy(&out.stderr);
    let fatal = said.lines().find(|l| l.starts_with("fatal: "));
    let line = fatal.or(said.lines().rfind(|l| !l.trim().is_empty())).unwrap_or_default();
    format!("{}: {line}", out.status)
}

/// What the end of a call that did not answer means: git's own decision, or the end of git.
fn unanswered(out: &Output) -> Said {
    if out.status.code().is_some() { Said::Refused(why(out)) } else { Said::Unknown(why(out)) }
}

/// Reads `(<1 or 0>\0 <tree>\0 (<mode> <id> <stage>\t<path>\0)* \0)*`, as far as it is whole.
fn parse(bytes: &[u8]) -> Vec<Said> {
    let mut out = Vec::new();
    let mut fields: Vec<&[u8]> = bytes.split(|b| *b == 0).collect();
    // What follows the last NUL is cut off, or nothing.
    fields.pop();
    let mut rest = &fields[..];
    while let Some(end) = rest.iter().position(|f| f.is_empty()) {
        let (record, after) = rest.split_at(end);
        let [status, tree, stages @ ..] = record else { break };
        let Some(said) = answer(*status == b"1", text(tree), stages.iter().copied()) else { break };
        out.push(said);
        rest = &after[1..];
    }
    out
}

fn answer<'a>(clean: bool, tree: String, stages: impl Iterator<Item = &'a [u8]>) -> Option<Said> {
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
    Some(if clean { Said::Clean(tree) } else { Said::Conflict(tree, paths) })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_answers_are_read_and_one_that_is_cut_off_is_not() {
        let id = "a".repeat(40);
        let whole = format!("1\0{id}\0\x000\0{id}\x00100644 {id} 2\tb\nc\x00100644 {id} 1\tb\nc\0\0");
        let wanted = [Said::Clean(id.clone()), Said::Conflict(id.clone(), vec![b"b\nc".to_vec()])];
        assert_eq!(parse(whole.as_bytes()), wanted);
        assert_eq!(parse(format!("{whole}1\0{id}\0").as_bytes()), wanted);
        assert_eq!(parse(&whole.as_bytes()[..whole.len() - 1]), wanted[..1]);
        assert_eq!(parse(b""), []);
    }
}
