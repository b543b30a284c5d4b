//! Owns checking what will land: the commands, what is known of each state of the files, and the stack without the lanes
//! with which they fail.

use std::collections::HashMap;
use std::rc::Rc;

use super::Error;
use super::failed::Failed;
use super::greens;
use super::outcome::Checks;
use super::request::{Candidate, Request};
use super::runs::{Found, Red, Rules, Runs, Task, called};
use super::search::{Bench, Colour, search};
use super::stack::Stack;
use crate::event::{Approvals, Command};
use crate::git::Oid;
use crate::lane::{Operation, Project};
use crate::store::new_id;
use crate::store::records::Step;

/// The checks of one call: what is to run, and what has been found so far.
#[derive(Debug)]
pub(super) struct Verifier {
    commands: Vec<Command>,
    lines: Vec<String>,
    jobs: usize,
    runs: Runs,
    /// By tree. Which commands may fail is a matter of the base: another one may know more.
    known: HashMap<Oid, Known>,
    base: Option<Oid>,
    tolerated: Vec<usize>,
    told: Checks,
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
        let approvals = Approvals::read(&project.repo, &project.store)?;
        let mut commands = match request.no_checks {
            true => Vec::new(),
            false => approvals.of_settings(&project.layers, &project.settings.verify_commands),
        };
        let open: Vec<&Command> = commands.iter().filter(|c| !c.approved).collect();
        if let (Some(path), false) = (open.first().and_then(|c| c.from.clone()), request.dry_run) {
            return Err(Error::Unapproved { path, commands: open.iter().map(|c| c.line.clone()).collect() });
        }
        commands.extend(request.verify.iter().filter(|line| !line.trim().is_empty()).map(Command::from));
        Ok(Verifier {
            lines: commands.iter().map(|c| c.line.clone()).collect(),
            commands,
            jobs: request.jobs.unwrap_or(project.settings.verify_jobs),
            runs: Runs::default(),
            known: HashMap::new(),
            base: None,
            tolerated: Vec::new(),
            told: Checks::default(),
        })
    }

    /// What to answer; none without commands.
    pub(super) fn report(self) -> Option<Checks> {
        if self.lines.is_empty() {
            return None;
        }
        let unapproved = self.commands.into_iter().filter(|c| !c.approved).map(|c| c.line).collect();
        Some(Checks { commands: self.lines, unapproved, runs: self.runs.count, ..self.told })
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
        if self.lines.is_empty() || stack.steps.is_empty() {
            return Ok(Verified { stack, failed: Vec::new() });
        }
        if self.base != Some(stack.base) && !self.tolerated.is_empty() {
            self.tolerated.clear();
            self.known.clear();
        }
        self.base = Some(stack.base);
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
            trees: Vec::new(),
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
        trees: &[Oid],
        tasks: &[Task],
        prefixes: &[usize],
    ) -> Result<(), Error> {
        let rules = Rules { commands: &self.lines, tolerated: &self.tolerated };
        let found = self.runs.run(project, rules, tasks, prefixes, self.jobs)?;
        for ((found, tree), task) in found.into_iter().zip(trees).zip(tasks) {
            match found {
                None => {}
                Some(Found::Red(red)) => drop(self.known.insert(*tree, Known::Red(Rc::new(red)))),
                Some(Found::Green { flaky }) => {
                    self.known.insert(*tree, Known::Green);
                    match flaky {
                        Some(command) => self.tell_flaky(project, command, task),
                        None if self.tolerated.is_empty() => greens::remember(project, *tree, &self.lines),
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn tell_flaky(&mut self, project: &Project, command: usize, task: &Task) {
        let line = &self.lines[command];
        project.listener.warn(format!(
            "`{line}` failed and then succeeded on the same files ({}): it is flaky",
            called(&task.onto, &task.lanes)
        ));
        if !self.told.flaky.contains(line) {
            self.told.flaky.push(line.clone());
        }
    }

    /// What is known of a tree, from this landing or one before.
    fn known(&mut self, project: &Project, tree: Oid) -> Option<Known> {
        if let Some(known) = self.known.get(&tree) {
            return Some(known.clone());
        }
        if !greens::knows(project, tree, &self.lines) {
            return None;
        }
        self.told.reused += 1;
        self.known.insert(tree, Known::Green);
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
    /// The tree of each prefix, from one lane on.
    trees: Vec<Oid>,
    failed: Vec<Failed>,
}

impl OnStack<'_, '_> {
    /// Holds the stack and finds out its trees.
    fn look_at_stack(&mut self) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        if !self.stack.steps.is_empty() {
            self.pending.hold(self.op, self.stack.tip())?;
        }
        let trees = self.stack.steps.iter().map(|step| repo.tree_of(step.commit));
        self.trees = trees.collect::<Result<_, _>>()?;
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
            first: self.verifier.lines.len(),
        }
    }
}

impl Bench for OnStack<'_, '_> {
    type Error = Error;

    fn judge(&mut self, prefixes: &[usize]) -> Result<Vec<Option<Colour>>, Error> {
        let project = self.op.project;
        let tree = |prefix: usize| self.trees[prefix - 1];
        let mut unknown = Vec::new();
        for prefix in prefixes {
            if self.verifier.known(project, tree(*prefix)).is_none() {
                unknown.push(*prefix);
            }
        }
        let whole = prefixes.last().map(|prefix| self.verifier.known(project, tree(*prefix)));
        if !matches!(whole, Some(Some(Known::Green))) && !unknown.is_empty() {
            let trees: Vec<Oid> = unknown.iter().map(|prefix| tree(*prefix)).collect();
            let tasks: Vec<Task> = unknown.iter().map(|prefix| self.task(*prefix)).collect();
            self.verifier.look(project, &trees, &tasks, &unknown)?;
        }
        let colour = |prefix: &usize| self.verifier.known.get(&tree(*prefix)).map(Known::colour);
        Ok(prefixes.iter().map(colour).collect())
    }

    fn base_is_red(&mut self, command: usize) -> Result<bool, Error> {
        let (project, base) = (self.op.project, self.stack.base);
        let tree = project.repo.tree_of(base)?;
        if greens::knows(project, tree, &self.verifier.lines) {
            return Ok(false);
        }
        // Those before it may be what it needs.
        let first = command + 1;
        let task = Task { commit: base, lanes: Vec::new(), onto: self.stack.onto.clone(), first };
        let verifier = &mut *self.verifier;
        let rules = Rules { commands: &verifier.lines, tolerated: &verifier.tolerated };
        let found = verifier.runs.run(project, rules, &[task], &[0], 1)?.pop().flatten();
        let Some(Found::Red(red)) = found else { return Ok(false) };
        let line = &verifier.lines[command];
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
        let line = verifier.lines[command].clone();
        if !verifier.told.red_on_base.contains(&line) {
            verifier.told.red_on_base.push(line);
        }
    }

    fn put_aside(&mut self, lane: usize) -> Result<(usize, usize), Error> {
        let candidate = self.stack.steps[lane].candidate.clone();
        let tree = self.trees[lane];
        if let Some(Known::Red(red)) = self.verifier.known.get(&tree) {
            let line = self.verifier.lines[red.command].clone();
            self.failed.push(Failed::new(candidate.clone(), self.names(lane), tree, line, Rc::clone(red)));
        }
        self.candidates.retain(|c| c.lane.name != candidate.lane.name);
        self.stack = (self.rebuild)(&self.candidates)?;
        self.look_at_stack()?;
        let green = |tree: &Oid| matches!(self.verifier.known.get(tree), Some(Known::Green));
        let known = self.trees.iter().rposition(green).map_or(0, |at| at + 1);
        Ok((self.trees.len(), known))
    }
}
