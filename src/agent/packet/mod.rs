//! Owns the loop over a task that is a folder: its steps, one run after the other, each in a new conversation.

mod at_work;
mod begin;
mod course;
mod folder;
mod judgement;
mod review;
mod shown;
mod status;
mod words;

pub(crate) use at_work::{AtWork, Told, is_iteration};
pub(crate) use begin::{
    Begun, Packet, before_run, doing, has_packet, launch_packet, order_of_step, packet_again, resume_packet,
    resume_packet_as,
};
pub(crate) use course::Next;
pub(crate) use shown::{Shown, shown};
pub(crate) use status::Status;
