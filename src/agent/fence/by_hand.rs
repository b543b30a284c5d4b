//! Owns the hook for people who commit in lanes by hand: put into the repository's own folder, in front of what is there, and
//! taken out again.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::agent::Error;
use crate::git;
use crate::lane::{self, Project};
use crate::store::{new_id, rename_new};

/// The hook that follows a commit.
const HOOK: &str = "post-commit";
/// What stood there before, beside it.
const KEPT: &str = "post-commit.before-git-proq";
/// What only ours begins with.
const MARK: &[u8] = b"#!/bin/sh\n# Written by 'git proq hooks install'; 'git proq hooks uninstall' takes it away.\n# before: ";

/// What is in the place of the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// A hook of somebody else's.
    Other,
    /// Ours, and nothing before it.
    Ours,
    /// Ours, in front of another one.
    OursBefore,
}

/// Where the hook belongs, and what is there.
#[derive(Debug)]
#[must_use]
pub(crate) struct HookByHand {
    /// Its file.
    pub(crate) path: PathBuf,
    /// What is there.
    pub(crate) found: Found,
    kept: PathBuf,
    text: Vec<u8>,
}

impl HookByHand {
    /// Looks for it.
    ///
    /// # Errors
    /// When git cannot say where hooks are, or the file there cannot be read.
    pub(crate) fn look(project: &Project) -> Result<HookByHand, Error> {
        let folder = project.repo.hook_folder(project.repo.home())?;
        let (path, kept) = (folder.join(HOOK), folder.join(KEPT));
        let there = path.symlink_metadata().is_ok();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if !there && e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            // A link that leads nowhere is somebody's too.
            Err(_) if there => Vec::new(),
            Err(e) => return Err(lane::Error::io("read", &path)(e).into()),
        };
        let found = match (there, text.strip_prefix(MARK)) {
            (false, _) => Found::Nothing,
            (true, None) => Found::Other,
            (true, Some(rest)) if rest.starts_with(b"nothing\n") => Found::Ours,
            (true, Some(_)) => Found::OursBefore,
        };
        Ok(HookByHand { path, found, kept, text })
    }

    /// Refuses any folder but the repository's own. What is written among the project's files goes into everybody's commits, or is
    /// written anew by the tool that made it; one outside may be that of every repository of the user's.
    fn require_private(&self, project: &Project) -> Result<(), Error> {
        let folder = real(self.path.parent().unwrap_or(&self.path));
        if folder.starts_with(real(project.repo.common_dir())) {
            return Ok(());
        }
        match project.repo.main_worktree() {
            Some(top) if folder.starts_with(real(top)) => Err(Error::HooksOfTheProject { folder }),
            _ => Err(Error::HooksOfOthers { folder }),
        }
    }

    /// Whether it could be put there.
    ///
    /// # Errors
    /// As for [`HookByHand::install`].
    pub(crate) fn check(&self, project: &Project) -> Result<(), Error> {
        self.require_private(project)?;
        let taken = self.kept.symlink_metadata().is_ok() && !self.is_second_name();
        match self.found == Found::Other && taken {
            true => Err(Error::HookInTheWay { path: self.kept.clone() }),
            false => Ok(()),
        }
    }

    /// The second name of the hook that is there, where somebody was killed between giving it one and putting ours in its place.
    pub(crate) fn half_installed(&self) -> Option<&Path> {
        (self.found == Found::Other && self.is_second_name()).then_some(self.kept.as_path())
    }

    fn is_second_name(&self) -> bool {
        let id = |path: &Path| path.symlink_metadata().map(|meta| (meta.dev(), meta.ino())).ok();
        id(&self.path).is_some() && id(&self.path) == id(&self.kept)
    }

    /// Puts it there; what was there stays beside it and runs after it. `exe` is this program. At no moment is there no hook.
    ///
    /// # Errors
    /// [`Error::HooksOfTheProject`], [`Error::HookInTheWay`], or when the folder cannot be written; nothing was changed then.
    pub(crate) fn install(&self, project: &Project, exe: &Path) -> Result<(), Error> {
        self.check(project)?;
        let folder = self.path.parent().unwrap_or(&self.path);
        std::fs::create_dir_all(folder).map_err(lane::Error::io("make", folder))?;
        let before = match self.found {
            Found::Ours | Found::OursBefore => return Ok(()),
            Found::Nothing => None,
            Found::Other => {
                if !self.is_second_name() {
                    std::fs::hard_link(&self.path, &self.kept)
                        .map_err(lane::Error::io("write", &self.kept))?;
                }
                Some(fingerprint(project, &self.kept))
            }
        };
        let draft = folder.join(format!(".{HOOK}.{}", new_id()));
        let placed = write_new(&draft, &text(exe, before.as_deref())).and_then(|()| match before {
            Some(_) => std::fs::rename(&draft, &self.path),
            None => rename_new(&draft, &self.path),
        });
        placed.map_err(|e| {
            drop(std::fs::remove_file(&draft));
            if before.is_some() {
                drop(std::fs::remove_file(&self.kept));
            }
            lane::Error::io("write", &self.path)(e).into()
        })
    }

    /// Whether it could be taken away again.
    ///
    /// # Errors
    /// As for [`HookByHand::uninstall`].
    pub(crate) fn check_unchanged(&self, project: &Project) -> Result<(), Error> {
        let changed = |what| Err(Error::HookChanged { path: self.path.clone(), what });
        let rest = match (self.found, self.text.strip_prefix(MARK)) {
            (Found::Other, _) if self.is_second_name() => return Ok(()),
            (Found::Nothing | Found::Other, _) if self.kept.symlink_metadata().is_err() => return Ok(()),
            (Found::Ours | Found::OursBefore, Some(rest)) => rest,
            _ => return changed("it is not git-proq's any more"),
        };
        let mut lines = rest.split(|b| *b == b'\n');
        let before = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let before = (before != "nothing").then_some(before);
        let exe = lines.next().and_then(|line| line.strip_prefix(b"# program: "));
        let exe = exe.and_then(|hex| git::RepoPath::from_text(&String::from_utf8_lossy(hex)));
        let whole = exe.map(|exe| text(&exe.under(Path::new("")), before.as_deref()));
        if whole.as_deref() != Some(self.text.as_slice()) {
            return changed("it was changed after it was installed");
        }
        match before {
            Some(before) if fingerprint(project, &self.kept) != before => {
                changed("what it stands in front of was changed after that")
            }
            _ => Ok(()),
        }
    }

    /// Puts back what was there, byte for byte and with its rights.
    ///
    /// # Errors
    /// [`Error::HookChanged`] when somebody changed it since; nothing was changed then.
    pub(crate) fn uninstall(&self, project: &Project) -> Result<(), Error> {
        self.check_unchanged(project)?;
        let done = match self.found {
            Found::OursBefore => std::fs::rename(&self.kept, &self.path),
            Found::Ours => std::fs::remove_file(&self.path),
            Found::Nothing | Found::Other => self.half_installed().map_or(Ok(()), std::fs::remove_file),
        };
        Ok(done.map_err(lane::Error::io("write", &self.path))?)
    }
}

/// A folder as it really is, by the part of it that is there.
fn real(folder: &Path) -> PathBuf {
    match (folder.canonicalize(), folder.parent(), folder.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(above), Some(name)) => real(above).join(name),
        _ => folder.to_owned(),
    }
}

/// Whether a hook is the one that [`HookByHand`] puts there.
pub(super) fn is_ours(hook: &Path) -> bool {
    std::fs::read(hook).is_ok_and(|text| text.starts_with(MARK))
}

/// What tells a file from any other: its contents, or where it leads, and its rights.
fn fingerprint(project: &Project, path: &Path) -> String {
    let Ok(meta) = path.symlink_metadata() else { return "gone".to_owned() };
    let bytes = match meta.is_symlink() {
        true => std::fs::read_link(path).map(|to| to.as_os_str().as_bytes().to_vec()),
        false => std::fs::read(path),
    };
    let id = bytes.ok().and_then(|bytes| project.repo.blob_id(&bytes));
    let id = id.map(|id| id.to_string()).unwrap_or_default();
    format!("{id} {:o}", meta.permissions().mode())
}

/// The hook. It needs nothing of ours: where the program is gone, what was there before runs all the same.
fn text(exe: &Path, before: Option<&str>) -> Vec<u8> {
    let name = git::RepoPath::new(exe.as_os_str().as_bytes()).to_string();
    let program = git::quoted(exe.as_os_str().as_bytes());
    let mut out = MARK.to_vec();
    out.extend(format!("{}\n# program: {name}\n", before.unwrap_or("nothing")).bytes());
    out.extend([b"[ ! -x ".as_slice(), &program, b" ] || ", &program, b" hooks run </dev/null\n"].concat());
    if before.is_some() {
        out.extend(format!("before=$(dirname \"$0\")/{KEPT}\n").bytes());
        out.extend(b"[ ! -x \"$before\" ] || exec \"$before\" \"$@\"\n");
    }
    out.extend(b"exit 0\n");
    out
}

fn write_new(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(text)?;
    file.set_permissions(Permissions::from_mode(0o755))?;
    file.sync_all()
}
