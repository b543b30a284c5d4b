//! Nested repositories with work that exists in no other place: git does not know of them where their folder
//! is ignored, and their commits are lost with the folder.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::index::File;
use gix::index::decode::Options;
use gix::index::entry::stat::Options as StatOptions;
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::fs::Metadata;

use crate::{Error, Repo};

/// Repository in a folder inside another worktree.
pub struct NestedRepo {
    /// Folder that contains the repository.
    pub folder: PathBuf,
    /// Git directory of the nested repository.
    pub git_dir: PathBuf,
    /// Top folder of the repository's working files; `None` for a bare repository.
    work_dir: Option<PathBuf>,
}

impl Repo {
    /// Returns the first repository below the worktree `top`, whose git directory is `admin`, that has
    /// unsaved work as defined by [`Repo::repo_with_unsaved_work`].
    pub fn find_repo_with_unsaved_work(&self, top: &Path, admin: &Path) -> Option<NestedRepo> {
        let mut folders = vec![top.to_owned()];
        while let Some(folder) = folders.pop() {
            let children: Vec<PathBuf> = std::fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            if folder != top
                && let Some(found) = self.repo_with_unsaved_work(&folder, admin)
            {
                return Some(found);
            }
            if !is_bare(&folder) {
                let is_folder = |path: &PathBuf| {
                    path.file_name() != Some(OsStr::new(".git"))
                        && path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
                };
                folders.extend(children.into_iter().filter(is_folder));
            }
        }
        None
    }

    /// Returns the repository in a folder of the worktree whose git directory is `admin`, if it has commits
    /// that none of its remotes has, or changes that none of its commits contains. A repository that cannot
    /// be read counts as having work. No program that its settings name is run.
    pub fn repo_with_unsaved_work(&self, folder: &Path, admin: &Path) -> Option<NestedRepo> {
        let nested = if is_bare(folder) {
            NestedRepo { folder: folder.to_owned(), git_dir: folder.to_owned(), work_dir: None }
        } else if folder.join(".git").symlink_metadata().is_ok() {
            NestedRepo::from_folder(folder, admin)
        } else {
            return None;
        };
        self.has_unsaved_work(&nested).unwrap_or(true).then_some(nested)
    }

    fn has_unsaved_work(&self, nested: &NestedRepo) -> Result<bool, Error> {
        let dir = nested.work_dir.as_ref().unwrap_or(&nested.git_dir);
        let git_command = || {
            let command = self.git_in(dir).env("GIT_DIR", &nested.git_dir).env("GIT_WORK_TREE", dir);
            // git would fetch a missing commit with a command from the nested repository's settings.
            let disabled_settings =
                ["protocol.allow=never", "core.fsmonitor=false", "core.hooksPath=/dev/null"];
            command
                .env("GIT_NO_LAZY_FETCH", "1")
                .args(disabled_settings.iter().flat_map(|setting| ["-c", setting]))
        };
        let has_output = |args: &[&str]| {
            Ok::<_, Error>(!git_command().args(args).accept_exit_codes(&[1]).run()?.stdout.is_empty())
        };
        // A linked worktree shares its commits, except those that only its HEAD reaches; a submodule of a
        // lane is a copy.
        let is_linked = nested.git_dir.join("commondir").is_file();
        let is_born = has_output(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
        let unpublished_args: &[&str] = if is_linked && is_born {
            &["rev-list", "--max-count=1", "HEAD", "--not", "--branches", "--tags", "--remotes"]
        } else {
            &[
                "rev-list",
                "--max-count=1",
                "--all",
                "--reflog",
                "--not",
                "--remotes",
                "--glob=refs/proq/start*",
            ]
        };
        // A clone of one tag has no other ref that records where its commits are from; a mirror has none.
        let is_shallow = nested.git_dir.join("shallow").is_file();
        let unpublished_args: Vec<&str> =
            unpublished_args.iter().copied().chain(is_shallow.then_some("--tags")).collect();
        if has_output(&["config", "--type=bool", "--get-regexp", r"^remote\..*\.mirror$", "^true$"])? {
            return Ok(false);
        }
        if (is_born || !is_linked) && has_output(&unpublished_args)? {
            return Ok(true);
        }
        let Some(work_dir) = &nested.work_dir else { return Ok(false) };
        let staged_args =
            if is_born { &["diff-index", "--cached", "--name-only", "HEAD"][..] } else { &["ls-files"] };
        let untracked_args =
            ["ls-files", "--others", "--exclude-standard", "--directory", "--no-empty-directory"];
        Ok(has_output(staged_args)?
            || has_stat_changes(self, &nested.git_dir, work_dir)
            || has_output(&untracked_args)?)
    }
}

impl NestedRepo {
    /// Returns the repository whose files are in `folder`. The git directory of a submodule may have moved to
    /// `admin` with the worktree around it.
    fn from_folder(folder: &Path, admin: &Path) -> NestedRepo {
        let dot_git = folder.join(".git");
        let work_dir = Some(folder.to_owned());
        let Ok(text) = proq_base::regular_file::read_store_file(&dot_git) else {
            return NestedRepo { folder: folder.to_owned(), git_dir: dot_git, work_dir };
        };
        let text = text.strip_prefix(b"gitdir: ").unwrap_or(&text);
        let named = folder.join(OsStr::from_bytes(text.trim_ascii_end()));
        let mut parts = named.components();
        let module_dir = parts
            .by_ref()
            .find(|part| part.as_os_str() == "modules")
            .map(|_| admin.join("modules").join(parts));
        let moved = module_dir.filter(|moved| !named.exists() && moved.join("HEAD").is_file());
        NestedRepo { folder: folder.to_owned(), git_dir: moved.unwrap_or(named), work_dir }
    }
}

/// Returns whether a folder is a bare repository.
fn is_bare(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).symlink_metadata().is_ok())
}

/// Returns whether the size or time of any file in a nested repository differs from its index entry. A
/// comparison of contents would make git run filters.
fn has_stat_changes(repo: &Repo, git_dir: &Path, work_dir: &Path) -> bool {
    let path = git_dir.join("index");
    if !path.exists() {
        return false;
    }
    let Ok(index) = File::at(&path, repo.gix.object_hash(), true, Options::default()) else { return true };
    let stat_options =
        StatOptions { trust_ctime: false, check_stat: false, use_nsec: true, use_stdev: false };
    index.entries().iter().any(|entry| {
        if entry.mode == Mode::COMMIT || entry.flags.contains(Flags::SKIP_WORKTREE) {
            return false;
        }
        let file = work_dir.join(OsStr::from_bytes(entry.path(&index)));
        let meta = Metadata::from_path_no_follow(&file).ok();
        let stat = meta.and_then(|meta| Stat::from_fs(&meta).ok());
        !stat.is_some_and(|stat| entry.stat.matches(&stat, stat_options))
    })
}
