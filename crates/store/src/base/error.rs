//! Errors of the files that git-proq stores.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use proq_base::explain::{Exit, Explain, rename_command, shell_quote_path};
use proq_base::interrupt::Interrupted;

use crate::paths::file_access::first_inaccessible;
use crate::paths::layout::JOURNAL_FILE;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("could not {verb} {}", path.display())]
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
    #[error("cannot use {}: it is a symbolic link; nothing was read or written through it", path.display())]
    SymbolicLink {
        /// Path of the link.
        path: PathBuf,
    },
    /// A record has contents that git-proq does not write.
    #[error("the record {} cannot be read; it was left as it is", path.display())]
    Broken {
        /// Path of the record.
        path: PathBuf,
        /// Error of the parser.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A record was written by a newer git-proq.
    #[error("the record {} has format {found}; this git-proq knows up to {known}", path.display())]
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
    #[error("{resource} is held by {holder}; gave up after {seconds} s, nothing was changed")]
    Locked {
        /// Description of what the lock protects.
        resource: String,
        /// Description of the process that holds the lock.
        holder: String,
        /// Seconds waited.
        seconds: u64,
    },
    /// A landing did not reach the front of the merge queue in time.
    #[error("gave up after {seconds} s in the landing queue, behind {predecessors}; nothing was changed")]
    QueueTimeout {
        /// Description of the landings ahead in the queue.
        predecessors: String,
        /// Seconds waited.
        seconds: u64,
    },
    /// A landing waits for this process, which would wait for that landing.
    #[error("cannot queue up from {}: the landing of {landing} waits for this command; nothing was changed", command_origin(hook.as_deref()))]
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

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Io { source, path, .. } => match source.kind() {
                std::io::ErrorKind::PermissionDenied if let Some(dir) = first_inaccessible(path) => {
                    vec![format!("make it readable for you: chmod u+rwX {}", shell_quote_path(&dir)).into()]
                }
                std::io::ErrorKind::StorageFull => {
                    vec!["make room on the disk, then run the command again".into()]
                }
                std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                    vec!["git-proq keeps its records there; make it writable for you".into()]
                }
                _ => Vec::new(),
            },
            Error::SymbolicLink { path } => {
                vec![format!("see where it leads: ls -l {}", shell_quote_path(path)).into()]
            }
            Error::Broken { path, .. } if is_active_journal(path) => vec![journal_hint(path).into()],
            Error::Broken { path, .. } => vec![
                format!("look at it, and set it aside if it is lost: {}", rename_command(path, "broken"))
                    .into(),
            ],
            Error::NewerFormat { .. } => vec!["upgrade git-proq: cargo install git-proq".into()],
            Error::Interrupted(_) => Vec::new(),
            Error::QueueTimeout { .. } => vec![
                "see who waits for whom: git proq queue".into(),
                "without --lock-timeout it waits for its turn".into(),
            ],
            Error::QueueDeadlock { .. } => vec!["see what lands now: git proq queue".into()],
            Error::Locked { .. } => vec![
                "try again when it has ended, or wait longer: git -c proq.lock.timeout=300 proq …".into(),
            ],
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Locked { .. } | Error::QueueTimeout { .. } => Exit::Locked,
            Error::Interrupted(interrupted) => interrupted.exit(),
            _ => Exit::Refused,
        }
    }
}

/// Returns whether `path` is the journal of an operation that has not finished.
fn is_active_journal(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == JOURNAL_FILE)
}

/// Returns the hint for a broken journal. It moves the entire folder: files parked by the operation are next
/// to the journal, and without the journal nothing refers to them.
fn journal_hint(path: &Path) -> String {
    let dir = path.parent().unwrap_or(path);
    let (id, root) = (dir.file_name().unwrap_or_default(), dir.ancestors().nth(2).unwrap_or(dir));
    format!(
        "files of yours may lie beside it; to go on without it: mv {} {}",
        shell_quote_path(dir),
        shell_quote_path(&root.join(format!("aside-{}", id.to_string_lossy())))
    )
}
