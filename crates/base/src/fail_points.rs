//! Fail points for tests: named points at which this program crashes at once, without recovery, or stops
//! while other processes continue. Also whether git must do everything that could be done in process. Release
//! builds have none.

/// Kills this process if `PROQ_TEST_DIE_AT` contains `name`, or `name:N` at the N-th hit. Stops it if
/// `PROQ_TEST_STAND_AT` does, until it receives CONT. Each variable may name multiple points, separated by
/// commas.
pub fn hit(name: &str) {
    use rustix::process::Signal;

    static KILL_POINTS: FailPoints = FailPoints::from_variable("PROQ_TEST_DIE_AT");
    static STOP_POINTS: FailPoints = FailPoints::from_variable("PROQ_TEST_STAND_AT");
    // Not an attribute: test builds then compile all of the code.
    if !cfg!(debug_assertions) {
        return;
    }
    for (points, signal) in [(&KILL_POINTS, Signal::KILL), (&STOP_POINTS, Signal::STOP)] {
        if points.is_due(name) {
            let _sent = rustix::process::kill_process(rustix::process::getpid(), signal);
        }
    }
}

/// Returns whether `PROQ_TEST_BY_GIT` is set. It forces git's own commands wherever git-proq can also inspect
/// or save a worktree in process.
pub fn is_git_forced() -> bool {
    static FORCED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    cfg!(debug_assertions) && *FORCED.get_or_init(|| std::env::var_os("PROQ_TEST_BY_GIT").is_some())
}

/// Fail points that an environment variable names.
struct FailPoints {
    /// Name of the environment variable.
    variable: &'static str,
    /// Points that the variable names, parsed at the first hit of any point.
    points: std::sync::OnceLock<Vec<FailPoint>>,
}

/// A named point, and at which of its hits it takes effect.
struct FailPoint {
    name: String,
    /// Number of the hit, from 1, at which the point takes effect.
    due_hit: usize,
    /// Number of hits so far.
    hits: std::sync::atomic::AtomicUsize,
}

impl FailPoints {
    const fn from_variable(variable: &'static str) -> FailPoints {
        FailPoints { variable, points: std::sync::OnceLock::new() }
    }

    /// Counts a hit of the named point, and returns whether the point takes effect at it.
    fn is_due(&self, name: &str) -> bool {
        let points = self.points.get_or_init(|| {
            let text = std::env::var(self.variable).unwrap_or_default();
            text.split(',').filter_map(FailPoint::parse).collect()
        });
        points.iter().filter(|point| point.name == name).any(FailPoint::register_hit)
    }
}

impl FailPoint {
    /// Parses `NAME` or `NAME:N`; none where N is no number.
    fn parse(text: &str) -> Option<FailPoint> {
        let (name, due_hit) = text.split_once(':').unwrap_or((text, "1"));
        Some(FailPoint { name: name.to_owned(), due_hit: due_hit.parse().ok()?, hits: 0.into() })
    }

    /// Counts a hit of this point, and returns whether the point takes effect at it.
    fn register_hit(&self) -> bool {
        self.hits.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 == self.due_hit
    }
}
