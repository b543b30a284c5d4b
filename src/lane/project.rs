//! Owns one repository as git-proq sees it: git, the store, the settings, and the lanes on record.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::died::died;
use super::{Error, Name, effective_state, recover, state_after};
use crate::config::{Layers, Settings};
use crate::event::{self, Log};
use crate::git::Repo;
use crate::note::Listener;
use crate::store::records::{AnyLane, LaneRecord, LaneState, Place, RunClass, RunRecord};
use crate::store::{self, Guard, Limit, LockName, Record, Store, now};

/// How many settings that count for nothing are named one by one.
const NAMED: usize = 5;

/// Everything a command works with.
pub(crate) struct Project {
    /// Git.
    pub(crate) repo: Repo,
    /// What is kept.
    pub(crate) store: Store,
    /// The settings.
    pub(crate) settings: Settings,
    /// Where the settings come from.
    pub(crate) layers: Layers,
    /// Where remarks go.
    pub(crate) listener: Listener,
    /// This process lives so long that the settings may be others meanwhile: who is told of an event is looked up anew.
    pub(crate) lasting: bool,
    /// What its operations are taken back together by, where one undo is about all that a command does.
    pub(crate) together: Option<String>,
}

impl Project {
    /// Opens the repository that `dir` lies in.
    pub(crate) fn open(dir: &Path, listener: Listener) -> Result<Project, Error> {
        let repo = Repo::discover(dir)?;
        Store::refuse_links(repo.common_dir())?;
        let layers = Project::layers_of(Some(&repo))?;
        for key in layers.unknown() {
            listener.warn(format!("unknown setting {key}"));
        }
        if layers.more_unknown() > 0 {
            listener.warn(format!("and {} more unknown settings", layers.more_unknown()));
        }
        let mut in_vain = layers.hooks().filter(|event| !event::has_hooks(event));
        for event in in_vain.by_ref().take(NAMED) {
            listener.warn(format!("there is no event '{event}', so hook.{event} never runs"));
        }
        match in_vain.count() {
            0 => {}
            more => listener.warn(format!("and {more} more hooks of events that do not exist")),
        }
        let project = Project::with(repo, layers, listener);
        project.check_git()?;
        Ok(project)
    }

    /// The settings that count in a repository, or outside of any.
    pub(crate) fn layers_of(repo: Option<&Repo>) -> Result<Layers, Error> {
        let env = |name: &str| std::env::var(name).ok();
        let user = std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
            .or_else(|| std::env::home_dir().map(|h| h.join(".config")));
        let git = repo.map(Repo::proq_settings).unwrap_or_default();
        Ok(Layers::read(repo.and_then(Repo::main_worktree), user.as_deref(), &git, &env)?)
    }

    /// A repository with settings that were read before. Git's version is not looked at.
    pub(crate) fn with(repo: Repo, layers: Layers, listener: Listener) -> Project {
        let settings = Settings::from_layers(&layers);
        let mut store = Store::at(repo.common_dir(), listener.clone());
        store.set_lock_limit(Limit::For(settings.lock_timeout));
        store.read_clock();
        Project { repo, store, settings, layers, listener, lasting: false, together: None }
    }

    /// Checks git's version, once for each git program rather than at every start. (`git proq` finds another path of
    /// the same git than `git-proq` does.)
    fn check_git(&self) -> Result<(), Error> {
        let file = self.store.layout().git_version();
        let seen = GitSeen::of(self.repo.program().path());
        let mut known = GitsSeen::find(&file).ok().flatten().unwrap_or_default();
        if let Some(seen) = &seen
            && let Some(same) = known.git.iter().find(|k| k.is_same(seen))
        {
            return Ok(self.repo.assume_version(&same.version)?);
        }
        let version = self.repo.version()?;
        if let Some(seen) = seen.filter(|_| self.store.layout().root().exists()) {
            known.git.retain(|k| k.path != seen.path);
            known.git.push(GitSeen { version: version.to_string(), ..seen });
            // A cache: a read-only repository works without.
            drop(known.save(&file));
        }
        Ok(())
    }

    /// The folder of the main checkout that is for worktrees: new lanes' where nobody wants them elsewhere, those that only look and
    /// those of conflicts. Never below a git directory: some agents lose their
    /// permission rules there.
    pub(crate) fn lanes_dir(&self) -> PathBuf {
        const NAME: &str = ".proq-worktrees";
        if let Some(main) = self.repo.main_worktree() {
            let dir = main.join(NAME);
            // It may be a link to another disk; git and the lanes' records know the place it leads to.
            return dir.canonicalize().unwrap_or(dir);
        }
        let bare = self.repo.common_dir();
        let parent = bare.parent().unwrap_or(bare);
        match bare.file_stem().and_then(|s| s.to_str()) {
            Some(stem) if !stem.starts_with('.') => parent.join(format!("{stem}{NAME}")),
            _ => parent.join(NAME),
        }
    }

    /// The branch of a lane of this name.
    pub(crate) fn branch_of(&self, name: &Name) -> String {
        format!("{}/{name}", self.settings.prefix)
    }

    /// The hidden branch that shows a lane in the main checkout.
    pub(crate) fn preview_branch_of(&self, name: &str) -> String {
        format!("{}/{name}-preview", self.settings.prefix)
    }

    /// The lane that a branch shows in the main checkout, when it is a preview branch.
    pub(crate) fn lane_of_preview<'b>(&self, branch: &'b str) -> Option<&'b str> {
        branch.strip_prefix(self.settings.prefix.as_str())?.strip_prefix('/')?.strip_suffix("-preview")
    }

    /// Whether a branch is a lane's, or shows one.
    pub(crate) fn is_own_branch(&self, branch: &str) -> bool {
        branch.strip_prefix(self.settings.prefix.as_str()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Every lane on record that can be landed, by name. A record that cannot be read is named in a warning and left out.
    pub(crate) fn lanes(&self) -> Result<Vec<LaneRecord>, Error> {
        Ok(self.every_lane()?.into_iter().filter_map(|lane| lane.with_tree().ok()).collect())
    }

    /// The same of every lane, those that only look too.
    pub(crate) fn every_lane(&self) -> Result<Vec<AnyLane>, Error> {
        let dir = self.store.layout().lanes();
        let mut names = Vec::new();
        match std::fs::read_dir(&dir) {
            Ok(entries) => {
                for entry in entries.flatten() {
                    names.extend(entry.file_name().into_string());
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(store::Error::io("read", &dir)(e).into()),
        }
        names.sort_unstable();
        let mut out = Vec::new();
        for name in names {
            match AnyLane::find(&self.store.layout().lane_record(&name)) {
                Ok(found) => out.extend(found.map(|lane| self.followed(lane))),
                Err(e) => self.listener.warn(format!("lane '{name}': {e}")),
            }
        }
        Ok(out)
    }

    /// A lane that can be landed, by its name or its branch.
    ///
    /// # Errors
    /// [`Error::Unknown`], and [`Error::NoTree`] for one that only looks.
    pub(crate) fn lane(&self, asked: &str) -> Result<LaneRecord, Error> {
        let lane = self.any_lane(asked)?;
        let name = lane.name.clone();
        lane.with_tree().map_err(|purpose| Error::NoTree { name, purpose })
    }

    /// Any lane by its name or its branch.
    pub(crate) fn any_lane(&self, asked: &str) -> Result<AnyLane, Error> {
        let prefix = format!("{}/", self.settings.prefix);
        let name = asked.strip_prefix(&prefix).unwrap_or(asked);
        let unknown = || -> Result<AnyLane, Error> {
            let similar = self.similar(name)?;
            Err(Error::Unknown { name: asked.chars().take(80).collect(), similar })
        };
        if Name::parse(name).is_err() {
            return unknown();
        }
        match AnyLane::find(&self.store.layout().lane_record(name))? {
            Some(record) => Ok(self.followed(record)),
            None => unknown(),
        }
    }

    /// The record of a lane with the folder that its worktree is in now, and the branch that its base's name leads to: who moves one
    /// with git, or renames a branch and leaves a symbolic ref in its place, changes git's record only. A run in the main checkout commits
    /// to the very branch that it began on, or to none.
    pub(crate) fn followed(&self, mut lane: AnyLane) -> AnyLane {
        let Place::Own(tree) = &lane.place else { return lane };
        if let Some(path) = self.repo.moved_worktree(&lane.path, &tree.worktree_id, &tree.branch) {
            lane.path = path;
        }
        lane.base = self.repo.branch_behind(&lane.base);
        lane
    }

    /// Refuses a lane in which something runs.
    pub(crate) fn require_idle<P>(&self, lane: &LaneRecord<P>) -> Result<(), Error> {
        if effective_state(self, lane)?.0.is_busy() {
            return Err(Error::Busy { name: lane.name.clone() });
        }
        Ok(())
    }

    /// Takes the run lock of a lane in which nothing runs: nothing can begin there until it is let go. The record is the one
    /// under the lock.
    ///
    /// # Errors
    /// [`Error::Busy`]; an agent that lives on without its supervisor counts too.
    pub(crate) fn hold_idle(&self, asked: &str) -> Result<(LaneRecord, Guard), Error> {
        let (lane, lock) = self.hold_any_idle(&self.lane(asked)?.name)?;
        let name = lane.name.clone();
        let lane = lane.with_tree().map_err(|purpose| Error::NoTree { name, purpose })?;
        Ok((lane, lock))
    }

    /// The same for any lane.
    ///
    /// # Errors
    /// As [`Project::hold_idle`].
    pub(crate) fn hold_any_idle(&self, asked: &str) -> Result<(AnyLane, Guard), Error> {
        let lane = self.any_lane(asked)?;
        self.require_idle(&lane)?;
        let lock = recover::take_run_lock(self, &lane.name, Some(&lane.path))?;
        if self.store.locks().is_held(&LockName::Alive(lane.name.clone()))? {
            return Err(Error::Busy { name: lane.name });
        }
        Ok((self.settle_dead(self.any_lane(&lane.name)?)?, lock))
    }

    /// Writes down the end of a run that nobody did who could. The caller holds the run lock: whoever looks at the lane from
    /// now on would take that for a supervisor's.
    pub(crate) fn settle_dead(&self, lane: AnyLane) -> Result<AnyLane, Error> {
        if !lane.state.is_claimed() {
            return Ok(lane);
        }
        let path = self.store.layout().run_record(&lane.name, lane.attempt);
        let why = died(self, &lane.name);
        if let Some(run) = RunRecord::find(&path)?.filter(|run| run.ended.is_none()) {
            let outcome = Some(LaneState::Failed);
            let detail = Some(why.clone());
            RunRecord { ended: Some(now()), outcome, class: Some(RunClass::Crashed), detail, ..run }
                .save(&path)?;
        }
        let state = state_after(self, &lane.name, LaneState::Failed);
        self.update_lane(&lane.name, |record| {
            record.state = state;
            record.detail = Some(why);
        })
    }

    /// A removed lane by `name@N`.
    pub(crate) fn past_lane(&self, asked: &str) -> Result<Option<(PathBuf, AnyLane)>, Error> {
        let Some((name, number)) = asked.split_once('@') else { return Ok(None) };
        if Name::parse(name).is_err() || number.parse::<u32>().is_err() {
            return Ok(None);
        }
        let dir = self.store.layout().history().join(asked);
        Ok(AnyLane::find(&dir.join("lane.toml"))?.map(|record| (dir, record)))
    }

    /// Removed lanes that could have been landed, as `(name@N, record)`, by name.
    pub(crate) fn past_lanes(&self) -> Vec<(String, LaneRecord)> {
        let past = self.every_past_lane().into_iter();
        past.filter_map(|(name, lane)| Some((name, lane.with_tree().ok()?))).collect()
    }

    /// The same of every removed lane.
    pub(crate) fn every_past_lane(&self) -> Vec<(String, AnyLane)> {
        let dir = self.store.layout().history();
        let Ok(entries) = std::fs::read_dir(&dir) else { return Vec::new() };
        let mut out = Vec::new();
        for name in entries.flatten().filter_map(|e| e.file_name().into_string().ok()) {
            if let Ok(Some(record)) = AnyLane::find(&dir.join(&name).join("lane.toml")) {
                out.push((name, record));
            }
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        out
    }

    /// The lane whose worktree `dir` lies in.
    pub(crate) fn lane_at(&self, dir: &Path) -> Result<Option<LaneRecord>, Error> {
        Ok(self.lanes()?.into_iter().find(|lane| dir.starts_with(&lane.path)))
    }

    /// Changes a lane's record under the store's lock, from what is on disk then.
    pub(crate) fn update_lane(
        &self,
        name: &str,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<AnyLane, Error> {
        let store = self.store.locks().take(&LockName::Store)?;
        self.update_lane_held(name, &store, change)
    }

    /// The same for a caller that holds the store's lock: what it has found out under it is true still.
    pub(crate) fn update_lane_held(
        &self,
        name: &str,
        _store: &Guard,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<AnyLane, Error> {
        let path = self.store.layout().lane_record(name);
        let record = self.followed(AnyLane::load(&path)?).changed(change);
        record.save(&path)?;
        Ok(record)
    }

    /// Appends to the event log. The log serves watchers; what it tells of has happened, so a failure is a warning.
    pub(crate) fn tell<P>(
        &self,
        event: event::Name,
        lane: Option<&LaneRecord<P>>,
        message: impl Into<String>,
    ) {
        let mut event = event::Event::now(event, message);
        event.lane = lane.map(|lane| lane.name.clone());
        event.state = lane.map(|lane| lane.state.to_string());
        self.tell_event(event);
    }

    /// The same for an event that says more.
    pub(crate) fn tell_event(&self, event: event::Event) {
        let due = self.is_due(&event);
        if let Err(e) = Log::of(&self.store, self.settings.events).add(event, due) {
            self.listener.warn(format!("the event log was not written: {e}"));
        }
        // What an earlier one left due, too: whoever was to hand that out may have ended with the agent.
        self.hand_out();
    }

    /// Whether somebody wants to be handed an event of this name.
    fn is_due(&self, event: &event::Event) -> bool {
        if self.lasting
            && let Ok(repo) = Repo::discover(self.repo.home())
            && let Ok(layers) = Project::layers_of(Some(&repo))
        {
            let settings = Settings::from_layers(&layers);
            return event::is_due(&self.store, &layers, &settings.notify, event);
        }
        event::is_due(&self.store, &self.layers, &self.settings.notify, event)
    }

    /// Has a process of its own hand out the events that are due, if there are any.
    pub(crate) fn hand_out(&self) {
        event::wake(&self.store, self.repo.home());
    }

    fn similar(&self, name: &str) -> Result<Option<String>, Error> {
        let lanes = self.every_lane()?;
        let best = lanes
            .iter()
            .map(|lane| (strsim::jaro_winkler(&lane.name, name), &lane.name))
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        Ok(best.map(|(_, name)| name.clone()))
    }
}

/// Git programs that were looked at.
#[derive(Debug, Default, Serialize, Deserialize)]
struct GitsSeen {
    git: Vec<GitSeen>,
}

impl Record for GitsSeen {
    const FORMAT: u32 = 1;
}

/// One of them, and the version it had.
#[derive(Debug, Serialize, Deserialize)]
struct GitSeen {
    path: PathBuf,
    changed: u64,
    size: u64,
    version: String,
}

impl GitSeen {
    fn of(path: &Path) -> Option<GitSeen> {
        let meta = std::fs::metadata(path).ok()?;
        let changed = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some(GitSeen { path: path.to_owned(), changed, size: meta.len(), version: String::new() })
    }

    fn is_same(&self, other: &GitSeen) -> bool {
        (&self.path, self.changed, self.size) == (&other.path, other.changed, other.size)
    }
}
