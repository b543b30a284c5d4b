//! Owns what a scenario is: a prepared repository, one command, and what may be there afterwards.

use super::image::{Image, difference, look};
use super::place::Place;
use super::{Outcome, fail};

/// A command line of the program under test.
pub(super) type Words = &'static [&'static str];

/// A state between before and after that a crash may leave for good, because nothing in it is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct Also {
    /// Why that is right.
    pub(super) why: &'static str,
    /// The commands that lead there.
    pub(super) by: &'static [Words],
    /// The command that makes it the state after; nothing where that cannot be had exactly.
    pub(super) finish: Words,
}

/// One scenario.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene {
    /// Its name, as `--scenario` takes it.
    pub(super) name: &'static str,
    /// Makes the repository.
    pub(super) prepare: fn(&Place) -> Outcome<()>,
    /// The command under test, run in the main checkout.
    pub(super) command: Words,
    /// How it ends when nobody disturbs it.
    pub(super) code: i32,
    /// Further states that may be there afterwards.
    pub(super) also: &'static [Also],
    /// Whether the command is done in peace, and its undoing is what is tested.
    pub(super) undone: bool,
    /// What undoes it.
    pub(super) undo: Words,
    /// Beginnings of the names of what may be there or not, and however it likes: what must be so is said by `holds`.
    pub(super) spare: Words,
    /// What else must be so, whatever was disturbed: what is not, in words.
    pub(super) holds: fn(&Place) -> Outcome<Vec<String>>,
}

impl Scene {
    /// The name, as shown.
    pub(super) fn title(&self) -> String {
        if self.undone { format!("undo-{}", self.name) } else { self.name.to_owned() }
    }

    /// The command that is disturbed.
    pub(super) fn tested(&self) -> Words {
        if self.undone { self.undo } else { self.command }
    }

    /// What is there now, as far as it counts here.
    pub(super) fn look(&self, place: &Place) -> Outcome<Image> {
        let mut image = look(place)?;
        image.retain(|key, _| !self.spare.iter().any(|spare| key.starts_with(spare)));
        Ok(image)
    }

    /// How that ends when nobody disturbs it.
    pub(super) fn tested_code(&self) -> i32 {
        if self.undone { 0 } else { self.code }
    }
}

/// A scenario in a place, ready to be run again and again.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    /// Where.
    pub(super) place: &'a Place,
    /// Which.
    pub(super) scene: &'a Scene,
    /// What is there before the command.
    pub(super) before: Image,
    /// What is there after it.
    pub(super) after: Image,
    /// The further states that may be there, with the command that finishes each.
    pub(super) also: Vec<(Image, Words)>,
    /// What must never get lost.
    pub(super) tokens: Vec<String>,
    /// What is wrong without any disturbance.
    pub(super) faults: Vec<String>,
}

impl<'a> Stage<'a> {
    /// Prepares a scenario, and runs its command once in peace.
    pub(super) fn new(place: &'a Place, scene: &'a Scene) -> Outcome<Stage<'a>> {
        let mut faults = Vec::new();
        place.begin()?;
        (scene.prepare)(place)?;
        let original = if scene.undone { Some(scene.look(place)?) } else { None };
        if scene.undone {
            peacefully(place, scene.command, scene.code)?;
        }
        place.freeze()?;
        place.reset()?;
        let before = scene.look(place)?;
        peacefully(place, scene.tested(), scene.tested_code())?;
        let after = scene.look(place)?;
        faults.extend((scene.holds)(place)?);
        if let Some(what) =
            original.and_then(|original| difference(&without_memory(&after, &original), &original))
        {
            faults.push(format!("undone, it is not as it was: {what}"));
        }
        place.reset()?;
        peacefully(place, scene.tested(), scene.tested_code())?;
        if let Some(what) = difference(&scene.look(place)?, &after) {
            return fail(format!("{}: two undisturbed runs differ: {what}", scene.title()));
        }
        let mut also = Vec::new();
        for state in if scene.undone { &[] } else { scene.also } {
            place.reset()?;
            for words in state.by {
                let _ = place.proq(words)?;
            }
            also.push((scene.look(place)?, state.finish));
        }
        Ok(Stage { place, scene, before, after, also, tokens: place.tokens(), faults })
    }
}

/// What an undo leaves on purpose, for a time: the record of a lane that is gone again, its trash entry, a snapshot whose
/// content is back. Nothing that was there before may be missing or different.
pub(super) fn without_memory(after: &Image, original: &Image) -> Image {
    let is_memory = |key: &str| {
        let lane = key.strip_prefix("list: lanes ").and_then(|rest| rest.split(' ').next());
        key.starts_with("trash ")
            || key.starts_with("snapshot folder ")
            || key.starts_with("ref: snapshot ")
            || lane.is_some_and(|name| name.contains('@'))
    };
    let kept = after.iter().filter(|(key, _)| original.contains_key(*key) || !is_memory(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn peacefully(place: &Place, words: Words, code: i32) -> Outcome<()> {
    let answer = place.proq(words)?;
    if answer.code == code {
        return Ok(());
    }
    fail(format!("git proq {} ended with {}: {}", words.join(" "), answer.code, answer.stderr.trim()))
}
