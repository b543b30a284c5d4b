//! Owns one operation: every change it makes is written down before it is made, and either all of them stand at the end
//! or none does, whether it fails, is interrupted or is killed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::steps::{self, Applied};
use super::{Checkout, Error, Project, absent, in_place};
use crate::git::{Oid, RefMove, Restored, Snapshot};
use crate::store::records::{AnyLane, LaneRecord, Step};
use crate::store::{Entry, Guard, Header, Journal, Line, LockName, Record, Status, now};
use crate::{event, fault};

/// Something to do once an operation has ended.
type Afterwards<'p> = Box<dyn FnOnce(&Project) + 'p>;

/// An operation under way. Nothing is on disk of it before its first step.
#[must_use]
pub(crate) struct Operation<'p> {
    /// The repository.
    pub(crate) project: &'p Project,
    header: RefCell<Header>,
    /// What git writes to its logs, where the step itself does not say.
    why: RefCell<Option<String>>,
    journal: RefCell<Option<Journal>>,
    checkouts: RefCell<Vec<Rc<Checkout<'p>>>>,
    /// The step that is being taken back by the steps planned now.
    pub(super) of: Cell<Option<usize>>,
    /// Snapshots that were taken here: only who took one knows which index it was taken from.
    pub(super) taken: RefCell<HashMap<String, Snapshot>>,
    /// Whether it holds the lock on records.
    store_held: Cell<bool>,
    /// Locks that are held until it ends.
    held: RefCell<Vec<Guard>>,
    /// What is done once it has ended well and no lock is held.
    afterwards: RefCell<Vec<Afterwards<'p>>>,
}

/// The lock on records, for as long as an operation needs it.
#[must_use]
pub(super) struct StoreHeld<'a> {
    held: &'a Cell<bool>,
    _guard: Guard,
}

impl Drop for StoreHeld<'_> {
    fn drop(&mut self) {
        self.held.set(false);
    }
}

/// Runs an operation: when `work` succeeds it is filed in the operation log, when it fails everything is taken back.
pub(crate) fn operate<'p, T, E: From<Error>>(
    project: &'p Project,
    kind: &str,
    work: impl FnOnce(&Operation<'p>) -> Result<T, E>,
) -> Result<T, E> {
    operate_as(project, Header { together: project.together.clone(), ..Header::new(kind) }, work)
}

/// The same with a header that says more.
pub(super) fn operate_as<'p, T, E: From<Error>>(
    project: &'p Project,
    header: Header,
    work: impl FnOnce(&Operation<'p>) -> Result<T, E>,
) -> Result<T, E> {
    project.repo.require_writable().map_err(Error::from)?;
    let op = Operation::new(project, header, None);
    match work(&op) {
        Ok(done) => match op.finish(false) {
            Ok(_) => {
                let afterwards = op.afterwards.take();
                drop(op);
                for work in afterwards {
                    work(project);
                }
                Ok(done)
            }
            Err(e) => {
                op.fail();
                Err(e.into())
            }
        },
        Err(e) => {
            op.fail();
            Err(e)
        }
    }
}

impl<'p> Operation<'p> {
    pub(super) fn new(project: &'p Project, header: Header, journal: Option<Journal>) -> Operation<'p> {
        if let Some(journal) = &journal {
            project.repo.carry(Some(journal.file()));
        }
        Operation {
            project,
            header: RefCell::new(header),
            why: RefCell::default(),
            journal: RefCell::new(journal),
            checkouts: RefCell::default(),
            of: Cell::default(),
            taken: RefCell::default(),
            store_held: Cell::default(),
            held: RefCell::default(),
            afterwards: RefCell::default(),
        }
    }

    /// Holds a lock until the operation ends.
    pub(crate) fn hold(&self, lock: Guard) {
        self.held.borrow_mut().push(lock);
    }

    /// Does something once the operation has ended well and no lock is held: hooks, events.
    pub(crate) fn after(&self, work: impl FnOnce(&Project) + 'p) {
        self.afterwards.borrow_mut().push(Box::new(work));
    }

    /// The worktree at `dir`, locked until this operation ends.
    pub(crate) fn checkout(&self, dir: &Path) -> Result<Rc<Checkout<'p>>, Error> {
        if let Some(known) = self.checkouts.borrow().iter().find(|c| c.dir() == dir) {
            return Ok(Rc::clone(known));
        }
        let checkout = Rc::new(Checkout::lock(self.project, dir)?);
        self.checkouts.borrow_mut().push(Rc::clone(&checkout));
        Ok(checkout)
    }

    /// Looks at the worktree at `dir`, which is locked for no longer than that.
    pub(crate) fn with_checkout<T>(
        &self,
        dir: &Path,
        look: impl FnOnce(&Checkout<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let known = self.checkouts.borrow().iter().find(|c| c.dir() == dir).cloned();
        if let Some(known) = known { look(&known) } else { look(&Checkout::lock(self.project, dir)?) }
    }

    /// Sets what git writes to its logs.
    pub(crate) fn set_why(&self, why: impl Into<String>) {
        *self.why.borrow_mut() = Some(why.into());
    }

    pub(super) fn why(&self) -> String {
        let kind = || format!("git-proq: {}", self.header.borrow().kind);
        self.why.borrow().clone().unwrap_or_else(kind)
    }

    /// Makes a ref that must not exist yet.
    pub(crate) fn create_ref(&self, name: &str, new: Oid) -> Result<(), Error> {
        self.perform(Step::Ref { name: name.to_owned(), old: None, new: Some(new) }).map(drop)
    }

    /// Takes a ref away that must be at `old`.
    pub(crate) fn delete_ref(&self, name: &str, old: Oid) -> Result<(), Error> {
        self.perform(Step::Ref { name: name.to_owned(), old: Some(old), new: None }).map(drop)
    }

    /// Makes a ref that keeps a commit, whatever becomes of the operation.
    pub(crate) fn anchor(&self, name: &str, new: Oid) -> Result<(), Error> {
        self.perform(Step::Anchor { name: name.to_owned(), new }).map(drop)
    }

    /// Keeps a commit from garbage collection for as long as this operation is in the log.
    pub(crate) fn keep(&self, commit: Oid) -> Result<(), Error> {
        let name = format!("refs/proq/op/{}-{}", self.header.borrow().id, self.len());
        self.anchor(&name, commit)
    }

    /// Whether steps of its own are being taken back, rather than those of an operation in the log.
    pub(super) fn is_going_back(&self) -> bool {
        self.of.get().is_some()
    }

    /// Brings a worktree from one commit to another.
    pub(crate) fn transition(&self, dir: &Path, from: Oid, to: Oid, mv: RefMove) -> Result<(), Error> {
        self.perform(self.tree_step(dir, from, to, mv)).map(drop)
    }

    /// Gives a file or folder another name.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.perform(Step::Move { from: from.to_owned(), to: to.to_owned() }).map(drop)
    }

    /// Writes a record.
    pub(crate) fn save<R: Record>(&self, record: &R, path: &Path) -> Result<(), Error> {
        let text = record.text(path)?;
        self.write(path, Some(text))
    }

    /// Takes a record away, if it is there.
    pub(crate) fn remove_record(&self, path: &Path) -> Result<(), Error> {
        self.write(path, None)
    }

    /// Tells the event log, once the operation has ended well.
    pub(crate) fn tell<P: Clone + 'static>(
        &self,
        event: event::Name,
        lane: Option<&LaneRecord<P>>,
        message: impl Into<String>,
    ) {
        let (lane, message) = (lane.cloned(), message.into());
        self.after(move |project| project.tell(event, lane.as_ref(), message));
    }

    fn write(&self, path: &Path, new: Option<String>) -> Result<(), Error> {
        let _lock = self.lock_store()?;
        self.write_held(path, new)
    }

    /// Takes the lock on records, unless this operation holds it already.
    pub(super) fn lock_store(&self) -> Result<Option<StoreHeld<'_>>, Error> {
        if self.store_held.get() {
            return Ok(None);
        }
        let guard = self.project.store.locks().take(&LockName::Store)?;
        self.store_held.set(true);
        Ok(Some(StoreHeld { held: &self.store_held, _guard: guard }))
    }

    fn write_held(&self, path: &Path, new: Option<String>) -> Result<(), Error> {
        let old = steps::read_record(path)?;
        if old == new {
            return Ok(());
        }
        let path = self.below_store(path);
        self.perform_held(&Step::File { path, old, new })
    }

    /// The step that writes a record, from what it says now.
    pub(crate) fn record_step(&self, path: &Path, new: Option<String>) -> Result<Step, Error> {
        Ok(Step::File { path: self.below_store(path), old: steps::read_record(path)?, new })
    }

    /// The step that changes a lane's record; none when nothing changes.
    pub(crate) fn lane_step(
        &self,
        name: &str,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<Option<Step>, Error> {
        let path = self.project.store.layout().lane_record(name);
        let before = AnyLane::load(&path)?;
        let record = before.clone().changed(change);
        match record == before {
            true => Ok(None),
            false => self.record_step(&path, Some(record.text(&path)?)).map(Some),
        }
    }

    /// A record's path as the journal has it.
    pub(super) fn below_store(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.project.store.layout().root()).unwrap_or(path).to_owned()
    }

    /// Changes a lane's record, from what is on disk at that moment.
    pub(crate) fn update_lane(
        &self,
        name: &str,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<AnyLane, Error> {
        let _lock = self.lock_store()?;
        let path = self.project.store.layout().lane_record(name);
        let record = self.project.followed(AnyLane::load(&path)?).changed(change);
        self.write_held(&path, Some(record.text(&path)?))?;
        Ok(record)
    }

    /// Takes one step.
    pub(crate) fn perform(&self, step: Step) -> Result<Applied, Error> {
        self.may_begin(std::slice::from_ref(&step))?;
        let n = self.plan(vec![step], false)?;
        self.take(n, |step, scratch| steps::apply(self, step, scratch))
    }

    /// Takes one step whose work is more than its data says.
    pub(crate) fn perform_by(
        &self,
        step: Step,
        work: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.may_begin(std::slice::from_ref(&step))?;
        let n = self.plan(vec![step], false)?;
        self.take(n, |_, scratch| work(scratch).map(|()| Applied::Done)).map(drop)
    }

    /// Ctrl-C is obeyed at the border of steps: an error takes everything back. Nothing stops the way back. Where an agent works in
    /// the main checkout, no step changes the files there.
    fn may_begin(&self, steps: &[Step]) -> Result<(), Error> {
        if self.is_going_back() {
            return Ok(());
        }
        crate::interrupt::check()?;
        for step in steps {
            in_place::refuse_step_beside_in_place(self, step)?;
            absent::refuse_absent(self.project, step)?;
        }
        // Whoever puts that right takes back what came after it too.
        if self.is_half_way() { Err(Error::Halfway) } else { Ok(()) }
    }

    /// Whether a step could neither be done nor be taken back.
    fn is_half_way(&self) -> bool {
        let journal = self.journal.borrow();
        journal.as_ref().is_some_and(|j| j.entry().steps.iter().any(|p| p.status == Status::Open))
    }

    /// Takes one step that changes a record, whose lock is held.
    fn perform_held(&self, step: &Step) -> Result<(), Error> {
        self.perform_by(step.clone(), |_| steps::write_record(self.project, step))
    }

    /// Takes steps that belong together: once the first has happened there is no way back, and the others follow, also
    /// after a crash. What one of them cannot do is said and does not keep the next from being done.
    pub(crate) fn forward(&self, all: Vec<Step>) -> Result<Applied, Error> {
        self.may_begin(&all)?;
        let count = all.len();
        let first = self.plan(all, true)?;
        let done = self.take(first, |step, scratch| steps::apply(self, step, scratch));
        for n in first + 1..first + count {
            match self.status(first) {
                Some(Status::Done) => self.follow(n, false),
                Some(Status::Back) => {
                    let _ = self.note(Line::Back(n));
                }
                // Whoever puts the first one right decides about these too.
                _ => {}
            }
        }
        done
    }

    fn plan(&self, steps: Vec<Step>, forward: bool) -> Result<usize, Error> {
        let worktrees = absent::worktrees(&self.project.repo, &steps);
        let line = Line::Plan { steps, worktrees, forward, of: self.of.get() };
        let mut journal = self.journal.borrow_mut();
        if let Some(journal) = journal.as_mut() {
            return Ok(journal.plan(line)?);
        }
        let scratch = self.project.store.layout().scratch()?;
        // A new repository has its store by now.
        self.project.store.note_clock();
        let begun = Journal::begin(scratch, self.header.borrow().clone(), line)?;
        self.project.repo.carry(Some(begun.file()));
        *journal = Some(begun);
        Ok(0)
    }

    /// Does the work of a planned step and notes how it ended.
    pub(super) fn take(
        &self,
        n: usize,
        work: impl FnOnce(&Step, &Path) -> Result<Applied, Error>,
    ) -> Result<Applied, Error> {
        let Some((step, scratch)) = self.at(n) else { unreachable!("it was planned") };
        std::fs::create_dir_all(&scratch).map_err(Error::io("create", &scratch))?;
        fault::point("step.before");
        let done = work(&step, &scratch);
        fault::point("step.after");
        let happened = match &done {
            // It went half-way and could not go back: whoever puts things right needs all of it.
            Err(Error::Git(crate::git::Error::Stuck { .. })) => return done,
            Ok(Applied::Restored(Restored::Conflict(_))) => false,
            Ok(_) => true,
            // What failed may have left something, or may have happened all the same. Judged like a dead process's.
            Err(_) => match steps::settle(self, &step, &scratch) {
                Ok(happened) => happened,
                Err(_) => return done,
            },
        };
        let _ = self.note(if happened { Line::Done(n) } else { Line::Back(n) });
        done
    }

    /// A step and the folder for what is on its way.
    pub(super) fn at(&self, n: usize) -> Option<(Step, PathBuf)> {
        let journal = self.journal.borrow();
        let journal = journal.as_ref()?;
        let step = journal.entry().steps.get(n)?.step.clone();
        Some((step, journal.scratch().path().join(n.to_string())))
    }

    /// How a step stands.
    pub(super) fn status(&self, n: usize) -> Option<Status> {
        Some(self.journal.borrow().as_ref()?.entry().steps.get(n)?.status)
    }

    /// Notes how far it has come. Returns whether that is written down.
    pub(super) fn note(&self, line: Line) -> bool {
        self.journal.borrow_mut().as_mut().is_some_and(|journal| journal.note(line))
    }

    /// What the journal says so far.
    pub(super) fn entry(&self) -> Option<Entry> {
        self.journal.borrow().as_ref().map(|j| j.entry().clone())
    }

    /// How many steps there are.
    fn len(&self) -> usize {
        self.journal.borrow().as_ref().map_or(0, |j| j.entry().steps.len())
    }

    /// Tries something of which nothing stays when it fails.
    pub(crate) fn attempt<T, E: From<Error>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let before = self.len();
        work().inspect_err(|_| {
            if let Err(e) = self.take_back(before, |_| true) {
                self.project.listener.warn(format!("not everything could be taken back: {e}"));
            }
        })
    }

    /// Ends it: everything stands. A step that could neither be done nor be taken back is left to the next command, and with
    /// it all that is needed for that.
    ///
    /// # Errors
    /// [`Error::Halfway`] when that command will take back what was done.
    pub(super) fn finish(&self, recovered: bool) -> Result<Option<u64>, Error> {
        if self.is_half_way() {
            let stands = self.entry().is_some_and(|e| {
                e.steps.iter().rposition(|p| p.status == Status::Open) < Some(no_way_back(&e))
            });
            self.project.listener.warn("what was begun could not all be ended; the next command tries again");
            self.leave();
            return if stands { Ok(None) } else { Err(Error::Halfway) };
        }
        let Some(mut journal) = self.journal.borrow_mut().take() else { return Ok(None) };
        self.project.repo.carry(None);
        if journal.entry().standing().next().is_none() {
            journal.forget();
            return Ok(None);
        }
        let ended = journal.end(now(), recovered);
        if ended.is_err() {
            self.project.repo.carry(Some(journal.file()));
            *self.journal.borrow_mut() = Some(journal);
        }
        Ok(ended.map(Some)?)
    }

    /// Ends it: nothing stands, apart from what there was no way back from.
    fn fail(&self) {
        if self.is_half_way() {
            self.project
                .listener
                .warn("what was begun could not all be taken back; the next command tries again");
            return self.leave();
        }
        let ended = match self.take_back(0, |_| true) {
            // Somebody's own changes are in the way of going back: what is left stands, and is in the log.
            Err(e) if e.is_refusal() => {
                self.project.listener.warn(format!("not everything could be taken back: {e}"));
                self.finish(false)
            }
            Err(e) => Err(e),
            Ok(()) => self.finish(false),
        };
        if let Err(e) = ended {
            self.project.listener.warn(format!(
                "what was begun could not all be taken back ({e}); the next command tries again"
            ));
            self.leave();
        }
    }

    /// Leaves it to the next command.
    pub(super) fn leave(&self) {
        if let Some(journal) = self.journal.borrow_mut().take() {
            self.project.repo.carry(None);
            journal.leave();
        }
    }
}

/// The number of the first step that may be taken back: what lies before a landing stands.
pub(super) fn no_way_back(entry: &Entry) -> usize {
    let happened = |first: usize| entry.steps.get(first).is_some_and(|p| p.status == Status::Done);
    let last = entry.steps.iter().rposition(|p| p.forward.is_some_and(happened));
    last.map_or(0, |n| n + 1)
}
