//! Repository for unit tests that need git. Nothing of it is added to the user's list of repositories.

use std::path::{Path, PathBuf};
use std::process::Command;

use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_store::records::lane::LaneRecord;

use crate::lane::Project;
use crate::lane::creation::create::{NewLane, create_lane, plan_lane};
use crate::lane::inspection::base::resolve;
use crate::ops::remove::discard;
use crate::ops::remove::discard::DiscardRequest;
use crate::ops::reporter::SilentReporter;

/// Repository with one empty commit on `main`, in a temporary folder.
pub(crate) struct TestRepository {
    pub(crate) top: PathBuf,
    pub(crate) project: Project,
    _dir: tempfile::TempDir,
}

impl TestRepository {
    pub(crate) fn new() -> TestRepository {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let script = "git init -q -b main; git config user.name a; git config user.email a@b
            git commit -q --allow-empty -m x";
        run_script(&top, &top, script);
        let project = Project::open(&top, Listener::silent()).unwrap();
        TestRepository { top, project, _dir: dir }
    }

    /// Runs a shell script in `dir`.
    pub(crate) fn sh(&self, dir: &Path, script: &str) {
        run_script(&self.top, dir, script);
    }

    /// Creates an empty lane on `main`, of the group if one is given.
    pub(crate) fn create_lane(&self, name: &str, group: Option<&str>) -> LaneRecord {
        let base = resolve(&self.project, None, None).unwrap();
        let request = NewLane {
            name: Some(LaneName::parse(name).unwrap()),
            group: group.map(str::to_owned),
            ..NewLane::new(base)
        };
        create_lane(&self.project, &plan_lane(&self.project, request).unwrap()).unwrap().lane
    }

    /// Discards a lane as another process would.
    pub(crate) fn discard(&self, name: &str, force: bool) {
        let lanes = vec![self.project.find_any_lane(name).unwrap()];
        let outcome = discard::plan(&DiscardRequest { lanes, force }).execute(&self.project, &SilentReporter);
        assert!(outcome.unwrap().lanes[0].removed);
    }
}

fn run_script(home: &Path, dir: &Path, script: &str) {
    let status = Command::new("sh").args(["-ec", script]).current_dir(dir).env("HOME", home).status();
    assert!(status.unwrap().success());
}
