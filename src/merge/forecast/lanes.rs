//! Owns which lanes a forecast compares, and what of each: its commits, and what it has uncommitted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::answer::{Compared, LeftOut};
use super::cache::Cache;
use crate::git::{Cuts, Dirt, Fork, Oid, ThrowAway, Uncommitted, statuses, trees_of};
use crate::lane::Project;
use crate::merge::Error;
use crate::store::records::LaneRecord;

/// A lane to be compared.
pub(super) struct Subject {
    /// What is said of it.
    pub(super) compared: Compared,
    /// What it has on top of its base.
    pub(super) fork: Fork,
    branch: String,
    path: PathBuf,
}

/// The lanes of one base.
pub(super) struct Group<'a> {
    /// The base's name.
    pub(super) base: String,
    /// Its tip.
    pub(super) tip: Oid,
    /// The tree of that.
    pub(super) tree: Oid,
    /// Where lanes left it.
    pub(super) cuts: Cuts<'a>,
    /// The lanes.
    pub(super) lanes: Vec<Subject>,
}

/// Where uncommitted work goes for the time of a forecast.
pub(super) struct Aside<'a> {
    /// Objects.
    pub(super) objects: &'a ThrowAway,
    /// Anything else.
    pub(super) scratch: &'a Path,
}

/// The lanes that are asked for, by base; and those about which there is nothing to say.
pub(super) struct Gathered<'a> {
    pub(super) groups: Vec<Group<'a>>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Sorts the lanes by base. Uncommitted work is left alone here.
pub(super) fn gather<'p>(
    project: &'p Project,
    lanes: Vec<LaneRecord>,
    cache: &mut Cache,
) -> Result<Gathered<'p>, Error> {
    let mut out = Gathered { groups: Vec::new(), left_out: Vec::new() };
    let mut groups: BTreeMap<String, Option<Group<'_>>> = BTreeMap::new();
    for lane in lanes {
        let repo = &project.repo;
        let mut leave = |why: String| out.left_out.push(LeftOut { lane: lane.name.clone(), why });
        if !groups.contains_key(&lane.base) {
            groups.insert(lane.base.clone(), group(project, &lane.base)?);
        }
        let Some(Some(group)) = groups.get_mut(&lane.base) else {
            leave(format!("its base '{}' is gone", lane.base));
            continue;
        };
        let Some(tip) = repo.branch_tip(&lane.place.branch)? else {
            leave(format!("its branch {} is gone", lane.place.branch));
            continue;
        };
        let (tree, fork) = known(project, group, tip, cache)?;
        let compared = Compared {
            tree,
            commits: fork.commits(),
            uncommitted: 0,
            note: None,
            lane: lane.name,
            base: lane.base,
            tip,
        };
        group.lanes.push(Subject { compared, fork, branch: lane.place.branch, path: lane.path });
    }
    out.groups = groups.into_values().flatten().collect();
    Ok(out)
}

/// The tree of a lane's tip and what it has on top of its base, from memory where neither has moved.
fn known(project: &Project, group: &Group<'_>, tip: Oid, cache: &mut Cache) -> Result<(Oid, Fork), Error> {
    let key = group.cuts.key(tip)?;
    let line = key.and_then(|key| cache.find_line(key)?.split_once(';'));
    if let Some((tree, rest)) = line
        && let (Some(tree), Some(fork)) = (Oid::from_hex(tree.as_bytes()), Fork::from_line(tip, rest))
    {
        return Ok((tree, fork));
    }
    let (tree, fork) = (project.repo.tree_of(tip)?, group.cuts.fork(tip)?);
    if let (Some(key), Some(line)) = (key, fork.to_line()) {
        cache.add_line(key, format!("{tree};{line}"));
    }
    Ok((tree, fork))
}

fn group<'a>(project: &'a Project, base: &str) -> Result<Option<Group<'a>>, Error> {
    let Some(tip) = project.repo.branch_tip(base)? else { return Ok(None) };
    Ok(Some(Group {
        base: base.to_owned(),
        tip,
        tree: project.repo.tree_of(tip)?,
        cuts: Cuts::new(&project.repo, tip)?,
        lanes: Vec::new(),
    }))
}

/// A lane's worktree in which something is uncommitted.
pub(super) struct Dirty {
    lane: String,
    dir: PathBuf,
    dirt: Dirt,
}

impl Gathered<'_> {
    /// The worktrees of the lanes in which something is uncommitted.
    pub(super) fn dirty(&mut self, project: &Project) -> Vec<Dirty> {
        let subjects: Vec<&mut Subject> = self.groups.iter_mut().flat_map(|g| &mut g.lanes).collect();
        let folders: Vec<PathBuf> = subjects.iter().map(|s| s.path.clone()).collect();
        let (found, ()) = statuses(&project.repo, &folders, || ());
        let mut out = Vec::new();
        for (subject, dirt) in subjects.into_iter().zip(found) {
            let is_on = || project.repo.is_on(&subject.path, &subject.branch);
            let note = match dirt {
                None => Some("its worktree could not be looked at".to_owned()),
                Some(dirt) if dirt.is_clean() => None,
                Some(_) if !is_on() => Some(format!("its worktree is not on {}", subject.branch)),
                Some(dirt) => {
                    let (lane, dir) = (subject.compared.lane.clone(), subject.path.clone());
                    out.push(Dirty { lane, dir, dirt });
                    None
                }
            };
            subject.compared.note = note;
        }
        out
    }

    /// Adds what is uncommitted to what is compared.
    pub(super) fn add_uncommitted(&mut self, project: &Project, dirty: &[Dirty], aside: &Aside<'_>) {
        let mut readable = Vec::new();
        for one in dirty {
            match project.repo.git_dir_of(&one.dir) {
                Ok(git_dir) => {
                    readable.push((one, Uncommitted { dir: &one.dir, git_dir, dirt: &one.dirt }));
                }
                Err(e) => self.remark(&one.lane, &e.to_string()),
            }
        }
        let (lanes, worktrees): (Vec<&Dirty>, Vec<Uncommitted<'_>>) = readable.into_iter().unzip();
        let trees = trees_of(&project.repo, aside.objects, aside.scratch, &worktrees);
        for (one, tree) in lanes.into_iter().zip(trees) {
            match tree {
                Ok(tree) => {
                    if let Some(subject) = self.subject(&one.lane).filter(|s| s.compared.tree != tree) {
                        subject.compared.tree = tree;
                        subject.compared.uncommitted = one.dirt.entries.len();
                    }
                }
                Err(e) => self.remark(&one.lane, &e.to_string()),
            }
        }
    }

    /// Leaves the lanes out in which nothing has changed.
    pub(super) fn leave_unchanged_out(&mut self) {
        for group in &mut self.groups {
            let unchanged = |s: &Subject| s.compared.commits == 0 && s.compared.uncommitted == 0;
            for subject in group.lanes.extract_if(.., |s| unchanged(s)) {
                let why = subject.compared.note.unwrap_or_else(|| "it has changed nothing".to_owned());
                self.left_out.push(LeftOut { lane: subject.compared.lane, why });
            }
        }
        self.left_out.sort_by(|a, b| a.lane.cmp(&b.lane));
    }

    fn remark(&mut self, lane: &str, why: &str) {
        if let Some(subject) = self.subject(lane) {
            subject.compared.note = Some(format!("its uncommitted work could not be read: {why}"));
        }
    }

    fn subject(&mut self, lane: &str) -> Option<&mut Subject> {
        self.groups.iter_mut().flat_map(|g| &mut g.lanes).find(|s| s.compared.lane == lane)
    }
}
