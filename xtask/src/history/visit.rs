//! Owns what previews do to the model: entering, switching, refreshing, leaving.

use super::Outcome;
use super::expect::{Forecast, Fork, Oracle};
use super::model::{Model, Open, branch, preview_branch};
use super::parts::{Files, Kind, Snap, Tree, obstructed};
use super::step::MAIN;

/// Where the main checkout is while a preview is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reality {
    Shown,
    Home,
    Elsewhere,
}

fn reality(model: &Model, open: &Open) -> Reality {
    let head = model.main().head;
    if head == preview_branch(&open.lane) {
        Reality::Shown
    } else if head == open.came_from {
        Reality::Home
    } else {
        Reality::Elsewhere
    }
}

/// How a way back ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// It did not begin.
    Refused,
    /// Everything is back.
    Whole,
    /// The changes that waited do not fit any more, and are kept.
    Conflict,
}

/// How a snapshot comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Return {
    Done,
    Conflict,
    Refused,
}

impl Oracle<'_> {
    /// `git proq preview LANE`.
    pub(super) fn preview(&self, now: &Model, lane: &str) -> Outcome<Forecast> {
        let mut then = self.fork(now);
        if !now.lanes.contains_key(lane) {
            return Ok(Forecast::refused());
        }
        if let Some(open) = now.open.clone() {
            match reality(now, &open) {
                Reality::Shown if open.lane == lane => return Ok(Forecast::done(then)),
                Reality::Shown => {
                    let came_from = open.came_from.clone();
                    self.set_edits_aside(&mut then, &open)?;
                    let next = Open { lane: lane.to_owned(), came_from, tip: String::new(), ..open.clone() };
                    if !self.show(&mut then, next)? {
                        return Ok(Forecast::refused());
                    }
                    then.model.refs.remove(&preview_branch(&open.lane));
                    self.bring_edits(&mut then, lane)?;
                    return Ok(Forecast::done(then));
                }
                Reality::Home => {
                    if self.come_home(&mut then, &open)? == Back::Refused {
                        return Ok(Forecast::refused());
                    }
                }
                Reality::Elsewhere => return Ok(Forecast::refused()),
            }
        }
        let came_from = then.model.main().head;
        let Some(base) = then.model.tip(&came_from) else { return Ok(Forecast::refused()) };
        let waiting = self.set_aside(&mut then, &base)?;
        let unsure = then.blind.contains(MAIN);
        let open = Open { lane: lane.to_owned(), tip: String::new(), came_from, waiting };
        if !self.show(&mut then, open)? {
            return Ok(Forecast::refused());
        }
        self.bring_edits(&mut then, lane)?;
        Ok(if unsure { Forecast::perhaps(then) } else { Forecast::done(then) })
    }

    /// `git proq preview --refresh`.
    pub(super) fn refresh(&self, now: &Model) -> Outcome<Forecast> {
        let mut then = self.fork(now);
        let Some(mut open) = now.open.clone() else { return Ok(Forecast::refused()) };
        if reality(now, &open) != Reality::Shown {
            return Ok(Forecast::refused());
        }
        let (Some(from), Some(tip)) = (now.commit_of(MAIN), now.tip(&branch(&open.lane))) else {
            return Ok(Forecast::refused());
        };
        if from == tip {
            return Ok(Forecast::done(then));
        }
        if from != open.tip && !self.objects.is_ancestor(&from, &tip)? {
            return Ok(Forecast::refused());
        }
        let (before, after) = (self.objects.files(&from)?, self.objects.files(&tip)?);
        let mut main = now.main();
        if main.refuses(&before, &after) {
            return Ok(Forecast::refused());
        }
        main.bring(&before, &after);
        then.model.trees.insert(MAIN.to_owned(), main);
        then.model.refs.insert(preview_branch(&open.lane), tip.clone());
        open.tip = tip;
        then.model.open = Some(open);
        Ok(Forecast::done(then))
    }

    /// `git proq preview --back`.
    pub(super) fn back(&self, now: &Model) -> Outcome<Forecast> {
        let mut then = self.fork(now);
        Ok(match self.leave(&mut then)? {
            Back::Refused => Forecast::refused(),
            Back::Whole => Forecast::done(then),
            Back::Conflict => Forecast::done(then).complaining(),
        })
    }

    /// Leaves whatever preview is open.
    pub(super) fn leave(&self, then: &mut Fork) -> Outcome<Back> {
        let Some(open) = then.model.open.clone() else { return Ok(Back::Refused) };
        match reality(&then.model, &open) {
            Reality::Elsewhere => Ok(Back::Refused),
            Reality::Home => self.come_home(then, &open),
            Reality::Shown => {
                let Some(home) = then.model.tip(&open.came_from) else { return Ok(Back::Refused) };
                self.set_edits_aside(then, &open)?;
                if !self.switch(then, &open.came_from, &home)? {
                    return Ok(Back::Refused);
                }
                then.model.refs.remove(&preview_branch(&open.lane));
                self.bring_waiting(then, &open)
            }
        }
    }

    /// Whether the preview that is open shows a lane, and something was made in it.
    pub(super) fn made_in_preview(&self, now: &Model, lane: &str) -> Outcome<bool> {
        let Some(open) = now.open.as_ref().filter(|o| o.lane == lane) else { return Ok(false) };
        let Some(at) = now.commit_of(MAIN) else { return Ok(false) };
        Ok(match reality(now, open) {
            Reality::Shown => at != open.tip || !now.main().is_clean(&*self.objects.files(&at)?),
            _ => now.refs.get(&preview_branch(lane)).is_some_and(|tip| *tip != open.tip),
        })
    }

    fn come_home(&self, then: &mut Fork, open: &Open) -> Outcome<Back> {
        if let Some(tip) = then.model.refs.get(&preview_branch(&open.lane)).cloned() {
            if tip != open.tip {
                self.carry(then, open, &tip)?;
            }
            then.model.refs.remove(&preview_branch(&open.lane));
        }
        self.bring_waiting(then, open)
    }

    fn bring_waiting(&self, then: &mut Fork, open: &Open) -> Outcome<Back> {
        let done = match &open.waiting {
            Some(snap) => self.bring_back(then, snap)?,
            None => Return::Done,
        };
        if done == Return::Refused {
            return Ok(Back::Refused);
        }
        then.model.open = None;
        Ok(if done == Return::Conflict { Back::Conflict } else { Back::Whole })
    }

    /// Commits made in the preview go to the lane, everything else is set aside for its next one.
    fn set_edits_aside(&self, then: &mut Fork, open: &Open) -> Outcome<()> {
        let Some(at) = then.model.commit_of(MAIN) else { return Ok(()) };
        if at != open.tip {
            self.carry(then, open, &at)?;
        }
        let snap = self.set_aside(then, &at)?;
        if let (Some(snap), Some(lane)) = (snap, then.model.lanes.get_mut(&open.lane)) {
            lane.edits.push(snap);
        }
        Ok(())
    }

    fn carry(&self, then: &mut Fork, open: &Open, made: &str) -> Outcome<()> {
        if let Some(home) = then.model.refs.get(&open.came_from).cloned()
            && self.objects.is_ancestor(made, &home)?
        {
            // Nothing was made: the preview was set back to what its base has.
            return Ok(());
        }
        let name = branch(&open.lane);
        let (Some(tip), Some(tree)) = (then.model.tip(&name), then.model.trees.get_mut(&open.lane)) else {
            return Ok(());
        };
        if self.objects.is_ancestor(made, &tip)? || !self.objects.is_ancestor(&tip, made)? {
            return Ok(());
        }
        let (from, to) = (self.objects.files(&tip)?, self.objects.files(made)?);
        if !tree.refuses(&from, &to) {
            tree.bring(&from, &to);
            then.model.refs.insert(name, made.to_owned());
        }
        Ok(())
    }

    /// Takes everything that is not ignored and not in `base` away from the main checkout.
    fn set_aside(&self, then: &mut Fork, base: &str) -> Outcome<Option<Snap>> {
        let files = self.objects.files(base)?;
        let mut main = then.model.main();
        if main.is_clean(&files) {
            return Ok(None);
        }
        let ignored = main.ignored();
        let mut snap =
            Snap { base: base.to_owned(), files: main.changes(), index: main.index.clone(), unsure: false };
        if obstructed(&ignored, &Files::new(), &files) {
            then.may_refuse = true;
        }
        // An ignored file where the commit has one, or a folder: if that is not refused, it comes back with the changes.
        let (way, stay): (Files, Files) = ignored.into_iter().partition(|(path, file)| {
            obstructed(&Files::from([(path.clone(), file.clone())]), &Files::new(), &files)
        });
        snap.files.extend(way);
        main.files = stay;
        main.files.extend(files.iter().map(|(p, f)| (p.clone(), f.clone())));
        main.index = Files::clone(&files);
        then.model.trees.insert(MAIN.to_owned(), main);
        Ok(Some(snap))
    }

    /// Brings the clean main checkout to another branch.
    fn switch(&self, then: &mut Fork, head: &str, to: &str) -> Outcome<bool> {
        let Some(from) = then.model.commit_of(MAIN) else { return Ok(false) };
        let (before, after) = (self.objects.files(&from)?, self.objects.files(to)?);
        let mut main = then.model.main();
        if main.refuses(&before, &after) {
            return Ok(false);
        }
        main.bring(&before, &after);
        head.clone_into(&mut main.head);
        then.model.trees.insert(MAIN.to_owned(), main);
        Ok(true)
    }

    fn show(&self, then: &mut Fork, mut open: Open) -> Outcome<bool> {
        let Some(tip) = then.model.tip(&branch(&open.lane)) else { return Ok(false) };
        let name = preview_branch(&open.lane);
        then.model.refs.insert(name.clone(), tip.clone());
        if !self.switch(then, &name, &tip)? {
            return Ok(false);
        }
        open.tip = tip;
        then.model.open = Some(open);
        Ok(true)
    }

    /// Edits of earlier previews come back, as far as they fit.
    fn bring_edits(&self, then: &mut Fork, lane: &str) -> Outcome<()> {
        let edits = then.model.lanes.get(lane).map(|l| l.edits.clone()).unwrap_or_default();
        let mut stay = Vec::new();
        for snap in edits {
            if self.bring_back(then, &snap)? != Return::Done {
                stay.push(snap);
            }
        }
        if let Some(lane) = then.model.lanes.get_mut(lane) {
            lane.edits = stay;
        }
        Ok(())
    }

    /// Brings a snapshot back to the main checkout.
    fn bring_back(&self, then: &mut Fork, snap: &Snap) -> Outcome<Return> {
        let Some(now) = then.model.commit_of(MAIN) else { return Ok(Return::Refused) };
        let (base, now) = (self.objects.files(&snap.base)?, self.objects.files(&now)?);
        let mut main = then.model.main();
        if snap.unsure || !main.is_clean(&now) {
            // Where two lots of changes meet, what fits is git-proq's to say. Nothing may be lost.
            then.blind.insert(MAIN.to_owned());
            then.may_refuse = true;
            return Ok(Return::Done);
        }
        if base == now {
            let ignored = main.ignored();
            if obstructed(&ignored, &Files::new(), &snap.files) {
                return Ok(Return::Refused);
            }
            main.files = ignored;
            main.files.extend(snap.files.clone());
            main.index.clone_from(&snap.index);
            then.model.trees.insert(MAIN.to_owned(), main);
            return Ok(Return::Done);
        }
        self.merge_back(then, snap, &base, &now, main)
    }

    fn merge_back(
        &self,
        then: &mut Fork,
        snap: &Snap,
        base: &Files,
        now: &Files,
        mut main: Tree,
    ) -> Outcome<Return> {
        let untracked = snap.untracked();
        let intended = snap.index.values().any(|file| file.kind == Kind::Intent);
        if intended || untracked.keys().any(|p| base.contains_key(p)) {
            // A file that is staged as deleted and there all the same, or intended to be added: a merge of trees cannot say both.
            then.blind.insert(MAIN.to_owned());
            then.may_refuse = true;
            return Ok(Return::Done);
        }
        let work = self.objects.merge_files(base, now, &snap.tracked())?;
        let staged = self.objects.merge_files(base, now, &snap.index)?;
        let (Some(work), Some(staged)) = (work, staged) else { return Ok(Return::Conflict) };
        let mut all = work.clone();
        all.extend(untracked.clone());
        let fits = !obstructed(&main.files, now, &all)
            && untracked.keys().all(|p| !main.files.contains_key(p) && !work.contains_key(p));
        if !fits {
            return Ok(Return::Conflict);
        }
        main.bring(now, &work);
        main.files.extend(untracked);
        main.index = staged;
        then.model.trees.insert(MAIN.to_owned(), main);
        Ok(Return::Done)
    }
}
