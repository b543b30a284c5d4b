//! A repository as git-proq sees it: git, the store, the settings, and the event log.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proq_base::config::layers::{InvalidValues, Layers, RepositoryFile};
use proq_base::config::settings::Settings;
use proq_base::diagnostics::Listener;
use proq_base::lane_name::LaneName;
use proq_base::time_form::unix_seconds;
use proq_git::{Repo, RepoPath};
use proq_store::Store;
use proq_store::base::clock::{Moment, now};
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::locks::lock::WaitLimit;
use proq_store::records::lane::LaneRecord;
use proq_store::repository::repositories::RepositoryList;
use serde::{Deserialize, Serialize};

use crate::errors::Error;
use crate::event::log::EventLog;
use crate::event::{log, program_info, trigger};

pub(crate) mod repository_file;

/// Maximum number of hooks for unknown events that are named in warnings.
const MAX_UNKNOWN_HOOKS_LISTED: usize = 5;

/// Repository, store and settings that a command works with.
pub struct Project {
    /// Git repository.
    pub repo: Repo,
    /// Store of git-proq's records.
    pub store: Store,
    /// Effective settings.
    pub settings: Settings,
    /// Layers that the settings come from.
    pub layers: Layers,
    /// Receiver of warnings and notes.
    pub listener: Listener,
    /// Whether this process runs so long that the settings may change: the receivers of an event are then
    /// read from the settings each time.
    pub is_long_lived: bool,
    /// Group id of this command's operations, if one undo reverts all of them.
    pub(crate) undo_group: Option<String>,
    /// The git-proq program that supervises agents, if it is not the running one.
    pub other_git_proq: Option<PathBuf>,
}

impl Project {
    /// Opens the repository that contains `dir`, for [`Project::open`].
    pub(crate) fn discover(
        dir: &Path,
        listener: Listener,
        invalid_values: InvalidValues,
    ) -> Result<Project, Error> {
        let repo = Repo::discover(dir)?;
        Store::refuse_links(repo.common_dir())?;
        let layers = Project::load_layers_with(Some(&repo), invalid_values)?;
        for ignored in layers.ignored_values().iter().map(String::as_str).chain(layers.ignored_repository()) {
            listener.warn(ignored);
        }
        for key in layers.listed_unknown_keys() {
            listener.warn(format!("unknown setting {key}"));
        }
        if layers.unlisted_unknown_count() > 0 {
            listener.warn(format!("and {} more unknown settings", layers.unlisted_unknown_count()));
        }
        let mut unknown_hooks = layers.hook_events().filter(|event| !trigger::is_hook_event(event));
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
    pub fn load_layers(repo: Option<&Repo>) -> Result<Layers, Error> {
        Project::load_layers_with(repo, InvalidValues::Refuse)
    }

    /// Loads the settings layers as [`Project::load_layers`] does, and treats invalid values by `invalid_values`.
    pub(crate) fn load_layers_with(
        repo: Option<&Repo>,
        invalid_values: InvalidValues,
    ) -> Result<Layers, Error> {
        let env = |name: &str| std::env::var(name).ok();
        let user = std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
            .or_else(|| std::env::home_dir().map(|h| h.join(".config")));
        let git_settings = repo.map(Repo::proq_settings).unwrap_or_default();
        let mut layers = Layers::with_invalid_values(invalid_values);
        let file = match repo.map(repository_file::repository_file).transpose() {
            Ok(file) => file.unwrap_or(RepositoryFile::Missing),
            Err(e) if invalid_values == InvalidValues::Refuse => return Err(e),
            Err(e) => {
                layers.ignore_repository(&e.to_string());
                RepositoryFile::Missing
            }
        };
        Ok(layers.read_all(&file, user.as_deref(), &git_settings, &env)?)
    }

    /// Creates the project of a repository with loaded settings. Git's version is not checked.
    pub(crate) fn with_layers(repo: Repo, layers: Layers, listener: Listener) -> Project {
        let settings = Settings::from_layers(&layers);
        let mut store = Store::open(repo.common_dir(), listener.clone());
        store.set_lock_limit(WaitLimit::AtMost(settings.lock_timeout));
        repo.set_lock_wait_limit(settings.lock_timeout);
        store.load_clock_history();
        Project {
            repo,
            store,
            settings,
            layers,
            listener,
            is_long_lived: false,
            undo_group: None,
            other_git_proq: None,
        }
    }

    /// Makes one undo revert all operations of this command from now on.
    pub fn group_operations_for_undo(&mut self) {
        self.undo_group = Some(new_id());
    }

    /// Returns the path of the git-proq program, which is started again as supervisor, scheduler or hook: the
    /// running one, or `git-proq` on `PATH` in a program that only links git-proq.
    ///
    /// # Errors
    /// [`Error::UnknownProgramPath`].
    pub fn git_proq_path(&self) -> Result<&Path, Error> {
        if let Some(path) = &self.other_git_proq {
            return Ok(path);
        }
        program_info::program_path().unwrap_or(Ok(Path::new("git-proq"))).map_err(Error::UnknownProgramPath)
    }

    /// Adds the repository to the user's list of repositories. A failure is only a warning, because what was
    /// created in the repository exists already.
    pub fn register_repository(&self) {
        let added = RepositoryList::open_for_user().map(|list| list.add(self.repo.common_dir()));
        if let Some(Err(e)) = added {
            self.listener.warn(format!("`git proq list --everywhere` will not show this repository: {e}"));
        }
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
            cache.programs.retain(|k| k.program_path != program.program_path);
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
        /// Name of the folder that contains worktrees.
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

    /// Returns the folder for worktrees as a path in the worktree at `dir`; none where it is elsewhere.
    pub(crate) fn worktrees_folder_below(&self, dir: &Path) -> Option<RepoPath> {
        self.lanes_dir().strip_prefix(dir).ok().and_then(RepoPath::from_path)
    }

    /// Returns the branch of the lane `name`.
    pub(crate) fn lane_branch(&self, name: &LaneName) -> String {
        format!("{}/{name}", self.settings.branch_prefix)
    }

    /// Returns the hidden branch that previews the lane `name` in the main checkout.
    pub fn preview_branch(&self, name: &LaneName) -> String {
        format!("{}/{name}-preview", self.settings.branch_prefix)
    }

    /// Returns the lane that a preview branch shows, or `None` for any other branch.
    pub(crate) fn previewed_lane<'b>(&self, branch: &'b str) -> Option<&'b str> {
        branch.strip_prefix(self.settings.branch_prefix.as_str())?.strip_prefix('/')?.strip_suffix("-preview")
    }

    /// Returns whether git-proq manages a branch: it is a lane's branch, a preview branch or a batch branch.
    pub fn is_managed_branch(&self, branch: &str) -> bool {
        branch
            .strip_prefix(self.settings.branch_prefix.as_str())
            .is_some_and(|suffix| suffix.starts_with('/'))
    }

    /// Returns the time that git means by a text such as `yesterday` or `2026-11-30`; none for another text.
    ///
    /// # Errors
    /// Fails if git cannot be run.
    pub fn parse_time(&self, text: &str) -> Result<Option<Moment>, Error> {
        let time = self.repo.parse_date(text, now().to_system_time())?;
        Ok(time.and_then(Moment::from_system_time))
    }

    /// Emits an event to the event log. The log serves watchers, and the event has happened already, so a
    /// write failure is a warning.
    pub(crate) fn emit<P>(
        &self,
        event: log::EventName,
        lane: Option<&LaneRecord<P>>,
        message: impl Into<String>,
    ) {
        let mut event = log::Event::new(event, message);
        event.lane = lane.map(|lane| lane.name.to_string());
        event.state = lane.map(|lane| lane.state().to_string());
        self.emit_event(event);
    }

    /// Emits a prepared event to the event log. A write failure is a warning.
    pub(crate) fn emit_event(&self, event: log::Event) {
        // What happened is written down, whoever holds the lock and whatever stops this process.
        let _shield = proq_base::interrupt::shield();
        let is_due = self.has_event_receiver(&event);
        if let Err(e) = EventLog::open(&self.store, self.settings.event_log).append(event, is_due) {
            self.listener.warn(format!("the event log was not written: {e}"));
        }
        // This also delivers earlier pending events: the process that was to deliver them may have ended with
        // the agent.
        self.deliver_events();
    }

    /// Returns whether a hook or notification is configured for an event.
    fn has_event_receiver(&self, event: &log::Event) -> bool {
        if self.is_long_lived
            && let Ok(repo) = Repo::discover(self.repo.command_dir())
            && let Ok(layers) = Project::load_layers(Some(&repo))
        {
            let settings = Settings::from_layers(&layers);
            return trigger::is_due(&self.store, &layers, &settings.notify, event);
        }
        trigger::is_due(&self.store, &self.layers, &self.settings.notify, event)
    }

    /// Starts a process that delivers the pending events, if there are any.
    pub(crate) fn deliver_events(&self) {
        trigger::start_dispatcher(&self.store, self.repo.command_dir());
    }
}

/// Cache of the versions of git programs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct GitVersionCache {
    /// Known versions, one for each git program.
    #[serde(rename = "git")]
    programs: Vec<CachedGitVersion>,
}

impl Record for GitVersionCache {
    const FORMAT: u32 = 1;
}

/// Version of one git program, valid while its mtime and size stay the same.
#[derive(Debug, Serialize, Deserialize)]
struct CachedGitVersion {
    /// Path of the git program.
    #[serde(rename = "path")]
    program_path: PathBuf,
    /// Modification time in whole seconds.
    #[serde(rename = "changed", with = "unix_seconds")]
    modified: SystemTime,
    /// Size of the program's file in bytes.
    size: u64,
    /// Version of git; empty until it is known.
    version: String,
}

impl CachedGitVersion {
    /// Reads mtime and size of the git program at `path`, without its version; none when the file is
    /// unreadable.
    fn from_program(path: &Path) -> Option<CachedGitVersion> {
        let meta = std::fs::metadata(path).ok()?;
        let since_epoch = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(CachedGitVersion {
            program_path: path.to_owned(),
            modified: UNIX_EPOCH + Duration::from_secs(since_epoch.as_secs()),
            size: meta.len(),
            version: String::new(),
        })
    }

    /// Returns whether path, mtime and size are equal, so that the cached version is valid.
    fn is_same_program(&self, other: &CachedGitVersion) -> bool {
        (&self.program_path, self.modified, self.size) == (&other.program_path, other.modified, other.size)
    }
}
