//! Messages to a lane's agent, and stopping and waiting for it.

pub(crate) mod send_message;
pub(crate) mod stop;
pub(crate) mod wait;
