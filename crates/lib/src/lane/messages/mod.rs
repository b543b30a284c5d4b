//! Messages to a lane's agent, and files attached to them.

pub mod attached_files;
pub mod delivered_messages;
pub mod inbox;
