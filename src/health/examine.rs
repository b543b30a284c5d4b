//! Owns the whole examination: what is looked at in which order, when to look again, what is repaired.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::finding::{Finding, Severity};
use super::scene::Scene;
use super::{conflicts, disk, lanes, leftovers, objects, preview, program, settings, snaps, strays, trash};
use crate::git::{self, Repo};
use crate::lane::{Error, Project};
use crate::note::Listener;

/// How long is waited for commands that are just at work: half of what they do looks wrong.
const PATIENCE: Duration = Duration::from_secs(3);
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
    /// Refs that keep commits of removed lanes.
    pub(crate) saved: usize,
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
    let project = open(dir, &mut around);
    let mut report = match &project {
        Some(project) => settled(project, &base),
        None => Report { findings: Vec::new(), checked: base.clone() },
    };
    if let Some(project) = project.filter(|_| fix) {
        let (repaired, failed) = repair(&project, &report);
        if !repaired.is_empty() {
            report = settled(&project, &base);
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
    report.findings.sort_by_key(|f| (f.fixed, f.severity));
    report
}

/// Opens the repository as far as that is possible; what stands in the way is a finding.
fn open(dir: &Path, out: &mut Vec<Finding>) -> Option<Project> {
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
    let layers = Project::layers_of(repo.as_ref()).unwrap_or_else(|e| {
        out.push(Finding::of_error("setting", "settings", &e).left("the file is yours"));
        crate::config::Layers::default()
    });
    out.extend(settings::unknown(&layers));
    repo.map(|repo| Project::with(repo, layers, Listener::silent()))
}

/// Looks until what is wrong stays wrong while nobody is at work.
fn settled(project: &Project, base: &Checked) -> Report {
    let since = Instant::now();
    let mut report = look(project, base);
    while report.has_problems() && since.elapsed() < PATIENCE {
        std::thread::sleep(PAUSE);
        let busy = project.store.locks().anybody_at_work();
        let again = look(project, base);
        let same = again.problems() == report.problems();
        report = again;
        if same && !busy {
            break;
        }
    }
    report
}

fn look(project: &Project, base: &Checked) -> Report {
    let scene = match Scene::look(project) {
        Ok(scene) => scene,
        Err(e) => return Report { findings: vec![unseen(&e)], checked: base.clone() },
    };
    let mut findings = scene.unreadable.clone();
    for check in [
        lanes::check,
        strays::check,
        snaps::check,
        preview::check,
        conflicts::check,
        trash::check,
        objects::check,
        leftovers::check,
        disk::check,
        program::check,
    ] {
        findings.extend(check(&scene));
    }
    let checked = Checked {
        repository: true,
        lanes: scene.lane_names.len(),
        history: project.store.layout().names_in("history").len(),
        snapshots: scene.snaps.len(),
        conflicts: scene.below(conflicts::REFS).count(),
        trash: project.store.layout().names_in("trash").len(),
        saved: scene.below("refs/proq/saved/").count(),
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
