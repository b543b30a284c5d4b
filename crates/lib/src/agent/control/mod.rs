//! Messages to a lane's agent, and stopping and waiting for it.

pub mod send_message;
pub mod stop;
pub mod wait;
