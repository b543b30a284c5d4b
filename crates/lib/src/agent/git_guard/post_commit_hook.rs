//! Post-commit hook for users who commit in lanes by hand: installing it into the repository's own hooks
//! folder, in front of an existing hook, and uninstalling it.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use proq_base::explain;
use proq_git as git;
use proq_git::Repo;
use proq_store::base::atomic::rename_no_replace;
use proq_store::base::id::new_id;

use crate::agent::Error;
use crate::lane;
use crate::lane::Project;

/// File name of the hook.
const HOOK_NAME: &str = "post-commit";
/// File name, in the same folder, to which an existing hook is saved.
const BACKUP_NAME: &str = "post-commit.before-git-proq";
/// First lines of the installed hook, which no other hook has.
const HOOK_HEADER: &[u8] = b"#!/bin/sh\n# Written by 'git proq hooks install'; 'git proq hooks uninstall' takes it away.\n# before: ";

/// State of the post-commit hook's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookState {
    /// No hook exists.
    Missing,
    /// A hook exists that git-proq did not install.
    Foreign,
    /// The hook of git-proq is installed, without an earlier hook.
    Installed,
    /// The hook of git-proq is installed, and runs an earlier hook after it.
    Chained,
}

/// The repository's post-commit hook: its path and its present state.
#[derive(Debug)]
#[must_use]
pub struct PostCommitHook {
    /// Path of the hook.
    pub path: PathBuf,
    /// State of the file at that path.
    pub state: HookState,
    /// Path of the backup of an earlier hook, whether or not it exists.
    backup: PathBuf,
    /// Content of the hook; empty where it cannot be read or does not exist.
    content: Vec<u8>,
}

impl PostCommitHook {
    /// Inspects the repository's post-commit hook.
    ///
    /// # Errors
    /// Fails when git cannot name the hooks folder, or the hook cannot be read.
    pub fn inspect(repo: &Repo) -> Result<PostCommitHook, Error> {
        let folder = repo.hook_folder(repo.command_dir())?;
        let (path, backup) = (folder.join(HOOK_NAME), folder.join(BACKUP_NAME));
        let exists = path.symlink_metadata().is_ok();
        let content = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if !exists && e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            // A dangling link is a hook of the user too.
            Err(_) if exists => Vec::new(),
            Err(e) => return Err(lane::Error::io("read", &path)(e).into()),
        };
        let state = match (exists, content.strip_prefix(HOOK_HEADER)) {
            (false, _) => HookState::Missing,
            (true, None) => HookState::Foreign,
            (true, Some(body)) if body.starts_with(b"nothing\n") => HookState::Installed,
            (true, Some(_)) => HookState::Chained,
        };
        Ok(PostCommitHook { path, state, backup, content })
    }

    /// Refuses any hooks folder outside the repository's git directory. A hook among the project's files
    /// would be part of everyone's commits, or be overwritten by the tool that created the folder. A folder
    /// outside the repository may serve all of the user's repositories.
    fn require_folder_in_git_dir(&self, repo: &Repo) -> Result<(), Error> {
        let folder = resolve_existing_prefix(self.path.parent().unwrap_or(&self.path));
        if folder.starts_with(resolve_existing_prefix(repo.common_dir())) {
            return Ok(());
        }
        match repo.main_worktree() {
            Some(top) if folder.starts_with(resolve_existing_prefix(top)) => {
                Err(Error::HooksInProjectFiles { folder })
            }
            _ => Err(Error::HooksOutsideRepository { folder }),
        }
    }

    /// Checks whether the hook can be installed.
    ///
    /// # Errors
    /// Fails as [`PostCommitHook::install`] does.
    pub fn check_installable(&self, repo: &Repo) -> Result<(), Error> {
        self.require_folder_in_git_dir(repo)?;
        let is_backup_taken = self.backup.symlink_metadata().is_ok() && !self.is_backup_same_file();
        match self.state == HookState::Foreign && is_backup_taken {
            true => Err(Error::HookBackupExists { path: self.backup.clone() }),
            false => Ok(()),
        }
    }

    /// Returns the path of the backup that an interrupted installation left; none otherwise. git-proq was
    /// then killed between linking the backup and installing its own hook.
    pub fn unfinished_backup(&self) -> Option<&Path> {
        (self.state == HookState::Foreign && self.is_backup_same_file()).then_some(self.backup.as_path())
    }

    fn is_backup_same_file(&self) -> bool {
        let file_id = |path: &Path| path.symlink_metadata().map(|meta| (meta.dev(), meta.ino())).ok();
        file_id(&self.path).is_some() && file_id(&self.path) == file_id(&self.backup)
    }

    /// Installs the hook, which runs git-proq. An existing hook is saved next to it and runs after it. The
    /// file is replaced atomically, so that a hook exists at every moment.
    ///
    /// # Errors
    /// [`Error::HooksInProjectFiles`], [`Error::HooksOutsideRepository`], [`Error::HookBackupExists`], or
    /// when the folder cannot be written. Nothing was changed then.
    pub fn install(&self, project: &Project) -> Result<(), Error> {
        let program_path = project.git_proq_path()?;
        self.check_installable(&project.repo)?;
        let folder = self.path.parent().unwrap_or(&self.path);
        std::fs::create_dir_all(folder).map_err(lane::Error::io("create", folder))?;
        let backup_fingerprint = match self.state {
            HookState::Installed | HookState::Chained => return Ok(()),
            HookState::Missing => None,
            HookState::Foreign => {
                if !self.is_backup_same_file() {
                    std::fs::hard_link(&self.path, &self.backup)
                        .map_err(lane::Error::io("write", &self.backup))?;
                }
                Some(fingerprint(&project.repo, &self.backup))
            }
        };
        let temp_file = folder.join(format!(".{HOOK_NAME}.{}", new_id()));
        let written =
            create_executable(&temp_file, &hook_script(program_path, backup_fingerprint.as_deref()))
                .and_then(|()| match backup_fingerprint {
                    Some(_) => std::fs::rename(&temp_file, &self.path),
                    None => rename_no_replace(&temp_file, &self.path),
                });
        written.map_err(|e| {
            drop(std::fs::remove_file(&temp_file));
            if backup_fingerprint.is_some() {
                drop(std::fs::remove_file(&self.backup));
            }
            lane::Error::io("write", &self.path)(e).into()
        })
    }

    /// Checks whether the hook can be uninstalled.
    ///
    /// # Errors
    /// Fails as [`PostCommitHook::uninstall`] does.
    pub fn check_removable(&self, repo: &Repo) -> Result<(), Error> {
        let changed_error = |change| Err(Error::HookChanged { path: self.path.clone(), change });
        let body = match (self.state, self.content.strip_prefix(HOOK_HEADER)) {
            (HookState::Foreign, _) if self.is_backup_same_file() => return Ok(()),
            (HookState::Missing | HookState::Foreign, _) if self.backup.symlink_metadata().is_err() => {
                return Ok(());
            }
            (HookState::Installed | HookState::Chained, Some(body)) => body,
            _ => return changed_error("it is no longer the hook of git-proq"),
        };
        let mut lines = body.split(|b| *b == b'\n');
        let recorded = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let backup_fingerprint = (recorded != "nothing").then_some(recorded);
        let program_line = lines.next().and_then(|line| line.strip_prefix(b"# program: "));
        let program = program_line.and_then(|hex| git::RepoPath::from_text(&String::from_utf8_lossy(hex)));
        let expected =
            program.map(|path| hook_script(&path.to_fs_path(Path::new("")), backup_fingerprint.as_deref()));
        if expected.as_deref() != Some(self.content.as_slice()) {
            return changed_error("it was changed after it was installed");
        }
        match backup_fingerprint {
            Some(expected_backup) if fingerprint(repo, &self.backup) != expected_backup => {
                changed_error("the hook that it calls was changed after it was installed")
            }
            _ => Ok(()),
        }
    }

    /// Uninstalls the hook and restores the earlier hook, with its contents and file mode.
    ///
    /// # Errors
    /// [`Error::HookChanged`] when the hook or its backup was changed since the installation. Nothing was
    /// changed then.
    pub fn uninstall(&self, repo: &Repo) -> Result<(), Error> {
        self.check_removable(repo)?;
        let result = match self.state {
            HookState::Chained => std::fs::rename(&self.backup, &self.path),
            HookState::Installed => std::fs::remove_file(&self.path),
            HookState::Missing | HookState::Foreign => {
                self.unfinished_backup().map_or(Ok(()), std::fs::remove_file)
            }
        };
        Ok(result.map_err(lane::Error::io("write", &self.path))?)
    }
}

/// Returns the canonical path of a folder, of which only a part may exist.
fn resolve_existing_prefix(folder: &Path) -> PathBuf {
    match (folder.canonicalize(), folder.parent(), folder.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => resolve_existing_prefix(parent).join(name),
        _ => folder.to_owned(),
    }
}

/// Returns whether a file is the hook that [`PostCommitHook::install`] writes.
pub(super) fn is_proq_hook(hook: &Path) -> bool {
    std::fs::read(hook).is_ok_and(|text| text.starts_with(HOOK_HEADER))
}

/// Returns the blob id of a file's contents or link target, and its file mode; `gone` for a missing file.
fn fingerprint(repo: &Repo, path: &Path) -> String {
    let Ok(meta) = path.symlink_metadata() else { return "gone".to_owned() };
    let bytes = match meta.is_symlink() {
        true => std::fs::read_link(path).map(|to| to.as_os_str().as_bytes().to_vec()),
        false => std::fs::read(path),
    };
    let id = bytes.ok().and_then(|bytes| repo.blob_id(&bytes));
    let id = id.map(|id| id.to_string()).unwrap_or_default();
    format!("{id} {:o}", meta.permissions().mode())
}

/// Returns the hook's script. If the git-proq program no longer exists, the script still runs the earlier
/// hook.
fn hook_script(program_path: &Path, backup_fingerprint: Option<&str>) -> Vec<u8> {
    let name = git::RepoPath::new(program_path.as_os_str().as_bytes()).to_string();
    let program = explain::shell_quote_bytes(program_path.as_os_str().as_bytes());
    let mut out = HOOK_HEADER.to_vec();
    out.extend(format!("{}\n# program: {name}\n", backup_fingerprint.unwrap_or("nothing")).bytes());
    out.extend([b"[ ! -x ".as_slice(), &program, b" ] || ", &program, b" hooks run </dev/null\n"].concat());
    if backup_fingerprint.is_some() {
        out.extend(format!("before=$(dirname \"$0\")/{BACKUP_NAME}\n").bytes());
        out.extend(b"[ ! -x \"$before\" ] || exec \"$before\" \"$@\"\n");
    }
    out.extend(b"exit 0\n");
    out
}

fn create_executable(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(path)?;
    file.write_all(text)?;
    file.set_permissions(Permissions::from_mode(0o755))?;
    file.sync_all()
}
