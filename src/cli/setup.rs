//! Owns `git proq setup`: pages and completions, put where man and the shells look.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::{Done, Mistake, Session, complete, man};
use crate::explain::Exit;

/// Install the man pages and completions for you
///
/// git answers `git proq --help` with a man page; this puts the pages where man finds them, and completions where bash,
/// fish and zsh find theirs. Nothing outside your home folder is written.
///
/// Examples:
///     git proq setup --dry-run
///     git proq setup
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Setup {
    /// Say which files would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Serialize)]
struct Answer {
    files: Vec<PathBuf>,
    dry_run: bool,
}

pub(super) fn run(session: &Session, args: &Setup) -> Done {
    let home = std::env::home_dir().ok_or(Mistake::Missing {
        what: "there is no home folder to install to",
        example: "HOME=/home/me git proq setup",
    })?;
    let places = Places::of(&home);
    let mut files = Vec::new();
    for (name, text) in man::pages() {
        files.push((places.man.join(name), text));
    }
    for (shell, path) in places.completions() {
        files.push((path, complete::script(shell)));
    }
    for (path, text) in &files {
        if !args.dry_run {
            man::write(path, text.as_bytes())?;
        }
        if !session.ui.json {
            session.ui.answer(path.display().to_string());
        }
    }
    if session.ui.json {
        let files = files.into_iter().map(|(path, _)| path).collect();
        session.ui.object(Answer { files, dry_run: args.dry_run });
    } else if !args.dry_run {
        session.ui.hint("bash and fish find their files by themselves, in a new shell");
        session.ui.hint(format!(
            "zsh: put this before compinit in ~/.zshrc: fpath=({} $fpath)",
            places.zsh.display()
        ));
        session.ui.hint("elvish and PowerShell: see git proq completions --help");
        if !places.man_looks_there() {
            session.ui.hint(format!(
                "man does not look there by itself; put this in your shell's start-up file: export MANPATH=\"{}:\"",
                places.man.parent().unwrap_or(&places.man).display()
            ));
        }
    }
    Ok(Exit::Done)
}

/// Where things go for one user.
struct Places {
    man: PathBuf,
    data: PathBuf,
    config: PathBuf,
    zsh: PathBuf,
}

impl Places {
    fn of(home: &Path) -> Places {
        let xdg = |name: &str, fallback: &str| {
            let set = std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
            set.unwrap_or_else(|| home.join(fallback))
        };
        let data = xdg("XDG_DATA_HOME", ".local/share");
        Places {
            man: man_dir(std::env::current_exe().ok().as_deref(), home, &data),
            zsh: data.join("zsh/site-functions"),
            config: xdg("XDG_CONFIG_HOME", ".config"),
            data,
        }
    }

    /// Whether the pages are beside a folder of `PATH`, where man looks.
    fn man_looks_there(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut bins = std::env::split_paths(&path);
        bins.any(|bin| bin.parent().is_some_and(|root| self.man == root.join("share/man/man1")))
    }

    fn completions(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("bash", self.data.join("bash-completion/completions/git-proq")),
            // In `completions/` it would not be read before somebody completes `git-proq`, with the dash.
            ("fish", self.config.join("fish/conf.d/git-proq.fish")),
            ("zsh", self.zsh.join("_git-proq")),
        ]
    }
}

/// man looks beside each folder of `PATH`: beside the program when it lies in the user's own home, else in the user's
/// data folder.
fn man_dir(exe: Option<&Path>, home: &Path, data: &Path) -> PathBuf {
    let beside = exe.and_then(Path::parent).filter(|bin| bin.ends_with("bin") && bin.starts_with(home));
    match beside.and_then(Path::parent) {
        Some(root) => root.join("share/man/man1"),
        None => data.join("man/man1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lie_beside_a_program_of_ones_own_only() {
        let at = |exe: &str| man_dir(Some(Path::new(exe)), Path::new("/home/me"), Path::new("/home/me/data"));
        assert_eq!(at("/home/me/.cargo/bin/git-proq"), Path::new("/home/me/.cargo/share/man/man1"));
        assert_eq!(at("/usr/local/bin/git-proq"), Path::new("/home/me/data/man/man1"));
        assert_eq!(at("/home/me/src/target/debug/git-proq"), Path::new("/home/me/data/man/man1"));
    }
}
