//! Owns agents: how each kind is started, who watches it, and how it is stopped.

mod acp;
mod activity;
mod afresh;
mod again;
mod already;
mod answer;
mod begin;
mod catalogue;
mod error;
mod feed;
mod fence;
mod follow_up;
mod gate;
mod installed;
mod job;
mod launch;
mod launcher;
mod limits;
mod live;
mod order;
mod outbox;
mod outfit;
mod oversee;
mod packet;
mod pane;
mod profile;
mod prompt;
mod settle;
mod stop;
mod stream;
mod supervisor;
mod tail;
mod talk;
mod template;
mod tenant;
mod variables;
mod wait;
mod watch;
mod window;
mod wishes;

pub(crate) use acp::{Hands, Left, drive};
pub(crate) use activity::{HookInput, hear};
pub(crate) use answer::LONGEST as LONGEST_ANSWER;
pub(crate) use begin::{adopt_lock, answer_begun, answer_not_begun};
pub(crate) use catalogue::profiles;
pub(crate) use error::Error;
pub(crate) use fence::{Found, HookByHand, answer, commit_by_hand, has_moved, take_up};
pub(crate) use follow_up::{Because, land_by_itself, take_landing};
pub(crate) use gate::checks_of;
pub(crate) use installed::{Installed, installed};
pub(crate) use job::{Asked, Job};
pub(crate) use launch::{hear as hear_start, launch, launch_again, launch_to_resolve, require};
pub(crate) use live::shown as shown_live;
pub(crate) use oversee::{Line as OverseersLine, Overseer, Task as OverseersTask};
pub(crate) use packet::{
    Begun, Packet, Shown as PacketShown, Status, launch_packet, packet_again, resume_packet,
    shown as shown_packet,
};
pub(crate) use profile::{Permission, Profile};
pub(crate) use stop::{is_watched, stop, stop_at_once, stop_gently};
pub(crate) use stream::{Dialect, Event, Exit, Reader, Said};
pub(crate) use supervisor::supervise;
pub(crate) use talk::{Sent, addressee, named_command, require_at_task, send};
pub(crate) use tenant::inhabit;
pub(crate) use wait::{Until, Waited, wait, wait_for};
pub(crate) use window::way_in;
