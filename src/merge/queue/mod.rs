//! The landing queue, and the stop of agents whose lanes land.

pub(crate) mod queue_turn;
pub(crate) mod stop;
