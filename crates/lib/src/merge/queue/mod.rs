//! The landing queue, and the stop of agents whose lanes land.

pub mod queue_turn;
pub mod stop;
