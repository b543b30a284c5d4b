//! Parsers of the numbers of runs and operations on the command line.

use clap::builder::TypedValueParser;
use proq_lib::types::{OperationNumber, RunNumber};

/// Returns the parser of a run number, which accepts what a parser of 32-bit integers accepts and fails with
/// the same errors.
pub(crate) fn run_number() -> impl TypedValueParser<Value = RunNumber> {
    clap::value_parser!(u32).map(RunNumber::new)
}

/// Returns the parser of an operation number, which accepts what a parser of 64-bit integers accepts and
/// fails with the same errors.
pub(crate) fn operation_number() -> impl TypedValueParser<Value = OperationNumber> {
    clap::value_parser!(u64).map(OperationNumber::new)
}
