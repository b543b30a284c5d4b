//! Owns plans of dependent tasks: where they are read from, what depends on what, and which of them get in each other's way; and what a batch of them decides.

mod batch;
mod changes;
mod commands;
mod draft_error;
pub(crate) mod drafts;
mod error;
mod folders;
mod graph;
mod marks;
mod node;
mod noting;
mod plan;
pub(crate) mod planner;
mod proposals;
mod rehearsal;
mod roadmap;
mod run;
mod schedule;
mod shape;
mod sharing;
mod source;
mod stories;
mod toml_plan;
mod yaml;

pub(crate) use batch::{
    Batch, BatchError, BatchRecord, BatchTask, Defaults, Entry, Ledger, Line, LogTail, NewBatch, Proof,
    WishKind, all as batches, find as find_batch, make as make_batch, phases_of, runs as is_run, tasks_of,
};
pub(crate) use changes::{Change, changes};
pub(crate) use commands::{command_of, commands_of};
pub(crate) use draft_error::DraftError;
pub(crate) use error::{Error, Place};
pub(crate) use folders::{Home, Single, single};
pub(crate) use graph::{Graph, Route};
pub(crate) use noting::Noting;
pub(crate) use plan::{Group, Order, Phase, Plan, Progress, Size, Spot, Task};
pub(crate) use proposals::{Proposed, apply, with as with_proposed};
pub(crate) use rehearsal::{Pace, Rehearsal};
pub(crate) use run::{
    History, Known, Landing, LaneAt, OVER, Obstacle, Picture, Remark, Run, SPENT, TaskAt, Unlanded,
    ask as ask_batch, clean_up as clean_up_batch, drop_landing_lane, first_open, has_taken_back, how_to_land,
    landed_by, landing_ahead, landing_lane, note_landed, packet_of, require_base, require_met,
    require_none_open, resume as resume_batch, run as run_batch, start as start_batch, still_noted, unlanded,
};
pub(crate) use schedule::{
    Action, End, Event, Fate, MergePolicy, Mode, Options, Outcome, PauseReason, Spread, State, TaskPolicy,
    Why,
};
pub(crate) use sharing::{Met, Sharing};
pub(crate) use source::{Asked, Format, Found, read};
pub(crate) use toml_plan::{TEMPLATE, schema, written};
