//! What git knows about editing a commit message: the user's editor, and comments in the text.

use crate::{Error, Repo};

impl Repo {
    /// Returns the command line of the user's editor, which a shell must read: that of `GIT_EDITOR`,
    /// `core.editor`, `VISUAL` or `EDITOR`, or else git's default.
    ///
    /// # Errors
    /// Fails if git finds no editor for this terminal.
    pub fn editor_command(&self) -> Result<String, Error> {
        Ok(self.git().args(["var", "GIT_EDITOR"]).run()?.trimmed_stdout())
    }

    /// Returns a text as comment lines of a commit message.
    ///
    /// # Errors
    /// Fails if git fails.
    pub fn comment_lines(&self, text: &str) -> Result<String, Error> {
        self.strip_space("--comment-lines", text)
    }

    /// Returns a commit message without comment lines and needless empty lines; empty if nothing is left.
    ///
    /// # Errors
    /// Fails if git fails.
    pub fn without_comments(&self, text: &str) -> Result<String, Error> {
        self.strip_space("--strip-comments", text)
    }

    fn strip_space(&self, option: &str, text: &str) -> Result<String, Error> {
        let out = self.git().args(["stripspace", option]).input(text).run()?;
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }
}
