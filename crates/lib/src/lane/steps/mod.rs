//! Steps that any operation may take: moves of refs, checkouts, and records.

pub mod branch_undo;
pub mod checkout;
pub mod keep_ref;
pub mod move_ref;
pub mod preview_return;
pub mod switch_undo;
pub mod write_record;
