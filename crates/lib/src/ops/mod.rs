//! Use cases: what a person can do with lanes, each as a request, a plan and an outcome.
//!
//! A module per use case. Its request is plain data; `plan` reads the repository, changes nothing, and
//! returns what would be done or why it is refused; `execute` does what the plan says, refuses if the
//! repository has moved since, and returns the outcome, which serializes to the command's JSON output.

pub mod error;
pub mod reporter;
