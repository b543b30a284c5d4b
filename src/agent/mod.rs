//! Agents: how each kind is started, supervised and stopped.

mod acp;
mod activity;
mod agent_command;
mod agent_env;
mod agent_process;
mod already_done;
mod answer;
mod auto_snapshots;
mod classify;
mod conversation;
mod error;
mod follow_up;
mod fresh_conversation;
mod git_guard;
mod installed_programs;
mod launch;
mod launch_spec;
mod launcher;
mod limits;
mod live_status;
mod new_run_record;
mod outbox;
mod overseer;
mod pane_process;
mod profile;
mod profile_catalog;
mod prompt;
mod retries;
mod retry_policy;
mod run_spec;
mod shutdown_signals;
mod startup_question;
mod stdin_writer;
mod stop;
mod stop_gate;
mod stream;
mod supervisor;
mod supervisor_start;
mod tail;
mod task_loop;
mod template;
mod tmux_client;
mod tmux_window;
mod wait;
mod warnings;
mod watch;

pub(crate) use acp::{AgentExit, DriverHandles, run_protocol_agent};
pub(crate) use activity::{HookInput, handle_hook_event};
pub(crate) use agent_command::{AgentCommand, RunOptions};
pub(crate) use answer::MAX_ANSWER_LEN;
pub(crate) use conversation::{
    SendOutcome, find_recipient, find_user_command, refuse_while_resolving, send_message,
};
pub(crate) use error::Error;
pub(crate) use follow_up::{MergeTrigger, acquire_landing_lock, start_auto_merge};
pub(crate) use git_guard::{
    HookState, PostCommitHook, claim_new_commits, handle_user_commit, has_new_commits, run_hook,
};
pub(crate) use installed_programs::{InstalledProgram, find_installed};
pub(crate) use launch::{launch, launch_to_resolve, launch_with_prompt, require_installed, wait_for_start};
pub(crate) use live_status::read_summary as read_live_summary;
pub(crate) use overseer::{Overseer, OverseerCommand, OverseerOptions};
pub(crate) use pane_process::run_pane_process;
pub(crate) use profile::{Permission, Profile};
pub(crate) use profile_catalog::load_profiles;
pub(crate) use stop::{has_live_supervisor, stop, stop_after_wrap_up, stop_without_grace};
pub(crate) use stop_gate::{lane_checks, merge_checks};
pub(crate) use stream::{ClientLine, Dialect, Exit, OutputReader, StreamEvent};
pub(crate) use supervisor::supervise;
pub(crate) use supervisor_start::{adopt_lock, report_start_failure, report_started};
pub(crate) use task_loop::{
    FolderTask, LoopStart, LoopStatus, TaskProgress, has_task_loop, launch_task_loop,
    read_status as read_loop_status, reload_folder_task, resume_as_batch_attempt, resume_task_loop,
};
pub(crate) use tmux_window::attach_commands;
pub(crate) use wait::{WaitUntil, WaitedLane, wait_for_lane, wait_for_lanes};
