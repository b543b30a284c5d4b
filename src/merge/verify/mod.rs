//! Verification of a stack, with a cache of passed checks.

pub(crate) mod checked_stack;
pub(crate) mod dry_verify;
pub(crate) mod failed_check;
pub(crate) mod verifier;
pub(crate) mod verify_cache;
