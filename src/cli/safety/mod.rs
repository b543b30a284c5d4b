//! Commands that undo, restore, examine and clean up.

pub(crate) mod doctor;
pub(crate) mod gc;
pub(crate) mod op;
pub(crate) mod snap;
pub(crate) mod undo;
pub(crate) mod undo_operations;
