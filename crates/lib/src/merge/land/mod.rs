//! The landing itself: base branch moved, lanes recorded, landing pushed.

pub mod autostash;
pub mod base_forecast;
pub mod branch_move;
pub mod group_landing;
pub mod landing;
pub mod landing_proof;
pub mod local_changes;
pub mod note_commit;
pub mod parts;
pub mod prepared_stack;
pub mod push;
pub mod sure_landing;
