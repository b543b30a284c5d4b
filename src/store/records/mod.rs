//! Owns the form of every record on disk.

mod activity;
mod approval;
mod batched;
mod before;
mod check;
mod conflict;
mod draft;
mod fence;
mod lane;
mod message;
mod overseer;
mod packet;
mod ports;
mod preview;
mod report;
mod resolve;
mod run;
mod set_up;
mod sight;
mod snap;
mod step;
mod trash;

pub(crate) use activity::{Activity, ActivityRecord};
pub(crate) use approval::{ApprovalsRecord, Approved};
pub(crate) use batched::{BatchBranches, ForTask, InBatch};
pub(crate) use before::{BeforeRecord, FileBefore};
pub(crate) use check::{CheckRecord, GreenRecord, SlotRecord};
pub(crate) use conflict::{ConflictRecord, ConflictStage};
pub(crate) use draft::{Costs, DraftApproval, DraftRecord, ProposalsRecord, ProposedNeed};
pub(crate) use fence::{FenceRecord, HeldHooks, OwnSettings, SettingsFile};
pub(crate) use lane::{AnyLane, Landed, LaneRecord, Look, Place, Refusal, Tree};
pub use lane::{LaneState, Purpose, Strategy};
pub(crate) use message::{MessageRecord, ToldRecord};
pub(crate) use overseer::OverseerRecord;
pub(crate) use packet::{Judgement, LastReview, PacketRecord, Part, Review, StepRecord, Stint};
pub(crate) use ports::{COUNT as PORT_COUNT, Ports};
pub(crate) use preview::PreviewRecord;
pub(crate) use report::ReportRecord;
pub(crate) use resolve::{ResolvePath, ResolveRecord};
pub(crate) use run::{
    Account, Cost, RunClass, RunLimits, RunRecord, SessionTotals, Supervisor, Tokens, Window,
};
pub(crate) use set_up::SetUpRecord;
pub(crate) use sight::{FileSeen, LaneSeen, PlaceSeen, SightRecord};
pub(crate) use snap::{Automatic, SnapRecord};
pub(crate) use step::{Before, Step};
pub(crate) use trash::{GivenRecord, TrashRecord};
