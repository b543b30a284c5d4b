//! Owns the verdict on one disturbed run: nothing lost, everything as before or as after, and a second recovery is idle.

use super::Outcome;
use super::image::{Image, difference, listing};
use super::precious::{self, Reached};
use super::scene::Stage;
use super::state::State;

/// How many faults a verdict names.
type Faults = Vec<String>;

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

    /// Everything there is to say about what a recovery left. `done` says that the command claimed to have succeeded,
    /// `left_out` what it named as not copied: that may be missing.
    pub(super) fn judge(&self, done: bool, left_out: &[String]) -> Outcome<Faults> {
        let (mut faults, as_before) = self.state(left_out)?;
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
    pub(super) fn state(&self, left_out: &[String]) -> Outcome<(Faults, bool)> {
        let mut faults = self.lost("after recovery");
        let image = self.scene.look(self.place)?;
        let counts = |image: &Image| {
            let mut image = image.clone();
            image.retain(|key, _| !left_out.iter().any(|path| is_below(key, path)));
            image
        };
        faults.extend(self.second_recovery()?);
        faults.extend((self.scene.holds)(self.place)?);
        let same = |other: &Image| difference(&counts(&image), &counts(other)).is_none();
        if same(&self.after) {
            return Ok((faults, false));
        }
        if let Some((_, finish)) = self.also.iter().find(|(state, _)| same(state)) {
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
        if !same(&self.before) {
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

    /// A second recovery has nothing to do.
    fn second_recovery(&self) -> Outcome<Faults> {
        let first = listing(self.place)?;
        let (_, mut faults) = self.recover()?;
        if let Some(what) = difference(&listing(self.place)?, &first) {
            faults.push(format!("a second recovery changed something: {what}"));
        }
        Ok(faults)
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
