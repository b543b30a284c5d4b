//! Owns reading refs and moving single ones by compare-and-swap.

use std::borrow::Cow;
use std::path::Path;

use gix::refs::TargetRef;

use super::failed_program::FailedProgram;
use super::head_file::{named_by, read_head};
use super::{Error, Head, Oid, Repo, Unusable};
use crate::explain::word;

/// Where branches are.
pub(super) const HEADS: &str = "refs/heads/";

/// How far git follows symbolic refs that lead to one another.
const FOLLOWED: usize = 5;

/// The error of a ref that git did not move, by what it said: whether somebody holds a lock, which may be free soon, or the ref is
/// not where it was expected.
pub(super) fn not_moved(name: String, stderr: &str, ended: &str) -> Error {
    if let Some(refused) = FailedProgram::ref_hook(&name, stderr) {
        return Error::Program(refused);
    }
    if let Some(unusable) = Unusable::from_stderr(stderr) {
        return Error::Unusable(unusable);
    }
    let line = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or(ended);
    let why = line.trim_start_matches("error: ").trim_start_matches("fatal: ");
    let lock = why.split_once("Unable to create '").and_then(|(_, rest)| rest.split_once("': File exists"));
    match lock {
        Some((lock, _)) => Error::RefLocked { name, lock: lock.into() },
        None => Error::RefMoved { name, why: why.to_owned() },
    }
}

/// What helps with a ref that git did not move, by its name and by why.
pub(super) fn after_not_moved(name: &str, why: &str) -> Cow<'static, str> {
    let in_the_way =
        why.split_once("' exists; cannot create").and_then(|(before, _)| before.rsplit_once('\''));
    if let Some(branch) = in_the_way.and_then(|(_, other)| other.strip_prefix(HEADS)) {
        return format!("rename the branch in its way: git branch -m {} NEW-NAME", word(branch)).into();
    }
    if why.ends_with("reference broken") || why.ends_with("Too many levels of symbolic links") {
        let remove = removal(name);
        return format!("its file holds no commit; remove it, then run the command again: {remove}").into();
    }
    "run the command again".into()
}

/// The command that removes the file of a fully named ref, which git does not do where that holds no commit.
pub(crate) fn removal(name: &str) -> String {
    format!("rm \"$(git rev-parse --git-path {})\"", word(name))
}

/// Whether a file in a ref's place has no id; one that cannot be read may have one.
pub(super) fn holds_nothing(file: &Path) -> bool {
    match std::fs::read(file) {
        Ok(text) => !text.starts_with(b"ref:") && Oid::from_hex(text.trim_ascii()).is_none(),
        // A link that leads to itself.
        Err(e) => e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()),
    }
}

impl Repo {
    /// The object a fully named ref points to, a tag's own object too; none when it does not exist.
    pub(crate) fn ref_object(&self, name: &str) -> Result<Option<Oid>, Error> {
        if self.is_reftable() {
            let found = self.git().args(["rev-parse", "--verify", "--quiet", "--end-of-options", name]);
            return Ok(Oid::from_hex(found.accept(&[1]).run()?.line().as_bytes()));
        }
        let found = self.gix.try_find_reference(name).map_err(Error::object(format!("ref {name}")))?;
        match found.as_ref().map(gix::Reference::target) {
            Some(TargetRef::Object(id)) => Ok(Some(Oid(id.to_owned()))),
            Some(TargetRef::Symbolic(_)) => self.ref_tip(name),
            None => Ok(None),
        }
    }

    /// The commit a fully named ref points to; none when it does not exist, or is a broken branch.
    pub(crate) fn ref_tip(&self, name: &str) -> Result<Option<Oid>, Error> {
        if self.is_reftable() {
            let out = self
                .git()
                .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
                .arg(format!("{name}^{{commit}}"))
                .accept(&[1])
                .run()?;
            return Ok(Oid::from_hex(out.line().as_bytes()));
        }
        let is_passed_over = || name.strip_prefix(HEADS).is_some_and(|branch| self.is_broken(branch));
        let found = match self.gix.try_find_reference(name) {
            Err(_) if is_passed_over() => None,
            found => found.map_err(Error::object(format!("ref {name}")))?,
        };
        let Some(mut found) = found else { return Ok(None) };
        if let (TargetRef::Object(id), true) = (found.target(), name.starts_with(HEADS)) {
            // A branch is at a commit. To look whether it is means to open that.
            return Ok(Some(Oid(id.to_owned())));
        }
        match found.peel_to_id() {
            Err(_) if is_passed_over() => Ok(None),
            peeled => Ok(Some(Oid(peeled.map_err(Error::object(format!("ref {name}")))?.detach()))),
        }
    }

    /// Whether a branch's file, or that of a ref which it leads to, holds neither an id nor a name, as a power cut leaves it, or they lead
    /// around in a circle. Git passes such a branch over where it lists refs, and neither moves nor makes it until the file is gone.
    pub(crate) fn is_broken(&self, branch: &str) -> bool {
        if self.is_reftable() {
            return false;
        }
        let mut name = format!("{HEADS}{branch}");
        for _ in 0..=FOLLOWED {
            let file = self.common_dir().join(&name);
            match named_by(&file) {
                Some(next) => name = next,
                None => return holds_nothing(&file),
            }
        }
        true
    }

    /// The tip of a local branch; none when it does not exist.
    pub(crate) fn branch_tip(&self, branch: &str) -> Result<Option<Oid>, Error> {
        self.ref_tip(&format!("{HEADS}{branch}"))
    }

    /// The branch that moves when something lands on `branch`: itself, or the one that it leads to where it is a symbolic ref, as the
    /// old name of a renamed branch may be.
    pub(crate) fn branch_behind(&self, branch: &str) -> String {
        if !Repo::is_branch_name(branch) {
            return branch.to_owned();
        }
        let mut name = format!("{HEADS}{branch}");
        if self.is_reftable() {
            let found = self.git().args(["symbolic-ref", "--quiet", &name]).accept(&[1]).run();
            name = found.map(|out| out.line()).unwrap_or_default();
        } else {
            // None of them is a packed ref.
            for _ in 0..FOLLOWED {
                let Some(next) = named_by(&self.common_dir().join(&name)) else { break };
                name = next;
            }
        }
        match name.strip_prefix(HEADS) {
            Some(behind) if Repo::is_branch_name(behind) => behind.to_owned(),
            _ => branch.to_owned(),
        }
    }

    /// The ref that a branch is a symbolic ref to, in full; none where it is a ref of its own, or does not exist.
    pub(crate) fn alias_of(&self, branch: &str) -> Result<Option<String>, Error> {
        let name = format!("{HEADS}{branch}");
        if self.is_reftable() {
            let out = self.git().args(["symbolic-ref", "--quiet", &name]).accept(&[1]).run()?;
            return Ok(Some(out.line()).filter(|to| !to.is_empty()));
        }
        Ok(named_by(&self.common_dir().join(name)))
    }

    /// All refs below `prefix` (which ends in `/`) with their tips, by name.
    pub(crate) fn refs_below(&self, prefix: &str) -> Result<Vec<(String, Oid)>, Error> {
        self.refs_below_any(&[prefix])
    }

    /// All refs below any of these prefixes (which end in `/`) with their tips, by name.
    pub(crate) fn refs_below_any(&self, prefixes: &[&str]) -> Result<Vec<(String, Oid)>, Error> {
        let out = self
            .git()
            .args(["for-each-ref", "--format=%(objectname) %(refname)"])
            .arg("--")
            .args(prefixes)
            .run()?;
        let text = String::from_utf8_lossy(&out.stdout);
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(id, name)| Some((name.to_owned(), Oid::from_hex(id.as_bytes())?)))
            .collect())
    }

    /// The commit that a revision names.
    ///
    /// # Errors
    /// [`Error::NoRev`] when it names nothing, or nothing that is a commit.
    pub(crate) fn require_commit(&self, rev: &str) -> Result<Oid, Error> {
        let none = || Error::NoRev { rev: rev.to_owned() };
        if rev.is_empty() || rev.contains('\0') {
            return Err(none());
        }
        let out = self
            .git()
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{rev}^{{commit}}"))
            .run()
            .map_err(|_| none())?;
        Oid::from_hex(out.line().as_bytes()).ok_or_else(none)
    }

    /// The commits of the stash's entries, as its reflog has them.
    pub(crate) fn stash_entries(&self) -> Vec<Oid> {
        if self.is_reftable() {
            let moves = self.moves(self.home(), "refs/stash").unwrap_or_default();
            return moves.into_iter().map(|step| step.to).collect();
        }
        let text = std::fs::read(self.common_dir().join("logs/refs/stash")).unwrap_or_default();
        let lines = text.split(|b| *b == b'\n');
        lines.filter_map(|line| Oid::from_hex(line.split(|b| *b == b' ').nth(1)?)).collect()
    }

    /// Moves one ref from `old` to `new` (either null for "does not exist"), durably, with a reflog message. Nothing else moves with it.
    pub(crate) fn swap_ref(&self, name: &str, new: Oid, old: Oid, why: &str) -> Result<(), Error> {
        if old.is_null() && self.make_branch(name, new, why).is_some() {
            return Ok(());
        }
        if !old.is_null() && !new.is_null() {
            self.sync_new_objects(new, old)?;
        }
        let call = self.git().args(["update-ref", "--no-deref", "-m", why]);
        let call = if new.is_null() {
            call.args(["-d", name, &old.to_string()])
        } else {
            call.args([name, &new.to_string(), &old.to_string()])
        };
        match call.changes().durable().run() {
            Ok(_) => {
                self.sync_tables(self.common_dir());
                Ok(())
            }
            Err(Error::Command { stderr, status, .. }) => Err(not_moved(name.to_owned(), &stderr, &status)),
            Err(e) => Err(e),
        }
    }

    /// Makes a ref that must not exist yet.
    pub(crate) fn create_ref(&self, name: &str, new: Oid, why: &str) -> Result<(), Error> {
        self.swap_ref(name, new, new.null(), why)
    }

    /// Takes a ref away that must still be at `old`.
    pub(crate) fn delete_ref(&self, name: &str, old: Oid, why: &str) -> Result<(), Error> {
        self.swap_ref(name, old.null(), old, why)
    }

    /// Whether a name is one that git accepts for a branch.
    pub(crate) fn is_branch_name(branch: &str) -> bool {
        let full = format!("{HEADS}{branch}");
        !branch.starts_with('-')
            && branch != "HEAD"
            && gix::validate::reference::name(full.as_str().into()).is_ok()
    }

    /// The branch that HEAD of a worktree names, without `refs/heads/`, be that a symbolic ref; none when it is detached.
    pub(super) fn head_branch(&self, dir: &Path, git_dir: &Path) -> Result<Option<String>, Error> {
        if self.is_reftable() {
            let asked = ["symbolic-ref", "--no-recurse", "--quiet", "HEAD"];
            let out = self.git_in(dir).args(asked).accept(&[1]).run()?;
            return Ok(out.line().strip_prefix("refs/heads/").map(ToOwned::to_owned));
        }
        let text = read_head(git_dir).map_err(Error::io("read", &git_dir.join("HEAD")))?;
        Ok(text.strip_prefix("ref: refs/heads/").map(ToOwned::to_owned))
    }

    /// The name by which HEAD of a worktree has the branch; none where it is on something else.
    pub(super) fn name_in_head(
        &self,
        dir: &Path,
        git_dir: &Path,
        branch: &str,
    ) -> Result<Option<String>, Error> {
        let head = self.head_branch(dir, git_dir)?;
        Ok(head.filter(|head| head == branch || self.branch_behind(head) == branch))
    }

    /// The branch that the main checkout is on; none where that is detached, or there is none.
    pub(crate) fn main_branch(&self) -> Result<Option<String>, Error> {
        let Some(main) = self.main_worktree() else { return Ok(None) };
        Ok(self.head_branch(main, self.common_dir())?.map(|branch| self.branch_behind(&branch)))
    }

    /// The branch or commit that HEAD of the worktree at `dir` names, literally: a symbolic ref is not followed. None where that is no
    /// worktree, or on an unborn branch.
    pub(crate) fn head_at(&self, dir: &Path) -> Result<Option<Head>, Error> {
        match self.git_dir_of(dir) {
            Ok(git_dir) if git_dir.exists() => self.head_in(dir, &git_dir),
            _ => Ok(None),
        }
    }

    /// What HEAD of a worktree names; none on an unborn branch.
    pub(super) fn head_in(&self, dir: &Path, git_dir: &Path) -> Result<Option<Head>, Error> {
        if let Some(branch) = self.head_branch(dir, git_dir)? {
            return Ok(Some(Head::Branch(branch)));
        }
        let out = self.git_in(dir).args(["rev-parse", "--verify", "--quiet", "HEAD"]).accept(&[1]).run()?;
        Ok(Oid::from_hex(out.line().as_bytes()).map(Head::Detached))
    }

    /// What HEAD of the user's worktree names: a branch or, detached, a commit; none on an unborn branch.
    pub(crate) fn head_name(&self) -> Result<Option<String>, Error> {
        if self.is_reftable() {
            let dir = self.here().unwrap_or(self.home()).to_owned();
            let out = self.git_in(&dir).args(["symbolic-ref", "--quiet", "HEAD"]).accept(&[1]).run()?;
            return Ok(Some(out.line())
                .filter(|l| !l.is_empty())
                .map(|l| l.trim_start_matches("refs/heads/").to_owned()));
        }
        let git_dir = self.gix.git_dir();
        let text = read_head(git_dir).map_err(Error::io("read", &git_dir.join("HEAD")))?;
        Ok(text.strip_prefix("ref: ").map(|name| name.strip_prefix(HEADS).unwrap_or(name).to_owned()))
    }
}
