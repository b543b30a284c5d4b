//! Errors of the files that git-proq stores.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use proq_base::explain::{Explain, rename_command, shell_quote_path};
use proq_base::full_disk::WriteLimit;
use proq_base::hint;
use proq_base::hint::Hint;
use proq_base::interrupt::Interrupted;

use super::file_access::{first_inaccessible, folder_of_other_user, nearest_existing, owner_of};
use super::store_names::JOURNAL_FILE;

/// An error of the store.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {verb} {}{}", path.display(), owner_text(path, source))]
    #[hint(
        if source.kind() == ErrorKind::PermissionDenied && let Some(dir) = folder_of_other_user(path),
        "make the folder yours: sudo chown -R \"$USER\" {}",
        shell_quote_path(&dir)
    )]
    #[hint(
        else if source.kind() == ErrorKind::PermissionDenied && let Some(dir) = first_inaccessible(path),
        "make it readable: chmod u+rwX {}",
        shell_quote_path(&dir)
    )]
    #[hint(else if let Some(limit) = WriteLimit::of_error(source), with = [limit.hint()])]
    #[hint(
        else if matches!(source.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied),
        "git-proq stores its data there; make it writable: chmod -R u+rwX {}", shell_quote_path(nearest_existing(path))
    )]
    Io {
        /// Action that failed, as a verb.
        verb: &'static str,
        /// File that the action was applied to.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A symbolic link is where a folder or file of git-proq is expected.
    #[error("cannot use {}: it is a symbolic link; git-proq does not follow it", path.display())]
    #[hint("show its target: ls -l {}", shell_quote_path(path))]
    SymbolicLink {
        /// Path of the link.
        path: PathBuf,
    },
    /// A record has contents that git-proq does not write.
    #[error("cannot read the record {}", path.display())]
    #[hint(if is_active_journal(path), with = [journal_hint(path)])]
    #[hint(else, "if it is lost, move it away: {}", rename_command(path, "broken"))]
    Broken {
        /// Path of the record.
        path: PathBuf,
        /// Error of the parser.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A record was written by a newer git-proq.
    #[error("cannot read the record {}: it has format {found}, and this git-proq reads up to {known}", path.display())]
    #[hint("upgrade git-proq: cargo install git-proq")]
    NewerFormat {
        /// Path of the record.
        path: PathBuf,
        /// Format version of the record.
        found: u32,
        /// Newest format version that this program reads.
        known: u32,
    },
    /// The user pressed Ctrl-C, or the process received SIGTERM, at a point where stopping is safe.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A lock was not acquired in time.
    #[error("{resource} is held by {holder}; gave up after {seconds} s; nothing was changed")]
    #[exit(Locked)]
    #[hint("wait longer for locks: git config proq.lock.timeout 300")]
    Locked {
        /// Description of what the lock protects.
        resource: String,
        /// Description of the process that holds the lock.
        holder: String,
        /// Seconds waited.
        seconds: u64,
    },
    /// A landing did not reach the front of the merge queue in time.
    #[error("gave up after {seconds} s in the merge queue, behind {predecessors}; nothing was changed")]
    #[exit(Locked)]
    #[hint("show the merge queue: git proq queue")]
    #[hint("or leave out --lock-timeout to wait for your turn")]
    QueueTimeout {
        /// Description of the landings ahead in the queue.
        predecessors: String,
        /// Seconds waited.
        seconds: u64,
    },
    /// A landing waits for this process, which would wait for that landing.
    #[error("cannot merge from {}: the merge of {landing} waits for this command; nothing was changed", command_origin(hook.as_deref()))]
    #[hint("show the merge queue: git proq queue")]
    QueueDeadlock {
        /// Description of the landing and of its process.
        landing: String,
        /// Hook that started this command; none for a check, or where the hook is not known.
        hook: Option<String>,
    },
}

/// Describes what started a command that a landing waits for.
fn command_origin(hook: Option<&str>) -> String {
    let hook_name = hook.filter(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
    hook_name.map_or_else(|| "a hook or a check".to_owned(), |name| format!("the {name} hook"))
}

impl Error {
    /// Returns a function that wraps an I/O error with the attempted action and its path.
    pub fn io(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { verb, path, source }
    }
}

/// Names the owner of the folder that contains `path`, where another user's ownership denies access to it; empty
/// otherwise.
fn owner_text(path: &Path, source: &std::io::Error) -> String {
    let is_denied = source.kind() == ErrorKind::PermissionDenied;
    let Some(dir) = folder_of_other_user(path).filter(|_| is_denied) else { return String::new() };
    match owner_of(&dir) {
        Some(owner) if dir == path => format!(": it belongs to {owner}"),
        Some(owner) => format!(": {} belongs to {owner}", dir.display()),
        None => String::new(),
    }
}

/// Returns whether `path` is the journal of an operation that has not finished.
fn is_active_journal(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == JOURNAL_FILE)
}

/// Returns the hint for a broken journal. It moves the entire folder: files parked by the operation are next
/// to the journal, and without the journal nothing refers to them.
fn journal_hint(path: &Path) -> Hint {
    let dir = path.parent().unwrap_or(path);
    let (id, root) = (dir.file_name().unwrap_or_default(), dir.ancestors().nth(2).unwrap_or(dir));
    hint!(
        "move it away, with files of yours that may be beside it: mv {} {}",
        shell_quote_path(dir),
        shell_quote_path(&root.join(format!("aside-{}", id.to_string_lossy())))
    )
}
