//! Owns what a program answered, in a form that is the same in every run.

/// Standard output, standard error and exit code, with what differs from run to run replaced.
#[must_use = "assert something about it"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; 128 + n for signal n.
    pub code: i32,
}

impl Output {
    /// Insists on success and returns standard output.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Insists on an exit code and returns both streams, standard error last.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The answer as JSON; insists on one object with `"schema": 1`.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let value: serde_json::Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr));
        assert_eq!(value["schema"], 1);
        value
    }

    /// Everything in one text, for an inline expectation.
    pub fn shown(&self) -> String {
        let mut out = self.stdout.clone();
        if !self.stderr.is_empty() {
            out.push_str("--- stderr\n");
            out.push_str(&self.stderr);
        }
        out.push_str(&format!("--- code {}\n", self.code));
        out
    }
}
