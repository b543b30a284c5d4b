//! Golden files: journals of operations and records of the store as this format has them, read by the current
//! program.

mod canonical;
mod cases;
mod cuts;
mod journals;
mod records;
