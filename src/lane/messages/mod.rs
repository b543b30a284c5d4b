//! Messages to a lane's agent, and files attached to them.

pub(crate) mod attached_files;
pub(crate) mod delivered_messages;
pub(crate) mod inbox;
