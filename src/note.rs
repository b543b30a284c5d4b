//! Owns what the domain wants said while it works; the command line decides how it looks.

use std::rc::Rc;

/// One remark from inside an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Something the user should know but that stops nothing.
    Warning(String),
    /// A wait that has become noticeable, with whom it is for.
    Waiting(String),
    /// A step that was done.
    Step(String),
    /// How something was done, for who asks.
    Detail(String),
    /// What is being done right now, in place of the last remark of this kind; empty when that is over.
    Progress(String),
}

/// Where remarks go. Cloning shares the listener.
#[derive(Clone)]
pub struct Listener(Rc<dyn Fn(&Note)>);

impl Listener {
    /// A listener that calls `f` for every remark.
    pub fn new(f: impl Fn(&Note) + 'static) -> Self {
        Listener(Rc::new(f))
    }

    /// A listener that drops everything.
    pub fn silent() -> Self {
        Listener::new(|_| {})
    }

    /// Says something the user should know but that stops nothing.
    pub fn warn(&self, text: impl Into<String>) {
        (self.0)(&Note::Warning(text.into()));
    }

    /// Says whom the command waits for.
    pub fn waiting(&self, text: impl Into<String>) {
        (self.0)(&Note::Waiting(text.into()));
    }

    /// Says what is being done right now; nothing when it is over.
    pub fn progress(&self, text: impl Into<String>) {
        (self.0)(&Note::Progress(text.into()));
    }

    /// Says how something was done, to who asks.
    pub fn detail(&self, text: impl Into<String>) {
        (self.0)(&Note::Detail(text.into()));
    }

    /// Says that a step was done.
    pub fn step(&self, text: impl Into<String>) {
        (self.0)(&Note::Step(text.into()));
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}
