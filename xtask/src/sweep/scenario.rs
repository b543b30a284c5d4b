//! Definition of a scenario: a prepared repository, one command, and the states allowed afterwards.

use super::fixture::Fixture;
use super::image::{Image, difference, read_image};
use super::{Outcome, fail};

/// Arguments of git-proq.
pub(super) type ProqArgs = &'static [&'static str];

/// State between before and after that a crash may leave permanently, because nothing in it is wrong.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowedState {
    /// Reason why the state is correct.
    pub(super) reason: &'static str,
    /// Commands that lead to the state.
    pub(super) commands: &'static [ProqArgs],
    /// Command that turns the state into the one after; empty if that state cannot be reached exactly.
    pub(super) finish_args: ProqArgs,
}

/// Scenario of the sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scenario {
    /// Name, as `--scenario` accepts it.
    pub(super) name: &'static str,
    /// Creates the repository.
    pub(super) prepare: fn(&Fixture) -> Outcome<()>,
    /// Command under test, run in the main checkout.
    pub(super) command: ProqArgs,
    /// Exit code of the undisturbed command.
    pub(super) exit_code: i32,
    /// Further states that are allowed afterwards.
    pub(super) allowed_states: &'static [AllowedState],
    /// Whether the command runs undisturbed and its undo is tested.
    pub(super) tests_undo: bool,
    /// Command that undoes it.
    pub(super) undo_args: ProqArgs,
    /// Prefixes of image keys that are not compared; `extra_check` covers what must hold for them.
    pub(super) ignored_prefixes: ProqArgs,
    /// Checks what else must hold whatever was disturbed; returns the faults.
    pub(super) extra_check: fn(&Fixture) -> Outcome<Vec<String>>,
}

impl Scenario {
    /// Returns the name, as shown.
    pub(super) fn title(&self) -> String {
        if self.tests_undo { format!("undo-{}", self.name) } else { self.name.to_owned() }
    }

    /// Returns the command that is disturbed.
    pub(super) fn tested_args(&self) -> ProqArgs {
        if self.tests_undo { self.undo_args } else { self.command }
    }

    /// Reads the current image, without ignored keys.
    pub(super) fn read_image(&self, fixture: &Fixture) -> Outcome<Image> {
        let mut image = read_image(fixture)?;
        image.retain(|key, _| !self.ignored_prefixes.iter().any(|prefix| key.starts_with(prefix)));
        Ok(image)
    }

    /// Returns the exit code of that command when it is undisturbed.
    pub(super) fn tested_exit_code(&self) -> i32 {
        if self.tests_undo { 0 } else { self.exit_code }
    }
}

/// Scenario in a fixture, ready to be run again and again.
#[derive(Debug)]
pub(super) struct PreparedScenario<'a> {
    /// Fixture of the scenario.
    pub(super) fixture: &'a Fixture,
    /// Definition of the scenario.
    pub(super) scenario: &'a Scenario,
    /// Image before the command.
    pub(super) before: Image,
    /// Image after the command.
    pub(super) after: Image,
    /// Further allowed states, with the command that completes each.
    pub(super) allowed_images: Vec<(Image, ProqArgs)>,
    /// Contents that must not be lost.
    pub(super) tokens: Vec<String>,
    /// Faults of the undisturbed command.
    pub(super) faults: Vec<String>,
}

impl<'a> PreparedScenario<'a> {
    /// Prepares a scenario, and runs its command once undisturbed.
    pub(super) fn new(fixture: &'a Fixture, scenario: &'a Scenario) -> Outcome<PreparedScenario<'a>> {
        let mut faults = Vec::new();
        fixture.init()?;
        (scenario.prepare)(fixture)?;
        let original = if scenario.tests_undo { Some(scenario.read_image(fixture)?) } else { None };
        if scenario.tests_undo {
            run_undisturbed(fixture, scenario.command, scenario.exit_code)?;
        }
        fixture.save_template()?;
        fixture.reset()?;
        let before = scenario.read_image(fixture)?;
        run_undisturbed(fixture, scenario.tested_args(), scenario.tested_exit_code())?;
        let after = scenario.read_image(fixture)?;
        faults.extend((scenario.extra_check)(fixture)?);
        if let Some(what) =
            original.and_then(|original| difference(&without_undo_records(&after, &original), &original))
        {
            faults.push(format!("undone, it is not as it was: {what}"));
        }
        fixture.reset()?;
        run_undisturbed(fixture, scenario.tested_args(), scenario.tested_exit_code())?;
        if let Some(what) = difference(&scenario.read_image(fixture)?, &after) {
            return fail(format!("{}: two undisturbed runs differ: {what}", scenario.title()));
        }
        let mut allowed_images = Vec::new();
        for state in if scenario.tests_undo { &[] } else { scenario.allowed_states } {
            fixture.reset()?;
            for args in state.commands {
                let _ = fixture.proq(args)?;
            }
            allowed_images.push((scenario.read_image(fixture)?, state.finish_args));
        }
        Ok(PreparedScenario {
            fixture,
            scenario,
            before,
            after,
            allowed_images,
            tokens: fixture.tokens(),
            faults,
        })
    }
}

/// Removes from an image what an undo leaves on purpose for some time: the record of a removed lane, its
/// trash entry, a snapshot whose content is restored. Nothing that existed before may be missing or
/// different.
pub(super) fn without_undo_records(after: &Image, original: &Image) -> Image {
    let is_undo_record = |key: &str| {
        let lane = key.strip_prefix("list: lanes ").and_then(|rest| rest.split(' ').next());
        key.starts_with("trash ")
            || key.starts_with("snapshot folder ")
            || key.starts_with("ref: snapshot ")
            || lane.is_some_and(|name| name.contains('@'))
    };
    let remaining = after.iter().filter(|(key, _)| original.contains_key(*key) || !is_undo_record(key));
    remaining.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn run_undisturbed(fixture: &Fixture, args: ProqArgs, code: i32) -> Outcome<()> {
    let answer = fixture.proq(args)?;
    if answer.code == code {
        return Ok(());
    }
    fail(format!("git proq {} ended with {}: {}", args.join(" "), answer.code, answer.stderr.trim()))
}
