//! Error of a use case, of whatever kind.

use proq_base::explain::{Exit, Explain};

/// Error of a use case, with hints and an exit code.
#[derive(Debug)]
pub struct Error(pub Box<dyn Explain>);

impl Error {
    /// Returns commands that help, most useful first.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        self.0.hints().iter().map(ToString::to_string).collect()
    }

    /// Returns how the command line would end.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.0.exit()
    }

    /// Returns the exit code that the command line would end with.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.exit().code()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl<E: Explain + 'static> From<E> for Error {
    fn from(e: E) -> Error {
        Error(Box::new(e))
    }
}
