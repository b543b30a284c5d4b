//! Verification of a stack, with a cache of passed checks.

pub mod checked_stack;
pub mod dry_verify;
pub mod failed_check;
pub mod verifier;
pub mod verify_cache;
