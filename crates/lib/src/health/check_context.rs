//! State of the repository that all health checks share, read once: records, refs, worktree registrations,
//! locked names.

use std::collections::{BTreeMap, BTreeSet};

use proq_base::lane_name::LaneName;
use proq_git::base::head::Head;
use proq_git::worktrees::health_probe::WorktreeRegistration;
use proq_git::{CommitId, Oid};
use proq_store as store;
use proq_store::base::file_access;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use super::finding::Finding;
use crate::lane::{Error, Project};

/// State of a repository at one moment.
pub(super) struct CheckContext<'a> {
    pub(super) project: &'a Project,
    /// Owned lanes whose records can be read.
    pub(super) lanes: Vec<LaneRecord>,
    /// Guest lanes whose records can be read: read-only and in-place ones.
    pub(super) guest_lanes: Vec<AnyLane>,
    /// Names of all entries of the store's `lanes` folder, whether or not their records can be read.
    pub(super) lane_names: Vec<String>,
    /// Branches and git-proq's own refs, by full name.
    pub(super) refs: BTreeMap<String, Oid>,
    /// git's registrations of linked worktrees.
    pub(super) registrations: Vec<WorktreeRegistration>,
    /// The open preview.
    pub(super) preview: Option<PreviewRecord>,
    /// `HEAD` of the main checkout.
    pub(super) head: Option<Head>,
    /// Snapshots whose records can be read, by id.
    pub(super) snapshots: BTreeMap<String, SnapshotRecord>,
    /// Findings about records that could not be read.
    pub(super) unreadable_records: Vec<Finding>,
    /// Lanes whose run lock is held now.
    locked_lanes: BTreeSet<LaneName>,
    /// Whether the folder with the names of the lanes cannot be read.
    are_lanes_unreadable: bool,
}

impl<'a> CheckContext<'a> {
    /// Reads the state. Starts git twice, regardless of the number of lanes.
    pub(super) fn read(project: &'a Project) -> Result<CheckContext<'a>, Error> {
        let layout = project.store.layout();
        let mut context = CheckContext::with_lanes(project, Layout::entry_names(&layout.lanes()))?;
        if let Some(denied) = file_access::first_inaccessible(&layout.lanes()) {
            let e = store::Error::io("read", &denied)(std::io::ErrorKind::PermissionDenied.into());
            let found = Finding::from_error("lane-record", "the records of the lanes", &e);
            context.unreadable_records.push(found.with_left_reason("the lanes are unknown"));
            context.are_lanes_unreadable = true;
        }
        for name in context.lane_names.clone() {
            let record = layout.record_of_lane_entry(&name);
            let found = context.read_record::<AnyLane>("lane-record", format!("lane '{name}'"), &record);
            context.guest_lanes.extend(found.clone().filter(|lane| lane.purpose().is_some()));
            context
                .lanes
                .extend(found.and_then(|lane| project.with_current_location(lane).into_owned_lane().ok()));
            if let Ok(name) = LaneName::parse(&name)
                && project.store.locks().is_held(&LockName::Run(name.clone()))?
            {
                context.locked_lanes.insert(name);
            }
        }
        for id in Layout::entry_names(&layout.snapshots()) {
            let record = layout.snapshot_record(&id);
            let found =
                context.read_record::<SnapshotRecord>("snapshot-record", format!("snapshot {id}"), &record);
            context.snapshots.extend(found.map(|snap| (id, snap)));
        }
        context.preview =
            context.read_record("preview-record", "the preview".to_owned(), &layout.preview_record());
        Ok(context)
    }

    /// Reads what git knows of the repository, for checks that need no record.
    pub(super) fn without_store(project: &'a Project) -> Result<CheckContext<'a>, Error> {
        let context = CheckContext::with_lanes(project, Vec::new())?;
        Ok(CheckContext { are_lanes_unreadable: true, ..context })
    }

    /// Reads what git knows of a repository with these folders of lanes, and no record.
    fn with_lanes(project: &'a Project, folders: Vec<String>) -> Result<CheckContext<'a>, Error> {
        Ok(CheckContext {
            project,
            lanes: Vec::new(),
            guest_lanes: Vec::new(),
            lane_names: folders,
            registrations: project.repo.worktree_registrations(),
            head: project.repo.main_head(),
            refs: project.repo.refs_with_prefixes(&["refs/heads/", "refs/proq/"])?.into_iter().collect(),
            preview: None,
            snapshots: BTreeMap::new(),
            unreadable_records: Vec::new(),
            locked_lanes: BTreeSet::new(),
            are_lanes_unreadable: false,
        })
    }

    /// Reads a record. Returns none and adds a finding if it cannot be read.
    fn read_record<R: Record>(
        &mut self,
        check: &'static str,
        subject: String,
        path: &std::path::Path,
    ) -> Option<R> {
        match R::load_if_exists(path) {
            Ok(found) => found,
            Err(e) => {
                let reason = "only you can judge its contents";
                self.unreadable_records
                    .push(Finding::from_error(check, subject, &e).with_left_reason(reason));
                None
            }
        }
    }

    /// Returns the tip of a branch.
    pub(super) fn branch_tip(&self, name: &str) -> Option<CommitId> {
        self.refs.get(&format!("refs/heads/{name}")).copied().map(CommitId::from_oid)
    }

    /// Returns the refs below a prefix, as `(remaining name, id)`.
    pub(super) fn refs_below<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = (&'s str, Oid)> {
        self.refs.iter().filter_map(move |(name, id)| Some((name.strip_prefix(prefix)?, *id)))
    }

    /// Returns whether a process is creating, removing or running the lane with this folder name.
    pub(super) fn is_locked(&self, lane: &str) -> bool {
        self.locked_lanes.contains(lane)
    }

    /// Returns whether a lane is just being created or removed.
    pub(super) fn is_being_changed(&self, lane: &LaneRecord) -> bool {
        self.is_locked(lane.name.as_str()) && !lane.state().is_claimed()
    }

    /// Returns whether a lane folder of this name exists, with or without a readable record. Also true where
    /// the names of the lanes cannot be read.
    pub(super) fn has_lane(&self, name: &str) -> bool {
        self.are_lanes_unreadable || self.lane_names.iter().any(|n| n == name)
    }

    /// Returns whether the snapshot with this id has not been restored yet, as far as that is known.
    pub(super) fn is_awaiting_restore(&self, id: &str) -> bool {
        self.snapshots.get(id).map_or_else(|| self.has_snapshot(id), |snap| snap.restored.is_none())
    }

    /// Returns whether any part of the snapshot with this id exists: record, ref or folder.
    pub(super) fn has_snapshot(&self, id: &str) -> bool {
        self.snapshots.contains_key(id)
            || self.refs.contains_key(&SnapshotRecord::ref_name(id))
            || self.project.store.layout().snapshot(id).exists()
    }
}
