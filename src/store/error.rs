//! Owns what can go wrong with what git-proq keeps.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::explain::{Exit, Explain, quoted_path, set_aside};
use crate::interrupt::Interrupted;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("could not {verb} {}", path.display())]
    Io {
        /// What was attempted, as a verb.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A link stands in the place of a folder or file that git-proq keeps.
    #[error("cannot use {}: it is a symbolic link; nothing was read or written through it", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A record is not what git-proq writes.
    #[error("the record {} cannot be read; it was left as it is", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A record was written by a newer git-proq.
    #[error("the record {} has format {found}; this git-proq knows up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The user pressed Ctrl-C, or something sent TERM, where stopping is safe.
    #[error("interrupted; nothing was left half-done")]
    Interrupted,
    /// A lock could not be had in time.
    #[error("{what} is held by {holder}; gave up after {seconds} s, nothing was changed")]
    Locked {
        /// What the lock protects.
        what: String,
        /// Who holds it, in words.
        holder: String,
        /// How long was waited.
        seconds: u64,
    },
    /// A landing's turn did not come in time.
    #[error("gave up after {seconds} s in the landing queue, behind {before}; nothing was changed")]
    NotMyTurn {
        /// Who is before it, in words.
        before: String,
        /// How long was waited.
        seconds: u64,
    },
    /// A landing waits for this process, which would wait for that landing.
    #[error("cannot queue up from {}: the landing of {landing} waits for this command; nothing was changed", place(hook.as_deref()))]
    OwnLanding {
        /// What lands, and which process it is, in words.
        landing: String,
        /// The hook that started this command; none for a check, or where that is not known.
        hook: Option<String>,
    },
}

/// Where a command was started that a landing waits for.
fn place(hook: Option<&str>) -> String {
    let named = hook.filter(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
    named.map_or_else(|| "a hook or a check".to_owned(), |name| format!("the {name} hook"))
}

impl Error {
    /// Wraps an IO error with what was attempted and where.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { verb, path, source }
    }
}

impl From<Interrupted> for Error {
    fn from(Interrupted: Interrupted) -> Error {
        Error::Interrupted
    }
}

impl Explain for Error {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            Error::Io { source, path, .. } => match source.kind() {
                std::io::ErrorKind::PermissionDenied if let Some(dir) = super::closed(path) => {
                    vec![format!("make it readable for you: chmod u+rwX {}", quoted_path(&dir)).into()]
                }
                std::io::ErrorKind::StorageFull => {
                    vec!["make room on the disk, then run the command again".into()]
                }
                std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                    vec!["git-proq keeps its records there; make it writable for you".into()]
                }
                _ => Vec::new(),
            },
            Error::Link { path } => vec![format!("see where it leads: ls -l {}", quoted_path(path)).into()],
            Error::Broken { path, .. } if is_open_journal(path) => vec![journal_hint(path).into()],
            Error::Broken { path, .. } => vec![
                format!("look at it, and set it aside if it is lost: {}", set_aside(path, "broken")).into(),
            ],
            Error::Newer { .. } => vec!["upgrade git-proq: cargo install git-proq".into()],
            Error::Interrupted => Vec::new(),
            Error::NotMyTurn { .. } => vec![
                "see who waits for whom: git proq queue".into(),
                "without --lock-timeout it waits for its turn".into(),
            ],
            Error::OwnLanding { .. } => vec!["see what lands now: git proq queue".into()],
            Error::Locked { .. } => vec![
                "try again when it has ended, or wait longer: git -c proq.lock.timeout=300 proq …".into(),
            ],
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Error::Locked { .. } | Error::NotMyTurn { .. } => Exit::Locked,
            Error::Interrupted => Exit::Signal(crate::interrupt::signal()),
            _ => Exit::Refused,
        }
    }
}

/// Whether it is the journal of an operation that has not ended.
fn is_open_journal(path: &Path) -> bool {
    path.parent().is_some_and(|dir| super::Journal::file_in(dir) == path)
}

/// The folder goes as a whole: files that were being moved lie beside the journal, and without it nobody knows of them.
fn journal_hint(path: &Path) -> String {
    let dir = path.parent().unwrap_or(path);
    let (id, root) = (dir.file_name().unwrap_or_default(), dir.ancestors().nth(2).unwrap_or(dir));
    format!(
        "files of yours may lie beside it; to go on without it: mv {} {}",
        quoted_path(dir),
        quoted_path(&root.join(format!("aside-{}", id.to_string_lossy())))
    )
}
