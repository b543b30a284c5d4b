//! Test repositories: each in a temporary folder, isolated from the user's settings.

use std::path::PathBuf;
use std::process::Command;

/// Temporary folder with an empty repository `repo`, removed on drop.
pub struct TestRepo {
    _dir: tempfile::TempDir,
    /// Canonical path of the folder.
    pub parent_dir: PathBuf,
}

impl TestRepo {
    /// Creates an empty repository in a temporary folder.
    pub fn new() -> TestRepo {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let test_repo = TestRepo { _dir: dir, parent_dir: top };
        test_repo.run_script(".", "git init -q -b main repo");
        test_repo
    }

    /// Runs a shell script in the folder `dir` below the top and returns its output without trailing
    /// whitespace.
    pub fn run_script(&self, dir: &str, script: &str) -> String {
        let mut sh = Command::new("sh");
        sh.args(["-ec", script]).current_dir(self.parent_dir.join(dir)).env("HOME", &self.parent_dir);
        for (name, value) in [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")] {
            sh.env(name, value);
        }
        for role in ["AUTHOR", "COMMITTER"] {
            sh.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@b");
        }
        let out = sh.output().unwrap();
        assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }
}
