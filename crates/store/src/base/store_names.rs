//! Names of the store's folder and of the journals in it.

/// Name of the store's folder in the common git directory.
pub(crate) const STORE_DIR: &str = "proq";

/// File name of a journal in a scratch folder.
pub(crate) const JOURNAL_FILE: &str = "journal";
