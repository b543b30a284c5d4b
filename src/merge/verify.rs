//! Owns checking what will land: the commands, what is known of each state of the files, and the stack without the lanes
//! with which they fail.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use super::Error;
use super::commands::{Commands, Numbers};
use super::failed::{Blame, Failed};
use super::greens::{self, CheckInput};
use super::outcome::{Checks, TaskChecks};
use super::request::{Candidate, Request};
use super::runs::{Found, Red, Rules, Runs, Task, called};
use super::search::{Bench, Colour, search};
use super::stack::{self, Stack};
use crate::event::{Approvals, Command};
use crate::git::Oid;
use crate::lane::{Operation, Project};
use crate::process::Ended;
use crate::store::new_id;
use crate::store::records::Step;

/// The checks of one call: what is to run, and what has been found so far.
#[derive(Debug)]
pub(super) struct Verifier {
    commands: Commands,
    /// What counts on each base.
    bases: BTreeMap<String, OnBase>,
    /// The commands of the call itself, which count on each base.
    more: Vec<String>,
    /// Whether those of the settings and of the lanes' tasks count.
    with_tasks: bool,
    dry_run: bool,
    jobs: usize,
    runs: Runs,
    /// Which commands may fail is a matter of the base: another one may know more.
    known: HashMap<State, Known>,
    base: Option<Oid>,
    tolerated: Vec<usize>,
    told: Checks,
}

/// What counts on a base.
#[derive(Debug, Clone)]
struct OnBase {
    commands: Numbers,
    /// How long one of them may take.
    limit: Duration,
    /// Those that are not approved.
    unapproved: Vec<String>,
    /// The base's tip that they were looked up for; none before the landing has one.
    at: Option<Oid>,
}

/// What is looked at: all that a check can read, and the commands that count with the lanes in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    input: CheckInput,
    commands: Numbers,
}

#[derive(Debug, Clone)]
enum Known {
    Green,
    Red(Rc<Red>),
}

impl Known {
    fn colour(&self) -> Colour {
        match self {
            Known::Green => Colour::Green,
            Known::Red(red) => Colour::Red(red.command),
        }
    }
}

/// A stack on which the commands succeed, and the lanes that are not in it for that.
#[derive(Debug)]
pub(super) struct Verified {
    /// What may land.
    pub(super) stack: Stack,
    /// The lanes that were put aside.
    pub(super) failed: Vec<Failed>,
}

/// The ref that holds a stack while it is being checked: nothing else leads to its commits.
#[derive(Debug, Default)]
pub(super) struct Pending {
    name: String,
    tip: Option<Oid>,
}

impl Pending {
    fn hold(&mut self, op: &Operation<'_>, tip: Oid) -> Result<(), Error> {
        if self.name.is_empty() {
            self.name = Step::pending_ref(&new_id());
        }
        if self.tip != Some(tip) {
            drop(op.perform(Step::Ref { name: self.name.clone(), old: self.tip, new: Some(tip) })?);
            self.tip = Some(tip);
        }
        Ok(())
    }

    /// The step that lets go.
    pub(super) fn release(&self) -> Option<Step> {
        self.tip.map(|tip| Step::Ref { name: self.name.clone(), old: Some(tip), new: None })
    }
}

impl Verifier {
    /// What a call asks for.
    ///
    /// # Errors
    /// [`Error::Unapproved`] when a command came with the repository and nobody has approved it.
    pub(super) fn new(project: &Project, request: &Request<'_>) -> Result<Verifier, Error> {
        let more = request.verify.iter().filter(|line| !line.trim().is_empty()).cloned().collect();
        let mut verifier = Verifier {
            commands: Commands::default(),
            bases: BTreeMap::new(),
            more,
            with_tasks: !request.no_checks,
            dry_run: request.dry_run,
            jobs: request.jobs.unwrap_or(project.settings.verify_jobs),
            runs: Runs::default(),
            known: HashMap::new(),
            base: None,
            tolerated: Vec::new(),
            told: Checks::default(),
        };
        for base in request.bases(project)? {
            verifier.learn(project, &base, None)?;
        }
        Ok(verifier)
    }

    /// Looks up anew what counts on each base. Other landings may have changed that while this one waited for its turn.
    ///
    /// # Errors
    /// As for [`Verifier::new`].
    pub(super) fn renew(&mut self, project: &Project) -> Result<(), Error> {
        let bases: Vec<String> = self.bases.keys().cloned().collect();
        bases.iter().try_for_each(|base| self.learn(project, base, None))
    }

    /// Looks up what counts on a base, once for each tip that it has.
    fn learn(&mut self, project: &Project, base: &str, at: Option<Oid>) -> Result<(), Error> {
        if at.is_some() && self.bases.get(base).is_some_and(|on| on.at == at) {
            return Ok(());
        }
        let (mut commands, mut limit) = (Vec::new(), project.settings.verify_timeout);
        if self.with_tasks {
            let checks = project.checks_on(base)?;
            let approvals = Approvals::read(&project.repo, &project.store)?;
            (commands, limit) = (approvals.of_settings(&checks.layers, &checks.commands), checks.timeout);
        }
        let open: Vec<&Command> = commands.iter().filter(|c| !c.approved).collect();
        let lines = || open.iter().map(|c| c.line.clone());
        if let (Some(path), false) = (open.first().and_then(|c| c.from.clone()), self.dry_run) {
            return Err(Error::Unapproved { path, commands: lines().collect(), base: base.to_owned() });
        }
        let unapproved = lines().collect();
        let lines: Vec<String> = commands.into_iter().map(|c| c.line).chain(self.more.clone()).collect();
        // What is known of a command on one base is known of it on the other.
        let same = |on: &&OnBase| self.commands.named(&on.commands) == lines;
        let known = self.bases.values().find(same).map(|on| on.commands.clone());
        let commands = known.unwrap_or_else(|| self.commands.add(lines));
        self.bases.insert(base.to_owned(), OnBase { commands, limit, unapproved, at });
        Ok(())
    }

    /// What to answer; none without commands.
    pub(super) fn report(self) -> Option<Checks> {
        let of_bases = self.bases.values().flat_map(|on| self.commands.named(&on.commands));
        let mut commands: Vec<String> = Vec::new();
        for line in of_bases {
            if !commands.contains(&line) {
                commands.push(line);
            }
        }
        if commands.is_empty() && self.told.tasks.is_empty() {
            return None;
        }
        let unapproved = self.bases.into_values().flat_map(|on| on.unapproved).collect();
        Some(Checks { commands, unapproved, runs: self.runs.count, ..self.told })
    }

    /// Notes for the answer what the tasks of the lanes in a stack ask for.
    pub(super) fn note_tasks(&mut self, stack: &Stack) {
        for lane in stack.steps.iter().map(|step| &step.candidate.lane) {
            let told = self.told.tasks.iter().any(|told| told.lane == lane.name);
            if self.with_tasks && !lane.checks.is_empty() && !told {
                let (lane, commands) = (lane.name.clone(), lane.checks.clone());
                self.told.tasks.push(TaskChecks { lane, commands });
            }
        }
    }

    /// What counts on a state of a base that is known, with these lanes.
    fn commands_on(&mut self, onto: &str, steps: &[stack::Step]) -> Numbers {
        let steps = if self.with_tasks { steps } else { &[] };
        let of_base = self.bases.get(onto).map_or_else(Vec::new, |on| on.commands.clone());
        self.commands.on(&of_base, steps.iter().map(|step| step.candidate.lane.checks.as_slice()))
    }

    /// How long a command may take on a base.
    fn limit(&self, project: &Project, onto: &str) -> Duration {
        self.bases.get(onto).map_or(project.settings.verify_timeout, |on| on.limit)
    }

    /// Whether anything is to be run on a stack.
    ///
    /// # Errors
    /// As for [`Verifier::new`].
    pub(super) fn has_commands_on(&mut self, project: &Project, stack: &Stack) -> Result<bool, Error> {
        self.learn(project, &stack.onto, Some(stack.base))?;
        Ok(!self.commands_on(&stack.onto, &stack.steps).is_empty())
    }

    /// Checks a stack, and anew without each lane with which a command fails that succeeds without it and on the base.
    /// `rebuild` stacks what is left.
    pub(super) fn verify(
        &mut self,
        op: &Operation<'_>,
        stack: Stack,
        candidates: &[Candidate],
        pending: &mut Pending,
        rebuild: &dyn Fn(&[Candidate]) -> Result<Stack, Error>,
    ) -> Result<Verified, Error> {
        if stack.steps.is_empty() || !self.has_commands_on(op.project, &stack)? {
            return Ok(Verified { stack, failed: Vec::new() });
        }
        if self.base != Some(stack.base) && !self.tolerated.is_empty() {
            self.tolerated.clear();
            self.known.clear();
        }
        self.base = Some(stack.base);
        self.note_tasks(&stack);
        let before = (self.runs.count, stack.steps.len());
        let (count, jobs) = (stack.steps.len(), self.jobs);
        let candidates = candidates.to_vec();
        let mut bench = OnStack {
            op,
            verifier: self,
            pending,
            rebuild,
            candidates,
            stack,
            states: Vec::new(),
            failed: Vec::new(),
        };
        bench.look_at_stack()?;
        search(&mut bench, count, jobs)?;
        let OnStack { stack, failed, .. } = bench;
        let runs = match self.runs.count - before.0 {
            0 => "known to be good".to_owned(),
            1 => "1 run".to_owned(),
            n => format!("{n} runs"),
        };
        let lanes = if before.1 == 1 { "1 lane".to_owned() } else { format!("{} lanes", before.1) };
        op.project.listener.step(format!("checked {lanes} on {}: {runs}", stack.onto));
        Ok(Verified { stack, failed })
    }

    /// Runs the commands on states of the files that nothing is known of.
    fn look(
        &mut self,
        project: &Project,
        states: &[State],
        tasks: &[Task],
        prefixes: &[usize],
    ) -> Result<(), Error> {
        let limit = self.limit(project, tasks.first().map_or("", |task| &task.onto));
        let rules = Rules { lines: self.commands.lines(), tolerated: &self.tolerated, limit };
        let found = self.runs.run(project, rules, tasks, prefixes, self.jobs)?;
        for ((found, state), task) in found.into_iter().zip(states).zip(tasks) {
            match found {
                None => {}
                Some(Found::Red(red)) => drop(self.known.insert(state.clone(), Known::Red(Rc::new(red)))),
                Some(Found::Green { flaky }) => {
                    self.known.insert(state.clone(), Known::Green);
                    match flaky {
                        Some(command) => self.tell_flaky(project, command, task),
                        None => self.remember(project, state),
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps what is green for the landings to come, if nothing of it was excused.
    fn remember(&self, project: &Project, state: &State) {
        if state.commands.iter().any(|command| self.tolerated.contains(command)) {
            return;
        }
        greens::remember(project, &state.input, &self.commands.named(&state.commands));
    }

    fn tell_flaky(&mut self, project: &Project, command: usize, task: &Task) {
        let line = &self.commands.lines()[command];
        project.listener.warn(format!(
            "`{line}` failed and then succeeded on the same files ({}): it is flaky",
            called(&task.onto, &task.lanes)
        ));
        if !self.told.flaky.contains(line) {
            self.told.flaky.push(line.clone());
        }
    }

    /// What is known of a state, from this landing or one before. One on which no command counts is good.
    fn known(&mut self, project: &Project, state: &State) -> Option<Known> {
        if let Some(known) = self.known.get(state) {
            return Some(known.clone());
        }
        if !state.commands.is_empty() {
            if !greens::knows(project, &state.input, &self.commands.named(&state.commands)) {
                return None;
            }
            self.told.reused += 1;
        }
        self.known.insert(state.clone(), Known::Green);
        Some(Known::Green)
    }
}

/// A stack that is being checked.
struct OnStack<'a, 'p> {
    op: &'a Operation<'p>,
    verifier: &'a mut Verifier,
    pending: &'a mut Pending,
    rebuild: &'a dyn Fn(&[Candidate]) -> Result<Stack, Error>,
    candidates: Vec<Candidate>,
    stack: Stack,
    /// What is looked at of each prefix, from one lane on.
    states: Vec<State>,
    failed: Vec<Failed>,
}

impl OnStack<'_, '_> {
    /// Holds the stack and finds out its states.
    fn look_at_stack(&mut self) -> Result<(), Error> {
        if !self.stack.steps.is_empty() {
            self.pending.hold(self.op, self.stack.tip())?;
        }
        let inputs = CheckInput::of_stack(self.op.project, &self.stack, None)?;
        let (verifier, Stack { onto, steps, .. }) = (&mut *self.verifier, &self.stack);
        let state = |(at, input)| State { input, commands: verifier.commands_on(onto, &steps[..=at]) };
        self.states = inputs.into_iter().enumerate().map(state).collect();
        Ok(())
    }

    fn names(&self, prefix: usize) -> Vec<String> {
        self.stack.steps[..prefix].iter().map(|step| step.candidate.lane.name.clone()).collect()
    }

    fn task(&self, prefix: usize) -> Task {
        Task {
            commit: self.stack.steps[prefix - 1].commit,
            lanes: self.names(prefix),
            onto: self.stack.onto.clone(),
            commands: self.states[prefix - 1].commands.clone(),
        }
    }

    /// The lane to whose task a command belongs that fails with the topmost lane of a prefix: itself, or the lowest one.
    fn task_of(&self, prefix: usize, command: usize) -> Option<String> {
        if !self.verifier.commands.is_of_task(command) {
            return None;
        }
        let line = &self.verifier.commands.lines()[command];
        let mut lanes = self.stack.steps[..prefix].iter().map(|step| &step.candidate.lane);
        let top = lanes.next_back().filter(|lane| lane.checks.contains(line));
        top.or_else(|| lanes.find(|lane| lane.checks.contains(line))).map(|lane| lane.name.clone())
    }
}

impl Bench for OnStack<'_, '_> {
    type Error = Error;

    fn judge(&mut self, prefixes: &[usize]) -> Result<Vec<Option<Colour>>, Error> {
        let project = self.op.project;
        let state = |prefix: usize| &self.states[prefix - 1];
        let mut unknown = Vec::new();
        for prefix in prefixes {
            if self.verifier.known(project, state(*prefix)).is_none() {
                unknown.push(*prefix);
            }
        }
        let whole = prefixes.last().map(|prefix| self.verifier.known(project, state(*prefix)));
        if !matches!(whole, Some(Some(Known::Green))) && !unknown.is_empty() {
            let states: Vec<State> = unknown.iter().map(|prefix| state(*prefix).clone()).collect();
            let tasks: Vec<Task> = unknown.iter().map(|prefix| self.task(*prefix)).collect();
            self.verifier.look(project, &states, &tasks, &unknown)?;
        }
        let colour = |prefix: &usize| self.verifier.known.get(state(*prefix)).map(Known::colour);
        Ok(prefixes.iter().map(colour).collect())
    }

    fn base_is_red(&mut self, command: usize) -> Result<bool, Error> {
        let (project, base) = (self.op.project, self.stack.base);
        let verifier = &mut *self.verifier;
        // The base lacks the lane that is to achieve it.
        if verifier.commands.is_of_task(command) {
            return Ok(false);
        }
        let input = CheckInput::of_base(project, &self.stack.onto, base)?;
        // Those before it may be what it needs.
        let commands = verifier.commands_on(&self.stack.onto, &[]);
        let commands: Numbers = commands.into_iter().filter(|number| *number <= command).collect();
        let state = State { input, commands: commands.clone() };
        if greens::knows(project, &state.input, &verifier.commands.named(&commands)) {
            return Ok(false);
        }
        let task = Task { commit: base, lanes: Vec::new(), onto: self.stack.onto.clone(), commands };
        let limit = verifier.limit(project, &self.stack.onto);
        let mut excused = verifier.tolerated.clone();
        let red = loop {
            let rules = Rules { lines: verifier.commands.lines(), tolerated: &excused, limit };
            let task = std::slice::from_ref(&task);
            match verifier.runs.run(project, rules, task, &[0], 1)?.pop().flatten() {
                // It ended before this one had its turn there.
                Some(Found::Red(red)) if red.command != command && !red.ended.is_timeout() => {
                    excused.push(red.command);
                }
                Some(Found::Red(red)) => break red,
                Some(Found::Green { flaky: None }) if excused.len() == verifier.tolerated.len() => {
                    verifier.remember(project, &state);
                    return Ok(false);
                }
                Some(Found::Green { .. }) | None => return Ok(false),
            }
        };
        let line = &verifier.commands.lines()[red.command];
        if let Ended::TimedOut(seconds) = red.ended {
            let lanes = self.candidates.iter().map(|candidate| candidate.lane.name.clone()).collect();
            let (command, base) = (line.clone(), self.stack.onto.clone());
            return Err(Error::TimedOut { command, base, seconds, lanes });
        }
        project.listener.warn(format!(
            "`{line}` fails on {} itself ({}), so it says nothing about the lanes",
            self.stack.onto, red.ended
        ));
        Ok(true)
    }

    fn tolerate(&mut self, command: usize) {
        let verifier = &mut *self.verifier;
        verifier.tolerated.push(command);
        verifier.known.retain(|_, known| !matches!(known, Known::Red(red) if red.command == command));
        let line = verifier.commands.lines()[command].clone();
        if !verifier.told.red_on_base.contains(&line) {
            verifier.told.red_on_base.push(line);
        }
    }

    fn put_aside(&mut self, lane: usize) -> Result<(usize, usize), Error> {
        let candidate = self.stack.steps[lane].candidate.clone();
        let state = &self.states[lane];
        if let Some(Known::Red(red)) = self.verifier.known.get(state) {
            let line = self.verifier.commands.lines()[red.command].clone();
            let blamed = Blame { command: line, task_of: self.task_of(lane + 1, red.command) };
            self.failed.push(Failed::new(
                candidate.clone(),
                self.names(lane),
                state.input.tree,
                blamed,
                Rc::clone(red),
            ));
        }
        self.candidates.retain(|other| !other.is(&candidate));
        self.stack = (self.rebuild)(&self.candidates)?;
        self.look_at_stack()?;
        let green = |state: &State| matches!(self.verifier.known.get(state), Some(Known::Green));
        let known = self.states.iter().rposition(green).map_or(0, |at| at + 1);
        Ok((self.states.len(), known))
    }
}
