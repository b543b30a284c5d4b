//! Output of a program, in a form that is the same in every run.

/// Standard output, standard error and exit code, with the parts that differ from run to run replaced.
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
    /// Asserts success and returns standard output.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Asserts an exit code and returns both streams, standard error last.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Parses standard output as JSON; asserts one object with `"schema": 1`.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let value: serde_json::Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr));
        assert_eq!(value["schema"], 1);
        value
    }

    /// Returns both streams and the exit code in one text, for an inline snapshot.
    pub fn to_text(&self) -> String {
        let mut out = self.stdout.clone();
        if !self.stderr.is_empty() {
            out.push_str("--- stderr\n");
            out.push_str(&self.stderr);
        }
        out.push_str(&format!("--- code {}\n", self.code));
        out
    }
}
