//! Messages from the library while an operation runs; the command line decides how to display them.

use std::rc::Rc;

/// A message from a running operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A problem that does not stop the operation.
    Warning(String),
    /// A noticeable wait, with what the command waits for.
    Waiting(String),
    /// A completed step.
    StepDone(String),
    /// A detail about how a step was done, for verbose output.
    Detail(String),
    /// Current activity, replacing the previous message of this kind; empty when it is finished.
    Progress(String),
}

/// Receiver of messages. Clones share the same callback.
#[derive(Clone)]
pub struct Listener(Rc<dyn Fn(&Note)>);

impl Listener {
    /// Creates a listener that calls `callback` for every message.
    pub fn new(callback: impl Fn(&Note) + 'static) -> Self {
        Listener(Rc::new(callback))
    }

    /// Creates a listener that discards every message.
    pub fn silent() -> Self {
        Listener::new(|_| {})
    }

    /// Reports a problem that does not stop the operation.
    pub fn warn(&self, text: impl Into<String>) {
        (self.0)(&Note::Warning(text.into()));
    }

    /// Reports what the command waits for.
    pub fn waiting(&self, text: impl Into<String>) {
        (self.0)(&Note::Waiting(text.into()));
    }

    /// Reports the current activity; an empty text means that it is finished.
    pub fn progress(&self, text: impl Into<String>) {
        (self.0)(&Note::Progress(text.into()));
    }

    /// Reports how a step was done, for verbose output.
    pub fn detail(&self, text: impl Into<String>) {
        (self.0)(&Note::Detail(text.into()));
    }

    /// Reports that a step was completed.
    pub fn step_done(&self, text: impl Into<String>) {
        (self.0)(&Note::StepDone(text.into()));
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}
