//! Owns moving a branch or HEAD of one worktree as a prepared transaction: locked first, committed last.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::head_file::read_head;
use super::index::{is_same_file, lock_file};
use super::refs::not_moved;
use super::transition::Tree;
use super::{Error, Oid, Repo};

/// What HEAD of a worktree names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Head {
    /// A branch, without `refs/heads/`.
    Branch(String),
    /// A commit.
    Detached(Oid),
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Head::Branch(name) => f.write_str(name),
            Head::Detached(oid) => f.write_str(&oid.short()),
        }
    }
}

/// Which ref a transition moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RefMove {
    /// None: the branch moved already, only files and index follow.
    Nothing,
    /// A branch that HEAD is on, from the transition's old commit to its new one.
    Branch(String),
    /// HEAD itself, to another branch or commit.
    Switch {
        /// What HEAD names now.
        from: Head,
        /// What it will name.
        to: Head,
    },
}

/// A ref transaction whose locks are held. Dropping it gives them back with nothing changed.
#[must_use]
pub(super) enum Prepared {
    Nothing,
    Git(Conversation),
    HeadFile(HeadFile),
}

/// A move whose locks were asked for. Git takes a while to start, in which something else can be done.
#[must_use]
pub(super) struct Asked<'a> {
    prepared: Prepared,
    /// Asks once more, without a ref that keeps the new commit.
    again: Option<Box<dyn FnOnce() -> Result<Conversation, Error> + 'a>>,
}

impl Asked<'_> {
    fn of(prepared: Prepared) -> Self {
        Asked { prepared, again: None }
    }

    /// Waits until the locks are held and the refs' old values were checked.
    pub(super) fn prepared(self) -> Result<Prepared, Error> {
        match self.prepared {
            Prepared::Git(mut talk) => {
                // A hook may refuse refs of this kind. Without one only a prune after a kill does harm.
                if let Some(again) = self.again.filter(|_| talk.hear(&DONE).is_err()) {
                    let was_killed = talk.was_killed;
                    talk = again()?;
                    talk.was_killed = was_killed;
                }
                talk.hear(&DONE[..2]).map(|()| Prepared::Git(talk))
            }
            held => Ok(held),
        }
    }
}

/// Asks for the locks of the refs of a move and for a look at their old values. Nothing is changed.
pub(super) fn ask<'a>(
    tree: &Tree<'a>,
    mv: &RefMove,
    (from, to): (Oid, Oid),
    why: &'a str,
) -> Result<Asked<'a>, Error> {
    let (repo, dir) = (tree.repo, tree.dir);
    let line = match mv {
        RefMove::Nothing => return Ok(Asked::of(Prepared::Nothing)),
        RefMove::Branch(name) => {
            // git locks HEAD for the name that HEAD has, not for what a symbolic ref of that name leads to.
            let name = repo.name_in_head(dir, &tree.git_dir, name)?.unwrap_or_else(|| name.clone());
            format!("update refs/heads/{name}\0{to}\0{from}\0")
        }
        RefMove::Switch { from: was, to: Head::Detached(id) } => {
            return detach(tree, was, *id, from, why);
        }
        RefMove::Switch { from: was, to: Head::Branch(name) } => {
            if !repo.version()?.has_symref_verbs() {
                let text = format!("ref: refs/heads/{name}\n");
                return HeadFile::lock(tree, was, &text, (from, to), why).map(Asked::of);
            }
            let old = match was {
                Head::Branch(old) => format!("ref\0refs/heads/{old}"),
                Head::Detached(old) => format!("oid\0{old}"),
            };
            format!("option no-deref\0symref-update HEAD\0refs/heads/{name}\0{old}\0")
        }
    };
    if matches!(mv, RefMove::Switch { .. }) {
        // What a switch goes to has a branch.
        let talk = Conversation::open(repo, dir, &line, why, Some(tree.git_dir.clone()), None)?;
        return Ok(Asked::of(Prepared::Git(talk)));
    }
    let talk = Conversation::open(repo, dir, &line, why, None, Some((keeper(tree.scratch), to)))?;
    let again = move || Conversation::open(repo, dir, &line, why, None, None);
    Ok(Asked { prepared: Prepared::Git(talk), again: Some(Box::new(again)) })
}

/// The ref that keeps the commit to which a step with this folder moves a branch: until then nothing else may lead to it, and whoever
/// puts right what a kill left half-done needs its files.
pub(super) fn keeper(scratch: &Path) -> String {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    format!("refs/proq/op/step-{}-{}", name(scratch.parent()), name(Some(scratch)))
}

/// HEAD becomes a plain commit id. `update-ref` compares the commit, not what HEAD names, so that is checked too.
fn detach<'a>(tree: &Tree<'a>, was: &Head, id: Oid, from: Oid, why: &'a str) -> Result<Asked<'a>, Error> {
    let (repo, dir) = (tree.repo, tree.dir);
    if !repo.is_reftable() {
        return HeadFile::lock(tree, was, &format!("{id}\n"), (from, id), why).map(Asked::of);
    }
    let line = format!("option no-deref\0update HEAD\0{id}\0{from}\0");
    Conversation::open(repo, dir, &line, why, None, None).map(Prepared::Git).map(Asked::of)
}

impl RefMove {
    /// What moves, as a person calls it.
    pub(super) fn name(&self) -> String {
        match self {
            RefMove::Branch(name) => name.clone(),
            RefMove::Nothing | RefMove::Switch { .. } => "HEAD".to_owned(),
        }
    }

    /// The move that goes back.
    pub(crate) fn inverse(&self) -> RefMove {
        match self {
            RefMove::Switch { from, to } => RefMove::Switch { from: to.clone(), to: from.clone() },
            same => same.clone(),
        }
    }
}

impl Prepared {
    /// Makes the move. When it fails nothing has moved. Returns whether a git that was killed after it has left locks.
    pub(super) fn commit(self) -> Result<bool, Error> {
        match self {
            Prepared::Nothing => Ok(false),
            Prepared::Git(talk) => talk.commit(),
            Prepared::HeadFile(head) => head.commit().map(|()| false),
        }
    }
}

/// An `update-ref --stdin` that has prepared and waits. It holds HEAD.lock and the branch's lock, so that `commit`,
/// `switch` and `reset --soft` of anybody are refused, also one that sits in its editor.
pub(super) struct Conversation {
    child: Child,
    /// The standard error of git and of its hooks, read all the time: whoever writes more than a pipe holds waits until somebody reads.
    said: Receiver<Vec<u8>>,
    name: String,
    /// The git directory whose HEAD it replaces by a file of its own, which git does not make durable.
    head_of: Option<PathBuf>,
    /// The ref that keeps the new commit until the move is made.
    keeper: Option<String>,
    /// Whether a git of this move was killed, which leaves its locks.
    was_killed: bool,
    done: bool,
}

/// How long to read what a git that has ended wrote to its standard error.
const MOMENT: Duration = Duration::from_secs(1);

/// Reads a pipe to its end beside everything else, and hands on what comes as long as anybody listens.
fn drained(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (tell, hear) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut part = vec![0; 8192];
            while let Ok(length @ 1..) = pipe.read(&mut part) {
                drop(tell.send(part[..length].to_vec()));
            }
        });
    }
    hear
}

/// The highest number that git itself ends with, for a wrong call.
const USAGE: i32 = 129;
/// Git's answers to a whole transaction.
const DONE: [&str; 3] = ["start: ok", "prepare: ok", "commit: ok"];

impl Conversation {
    fn open(
        repo: &Repo,
        dir: &Path,
        line: &str,
        why: &str,
        head_of: Option<PathBuf>,
        keeper: Option<(String, Oid)>,
    ) -> Result<Conversation, Error> {
        let name = line
            .split(['\0', ' '])
            .find(|w| w.starts_with("refs/heads/"))
            .unwrap_or("HEAD")
            .trim_start_matches("refs/heads/")
            .to_owned();
        let mut child = repo
            .git_in(dir)
            .args(["update-ref", "--stdin", "-z", "-m", why])
            .changes()
            .durable()
            .converse()?;
        let head_of = head_of.filter(|_| !repo.is_reftable());
        let keep = keeper.as_ref().map_or_else(String::new, |(keeper, commit)| {
            format!("start\0update {keeper}\0{commit}\0\0prepare\0commit\0")
        });
        let said = drained(child.stderr.take());
        let mut talk = Conversation {
            child,
            said,
            name,
            head_of,
            keeper: keeper.map(|(keeper, _)| keeper),
            was_killed: false,
            done: false,
        };
        talk.tell(&format!("{keep}start\0{line}prepare\0"))?;
        Ok(talk)
    }

    fn commit(mut self) -> Result<bool, Error> {
        if let Some(git_dir) = &self.head_of {
            // `core.fsync=reference` does not cover it: git renames what may be on no disk yet.
            let lock = git_dir.join("HEAD.lock");
            File::open(&lock).and_then(|file| file.sync_all()).map_err(Error::io("write", &lock))?;
        }
        self.tell("commit\0")?;
        self.hear(&["commit: ok"])?;
        self.done = true;
        if let Some(git_dir) = &self.head_of {
            sync_moved(git_dir);
        }
        // Where somebody else's lock or a hook keeps that ref, it goes with those of operations that left the log.
        if let Some(keeper) = self.keeper.take()
            && self.tell(&format!("start\0delete {keeper}\0\0prepare\0commit\0")).is_ok()
        {
            drop(self.hear(&DONE));
        }
        drop(self.child.stdin.take());
        self.note_end();
        Ok(self.was_killed)
    }

    fn tell(&mut self, text: &str) -> Result<(), Error> {
        let written = self
            .child
            .stdin
            .as_mut()
            .map(|stdin| stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.refused()),
        }
    }

    /// Reads git's answers, which come in a line each.
    fn hear(&mut self, wanted: &[&str]) -> Result<(), Error> {
        for want in wanted {
            let mut answer = Vec::new();
            if let Some(stdout) = self.child.stdout.as_mut() {
                // Unbuffered on purpose: the next answer must stay in the pipe.
                let mut one = BufReader::with_capacity(1, stdout);
                drop(one.read_until(b'\n', &mut answer));
            }
            if answer.trim_ascii_end() != want.as_bytes() {
                return Err(self.refused());
            }
        }
        Ok(())
    }

    fn note_end(&mut self) {
        // A shell that runs git for somebody says it by a number.
        let killed = |end: ExitStatus| end.signal().is_some() || end.code().is_some_and(|code| code > USAGE);
        self.was_killed |= self.child.wait().is_ok_and(killed);
    }

    fn refused(&mut self) -> Error {
        drop(self.child.stdin.take());
        drop(drained(self.child.stdout.take()));
        self.note_end();
        self.done = true;
        // A background process of a hook may keep the pipe open, and go on writing to it.
        let end = Instant::now() + MOMENT;
        let part = || self.said.recv_timeout(end.saturating_duration_since(Instant::now())).ok();
        let why: Vec<u8> = std::iter::from_fn(part).take_while(|_| Instant::now() < end).flatten().collect();
        not_moved(self.name.clone(), &String::from_utf8_lossy(&why), "git ended early")
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if !self.done {
            // End of input makes git roll its transaction back and remove its locks.
            drop(self.child.stdin.take());
            drop(drained(self.child.stdout.take()));
            drop(self.child.wait());
        }
    }
}

/// Makes durable that HEAD was replaced. It has been, so what fails here is no failure of the move: a disk that cannot be written
/// to fails the journal's next line, too.
fn sync_moved(git_dir: &Path) {
    drop(File::open(git_dir).and_then(|folder| folder.sync_all()));
}

/// The name in a step's folder of the file that `HEAD.lock` is a second name of.
const HEAD_MARK: &str = "mark-head";

/// Gives the `HEAD.lock` of a dead process back, if it is its own.
pub(super) fn release_head(git_dir: &Path, scratch: &Path) -> Result<(), Error> {
    let lock = git_dir.join("HEAD.lock");
    if is_same_file(&scratch.join(HEAD_MARK), &lock) {
        std::fs::remove_file(&lock).map_err(Error::io("remove", &lock))?;
    }
    Ok(())
}

/// HEAD.lock held by ourselves, for git before 2.46, which cannot switch HEAD in a transaction.
pub(super) struct HeadFile {
    head: PathBuf,
    lock: PathBuf,
    reflog: Option<(PathBuf, String)>,
    done: bool,
}

impl HeadFile {
    fn lock(
        tree: &Tree<'_>,
        was: &Head,
        text: &str,
        (from, to): (Oid, Oid),
        why: &str,
    ) -> Result<Prepared, Error> {
        let (repo, dir, git_dir) = (tree.repo, tree.dir, tree.git_dir.as_path());
        if repo.is_reftable() {
            return Err(Error::NeedsSymref { found: repo.version()?.to_string() });
        }
        let refused = |why: String| Error::RefMoved { name: "HEAD".into(), why };
        let (head, lock) = (git_dir.join("HEAD"), git_dir.join("HEAD.lock"));
        let mut file = lock_file(&lock, &tree.scratch.join(HEAD_MARK)).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => Error::RefLocked { name: "HEAD".into(), lock: lock.clone() },
            _ => refused(format!("{} cannot be made: {e}", lock.display())),
        })?;
        let held =
            HeadFile { head, lock, reflog: reflog_line(repo, dir, git_dir, (from, to), why)?, done: false };
        repo.sharing().adjust_open(&file).map_err(Error::io("write", &held.lock))?;
        let now = read_head(git_dir).map_err(Error::io("read", &held.head))?;
        let want = match was {
            Head::Branch(name) => format!("ref: refs/heads/{name}"),
            Head::Detached(id) => id.to_string(),
        };
        if now != want {
            return Err(refused(format!("it names {now} now")));
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all())
            .map_err(Error::io("write", &held.lock))?;
        Ok(Prepared::HeadFile(held))
    }

    fn commit(mut self) -> Result<(), Error> {
        if let Some((file, line)) = &self.reflog {
            let log = OpenOptions::new().append(true).create(true).open(file);
            log.and_then(|mut f| f.write_all(line.as_bytes())).map_err(Error::io("write", file))?;
        }
        std::fs::rename(&self.lock, &self.head).map_err(Error::io("replace", &self.head))?;
        self.done = true;
        if let Some(git_dir) = self.head.parent() {
            sync_moved(git_dir);
        }
        Ok(())
    }
}

impl Drop for HeadFile {
    fn drop(&mut self) {
        if !self.done {
            drop(std::fs::remove_file(&self.lock));
        }
    }
}

/// The line that git itself would add to HEAD's reflog; none where it keeps no reflog.
fn reflog_line(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    (from, to): (Oid, Oid),
    why: &str,
) -> Result<Option<(PathBuf, String)>, Error> {
    let file = git_dir.join("logs/HEAD");
    if !file.exists() {
        return Ok(None);
    }
    let who = repo.git_in(dir).args(["var", "GIT_COMMITTER_IDENT"]).run()?.line();
    Ok(Some((file, format!("{from} {to} {who}\t{why}\n"))))
}
