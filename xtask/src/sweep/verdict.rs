//! Verdict on one disturbed run: nothing is lost, everything is as before or as after, and a second recovery
//! changes nothing.

use super::Outcome;
use super::fingerprint::Fingerprint;
use super::image::{Image, byte_listing, difference};
use super::lost_contents::{self, FoundInObjects};
use super::scenario::{PreparedScenario, without_undo_records};
use super::scenarios::can_be_undone;

/// Descriptions of what is wrong.
type Faults = Vec<String>;

/// Differences from the state before or after that are tolerated.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tolerance<'a> {
    /// Everything at or below these paths of a lane, which the command reported as not copied.
    Paths(&'a [String]),
    /// In the state after: contents of files in worktrees, and the indexes of lanes. A power cut may leave
    /// them empty, since neither git nor git-proq syncs them; git has the objects they are made of.
    Unsynced,
}

impl Tolerance<'_> {
    /// No difference.
    pub(super) const NONE: Tolerance<'static> = Tolerance::Paths(&[]);

    /// Returns whether an image equals the one before the command.
    fn is_before(self, image: &Image, before: &Image) -> bool {
        match self {
            Tolerance::Paths(paths) => {
                difference(&without_paths(image, paths), &without_paths(before, paths)).is_none()
            }
            Tolerance::Unsynced => difference(image, before).is_none(),
        }
    }

    /// Returns whether an image equals one after the command.
    fn is_after(self, image: &Image, after: &Image) -> bool {
        match self {
            Tolerance::Paths(paths) => {
                difference(&without_paths(image, paths), &without_paths(after, paths)).is_none()
            }
            Tolerance::Unsynced => {
                difference(&with_synced_contents(image, after), &with_synced_contents(after, after)).is_none()
            }
        }
    }
}

/// Returns an image without what is at or below paths of lanes.
fn without_paths(image: &Image, paths: &[String]) -> Image {
    let mut image = image.clone();
    image.retain(|key, _| !paths.iter().any(|path| is_below(key, path)));
    image
}

/// Returns what a power cut must leave of an image: an empty file counts as the one in `after`.
fn with_synced_contents(image: &Image, after: &Image) -> Image {
    let mut image = image.clone();
    let is_index = |key: &str| key.starts_with("lane ") && key.contains(": index");
    // What is listed of a lane follows from its files.
    let is_derived = |key: &str| key.starts_with("list: lanes ") && !key.ends_with(" name");
    image.retain(|key, value| {
        let is_broken = key == "fsck" && value.contains("/index: index file smaller than expected");
        !is_index(key) && !is_derived(key) && !is_broken
    });
    for (key, value) in &mut image {
        let is_empty = value.strip_prefix("644 ").or(value.strip_prefix("755 ")).is_some_and(str::is_empty);
        if let Some(whole) = after.get(key).filter(|_| is_empty && key.contains(": file ")) {
            value.clone_from(whole);
        }
    }
    image
}

/// Command that recovers; any command would do.
pub(super) const RECOVERY_COMMAND: &[&str] = &["list"];

impl PreparedScenario<'_> {
    /// Returns the lost contents as faults.
    pub(super) fn lost_faults(&self, when: &str) -> Faults {
        match lost_contents::find_lost(self.fixture, &self.tokens) {
            Ok(lost) => lost.into_iter().map(|what| format!("LOST {when}: {what}")).collect(),
            Err(e) => vec![format!("LOST {when}: cannot be read: {e}")],
        }
    }

    /// Returns the lost contents as faults, for the state on disk. Objects are not read again if git's own
    /// files are unchanged.
    pub(super) fn lost_faults_at(
        &self,
        state: Fingerprint,
        found: &mut FoundInObjects,
        when: &str,
    ) -> Faults {
        match lost_contents::find_lost_at(self.fixture, &self.tokens, state, found) {
            Ok(lost) => lost.into_iter().map(|what| format!("LOST {when}: {what}")).collect(),
            Err(e) => vec![format!("LOST {when}: cannot be read: {e}")],
        }
    }

    /// Runs recovery undisturbed. Returns its process number and the faults of its exit.
    pub(super) fn run_recovery(&self) -> Outcome<(i32, Faults)> {
        let answer = self.fixture.proq(RECOVERY_COMMAND)?;
        let bad = || format!("recovery ended with {}: {}", answer.code, answer.first_error_line());
        Ok((answer.pid, (answer.code != 0).then(bad).into_iter().collect()))
    }

    /// Returns all faults of what a recovery left. `done` means that the command reported success.
    pub(super) fn judge_state(&self, done: bool, tolerance: Tolerance<'_>) -> Outcome<Faults> {
        let (mut faults, as_before) = self.state_faults(tolerance)?;
        if as_before && done {
            faults.push("it claimed to be done, and everything is as before".to_owned());
        }
        if as_before {
            faults.extend(self.rerun_faults()?);
        }
        Ok(faults)
    }

    /// Returns the faults of the state alone, and whether it is the one before. Running the command again
    /// from that state is tested where recovery was not killed.
    pub(super) fn state_faults(&self, tolerance: Tolerance<'_>) -> Outcome<(Faults, bool)> {
        let mut faults = self.lost_faults("after recovery");
        let recovered = byte_listing(self.fixture)?;
        // Reading the image runs one more recovery first.
        let image = self.scenario.read_image(self.fixture)?;
        if let Some(what) = difference(&byte_listing(self.fixture)?, &recovered) {
            faults.push(format!("a second recovery changed something: {what}"));
        }
        faults.extend((self.scenario.extra_check)(self.fixture)?);
        if tolerance.is_after(&image, &self.after) {
            return Ok((faults, false));
        }
        if let Some((_, finish)) =
            self.allowed_images.iter().find(|(state, _)| tolerance.is_after(&image, state))
        {
            if finish.is_empty() {
                return Ok((faults, false));
            }
            let answer = self.fixture.proq(finish)?;
            if let Some(what) = difference(&self.scenario.read_image(self.fixture)?, &self.after) {
                faults.push(format!(
                    "git proq {} does not finish it ({}): {what}",
                    finish.join(" "),
                    answer.code
                ));
            }
            return Ok((faults, false));
        }
        if !tolerance.is_before(&image, &self.before) {
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

    /// Undoes a command that reported success although one of its calls failed: everything is as before, or
    /// the refusal has a reason and changes nothing.
    pub(super) fn undo_faults(&self) -> Outcome<Faults> {
        if self.scenario.tests_undo || !can_be_undone(self.scenario) {
            return Ok(Vec::new());
        }
        let before_undo = self.scenario.read_image(self.fixture)?;
        let answer = self.fixture.proq(self.scenario.undo_args)?;
        let now = self.scenario.read_image(self.fixture)?;
        let message = answer.first_error_line();
        if answer.code != 0 && message.is_empty() {
            return Ok(vec![format!("its undo ended with {} without a word", answer.code)]);
        }
        let diff_from = |wanted: &Image| difference(&without_undo_records(&now, wanted), wanted);
        // If another command had to complete it, that command was undone.
        if answer.code == 0 && self.allowed_images.iter().any(|(state, _)| diff_from(state).is_none()) {
            return Ok(Vec::new());
        }
        let (how, what) = match answer.code {
            0 => ("undone", diff_from(&self.before)),
            _ => ("its undo refused", difference(&now, &before_undo)),
        };
        Ok(what.map(|what| format!("{how}, it is not as it was: {what}; {message}")).into_iter().collect())
    }

    /// Runs the command again and checks that it does its work.
    fn rerun_faults(&self) -> Outcome<Faults> {
        let answer = self.fixture.proq(self.scenario.tested_args())?;
        if answer.code != self.scenario.tested_exit_code() {
            return Ok(vec![format!(
                "run again, it ended with {}: {}",
                answer.code,
                answer.first_error_line()
            )]);
        }
        let what = difference(&self.scenario.read_image(self.fixture)?, &self.after);
        Ok(what.map(|what| format!("run again, it left something else: {what}")).into_iter().collect())
    }
}

/// Returns whether a line of an image is about a path of a lane, or below it.
fn is_below(key: &str, path: &str) -> bool {
    let of_lane = key.strip_prefix("lane ").and_then(|rest| rest.split_once(": file "));
    let below = of_lane.and_then(|(_, file)| file.strip_prefix(path));
    below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn image_distance(a: &Image, b: &Image) -> usize {
    a.iter().filter(|(k, v)| b.get(*k) != Some(v)).count() + b.keys().filter(|k| !a.contains_key(*k)).count()
}
