//! Owns the repositories that this folder's tests make: each in a folder of its own, out of reach of anybody's settings.

use std::path::PathBuf;
use std::process::Command;

/// A folder with an empty repository `repo` in it. It goes with the value.
pub(super) struct Place {
    _dir: tempfile::TempDir,
    /// The folder, without links in its path.
    pub(super) top: PathBuf,
}

impl Place {
    pub(super) fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let place = Place { _dir: dir, top };
        place.sh(".", "git init -q -b main repo");
        place
    }

    /// What a script writes that runs in a folder below; the end of its last line is left out.
    pub(super) fn sh(&self, dir: &str, script: &str) -> String {
        let mut sh = Command::new("sh");
        sh.args(["-ec", script]).current_dir(self.top.join(dir)).env("HOME", &self.top);
        for (name, value) in [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")] {
            sh.env(name, value);
        }
        for who in ["AUTHOR", "COMMITTER"] {
            sh.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        let out = sh.output().unwrap();
        assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }
}
