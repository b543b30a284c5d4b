//! Table of all settings. An entry is all that a setting consists of: typed field, name, format, default, who
//! may set it, summary.

use std::path::PathBuf;
use std::time::Duration;

use super::choices::{
    Autocommit, BaseFailurePolicy, DesktopNotifier, ForgeChoice, LandedTaskMarking, LfsContent,
    SubmoduleMode, UncommittedPolicy,
};
use super::conversion::{at_least_one, cache_folder, untrimmed};
use super::lane_location::DEFAULT_LANE_LOCATION;
use super::table::setting_table;
use super::value_format::Unit::{Days, Kibibytes, Mebibytes, Other, Seconds};
use super::value_format::ValueFormat;
use super::value_format::ValueFormat::{
    AgentOrProgram, AreaFolders, BranchPrefix, Commands, Count, Dollars, EventNames, Folder, LaneLocation,
    OneOf, Patterns, PortRange, RepoFolder, SecretUrl, ShortName, SoundOrCommand, Text, TimeSpan, Word,
    WorktreeFile,
};
use crate::money::NanoDollars;

const BOOLEAN: ValueFormat = OneOf(&["false", "true"]);

setting_table! {
    /// All settings, with one typed field for each.
    Settings with {
        /// Limits of the event log.
        event_log: EventLogLimits;
        /// Location and contents of a new lane's worktree.
        lane_checkout: CheckoutSettings;
        /// Set-up of new lanes.
        set_up: SetUpSettings;
        /// Messages of the commits by which lanes land.
        messages: MessageSettings;
        /// Notifications about events.
        notify: NotifySettings;
        /// Reuse of landed lanes' folders.
        pool: PoolSettings;
        /// Plans and batches.
        swarm: SwarmSettings;
    } {
        /// Time for an agent to exit after `git proq stop --wrap-up`.
        abort_grace: Duration = "agent.abort_grace", Count(Seconds), default "60", repository,
            "how long git proq stop --wrap-up waits for an agent to finish by itself";
        /// Patterns of commands that agents may run without a request, such as `cargo *`.
        allowed_commands: Vec<String> = "agent.allow", Commands, default "", repository,
            "commands that agents may run without asking, such as 'cargo *'; those of a repository need git proq approve";
        /// When git-proq commits what an agent left uncommitted.
        autocommit: Autocommit = "agent.autocommit", Autocommit::FORMAT, default "success", repository,
            "when to commit what an agent left uncommitted: after a successful run, always, or never";
        /// Size in bytes of an uncommitted file above which git-proq commits none of an agent's leftover
        /// work; none for no limit.
        autocommit_limit: Option<u64> = "agent.autocommit_limit", Count(Mebibytes), default "10", user,
            "do not commit leftover changes if one of the files is larger; 0 for no limit";
        /// First wait before a run that the service refused is retried.
        backoff: Duration = "agent.backoff", Count(Seconds), default "30", user,
            "initial retry delay when the provider is unavailable; doubled for each further retry";
        /// Cost limit of a run.
        run_budget: Option<NanoDollars> = "agent.budget", Dollars, default "0", user,
            "stop a run that has cost more than this; 0 for no limit";
        /// Instructions for commit messages, empty for none.
        commit_style: String = "agent.commit_style", Text, default "", repository,
            "how agents should write commit messages";
        /// Fill of the context window, in percent, at which a run ends and a new conversation continues it;
        /// none for never.
        context_stop: Option<u64> = "agent.context_stop", Count(Other("percent")), default "0", user,
            "stop a run whose context is this full, and continue in a new conversation, if the agent reports it; 0 for never";
        /// Fill of the context window, in percent, at which an agent is requested to wrap up; none for never.
        context_warn: Option<u64> = "agent.context_warn", Count(Other("percent")), default "0", user,
            "ask the agent to finish up when its context is this full, if the agent reports it; 0 for never";
        /// How often a run whose agent crashed is retried.
        crash_retries: u32 = "agent.crash_retries", Count(Other("tries")), default "2", user,
            "how often to retry a run whose agent crashed";
        /// Agent that is started when the command names none; none when it is empty.
        default_agent: Option<String> = "agent.default", AgentOrProgram, default "", user,
            "the agent that git proq spawn starts when none is named";
        /// Whether an agent that stops while the checks fail is sent back to work.
        stop_gate: bool = "agent.gate", BOOLEAN, default "false", repository,
            "send an agent back to work if it stops while the lane's checks fail, if the agent supports it";
        /// How often the stop gate sends an agent back at most.
        stop_gate_rounds: u32 = "agent.gate_rounds", Count(Other("times")), default "3", repository,
            "how often agent.gate sends an agent back at most";
        /// Maximum number of consecutive runs that `agent.context_stop` turns one run into.
        max_chained_runs: u32 = "agent.iterations", Count(Other("runs")), default "5", user,
            "maximum number of consecutive runs that agent.context_stop starts";
        /// How long an agent may keep running after it reported that it is done.
        linger: Duration = "agent.linger", Count(Seconds), default "30", user,
            "how long an agent may keep running after it reported that it is done";
        /// How many agents run at the same time; none for no limit.
        max_running: Option<usize> = "agent.max_running", Count(Other("runs")), default "0", user,
            "maximum number of agents that batches run at the same time, including those of other batches and lanes; 0 for no limit";
        /// Time limit of a run.
        max_time: Option<Duration> = "agent.max_time", TimeSpan, default "0", user,
            "stop a run that takes longer; 0 for no limit";
        /// Maximum number of turns of a run.
        max_turns: u32 = "agent.max_turns", Count(Other("turns")), default "200", repository,
            "maximum number of turns of a run, if the agent supports it";
        /// Model that agents are requested to use; none when it is empty.
        model: Option<String> = "agent.model", Word, default "", user,
            "model that agents use; empty for each agent's own default";
        /// Permission of agents, `read`, `edit` or `full`.
        permission: String = "agent.permission", OneOf(&["read", "edit", "full"]), default "edit", user,
            "what agents may do: read files, also edit their lane and run git in it, or everything";
        /// Text added to every agent's prompt.
        prompt_append: String = "agent.prompt_append", Text, default "", repository,
            "text added to the prompt of every agent";
        /// Whether agents may push their lane's branch.
        agent_push: bool = "agent.push", BOOLEAN, default "false", user,
            "let agents push the branch of their lane; otherwise their prompt forbids it";
        /// How often a run is retried that the agent's service refused, or that could not reach it.
        rate_limit_retries: u32 = "agent.rate_limit_retries", Count(Other("tries")), default "5", user,
            "how often to retry a run when the provider is unavailable or cannot be reached";
        /// How long a run waits for a rate limit to be lifted.
        reset_wait: Duration = "agent.reset_wait", TimeSpan, default "30m", user,
            "how long a run may wait until a rate limit ends, if the agent reports when; it fails if that is later";
        /// Time without output or commits after which a run is stopped.
        stall_limit: Option<Duration> = "agent.stall", TimeSpan, default "30m", user,
            "stop a run without output or commits for this long; 0 for no limit";
        /// Time between the request to exit and the kill.
        stop_grace: Duration = "agent.stop_grace", Count(Seconds), default "10", repository,
            "time between asking an agent to exit and killing it";
        /// Time limit of one hook.
        hook_timeout: Duration = "hook.timeout", Count(Seconds), default "60", user,
            "time limit of one hook";
        /// First and last port of the range from which lanes get their ports; none when it is empty.
        port_range: Option<(u16, u16)> = "lane.ports", PortRange, default "20000-31999", user,
            "range from which each lane gets ten ports for its servers; empty for none";
        /// The branch of a lane is `PREFIX/NAME`.
        branch_prefix: String = "lane.prefix", BranchPrefix, default "proq", repository,
            "branches of lanes are named PREFIX/NAME";
        /// How long a command waits for another one.
        lock_timeout: Duration = "lock.timeout", Count(Seconds), default "30", user,
            "how long a command waits for another one before it gives up";
        /// Whether a landing saves and restores uncommitted changes that are in its way.
        merge_autostash: bool = "merge.autostash", BOOLEAN, default "false", user,
            "save your uncommitted changes that are in the way of a merge, and restore them after it";
        /// Agent that resolves the conflicts of a landing; none when it is empty.
        conflict_agent: Option<String> = "merge.conflict_agent", AgentOrProgram, default "", repository,
            "agent that resolves the conflicts of a merge; one set by a repository needs git proq approve";
        /// Further attempts after a refused resolution.
        conflict_retries: u32 = "merge.conflict_retries", Count(Other("tries")), default "0", repository,
            "how many more attempts that agent has when its resolution is refused";
        /// Program that opens pull or merge requests.
        forge_choice: ForgeChoice = "merge.pr_command", ForgeChoice::FORMAT, default "auto", repository,
            "the program that opens pull requests: gh, glab, or the one of the remote's host (auto)";
        /// Whether the base is pushed after a landing.
        merge_push: bool = "merge.push", BOOLEAN, default "false", user,
            "push the base after a merge, as git push would, never by force";
        /// How lanes land, `merge`, `rebase` or `squash`.
        merge_strategy: String = "merge.strategy", OneOf(&["merge", "rebase", "squash"]),
            default "merge", repository,
            "how to merge a lane: with a merge commit, commit by commit on top of the base, or as one commit";
        /// How a landing treats uncommitted work of a lane.
        uncommitted: UncommittedPolicy = "merge.uncommitted", UncommittedPolicy::FORMAT, default "refuse", repository,
            "what to do with uncommitted work of a lane: refuse to merge it, commit it first, or save it and merge the rest";
        /// How long operations and restored snapshots are kept.
        op_keep: Duration = "op.keep", Count(Days), default "30", user,
            "how long to keep operations and restored snapshots";
        /// Command line of the editor that opens a lane's worktree; empty for the editor that git uses.
        open_editor: String = "open.editor", Text, default "", user,
            "the command that git proq open --editor starts with the folder of a lane, such as code";
        /// Maximum size, in bytes, of the ignored files that an automatic snapshot copies; 0 for none.
        snapshot_ignored: u64 = "snapshot.ignored", Count(Mebibytes), default "64", user,
            "how much of ignored files an automatic snapshot copies; 0 for none";
        /// Time between automatic snapshots while agents run; none for never.
        snapshot_interval: Option<Duration> = "snapshot.interval", Count(Seconds), default "5", user,
            "how often to snapshot uncommitted changes in the main checkout and in idle lanes while agents run, less often in busy lanes; 0 for never";
        /// How long folders of removed lanes are kept.
        trash_keep: Duration = "trash.keep", Count(Days), default "7", user,
            "how long to keep the folders of removed lanes";
        /// What a landing does when a check fails on the base itself.
        base_failures: BaseFailurePolicy = "verify.base_failures", BaseFailurePolicy::FORMAT, default "refuse", user,
            "when a check fails on the base itself: refuse the landing, or warn and ignore that check";
        /// Command lines of the checks that every landing runs.
        verify_commands: Vec<String> = "verify.commands", Commands, default "", repository,
            "commands that must pass, in this order, on exactly what will land; those of a repository need git proq approve";
        /// Number of states of a landing that are checked at the same time, at least one.
        verify_jobs: usize = "verify.jobs", Count(Other("checks")), default "1", user, at_least_one,
            "how many states of a merge to check in parallel, each in a worktree of its own";
        /// Folder of the check worktrees; none without a home folder.
        verify_location: Option<PathBuf> = "verify.location", Folder,
            default "~/.cache/git-proq/verify", user, cache_folder,
            "where to keep the worktrees for checks, outside of any repository; the default is below $XDG_CACHE_HOME if that is set";
        /// Command lines that prepare a check worktree, once for each worktree.
        verify_set_up: Vec<String> = "verify.setup", Commands, default "", repository,
            "commands that prepare a worktree for checks, run once in each before the first check; those of a repository need git proq approve";
        /// Time limit of one check command.
        verify_timeout: Duration = "verify.timeout", Count(Seconds), default "1800", repository,
            "time limit of one check command";
    }

    /// Location and contents of the worktree that a new lane gets.
    #[derive(Default)]
    CheckoutSettings {
        /// Content of git-lfs files in a new lane.
        lfs: LfsContent = "lane.lfs", LfsContent::FORMAT, default "full", repository,
            "git-lfs files of a new lane: their content, or only the committed pointers";
        /// Path pattern of the worktree, with `{lane}` in its last component.
        location: String = "lane.location", LaneLocation, default DEFAULT_LANE_LOCATION, user,
            "where to create lanes, relative to the main checkout: {lane} is the lane's name, {repo} the name of the checkout's folder";
        /// Whether lanes with a scope check out only its folders.
        sparse: bool = "lane.sparse", BOOLEAN, default "false", repository,
            "in new lanes with a scope, check out only the directories that match it; also for the tasks of a plan";
        /// Which submodules are populated in a new lane.
        submodules: SubmoduleMode = "lane.submodules", SubmoduleMode::FORMAT, default "none", repository,
            "submodules of a new lane, copied from the main checkout without network: none, its own (init), or nested ones too";
    }

    /// Size limits of the event log.
    #[derive(Copy)]
    EventLogLimits {
        /// Number of full files that are kept.
        max_full_files: usize = "event.keep", Count(Other("files")), default "4", user,
            "how many full files of the event log to keep beside the current one";
        /// Size in bytes at which a log file is full.
        max_file_size: u64 = "event.rotate", Count(Kibibytes), default "8192", user,
            "maximum size of one file of the event log";
    }

    /// Messages of the commits by which lanes land, and their trailers.
    #[derive(Default)]
    MessageSettings {
        /// Trailer of commits for the agent, as `NAME ADDRESS`, with `{agent}` for its name; empty for none.
        co_author: String = "merge.co_author", Text, default "", repository,
            "credit the agent in a Co-authored-by trailer, as in {agent} <agents@example.com>; empty for none";
        /// Template of the whole message, without trailers; empty for subject and body.
        message: String = "merge.message", Text, default "", repository,
            "commit message of a landing, with {agent}, {base}, {body}, {commits}, {lane}, {subject} and {title}; empty for subject and body";
        /// Whether the user's sign-off is added to messages.
        signoff: bool = "merge.signoff", BOOLEAN, default "false", user,
            "add your Signed-off-by trailer to the commits of a landing";
        /// Template of the subject line; empty for the usual one.
        subject: String = "merge.subject", Text, default "", repository,
            "subject of the commits of a landing, as in feat({lane}): {title}, with the placeholders of merge.message; empty for the usual one";
        /// Whether messages name the lane and its agent in trailers.
        trailers: bool = "merge.trailers", BOOLEAN, default "true", repository,
            "name the lane and its agent in trailers of the commits of a landing";
    }

    /// Settings of notifications about events.
    #[derive(Default)]
    NotifySettings {
        /// Whether to ring the terminal's bell.
        bell: bool = "notify.bell", BOOLEAN, default "false", user,
            "ring the bell of a terminal that waits for a lane or follows events";
        /// How to show a desktop notification.
        desktop: DesktopNotifier = "notify.desktop", DesktopNotifier::FORMAT, default "off", user,
            "show a desktop notification: with notify-send, or by a terminal that waits or follows";
        /// Event filters: `NAME` or `NAME:STATE`.
        events: Vec<String> = "notify.events", EventNames,
            default "run.ended agent.state:needs-approval merge.landed merge.conflict merge.check-failed merge.refused",
            user,
            "events to notify about";
        /// URL to which the event's message is posted in Slack's format.
        slack: Option<String> = "notify.slack", SecretUrl, default "", user,
            "URL to post messages to, in the format of Slack; never shown";
        /// Path of a sound file, or a shell command line that plays one.
        sound: Option<String> = "notify.sound", SoundOrCommand, default "", user,
            "sound file to play, or a command that plays one";
        /// Whether to set the terminal's title.
        title: bool = "notify.title", BOOLEAN, default "false", user,
            "show the message in the title of a terminal that waits or follows";
        /// URL to which the event is posted as JSON.
        webhook: Option<String> = "notify.webhook", SecretUrl, default "", user,
            "URL to post events to, as JSON; never shown";
    }

    /// Which folders of landed lanes new lanes may reuse, and which ignored files stay in them.
    #[derive(Default)]
    PoolSettings {
        /// `.gitignore` patterns of ignored files that stay in a reused folder.
        keep_patterns: Vec<String> = "pool.keep", Patterns, default "", user,
            "rebuildable caches to keep in the folder of a landed lane when the next lane reuses it, if git ignores them";
        /// Number of most recent folders that are available for reuse; 0 for none.
        size: usize = "pool.size", Count(Other("folders")), default "2", user,
            "how many of the latest folders of landed lanes new lanes may reuse; 0 for none";
    }

    /// Files and commands that set up a new lane, in addition to the files of its commit.
    #[derive(Default)]
    SetUpSettings {
        /// `.gitignore` patterns of files that are copied from the main checkout.
        copy_patterns: Vec<String> = "lane.copy", Patterns, default "", repository,
            "files of the main checkout to copy into a new lane, besides those of .worktreeinclude, if git ignores them";
        /// Path, in the lane, of the file that git-proq writes with the lane's names and ports.
        env_file: Option<String> = "lane.env", WorktreeFile, default "", repository,
            "file in each lane with its ports and names as KEY=VALUE, kept out of git; empty for none";
        /// `.gitignore` patterns of files and folders that are linked from the main checkout.
        link_patterns: Vec<String> = "lane.link", Patterns, default "", repository,
            "files and folders of the main checkout to link into a new lane, if git ignores them";
        /// Shell commands that run in the new lane.
        commands: Vec<String> = "lane.setup", Commands, default "", repository,
            "commands that set up a new lane before anything else runs in it; those of a repository need git proq approve";
        /// Maximum total run time of the set-up commands; none for no limit.
        time_limit: Option<Duration> = "lane.setup_limit", TimeSpan, default "10m", repository,
            "time limit of all set-up commands together; 0 for no limit";
        /// Name of the lock under which lanes run their set-up commands one after the other; none if they
        /// need not wait.
        lock_name: Option<String> = "lane.setup_lock", ShortName, default "", repository,
            "lanes with the same name here run their set-up commands one after another; empty for all at once";
    }

    /// Settings of plans and batches, for options that the command line leaves out.
    #[derive(Default)]
    SwarmSettings {
        /// Agent for tasks that name none.
        agent: Option<String> = "swarm.agent", Word, default "", user,
            "agent for tasks of a plan that name none";
        /// Name and folder of each area that is not below `tasks_folder`.
        areas: Vec<(String, String)> = "swarm.areas", AreaFolders, default "", repository,
            "areas of task folders outside of swarm.tasks";
        /// Whether tasks land directly on the base instead of on a branch of the batch.
        auto_merge: bool = "swarm.auto_merge", BOOLEAN, default "false", user,
            "land the tasks of a plan directly on the base, not on a branch of the batch first";
        /// Cost at which a batch is paused.
        budget: Option<NanoDollars> = "swarm.budget", Dollars, default "0", user,
            "pause a batch that has cost this; 0 for no limit";
        /// Number of failures, over all batches, after which a task is set aside.
        max_attempts: u32 = "swarm.max_attempts", Count(Other("runs")), default "3", repository,
            "set a task aside after this many failures, over all batches, until it is retried explicitly";
        /// Number of consecutive runs of a task folder without progress, at least one, after which it is
        /// given up.
        max_idle: u32 = "swarm.max_idle", Count(Other("iterations")), default "3", user, at_least_one,
            "give up a task folder after this many consecutive iterations without a new ticked box";
        /// Maximum number of runs of a task folder, at least one.
        max_iterations: u32 = "swarm.max_iterations", Count(Other("iterations")), default "50", user,
            at_least_one, "maximum number of iterations of a task folder";
        /// Maximum number of lanes that work at the same time.
        max_parallel: usize = "swarm.max_parallel", Count(Other("lanes")), default "3", repository,
            "maximum number of lanes of a batch that work at the same time";
        /// Which tasks land together.
        mode: String = "swarm.mode", OneOf(&["continuous", "waves", "phases", "one-lane"]),
            default "continuous", repository,
            "what lands together: each task by itself, a wave, a phase, or the whole plan, done in one lane";
        /// What happens to a batch when a task cannot land.
        on_merge_failure: String = "swarm.on_merge_failure", OneOf(&["pause", "abort"]),
            default "pause", repository,
            "what to do with a batch when a task cannot land";
        /// What happens to a batch when a task fails.
        on_task_failure: String =
            "swarm.on_task_failure", OneOf(&["skip-dependents", "stop-wave", "stop-all"]),
            default "skip-dependents", repository,
            "what to do when a task fails: skip the tasks that need it, start nothing more, or stop everything";
        /// Set-up commands of a batch's lanes, each optionally preceded by `GLOB =>` for the files that it
        /// applies to.
        pre_warm: Vec<String> = "swarm.pre_warm", Commands, default "", user,
            "commands that set up a new lane of a batch; GLOB => COMMAND only for tasks that touch such files";
        /// Agent that reviews the steps of task folders.
        reviewer: Option<String> = "swarm.reviewer", AgentOrProgram, default "", user,
            "agent that reviews the steps of task folders; empty for the agent that does them";
        /// How tasks are assigned to lanes.
        strategy: String = "swarm.strategy", OneOf(&["affinity-first", "round-robin", "load-balanced"]),
            default "affinity-first", repository,
            "how to assign tasks to lanes: with tasks that touch the same files, the next lane in turn, or the lane with the least work; matters only if tasks do not land one by one";
        /// Whether a batch counts as failed when some of its criteria are not met.
        strict: bool = "swarm.strict", BOOLEAN, default "false", repository,
            "a batch fails if some of its criteria are not met, and is not merged without --force";
        /// Folder of the task folders: each folder in it is an area.
        tasks_folder: String = "swarm.tasks", RepoFolder, default "tasks", repository,
            "folder of the task folders; each folder in it is an area";
        /// Agent that checks the criteria that are no commands.
        verify_agent: Option<String> = "swarm.verify_agent", AgentOrProgram, default "", user, untrimmed,
            "agent that judges criteria that are not commands, at the end of a batch; empty for none";
        /// What happens to a task in its plan's files once the task is on the base.
        when_landed: LandedTaskMarking = "swarm.when_landed", LandedTaskMarking::FORMAT, default "note", repository,
            "what to do with a task in its plan's files once it is on the base: mark it as done, also archive its folder, or nothing";
    }
}

impl NotifySettings {
    /// Returns whether the filters include an event of this name after which its subject is in `state`. A
    /// filter `NAME` matches every event of that name; `NAME:STATE` matches only events with that state.
    pub fn notifies_about(&self, event: &str, state: Option<&str>) -> bool {
        self.events.iter().any(|filter| match filter.split_once(':') {
            None => filter == event,
            Some((name, filter_state)) => name == event && state == Some(filter_state),
        })
    }
}
