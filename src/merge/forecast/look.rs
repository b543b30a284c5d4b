//! Owns making a forecast: every lane with its base and with every other, the cheap way first.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::answer::{Forecast, Pair, Result as Answer};
use super::apart::apart;
use super::cache::Cache;
use super::lanes::{Aside, Gathered, Group, Subject, gather};
use crate::git::{
    ByGit, Clash, Common, Oid, Three, ThrowAway, ask_git, circumstances, commit_aside, look_ahead,
};
use crate::lane::Project;
use crate::merge::Error;
use crate::store::Scratch;
use crate::store::records::LaneRecord;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// These lanes.
    pub(crate) lanes: Vec<LaneRecord>,
    /// What is uncommitted counts too.
    pub(crate) uncommitted: bool,
    /// Only what can be found out in this time, without starting git.
    pub(crate) within: Option<Duration>,
    /// Only this lane with the others.
    pub(crate) about: Option<String>,
}

/// A forecast that took less in process is not worth a file.
const WORTH_KEEPING: usize = 100;

/// Looks ahead at the merges that lanes would need.
pub(crate) fn forecast(project: &Project, ask: Ask) -> Result<Forecast, Error> {
    let until = ask.within.map(|time| Instant::now() + time);
    let layout = project.store.layout();
    let mut cache = Cache::read(layout, project.repo.fingerprint(&[&circumstances(&project.repo)?])?);
    let mut gathered = gather(project, ask.lanes, &mut cache)?;
    let mut away = Away::default();
    if ask.uncommitted {
        let dirty = gathered.dirty(project);
        if !dirty.is_empty() {
            gathered.add_uncommitted(project, &dirty, &away.make(project)?);
        }
    }
    gathered.leave_unchanged_out();
    let mut meetings = meetings(project, &gathered.groups, ask.about.as_deref())?;
    leave_apart(project, &mut meetings, away.objects(), until, &mut cache)?;
    for meeting in meetings.iter_mut().filter(|m| m.found.is_none()) {
        meeting.key = meeting.key(project)?;
        meeting.found = meeting.key.and_then(|key| cache.find(key));
    }
    in_process(project, &mut meetings, away.objects(), until, &mut cache)?;
    if until.is_none() {
        by_git(project, &mut meetings, &mut away, &mut cache)?;
    }
    crate::interrupt::check().map_err(Error::from)?;
    cache.save(layout, if until.is_none() { 1 } else { WORTH_KEEPING });
    let pairs = meetings.into_iter().map(Meeting::told).collect();
    let Gathered { groups, left_out } = gathered;
    let lanes = groups.into_iter().flat_map(|g| g.lanes).map(|s| s.compared).collect();
    Ok(Forecast { lanes, left_out, pairs })
}

/// Two that are compared.
struct Meeting<'g> {
    group: &'g Group<'g>,
    /// A lane of the group; the base itself without.
    ours: Option<&'g Subject>,
    theirs: &'g Subject,
    common: Common,
    /// Their trees, where there is one merge base.
    three: Option<Three>,
    /// What the answer is remembered by, where it takes a look.
    key: Option<Oid>,
    found: Option<Vec<Clash>>,
}

impl Meeting<'_> {
    fn key(&self, project: &Project) -> Result<Option<Oid>, Error> {
        let all = match (self.common, self.three) {
            (Common::Nothing, _) => return Ok(None),
            (_, Some(three)) => vec![three.base, three.ours, three.theirs],
            (_, None) => {
                let group = (self.group.tip, self.group.tree);
                let (tip, tree) = self.ours.map_or(group, |s| (s.compared.tip, s.compared.tree));
                vec![tip, tree, self.theirs.compared.tip, self.theirs.compared.tree]
            }
        };
        let parts: Vec<&[u8]> = all.iter().map(Oid::as_bytes).collect();
        project.repo.fingerprint(&parts).map(Some).map_err(Error::from)
    }

    fn told(self) -> Pair {
        Pair {
            ours: self.ours.map_or_else(|| self.group.base.clone(), |s| s.compared.lane.clone()),
            theirs: self.theirs.compared.lane.clone(),
            with_base: self.ours.is_none(),
            result: match (self.found, self.common) {
                (Some(clashes), _) => Answer::of(clashes),
                (None, Common::Nothing) => Answer::Unknown { why: "they have no history in common".into() },
                (None, _) => Answer::Unknown { why: "git could not merge them".into() },
            },
        }
    }
}

/// Each lane with its base, and with every other one of that base; or one lane with the others.
fn meetings<'g>(
    project: &Project,
    groups: &'g [Group<'g>],
    about: Option<&str>,
) -> Result<Vec<Meeting<'g>>, Error> {
    let is = |lane: &Subject| about == Some(lane.compared.lane.as_str());
    let mut trees = HashMap::new();
    let mut out = Vec::new();
    for group in groups {
        for theirs in group.lanes.iter().filter(|_| about.is_none()) {
            out.push(meeting(project, group, None, theirs, &mut trees)?);
        }
        for (at, ours) in group.lanes.iter().enumerate() {
            let others = group.lanes[at + 1..].iter();
            for theirs in others.filter(|theirs| about.is_none() || is(ours) || is(theirs)) {
                out.push(meeting(project, group, Some(ours), theirs, &mut trees)?);
            }
        }
    }
    Ok(out)
}

fn meeting<'g>(
    project: &Project,
    group: &'g Group<'g>,
    ours: Option<&'g Subject>,
    theirs: &'g Subject,
    trees: &mut HashMap<Oid, Oid>,
) -> Result<Meeting<'g>, Error> {
    let repo = &project.repo;
    let common = match ours {
        None => group.cuts.with_base(&theirs.fork)?,
        Some(ours) => group.cuts.between(&ours.fork, &theirs.fork)?,
    };
    let our_tree = ours.map_or(group.tree, |s| s.compared.tree);
    let their_tree = theirs.compared.tree;
    let three = match common {
        Common::One(base) => {
            let base = match trees.get(&base) {
                Some(tree) => *tree,
                None => *trees.entry(base).or_insert(repo.tree_of(base)?),
            };
            Some(Three { base, ours: our_tree, theirs: their_tree })
        }
        Common::Several | Common::Nothing => None,
    };
    Ok(Meeting { group, ours, theirs, common, three, key: None, found: None })
}

/// Nothing comes of those that touched different paths.
fn leave_apart(
    project: &Project,
    meetings: &mut [Meeting<'_>],
    objects: Option<&ThrowAway>,
    until: Option<Instant>,
    cache: &mut Cache,
) -> Result<(), Error> {
    let open: Vec<&mut Meeting<'_>> = meetings.iter_mut().filter(|m| m.three.is_some()).collect();
    let merges: Vec<Three> = open.iter().filter_map(|m| m.three).collect();
    let apart = apart(&project.repo, objects, &merges, until, cache)?;
    for (meeting, _) in open.into_iter().zip(apart).filter(|(_, apart)| *apart) {
        meeting.found = Some(Vec::new());
    }
    Ok(())
}

/// Finds out what needs no git.
fn in_process(
    project: &Project,
    meetings: &mut [Meeting<'_>],
    objects: Option<&ThrowAway>,
    until: Option<Instant>,
    cache: &mut Cache,
) -> Result<(), Error> {
    let open: Vec<&mut Meeting<'_>> =
        meetings.iter_mut().filter(|m| m.found.is_none() && m.three.is_some()).collect();
    let merges: Vec<Three> = open.iter().filter_map(|m| m.three).collect();
    let found = look_ahead(&project.repo, objects, &merges, until)?;
    for (meeting, found) in open.into_iter().zip(found) {
        meeting.learn(found, cache);
    }
    Ok(())
}

/// Asks git about the rest.
fn by_git(
    project: &Project,
    meetings: &mut [Meeting<'_>],
    away: &mut Away,
    cache: &mut Cache,
) -> Result<(), Error> {
    let open: Vec<&mut Meeting<'_>> =
        meetings.iter_mut().filter(|m| m.found.is_none() && m.common != Common::Nothing).collect();
    if open.is_empty() {
        return Ok(());
    }
    let aside = away.make(project)?;
    let mut commits = HashMap::new();
    let mut commit = |subject: &Subject| -> Result<Oid, Error> {
        let compared = &subject.compared;
        if compared.uncommitted == 0 {
            return Ok(compared.tip);
        }
        if let Some(known) = commits.get(&compared.lane) {
            return Ok(*known);
        }
        let made = commit_aside(&project.repo, aside.objects, compared.tree, compared.tip)?;
        commits.insert(compared.lane.clone(), made);
        Ok(made)
    };
    let mut pairs = Vec::new();
    for meeting in &open {
        let ours = meeting.ours.map_or(Ok(meeting.group.tip), &mut commit)?;
        pairs.push((ours, commit(meeting.theirs)?));
    }
    let answers = ask_git(&project.repo, aside.objects, aside.scratch, &pairs)?;
    for (meeting, answer) in open.into_iter().zip(answers) {
        let found = match answer {
            ByGit::Merged(clashes) => Some(clashes),
            ByGit::Failed => None,
        };
        meeting.learn(found, cache);
    }
    Ok(())
}

impl Meeting<'_> {
    fn learn(&mut self, found: Option<Vec<Clash>>, cache: &mut Cache) {
        if let (Some(key), Some(clashes)) = (self.key, &found) {
            cache.add(key, clashes);
        }
        self.found = found;
    }
}

/// A folder for what is made on the way, once one is needed. It goes with this.
#[derive(Default)]
struct Away(Option<(ThrowAway, Scratch)>);

impl Away {
    fn make(&mut self, project: &Project) -> Result<Aside<'_>, Error> {
        let made = if let Some(made) = self.0.take() {
            made
        } else {
            let scratch = project.store.layout().scratch()?;
            (ThrowAway::new(&project.repo, &scratch.path().join("objects"))?, scratch)
        };
        let (objects, scratch) = self.0.insert(made);
        Ok(Aside { objects, scratch: scratch.path() })
    }

    fn objects(&self) -> Option<&ThrowAway> {
        self.0.as_ref().map(|(objects, _)| objects)
    }
}
