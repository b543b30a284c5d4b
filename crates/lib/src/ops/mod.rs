//! Use cases: what a person can do with lanes, each as a request, a plan and an outcome.
//!
//! A module per use case. Its request is plain data; `plan` reads the repository, changes nothing, and
//! returns the changes to be made or the refusal; `execute` makes exactly these changes, refuses if the
//! repository has moved since, and returns the outcome, which serializes to the command's JSON output.

pub mod error;
pub mod reporter;
