//! A repository as git-proq sees it: git, the store, the settings, and the lanes on record.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::crash_reason::describe_crash;
use super::{Error, LaneName, effective_state, recover, state_after_run};
use crate::config::{Layers, Settings};
use crate::diagnostics::Listener;
use crate::event::{self, EventLog};
use crate::git::Repo;
use crate::store::records::{AnyLane, LaneKind, LaneRecord, LaneState, RunClass, RunRecord};
use crate::store::{self, LockGuard, LockName, Record, Store, WaitLimit, now};

/// Maximum number of hooks for unknown events that are named in warnings.
const MAX_UNKNOWN_HOOKS_LISTED: usize = 5;

/// Repository, store and settings that a command works with.
pub(crate) struct Project {
    /// Git repository.
    pub(crate) repo: Repo,
    /// Store of git-proq's records.
    pub(crate) store: Store,
    /// Effective settings.
    pub(crate) settings: Settings,
    /// Layers that the settings come from.
    pub(crate) layers: Layers,
    /// Receiver of warnings and notes.
    pub(crate) listener: Listener,
    /// Whether this process runs so long that the settings may change: the receivers of an event are then
    /// read from the settings each time.
    pub(crate) is_long_lived: bool,
    /// Group id of this command's operations, if one undo reverts all of them.
    pub(crate) undo_group: Option<String>,
}

impl Project {
    /// Opens the repository that contains `dir`.
    pub(crate) fn open(dir: &Path, listener: Listener) -> Result<Project, Error> {
        let repo = Repo::discover(dir)?;
        Store::refuse_links(repo.common_dir())?;
        let layers = Project::load_layers(Some(&repo))?;
        for key in layers.unknown_keys() {
            listener.warn(format!("unknown setting {key}"));
        }
        if layers.unlisted_unknown_keys() > 0 {
            listener.warn(format!("and {} more unknown settings", layers.unlisted_unknown_keys()));
        }
        let mut unknown_hooks = layers.hook_events().filter(|event| !event::is_hook_event(event));
        for event in unknown_hooks.by_ref().take(MAX_UNKNOWN_HOOKS_LISTED) {
            listener.warn(format!("there is no event '{event}', so hook.{event} never runs"));
        }
        match unknown_hooks.count() {
            0 => {}
            more => listener.warn(format!("and {more} more hooks of events that do not exist")),
        }
        let project = Project::with_layers(repo, layers, listener);
        project.check_git_version()?;
        Ok(project)
    }

    /// Loads the settings layers of a repository, or those outside of any.
    pub(crate) fn load_layers(repo: Option<&Repo>) -> Result<Layers, Error> {
        let env = |name: &str| std::env::var(name).ok();
        let user = std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
            .or_else(|| std::env::home_dir().map(|h| h.join(".config")));
        let git_settings = repo.map(Repo::proq_settings).unwrap_or_default();
        Ok(Layers::read(repo.and_then(Repo::main_worktree), user.as_deref(), &git_settings, &env)?)
    }

    /// Creates the project of a repository with loaded settings. Git's version is not checked.
    pub(crate) fn with_layers(repo: Repo, layers: Layers, listener: Listener) -> Project {
        let settings = Settings::from_layers(&layers);
        let mut store = Store::open(repo.common_dir(), listener.clone());
        store.set_lock_limit(WaitLimit::AtMost(settings.lock_timeout));
        store.load_clock_history();
        Project { repo, store, settings, layers, listener, is_long_lived: false, undo_group: None }
    }

    /// Checks git's version, once for each git program rather than at every start. `git proq` and `git-proq`
    /// may find the same git under different paths.
    fn check_git_version(&self) -> Result<(), Error> {
        let file = self.store.layout().git_version_cache();
        let program = CachedGitVersion::from_program(self.repo.program().path());
        let mut cache = GitVersionCache::load_if_exists(&file).ok().flatten().unwrap_or_default();
        if let Some(program) = &program
            && let Some(cached) = cache.programs.iter().find(|k| k.is_same_program(program))
        {
            return Ok(self.repo.assume_version(&cached.version)?);
        }
        let version = self.repo.version()?;
        if let Some(program) = program.filter(|_| self.store.layout().root().exists()) {
            cache.programs.retain(|k| k.path != program.path);
            cache.programs.push(CachedGitVersion { version: version.to_string(), ..program });
            // This is a cache: a read-only repository works without it.
            drop(cache.save(&file));
        }
        Ok(())
    }

    /// Returns the folder for worktrees in the main checkout: those of new lanes unless the user configured
    /// another location, those of read-only lanes, and those of conflict resolutions. It is never below a git
    /// directory, where some agents lose their permission rules.
    pub(crate) fn lanes_dir(&self) -> PathBuf {
        const FOLDER_NAME: &str = ".proq-worktrees";
        if let Some(main) = self.repo.main_worktree() {
            let dir = main.join(FOLDER_NAME);
            // The folder may be a link to another disk; git and the lanes' records have the path of its
            // target.
            return dir.canonicalize().unwrap_or(dir);
        }
        let bare = self.repo.common_dir();
        let parent = bare.parent().unwrap_or(bare);
        match bare.file_stem().and_then(|s| s.to_str()) {
            Some(stem) if !stem.starts_with('.') => parent.join(format!("{stem}{FOLDER_NAME}")),
            _ => parent.join(FOLDER_NAME),
        }
    }

    /// Returns the branch of the lane `name`.
    pub(crate) fn lane_branch(&self, name: &LaneName) -> String {
        format!("{}/{name}", self.settings.branch_prefix)
    }

    /// Returns the hidden branch that previews the lane `name` in the main checkout.
    pub(crate) fn preview_branch(&self, name: &str) -> String {
        format!("{}/{name}-preview", self.settings.branch_prefix)
    }

    /// Returns the lane that a preview branch shows, or `None` for any other branch.
    pub(crate) fn previewed_lane<'b>(&self, branch: &'b str) -> Option<&'b str> {
        branch.strip_prefix(self.settings.branch_prefix.as_str())?.strip_prefix('/')?.strip_suffix("-preview")
    }

    /// Returns whether git-proq manages a branch: it is a lane's branch, a preview branch or a batch branch.
    pub(crate) fn is_managed_branch(&self, branch: &str) -> bool {
        branch
            .strip_prefix(self.settings.branch_prefix.as_str())
            .is_some_and(|suffix| suffix.starts_with('/'))
    }

    /// Returns all lanes on record that have a branch to land, by name. An unreadable record causes a warning
    /// and is left out.
    pub(crate) fn lanes(&self) -> Result<Vec<LaneRecord>, Error> {
        Ok(self.all_lanes()?.into_iter().filter_map(|lane| lane.into_worktree_lane().ok()).collect())
    }

    /// Returns all lanes on record by name, including those without their own branch. An unreadable record
    /// causes a warning and is left out.
    pub(crate) fn all_lanes(&self) -> Result<Vec<AnyLane>, Error> {
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
            match AnyLane::load_if_exists(&self.store.layout().lane_record(&name)) {
                Ok(found) => out.extend(found.map(|lane| self.with_current_location(lane))),
                Err(e) => self.listener.warn(format!("lane '{name}': {e}")),
            }
        }
        Ok(out)
    }

    /// Returns the lane with this name or branch, which must have a branch to land.
    ///
    /// # Errors
    /// [`Error::UnknownLane`], and [`Error::NoLaneBranch`] for a lane without its own branch.
    pub(crate) fn lane(&self, name_or_branch: &str) -> Result<LaneRecord, Error> {
        let lane = self.any_lane(name_or_branch)?;
        let name = lane.name.clone();
        lane.into_worktree_lane().map_err(|purpose| Error::NoLaneBranch { name, purpose })
    }

    /// Returns the lane with this name or branch, of any kind.
    pub(crate) fn any_lane(&self, name_or_branch: &str) -> Result<AnyLane, Error> {
        let prefix = format!("{}/", self.settings.branch_prefix);
        let name = name_or_branch.strip_prefix(&prefix).unwrap_or(name_or_branch);
        let unknown = || -> Result<AnyLane, Error> {
            let similar = self.similar_name(name)?;
            Err(Error::UnknownLane { name: name_or_branch.chars().take(80).collect(), similar })
        };
        if LaneName::parse(name).is_err() {
            return unknown();
        }
        match AnyLane::load_if_exists(&self.store.layout().lane_record(name))? {
            Some(record) => Ok(self.with_current_location(record)),
            None => unknown(),
        }
    }

    /// Updates a lane's record with the current folder of its worktree and the branch its base name resolves
    /// to. Moving a worktree with git changes only git's record, and so does renaming a branch and leaving a
    /// symbolic ref in its place. A run in the main checkout commits to the branch it started on, or to none,
    /// so its lane is returned unchanged.
    pub(crate) fn with_current_location(&self, mut lane: AnyLane) -> AnyLane {
        let LaneKind::Owned(tree) = &lane.kind else { return lane };
        if let Some(path) = self.repo.moved_worktree(&lane.path, &tree.worktree_id, &tree.branch) {
            lane.path = path;
        }
        lane.base = self.repo.resolve_symbolic_branch(&lane.base);
        lane
    }

    /// Refuses a lane with a running agent.
    pub(crate) fn require_idle<P>(&self, lane: &LaneRecord<P>) -> Result<(), Error> {
        if effective_state(self, lane)?.0.is_busy() {
            return Err(Error::Busy { name: lane.name.clone() });
        }
        Ok(())
    }

    /// Acquires the run lock of an idle lane: no run can start until it is released. Returns the record as
    /// read under the lock.
    ///
    /// # Errors
    /// [`Error::Busy`], also for an agent that outlived its supervisor.
    pub(crate) fn lock_idle_lane(&self, name_or_branch: &str) -> Result<(LaneRecord, LockGuard), Error> {
        let (lane, lock) = self.lock_any_idle_lane(&self.lane(name_or_branch)?.name)?;
        let name = lane.name.clone();
        let lane = lane.into_worktree_lane().map_err(|purpose| Error::NoLaneBranch { name, purpose })?;
        Ok((lane, lock))
    }

    /// Acquires the run lock of an idle lane of any kind, and returns the record as read under the lock.
    ///
    /// # Errors
    /// See [`Project::lock_idle_lane`].
    pub(crate) fn lock_any_idle_lane(&self, name_or_branch: &str) -> Result<(AnyLane, LockGuard), Error> {
        let lane = self.any_lane(name_or_branch)?;
        self.require_idle(&lane)?;
        let lock = recover::run_lock_after_recovery(self, &lane.name, Some(&lane.path))?;
        if self.store.locks().is_held(&LockName::AgentAlive(lane.name.clone()))? {
            return Err(Error::Busy { name: lane.name });
        }
        Ok((self.close_crashed_run(self.any_lane(&lane.name)?)?, lock))
    }

    /// Records the end of a run whose supervisor crashed. The caller holds the run lock, which other
    /// processes would otherwise take for the supervisor's.
    pub(crate) fn close_crashed_run(&self, lane: AnyLane) -> Result<AnyLane, Error> {
        if !lane.state.is_claimed() {
            return Ok(lane);
        }
        let path = self.store.layout().run_record(&lane.name, lane.attempt);
        let reason = describe_crash(self, &lane.name);
        if let Some(run) = RunRecord::load_if_exists(&path)?.filter(|run| run.ended.is_none()) {
            let outcome = Some(LaneState::Failed);
            let detail = Some(reason.clone());
            RunRecord { ended: Some(now()), outcome, class: Some(RunClass::Crashed), detail, ..run }
                .save(&path)?;
        }
        let state = state_after_run(self, &lane.name, LaneState::Failed);
        self.update_lane(&lane.name, |record| {
            record.state = state;
            record.detail = Some(reason);
        })
    }

    /// Returns a removed lane by its past name `name@N`, with its folder in the history.
    pub(crate) fn past_lane(&self, past_name: &str) -> Result<Option<(PathBuf, AnyLane)>, Error> {
        let Some((name, number)) = past_name.split_once('@') else { return Ok(None) };
        if LaneName::parse(name).is_err() || number.parse::<u32>().is_err() {
            return Ok(None);
        }
        let dir = self.store.layout().history().join(past_name);
        Ok(AnyLane::load_if_exists(&dir.join("lane.toml"))?.map(|record| (dir, record)))
    }

    /// Returns the removed lanes that had a branch to land, as `(name@N, record)`, by name.
    pub(crate) fn past_lanes(&self) -> Vec<(String, LaneRecord)> {
        let past = self.all_past_lanes().into_iter();
        past.filter_map(|(name, lane)| Some((name, lane.into_worktree_lane().ok()?))).collect()
    }

    /// Returns all removed lanes as `(name@N, record)`, by name.
    pub(crate) fn all_past_lanes(&self) -> Vec<(String, AnyLane)> {
        let dir = self.store.layout().history();
        let Ok(entries) = std::fs::read_dir(&dir) else { return Vec::new() };
        let mut out = Vec::new();
        for name in entries.flatten().filter_map(|e| e.file_name().into_string().ok()) {
            if let Ok(Some(record)) = AnyLane::load_if_exists(&dir.join(&name).join("lane.toml")) {
                out.push((name, record));
            }
        }
        out.sort_by(|a, b| a.0.cmp(&b.0));
        out
    }

    /// Returns the lane whose worktree contains `dir`.
    pub(crate) fn lane_at(&self, dir: &Path) -> Result<Option<LaneRecord>, Error> {
        Ok(self.lanes()?.into_iter().find(|lane| dir.starts_with(&lane.path)))
    }

    /// Changes a lane's record under the lock on records, based on the text on disk at that moment.
    pub(crate) fn update_lane(
        &self,
        name: &str,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<AnyLane, Error> {
        let store = self.store.locks().acquire(&LockName::Store)?;
        self.update_lane_locked(name, &store, change)
    }

    /// Changes a lane's record for a caller that holds the lock on records: facts it checked under the lock
    /// still hold.
    pub(crate) fn update_lane_locked(
        &self,
        name: &str,
        _store: &LockGuard,
        change: impl FnOnce(&mut AnyLane),
    ) -> Result<AnyLane, Error> {
        let path = self.store.layout().lane_record(name);
        let record = self.with_current_location(AnyLane::load(&path)?).with_change(change);
        record.save(&path)?;
        Ok(record)
    }

    /// Emits an event to the event log. The log serves watchers, and the event has happened already, so a
    /// write failure is a warning.
    pub(crate) fn emit<P>(
        &self,
        event: event::EventName,
        lane: Option<&LaneRecord<P>>,
        message: impl Into<String>,
    ) {
        let mut event = event::Event::new(event, message);
        event.lane = lane.map(|lane| lane.name.clone());
        event.state = lane.map(|lane| lane.state.to_string());
        self.emit_event(event);
    }

    /// Emits a prepared event to the event log. A write failure is a warning.
    pub(crate) fn emit_event(&self, event: event::Event) {
        let is_due = self.has_event_receiver(&event);
        if let Err(e) = EventLog::open(&self.store, self.settings.event_log).append(event, is_due) {
            self.listener.warn(format!("the event log was not written: {e}"));
        }
        // This also delivers earlier pending events: the process that was to deliver them may have ended with
        // the agent.
        self.deliver_events();
    }

    /// Returns whether a hook or notification is configured for an event.
    fn has_event_receiver(&self, event: &event::Event) -> bool {
        if self.is_long_lived
            && let Ok(repo) = Repo::discover(self.repo.command_dir())
            && let Ok(layers) = Project::load_layers(Some(&repo))
        {
            let settings = Settings::from_layers(&layers);
            return event::is_due(&self.store, &layers, &settings.notify, event);
        }
        event::is_due(&self.store, &self.layers, &self.settings.notify, event)
    }

    /// Starts a process that delivers the pending events, if there are any.
    pub(crate) fn deliver_events(&self) {
        event::start_dispatcher(&self.store, self.repo.command_dir());
    }

    fn similar_name(&self, name: &str) -> Result<Option<String>, Error> {
        let lanes = self.all_lanes()?;
        let best = lanes
            .iter()
            .map(|lane| (strsim::jaro_winkler(&lane.name, name), &lane.name))
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        Ok(best.map(|(_, name)| name.clone()))
    }
}

/// Cache of the versions of git programs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct GitVersionCache {
    #[serde(rename = "git")]
    programs: Vec<CachedGitVersion>,
}

impl Record for GitVersionCache {
    const FORMAT: u32 = 1;
}

/// Version of one git program, valid while its mtime and size stay the same.
#[derive(Debug, Serialize, Deserialize)]
struct CachedGitVersion {
    path: PathBuf,
    #[serde(rename = "changed")]
    modified_secs: u64,
    size: u64,
    version: String,
}

impl CachedGitVersion {
    fn from_program(path: &Path) -> Option<CachedGitVersion> {
        let meta = std::fs::metadata(path).ok()?;
        let modified_secs = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs();
        Some(CachedGitVersion {
            path: path.to_owned(),
            modified_secs,
            size: meta.len(),
            version: String::new(),
        })
    }

    fn is_same_program(&self, other: &CachedGitVersion) -> bool {
        (&self.path, self.modified_secs, self.size) == (&other.path, other.modified_secs, other.size)
    }
}
