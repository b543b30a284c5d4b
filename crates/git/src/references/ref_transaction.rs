//! Move of a branch or of HEAD of one worktree as a prepared transaction: locked first, committed last.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::locked_branch::{BRANCH_LOCK_LINK_FILE, HEAD_LOCK_LINK_FILE, LockedBranch};
use super::refs::classify_ref_failure;
use crate::base::head::{BRANCH_PREFIX, Head, RefMove};
use crate::base::lock_file::{create_linked_lock_file, is_same_file};
use crate::program::exit_status::is_kill;
use crate::repository::head_file::read_head;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, Repo};

/// Ref transaction that holds its locks. Dropping it releases them and changes nothing.
#[must_use]
pub(crate) enum PreparedMove {
    Nothing,
    UpdateRef(UpdateRefProcess),
    HeadFile(HeadFileLock),
    LockedBranch(LockedBranch),
}

/// Ref transaction whose locks git-proq has requested but not yet confirmed. git takes a while to start;
/// other work can be done until then.
#[must_use]
pub(crate) struct PendingMove<'a> {
    prepared: PreparedMove,
    /// Starts the transaction again without a keeper ref, which a hook may have refused.
    retry_without_keeper_ref: Option<Box<dyn FnOnce() -> Result<UpdateRefProcess, Error> + 'a>>,
}

impl PendingMove<'_> {
    fn without_retry(prepared: PreparedMove) -> Self {
        PendingMove { prepared, retry_without_keeper_ref: None }
    }

    /// Waits until the locks are held and the old values of the refs are verified.
    pub(crate) fn wait_until_prepared(self) -> Result<PreparedMove, Error> {
        match self.prepared {
            PreparedMove::UpdateRef(mut process) => {
                // A hook may refuse keeper refs. Without one, only a prune after a kill does harm.
                if let Some(retry) = self
                    .retry_without_keeper_ref
                    .filter(|_| process.expect_replies(&TRANSACTION_REPLIES).is_err())
                {
                    let was_killed = process.was_killed;
                    process = retry()?;
                    process.was_killed = was_killed;
                }
                process.expect_replies(&TRANSACTION_REPLIES[..2]).map(|()| PreparedMove::UpdateRef(process))
            }
            prepared => Ok(prepared),
        }
    }
}

/// Requests the locks of the refs of a move and a check of their old values, without changing anything.
pub(crate) fn start_move<'a>(
    tree: &WorktreeContext<'a>,
    mv: &RefMove,
    (from, to): (CommitId, CommitId),
    message: &'a str,
) -> Result<PendingMove<'a>, Error> {
    let (repo, dir) = (tree.repo, tree.dir);
    let command = match mv {
        RefMove::Nothing => return Ok(PendingMove::without_retry(PreparedMove::Nothing)),
        RefMove::Branch(name) => {
            // git locks HEAD for the name that HEAD contains, not for the target of a symbolic ref of that
            // name.
            let name = repo.branch_name_in_head(dir, &tree.git_dir, name)?.unwrap_or_else(|| name.clone());
            if let Some(locked) =
                LockedBranch::acquire(tree, &name, (from, to), keeper_ref_name(tree.scratch), message)
            {
                return Ok(PendingMove::without_retry(PreparedMove::LockedBranch(locked)));
            }
            format!("update refs/heads/{name}\0{to}\0{from}\0")
        }
        RefMove::Switch { from: old_head, to: Head::Detached(id) } => {
            return start_detach(tree, old_head, *id, from, message);
        }
        RefMove::Switch { from: old_head, to: Head::Branch(name) } => {
            if !repo.version()?.has_symref_verbs() {
                let text = format!("ref: refs/heads/{name}\n");
                return HeadFileLock::acquire(tree, old_head, &text, (from, to), message)
                    .map(PendingMove::without_retry);
            }
            let old_value = match old_head {
                Head::Branch(old) => format!("ref\0refs/heads/{old}"),
                Head::Detached(old) => format!("oid\0{old}"),
            };
            format!("option no-deref\0symref-update HEAD\0refs/heads/{name}\0{old_value}\0")
        }
    };
    if matches!(mv, RefMove::Switch { .. }) {
        // The target of a switch is already on a branch, so it needs no keeper ref.
        let process =
            UpdateRefProcess::start(repo, dir, &command, message, Some(tree.git_dir.clone()), None)?;
        return Ok(PendingMove::without_retry(PreparedMove::UpdateRef(process)));
    }
    let process = UpdateRefProcess::start(
        repo,
        dir,
        &command,
        message,
        None,
        Some((keeper_ref_name(tree.scratch), to)),
    )?;
    let retry = move || UpdateRefProcess::start(repo, dir, &command, message, None, None);
    Ok(PendingMove {
        prepared: PreparedMove::UpdateRef(process),
        retry_without_keeper_ref: Some(Box::new(retry)),
    })
}

/// Returns the name of the keeper ref for a step with this scratch folder. The ref points to the commit to
/// which the step moves a branch. Until the branch moves, no other ref may reach the commit, and recovery
/// after a kill needs its files.
pub(crate) fn keeper_ref_name(scratch: &Path) -> String {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    };
    format!("refs/proq/op/step-{}-{}", name(scratch.parent()), name(Some(scratch)))
}

/// Starts a move of HEAD to a commit, detached from any branch. `update-ref` compares the commit, not the
/// name in HEAD, so the name is checked too.
fn start_detach<'a>(
    tree: &WorktreeContext<'a>,
    old_head: &Head,
    target_commit: CommitId,
    from: CommitId,
    message: &'a str,
) -> Result<PendingMove<'a>, Error> {
    let (repo, dir) = (tree.repo, tree.dir);
    if !repo.is_reftable() {
        return HeadFileLock::acquire(
            tree,
            old_head,
            &format!("{target_commit}\n"),
            (from, target_commit),
            message,
        )
        .map(PendingMove::without_retry);
    }
    let command = format!("option no-deref\0update HEAD\0{target_commit}\0{from}\0");
    UpdateRefProcess::start(repo, dir, &command, message, None, None)
        .map(PreparedMove::UpdateRef)
        .map(PendingMove::without_retry)
}

impl PreparedMove {
    /// Commits the move. If it fails, nothing has moved. Returns whether a git process that was killed
    /// afterwards has left locks.
    pub fn commit(self, repo: &Repo) -> Result<bool, Error> {
        match self {
            PreparedMove::LockedBranch(locked) => locked.commit(repo).map(|()| false),
            PreparedMove::Nothing => Ok(false),
            PreparedMove::UpdateRef(process) => process.commit(),
            PreparedMove::HeadFile(lock) => lock.commit().map(|()| false),
        }
    }
}

/// Running `git update-ref --stdin` with a prepared transaction. It holds HEAD.lock and the lock of the
/// branch, so that every `commit`, `switch` and `reset --soft` of other processes is refused, even one that
/// waits in its editor.
pub(crate) struct UpdateRefProcess {
    child: Child,
    /// Standard error of git and of its hooks. It is read all the time, because a process that writes more
    /// than a pipe holds blocks until it is read.
    stderr_chunks: Receiver<Vec<u8>>,
    /// Name of the moved ref for messages: a branch without `refs/heads/`, or `HEAD`.
    moved_ref_name: String,
    /// Git directory whose HEAD git replaces by a new file, which git does not make durable.
    replaced_head_dir: Option<PathBuf>,
    /// Ref that keeps the new commit until the move is committed.
    keeper_ref: Option<String>,
    /// Whether a git process of this move was killed, which leaves its locks.
    was_killed: bool,
    /// Flag of the repository for a killed git.
    killed_git: Rc<Cell<bool>>,
    is_finished: bool,
}

/// Time limit for reading the standard error of a git process that has exited.
const STDERR_READ_LIMIT: Duration = Duration::from_secs(1);

/// Reads a pipe to its end on another thread, and passes its chunks on as long as the receiver exists.
fn read_in_background(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut pipe) = pipe {
        std::thread::spawn(move || {
            let mut buffer = vec![0; 8192];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                drop(sender.send(buffer[..length].to_vec()));
            }
        });
    }
    receiver
}

/// Replies of git to a complete transaction.
const TRANSACTION_REPLIES: [&str; 3] = ["start: ok", "prepare: ok", "commit: ok"];

impl UpdateRefProcess {
    fn start(
        repo: &Repo,
        dir: &Path,
        command: &str,
        message: &str,
        replaced_head_dir: Option<PathBuf>,
        keeper_ref: Option<(String, CommitId)>,
    ) -> Result<UpdateRefProcess, Error> {
        let name = command
            .split(['\0', ' '])
            .find(|w| w.starts_with("refs/heads/"))
            .unwrap_or("HEAD")
            .trim_start_matches("refs/heads/")
            .to_owned();
        let mut child = repo
            .git_in(dir)
            .args(["update-ref", "--stdin", "-z", "-m", message])
            .mutating()
            .durable()
            .spawn_with_pipes()?;
        let replaced_head_dir = replaced_head_dir.filter(|_| !repo.is_reftable());
        let keeper_commands = keeper_ref.as_ref().map_or_else(String::new, |(ref_name, commit)| {
            format!("start\0update {ref_name}\0{commit}\0\0prepare\0commit\0")
        });
        let stderr_chunks = read_in_background(child.stderr.take());
        let mut process = UpdateRefProcess {
            child,
            stderr_chunks,
            moved_ref_name: name,
            replaced_head_dir,
            keeper_ref: keeper_ref.map(|(ref_name, _)| ref_name),
            was_killed: false,
            killed_git: repo.killed_git(),
            is_finished: false,
        };
        process.send(&format!("{keeper_commands}start\0{command}prepare\0"))?;
        Ok(process)
    }

    fn commit(mut self) -> Result<bool, Error> {
        if let Some(git_dir) = &self.replaced_head_dir {
            // `core.fsync=reference` does not cover HEAD: git renames a lock file that may not be on disk
            // yet.
            let lock = git_dir.join("HEAD.lock");
            File::open(&lock).and_then(|file| file.sync_all()).map_err(Error::io("write", &lock))?;
        }
        self.send("commit\0")?;
        self.expect_replies(&["commit: ok"])?;
        self.is_finished = true;
        if let Some(git_dir) = &self.replaced_head_dir {
            sync_head_folder(git_dir);
        }
        // If another process's lock or a hook prevents the deletion, the keeper ref is deleted with those of
        // operations that left the log.
        if let Some(keeper_ref) = self.keeper_ref.take()
            && self.send(&format!("start\0delete {keeper_ref}\0\0prepare\0commit\0")).is_ok()
        {
            drop(self.expect_replies(&TRANSACTION_REPLIES));
        }
        drop(self.child.stdin.take());
        self.wait_for_exit();
        Ok(self.was_killed)
    }

    fn send(&mut self, text: &str) -> Result<(), Error> {
        let written = self
            .child
            .stdin
            .as_mut()
            .map(|stdin| stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.finish_with_error()),
        }
    }

    /// Reads git's replies, one line each, and fails if one differs from the expected reply.
    fn expect_replies(&mut self, expected: &[&str]) -> Result<(), Error> {
        for reply in expected {
            let mut answer = Vec::new();
            if let Some(stdout) = self.child.stdout.as_mut() {
                // Unbuffered on purpose: the next reply must stay in the pipe.
                let mut reader = BufReader::with_capacity(1, stdout);
                drop(reader.read_until(b'\n', &mut answer));
            }
            if answer.trim_ascii_end() != reply.as_bytes() {
                return Err(self.finish_with_error());
            }
        }
        Ok(())
    }

    fn wait_for_exit(&mut self) {
        if self.child.wait().is_ok_and(is_kill) {
            self.was_killed = true;
            self.killed_git.set(true);
        }
    }

    /// Ends the transaction, and returns an error with what git wrote to standard error.
    fn finish_with_error(&mut self) -> Error {
        drop(self.child.stdin.take());
        drop(read_in_background(self.child.stdout.take()));
        self.wait_for_exit();
        self.is_finished = true;
        // A background process of a hook may keep the pipe open and continue to write to it.
        let deadline = Instant::now() + STDERR_READ_LIMIT;
        let next_chunk =
            || self.stderr_chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
        let stderr: Vec<u8> =
            std::iter::from_fn(next_chunk).take_while(|_| Instant::now() < deadline).flatten().collect();
        classify_ref_failure(
            self.moved_ref_name.clone(),
            &String::from_utf8_lossy(&stderr),
            "git ended early",
        )
    }
}

impl Drop for UpdateRefProcess {
    fn drop(&mut self) {
        if !self.is_finished {
            // End of input makes git roll its transaction back and remove its locks.
            drop(self.child.stdin.take());
            drop(read_in_background(self.child.stdout.take()));
            self.wait_for_exit();
        }
    }
}

/// Makes the replacement of HEAD durable. The move has succeeded, so a failure here is no failure of the
/// move: if the disk cannot be written to, the next line of the journal fails, too.
fn sync_head_folder(git_dir: &Path) {
    drop(File::open(git_dir).and_then(|folder| folder.sync_all()));
}

/// Releases the `HEAD.lock` of a process that no longer runs, if the lock belongs to this step.
pub(crate) fn release_head_lock(git_dir: &Path, scratch: &Path) -> Result<(), Error> {
    release_linked_lock(&git_dir.join("HEAD.lock"), &scratch.join(HEAD_LOCK_LINK_FILE))
}

/// Releases the lock of the branch `name` of a process that no longer runs, if the lock belongs to this step.
pub(crate) fn release_branch_lock(repo: &Repo, name: &str, scratch: &Path) -> Result<(), Error> {
    let lock = repo.common_dir().join(format!("{BRANCH_PREFIX}{name}.lock"));
    release_linked_lock(&lock, &scratch.join(BRANCH_LOCK_LINK_FILE))
}

/// Removes a lock that is a hard link to `mark`.
fn release_linked_lock(lock: &Path, mark: &Path) -> Result<(), Error> {
    match is_same_file(mark, lock) {
        true => std::fs::remove_file(lock).map_err(Error::io("remove", lock)),
        false => Ok(()),
    }
}

/// HEAD.lock held by git-proq itself, for git before 2.46, which cannot switch HEAD in a transaction.
pub(crate) struct HeadFileLock {
    head: PathBuf,
    lock: PathBuf,
    /// File of HEAD's reflog and the line to add to it; `None` if git keeps no reflog.
    reflog_line: Option<(PathBuf, String)>,
    is_finished: bool,
}

impl HeadFileLock {
    fn acquire(
        tree: &WorktreeContext<'_>,
        old_head: &Head,
        head_text: &str,
        (from, to): (CommitId, CommitId),
        message: &str,
    ) -> Result<PreparedMove, Error> {
        let (repo, dir, git_dir) = (tree.repo, tree.dir, tree.git_dir.as_path());
        if repo.is_reftable() {
            return Err(Error::NeedsSymref { found_version: repo.version()?.to_string() });
        }
        let moved_error = |reason: String| Error::RefNotMoved { ref_name: "HEAD".into(), reason };
        let (head, lock) = (git_dir.join("HEAD"), git_dir.join("HEAD.lock"));
        let mut file =
            create_linked_lock_file(&lock, &tree.scratch.join(HEAD_LOCK_LINK_FILE)).map_err(|e| {
                match e.kind() {
                    ErrorKind::AlreadyExists => {
                        Error::RefLocked { ref_name: "HEAD".into(), lock: lock.clone() }
                    }
                    _ => moved_error(format!("{} cannot be created: {e}", lock.display())),
                }
            })?;
        let head_lock = HeadFileLock {
            head,
            lock,
            reflog_line: head_reflog_line(repo, dir, git_dir, (from, to), message)?,
            is_finished: false,
        };
        repo.sharing().adjust_open_file(&file).map_err(Error::io("write", &head_lock.lock))?;
        let current = read_head(git_dir).map_err(Error::io("read", &head_lock.head))?;
        let expected = match old_head {
            Head::Branch(name) => format!("ref: refs/heads/{name}"),
            Head::Detached(id) => id.to_string(),
        };
        if current != expected {
            return Err(moved_error(format!("it names {current} now")));
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(head_text.as_bytes()))
            .and_then(|()| file.sync_all())
            .map_err(Error::io("write", &head_lock.lock))?;
        Ok(PreparedMove::HeadFile(head_lock))
    }

    fn commit(mut self) -> Result<(), Error> {
        if let Some((file, line)) = &self.reflog_line {
            let log = OpenOptions::new().append(true).create(true).open(file);
            log.and_then(|mut f| f.write_all(line.as_bytes())).map_err(Error::io("write", file))?;
        }
        std::fs::rename(&self.lock, &self.head).map_err(Error::io("replace", &self.head))?;
        self.is_finished = true;
        if let Some(git_dir) = self.head.parent() {
            sync_head_folder(git_dir);
        }
        Ok(())
    }
}

impl Drop for HeadFileLock {
    fn drop(&mut self) {
        if !self.is_finished {
            drop(std::fs::remove_file(&self.lock));
        }
    }
}

/// Returns the file of HEAD's reflog and the line that git would add to it; `None` if git keeps no reflog.
fn head_reflog_line(
    repo: &Repo,
    dir: &Path,
    git_dir: &Path,
    (from, to): (CommitId, CommitId),
    message: &str,
) -> Result<Option<(PathBuf, String)>, Error> {
    let file = git_dir.join("logs/HEAD");
    if !file.exists() {
        return Ok(None);
    }
    let identity = repo.git_in(dir).args(["var", "GIT_COMMITTER_IDENT"]).run()?.trimmed_stdout();
    Ok(Some((file, format!("{from} {to} {identity}\t{message}\n"))))
}
