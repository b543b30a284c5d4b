//! Owns what all checks look at, read once: records, refs, registrations, whose names are held.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
pub(super) use crate::explain::quoted_path as quoted;
use crate::git::{Head, Oid, Registration};
use crate::lane::{Error, Project};
use crate::store::records::{AnyLane, LaneRecord, PreviewRecord, SnapRecord};
use crate::store::{self, LockName, Record};

/// A repository at one moment.
pub(super) struct Scene<'a> {
    /// The repository.
    pub(super) project: &'a Project,
    /// Lanes whose records can be read.
    pub(super) lanes: Vec<LaneRecord>,
    /// Lanes that only look.
    pub(super) looks: Vec<AnyLane>,
    /// Every folder of a lane.
    pub(super) lane_names: Vec<String>,
    /// Branches and git-proq's own refs, by full name.
    pub(super) refs: BTreeMap<String, Oid>,
    /// Git's records of linked worktrees.
    pub(super) registrations: Vec<Registration>,
    /// The open preview.
    pub(super) preview: Option<PreviewRecord>,
    /// What HEAD of the main checkout names.
    pub(super) head: Option<Head>,
    /// Snapshots whose records can be read, by id.
    pub(super) snaps: BTreeMap<String, SnapRecord>,
    /// What could not be read on the way.
    pub(super) unreadable: Vec<Finding>,
    held: BTreeSet<String>,
    /// Whether the names of the lanes cannot be read.
    is_closed: bool,
}

impl<'a> Scene<'a> {
    /// Looks at everything once. Starts git twice, however many lanes there are.
    pub(super) fn look(project: &'a Project) -> Result<Scene<'a>, Error> {
        let layout = project.store.layout();
        let mut scene = Scene {
            project,
            lanes: Vec::new(),
            looks: Vec::new(),
            lane_names: layout.names_in("lanes"),
            refs: BTreeMap::new(),
            registrations: project.repo.registrations(),
            preview: None,
            head: project.repo.main_head(),
            snaps: BTreeMap::new(),
            unreadable: Vec::new(),
            held: BTreeSet::new(),
            is_closed: false,
        };
        if let Some(closed) = store::closed(&layout.lanes()) {
            let e = store::Error::io("read", &closed)(std::io::ErrorKind::PermissionDenied.into());
            let found = Finding::of_error("lane-record", "the records of the lanes", &e);
            scene.unreadable.push(found.left("which lanes there are is not known"));
            scene.is_closed = true;
        }
        scene.refs.extend(project.repo.refs_below_any(&["refs/heads/", "refs/proq/"])?);
        for name in scene.lane_names.clone() {
            let record = layout.lane_record(&name);
            let found = scene.read::<AnyLane>("lane-record", format!("lane '{name}'"), &record);
            scene.looks.extend(found.clone().filter(|lane| lane.purpose().is_some()));
            scene.lanes.extend(found.and_then(|lane| project.followed(lane).with_tree().ok()));
            if project.store.locks().is_held(&LockName::Run(name.clone()))? {
                scene.held.insert(name);
            }
        }
        for id in layout.names_in("snaps") {
            let record = layout.snapshot(&id).join("snap.toml");
            let found = scene.read::<SnapRecord>("snapshot-record", format!("snapshot {id}"), &record);
            scene.snaps.extend(found.map(|snap| (id, snap)));
        }
        scene.preview = scene.read("preview-record", "the preview".to_owned(), &layout.preview());
        Ok(scene)
    }

    /// Reads a record. One that cannot be read is a finding, and none.
    fn read<R: Record>(&mut self, check: &'static str, what: String, path: &std::path::Path) -> Option<R> {
        match R::find(path) {
            Ok(found) => found,
            Err(e) => {
                let why = "what it held is for a person to judge";
                self.unreadable.push(Finding::of_error(check, what, &e).left(why));
                None
            }
        }
    }

    /// The tip of a branch.
    pub(super) fn branch(&self, name: &str) -> Option<Oid> {
        self.refs.get(&format!("refs/heads/{name}")).copied()
    }

    /// Refs below a prefix, as `(rest of the name, id)`.
    pub(super) fn below<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = (&'s str, Oid)> {
        self.refs.iter().filter_map(move |(name, id)| Some((name.strip_prefix(prefix)?, *id)))
    }

    /// Whether somebody makes, removes or runs this lane.
    pub(super) fn is_held(&self, lane: &str) -> bool {
        self.held.contains(lane)
    }

    /// Whether a lane is just being made or removed.
    pub(super) fn is_in_flux(&self, lane: &LaneRecord) -> bool {
        self.is_held(&lane.name) && !lane.state.is_claimed()
    }

    /// Whether a folder of a lane's name exists, its record readable or not, or may exist where the names cannot be read.
    pub(super) fn has_lane(&self, name: &str) -> bool {
        self.is_closed || self.lane_names.iter().any(|n| n == name)
    }

    /// Whether an id is of a snapshot that has not come back yet, as far as that can be known.
    pub(super) fn waits(&self, id: &str) -> bool {
        self.snaps.get(id).map_or_else(|| self.has_snap(id), |snap| snap.restored.is_none())
    }

    /// Whether an id is of a snapshot that is left in some form: record, ref or folder.
    pub(super) fn has_snap(&self, id: &str) -> bool {
        self.snaps.contains_key(id)
            || self.refs.contains_key(&SnapRecord::ref_name(id))
            || self.project.store.layout().snapshot(id).exists()
    }
}
