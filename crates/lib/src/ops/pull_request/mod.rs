//! Pull and merge requests of lanes, and issues, by the programs of the forges GitHub and GitLab.

pub mod description;
pub mod forge;
pub mod forge_error;
mod forge_output;
pub mod forge_repository;
mod forge_requests;
pub mod issue;
pub mod open_request;
pub mod open_request_error;
pub mod refresh;
