//! The landing itself: base branch moved, lanes recorded, landing pushed.

pub(crate) mod branch_move;
pub(crate) mod group_landing;
pub(crate) mod landing;
pub(crate) mod landing_proof;
pub(crate) mod local_changes;
pub(crate) mod note_commit;
pub(crate) mod parts;
pub(crate) mod prepared_stack;
pub(crate) mod push;
pub(crate) mod sure_landing;
