//! Owns the whole examination: what is looked at in which order, when to look again, what is repaired.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::finding::{Finding, Severity};
use super::scene::Scene;
use super::{
    batches, checkouts, conflicts, disk, lanes, leftovers, objects, operations, pool, preview, program,
    settings, snaps, strays, trash,
};
use crate::git::{self, Repo};
use crate::lane::{Error, Project};
use crate::note::{Listener, Note};
use crate::store::Store;

/// How long is looked again while nobody is at work and what is found changes.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long is waited for commands that are just at work: half of what they do looks wrong.
const BUSY: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(60);

/// What was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Checked {
    /// Whether there was a repository.
    pub(crate) repository: bool,
    /// Git's version.
    pub(crate) git: Option<String>,
    /// Agents on `PATH`.
    pub(crate) agents: Vec<String>,
    /// Lanes.
    pub(crate) lanes: usize,
    /// Removed lanes.
    pub(crate) history: usize,
    /// Snapshots.
    pub(crate) snapshots: usize,
    /// Captured conflicts.
    pub(crate) conflicts: usize,
    /// Entries of the trash.
    pub(crate) trash: usize,
    /// Those whose folders the next lane may be given, by lane, the youngest first.
    pub(crate) waiting: Vec<String>,
    /// Refs that keep commits of removed lanes.
    pub(crate) saved: usize,
    /// Operations in the log.
    pub(crate) operations: usize,
    /// Whether a preview is open.
    pub(crate) preview: bool,
}

/// What was found and what was looked at.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Report {
    /// The findings, worst first.
    pub(crate) findings: Vec<Finding>,
    /// What was looked at.
    pub(crate) checked: Checked,
}

impl Report {
    /// Whether nothing is wrong any more.
    pub(crate) fn is_ok(&self) -> bool {
        !self.findings.iter().any(|f| f.severity == Severity::Error && !f.fixed)
    }

    fn has_problems(&self) -> bool {
        self.findings.iter().any(Finding::is_problem)
    }

    fn problems(&self) -> Vec<(&str, &str, &str)> {
        let problems = self.findings.iter().filter(|f| f.is_problem());
        problems.map(|f| (f.check, f.subject.as_str(), f.message.as_str())).collect()
    }
}

/// Examines the repository that `dir` lies in, or what there is outside of one. With `fix` safe repairs are made.
pub(crate) fn examine(dir: &Path, fix: bool) -> Report {
    let (version, mut around) = program::version(dir);
    let (agents, remark) = settings::agents(dir);
    around.extend(remark);
    let base = Checked { git: version, agents, ..Checked::default() };
    let remarks = Remarks::default();
    let project = open(dir, remarks.listener(), &mut around);
    let mut report = match &project {
        Some(project) => settled(project, &base, &remarks),
        None => Report { findings: Vec::new(), checked: base.clone() },
    };
    if let Some(project) = project.filter(|_| fix) {
        let (repaired, failed) = repair(&project, &report);
        if !repaired.is_empty() {
            report = settled(&project, &base, &remarks);
        }
        let remains =
            |f: &Finding| report.findings.iter().any(|r| (r.check, &r.subject) == (f.check, &f.subject));
        let repaired: Vec<Finding> = repaired.into_iter().filter(|f| !remains(f)).collect();
        for finding in &mut report.findings {
            let why = failed.iter().find(|(f, _)| (f.check, &f.subject) == (finding.check, &finding.subject));
            finding.left = why.map(|(_, why)| why.clone()).or_else(|| finding.left.take());
        }
        report.findings.extend(repaired.into_iter().map(|f| Finding { fixed: true, ..f }));
    }
    report.findings.extend(around);
    report
        .findings
        .extend(remarks.kept.take().into_iter().map(|text| Finding::info("recovery", "recovery", text)));
    report.findings.sort_by_key(|f| (f.fixed, f.severity));
    report
}

/// Opens the repository as far as that is possible; what stands in the way is a finding.
fn open(dir: &Path, listener: Listener, out: &mut Vec<Finding>) -> Option<Project> {
    let repo = match Repo::discover(dir) {
        Ok(repo) => Some(repo),
        // Said already, with git's version.
        Err(git::Error::NoGit) => None,
        Err(git::Error::NoRepository { by_variable: false, .. }) if !git::knows_repository(dir) => {
            let message = "not in a repository, so only git, agents and settings were looked at";
            out.push(Finding::info("repository", dir.display().to_string(), message));
            None
        }
        Err(git::Error::NoRepository { by_variable: false, .. }) => {
            let message = "git knows a repository here, but it is of a kind that git-proq cannot read";
            let help = "git config --get-regexp '^extensions'";
            out.push(Finding::error("repository", dir.display().to_string(), message).help(help));
            None
        }
        Err(e) => {
            out.push(Finding::of_error("repository", dir.display().to_string(), &e));
            None
        }
    };
    if let Some(Err(e)) = repo.as_ref().map(|repo| Store::refuse_links(repo.common_dir())) {
        out.push(Finding::of_error("store", dir.display().to_string(), &e));
        return None;
    }
    let layers = Project::layers_of(repo.as_ref()).unwrap_or_else(|e| {
        out.push(Finding::of_error("setting", "settings", &e).left("the file is yours"));
        crate::config::Layers::default()
    });
    out.extend(settings::unknown(&layers));
    let project = repo.map(|repo| Project::with(repo, layers, listener))?;
    if let Err(e) = project.repo.require_writable() {
        let dir = project.repo.common_dir().display().to_string();
        out.push(Finding::of_error("rights", dir, &e).left("whose it is to be is for you to say"));
    }
    out.extend(settings::silent(&project.settings.notify, project.repo.home()));
    Some(project)
}

/// What recovery says, kept for the report. What else is said while looking is a finding anyway.
#[derive(Default)]
struct Remarks {
    heard: Rc<RefCell<Vec<String>>>,
    kept: RefCell<Vec<String>>,
}

impl Remarks {
    fn listener(&self) -> Listener {
        let heard = Rc::clone(&self.heard);
        Listener::new(move |note| {
            if let Note::Warning(text) = note {
                heard.borrow_mut().push(text.clone());
            }
        })
    }

    fn put_right(&self, project: &Project) -> Vec<Finding> {
        self.heard.take();
        let found = operations::put_right(project);
        self.kept.borrow_mut().extend(self.heard.take());
        found
    }
}

/// Looks until what is wrong stays wrong while nobody is at work.
fn settled(project: &Project, base: &Checked, remarks: &Remarks) -> Report {
    let since = Instant::now();
    let mut report = look(project, base, remarks);
    while report.has_problems() {
        std::thread::sleep(PAUSE);
        let busy = operations::at_work(project);
        let again = look(project, base, remarks);
        let same = again.problems() == report.problems();
        report = again;
        match busy {
            None if same || since.elapsed() > PATIENCE => break,
            Some(who) if since.elapsed() > BUSY => return in_doubt(report, &who),
            _ => {}
        }
    }
    report
}

/// While somebody is at work for so long, what looks wrong may be half of what that command does.
fn in_doubt(mut report: Report, who: &str) -> Report {
    for finding in report.findings.iter_mut().filter(|f| f.is_problem()) {
        finding.severity = Severity::Warning;
        finding.fixable = false;
        finding.repair = None;
        finding.left = Some(format!("{who} is at work, and it may be half of what that does"));
    }
    let message = format!("{who} is at work; what looks wrong may be half of what it does");
    report.findings.push(Finding::info("at-work", "at work", message).help("git proq doctor"));
    report
}

fn look(project: &Project, base: &Checked, remarks: &Remarks) -> Report {
    let unfinished = remarks.put_right(project);
    let scene = match Scene::look(project) {
        Ok(scene) => scene,
        Err(e) => {
            return Report {
                findings: unfinished.into_iter().chain([unseen(&e)]).collect(),
                checked: base.clone(),
            };
        }
    };
    let mut findings = unfinished;
    findings.extend(scene.unreadable.iter().cloned());
    for check in [
        lanes::check,
        batches::check,
        strays::check,
        snaps::check,
        preview::check,
        checkouts::check,
        conflicts::check,
        trash::check,
        objects::check,
        operations::check,
        leftovers::check,
        disk::check,
        program::check,
    ] {
        findings.extend(check(&scene));
    }
    let (waiting, found) = pool::look(&scene);
    findings.extend(found);
    let checked = Checked {
        repository: true,
        waiting,
        lanes: scene.lane_names.len(),
        history: project.store.layout().names_in("history").len(),
        snapshots: scene.snaps.len(),
        conflicts: scene.below(conflicts::REFS).count(),
        trash: project.store.layout().names_in("trash").len(),
        saved: scene.below("refs/proq/saved/").count(),
        operations: project.store.layout().operation_numbers().len(),
        preview: scene.preview.is_some(),
        ..base.clone()
    };
    Report { findings, checked }
}

fn unseen(e: &Error) -> Finding {
    Finding::of_error("repository", "the repository", e).left("nothing could be looked at")
}

/// Makes every safe repair. Returns what was repaired, and what could not be with why.
fn repair(project: &Project, report: &Report) -> (Vec<Finding>, Vec<(Finding, String)>) {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for finding in &report.findings {
        match finding.repair.as_ref().map(|repair| repair.apply(project)) {
            Some(Ok(())) => done.push(finding.clone()),
            Some(Err(e)) => failed.push((finding.clone(), e.to_string())),
            None => {}
        }
    }
    (done, failed)
}
