//! Status of a repository: one screen of it, and one line.

pub mod repository_status;
pub mod status_line;
