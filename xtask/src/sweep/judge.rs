//! Owns the verdict on one disturbed run: nothing lost, everything as before or as after, and a second recovery is idle.

use super::Outcome;
use super::image::{Image, difference, listing};
use super::precious::{self, Reached};
use super::scene::{Stage, without_memory};
use super::state::State;
use super::table::is_undone;

/// How many faults a verdict names.
type Faults = Vec<String>;

/// What may be otherwise than in the state before or after.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spared<'a> {
    /// What is at or below these paths of a lane, which the command has named as not copied.
    Paths(&'a [String]),
    /// In the state after: contents of files in working trees, and the indexes of lanes. A power cut may leave them empty, since
    /// neither git nor the program syncs them; git has what they are made of.
    Unsynced,
}

impl Spared<'_> {
    /// Nothing.
    pub(super) const NOTHING: Spared<'static> = Spared::Paths(&[]);

    /// Whether an image is as the one before the command.
    fn is_before(self, image: &Image, before: &Image) -> bool {
        match self {
            Spared::Paths(paths) => difference(&without(image, paths), &without(before, paths)).is_none(),
            Spared::Unsynced => difference(image, before).is_none(),
        }
    }

    /// Whether an image is as one after the command.
    fn is_after(self, image: &Image, after: &Image) -> bool {
        match self {
            Spared::Paths(paths) => difference(&without(image, paths), &without(after, paths)).is_none(),
            Spared::Unsynced => difference(&synced(image, after), &synced(after, after)).is_none(),
        }
    }
}

/// An image without what is at or below paths of lanes.
fn without(image: &Image, paths: &[String]) -> Image {
    let mut image = image.clone();
    image.retain(|key, _| !paths.iter().any(|path| is_below(key, path)));
    image
}

/// What of an image a power cut must leave: an empty file is taken for the one in `after`.
fn synced(image: &Image, after: &Image) -> Image {
    let mut image = image.clone();
    let is_index = |key: &str| key.starts_with("lane ") && key.contains(": index");
    // What is said of a lane follows from its files.
    let is_said = |key: &str| key.starts_with("list: lanes ") && !key.ends_with(" name");
    image.retain(|key, value| {
        let is_broken = key == "fsck" && value.contains("/index: index file smaller than expected");
        !is_index(key) && !is_said(key) && !is_broken
    });
    for (key, value) in &mut image {
        let is_empty = value.strip_prefix("644 ").or(value.strip_prefix("755 ")).is_some_and(str::is_empty);
        if let Some(whole) = after.get(key).filter(|_| is_empty && key.contains(": file ")) {
            value.clone_from(whole);
        }
    }
    image
}

/// The command that recovers: any would do.
pub(super) const RECOVER: &[&str] = &["list"];

impl Stage<'_> {
    /// Contents that are nowhere, as faults.
    pub(super) fn lost(&self, when: &str) -> Faults {
        match precious::lost(self.place, &self.tokens) {
            Ok(lost) => lost.into_iter().map(|what| format!("LOST {when}: {what}")).collect(),
            Err(e) => vec![format!("LOST {when}: cannot be read: {e}")],
        }
    }

    /// The same, where `state` is what is on disk: objects are not read again where git's own files are as they were.
    pub(super) fn lost_from(&self, state: State, reached: &mut Reached, when: &str) -> Faults {
        match precious::lost_from(self.place, &self.tokens, state, reached) {
            Ok(lost) => lost.into_iter().map(|what| format!("LOST {when}: {what}")).collect(),
            Err(e) => vec![format!("LOST {when}: cannot be read: {e}")],
        }
    }

    /// Runs recovery in peace. Its process number, and what is wrong with how it ended.
    pub(super) fn recover(&self) -> Outcome<(i32, Faults)> {
        let answer = self.place.proq(RECOVER)?;
        let bad = || format!("recovery ended with {}: {}", answer.code, answer.complaint());
        Ok((answer.pid, (answer.code != 0).then(bad).into_iter().collect()))
    }

    /// Everything there is to say about what a recovery left. `done` says that the command claimed to have succeeded.
    pub(super) fn judge(&self, done: bool, spared: Spared<'_>) -> Outcome<Faults> {
        let (mut faults, as_before) = self.state(spared)?;
        if as_before && done {
            faults.push("it claimed to be done, and everything is as before".to_owned());
        }
        if as_before {
            faults.extend(self.once_more()?);
        }
        Ok(faults)
    }

    /// What there is to say about the state alone, and whether it is the one before. From that state the command was run
    /// again often enough where recovery was not killed.
    pub(super) fn state(&self, spared: Spared<'_>) -> Outcome<(Faults, bool)> {
        let mut faults = self.lost("after recovery");
        let recovered = listing(self.place)?;
        // The first that it does is one more recovery.
        let image = self.scene.look(self.place)?;
        if let Some(what) = difference(&listing(self.place)?, &recovered) {
            faults.push(format!("a second recovery changed something: {what}"));
        }
        faults.extend((self.scene.holds)(self.place)?);
        if spared.is_after(&image, &self.after) {
            return Ok((faults, false));
        }
        if let Some((_, finish)) = self.also.iter().find(|(state, _)| spared.is_after(&image, state)) {
            if finish.is_empty() {
                return Ok((faults, false));
            }
            let answer = self.place.proq(finish)?;
            if let Some(what) = difference(&self.scene.look(self.place)?, &self.after) {
                faults.push(format!(
                    "git proq {} does not finish it ({}): {what}",
                    finish.join(" "),
                    answer.code
                ));
            }
            return Ok((faults, false));
        }
        if !spared.is_before(&image, &self.before) {
            let from_before = difference(&image, &self.before).unwrap_or_default();
            let from_after = difference(&image, &self.after).unwrap_or_default();
            faults.push(if image_distance(&image, &self.before) <= image_distance(&image, &self.after) {
                format!("neither before nor after; from before: {from_before}")
            } else {
                format!("neither before nor after; from after: {from_after}")
            });
            return Ok((faults, false));
        }
        Ok((faults, true))
    }

    /// Undoes a command that claimed to be done though a call of it had failed: everything is as before it, or the refusal says why
    /// and changes nothing.
    pub(super) fn undone(&self) -> Outcome<Faults> {
        if self.scene.undone || !is_undone(self.scene) {
            return Ok(Vec::new());
        }
        let there = self.scene.look(self.place)?;
        let answer = self.place.proq(self.scene.undo)?;
        let now = self.scene.look(self.place)?;
        let said = answer.complaint();
        if answer.code != 0 && said.is_empty() {
            return Ok(vec![format!("its undo ended with {} without a word", answer.code)]);
        }
        let from = |wanted: &Image| difference(&without_memory(&now, wanted), wanted);
        // Where another command had to finish it, that one was undone.
        if answer.code == 0 && self.also.iter().any(|(state, _)| from(state).is_none()) {
            return Ok(Vec::new());
        }
        let (how, what) = match answer.code {
            0 => ("undone", from(&self.before)),
            _ => ("its undo refused", difference(&now, &there)),
        };
        Ok(what.map(|what| format!("{how}, it is not as it was: {what}; {said}")).into_iter().collect())
    }

    /// The command, run again, does its work.
    fn once_more(&self) -> Outcome<Faults> {
        let answer = self.place.proq(self.scene.tested())?;
        if answer.code != self.scene.tested_code() {
            return Ok(vec![format!("run again, it ended with {}: {}", answer.code, answer.complaint())]);
        }
        let what = difference(&self.scene.look(self.place)?, &self.after);
        Ok(what.map(|what| format!("run again, it left something else: {what}")).into_iter().collect())
    }
}

/// Whether a line of an image is about a path of some lane, or what is below it.
fn is_below(key: &str, path: &str) -> bool {
    let of_lane = key.strip_prefix("lane ").and_then(|rest| rest.split_once(": file "));
    let below = of_lane.and_then(|(_, file)| file.strip_prefix(path));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn image_distance(a: &Image, b: &Image) -> usize {
    a.iter().filter(|(k, v)| b.get(*k) != Some(v)).count() + b.keys().filter(|k| !a.contains_key(*k)).count()
}
