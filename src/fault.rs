//! Owns the named points at which a test ends this program, as a crash would: at once, with nothing put right; or has it stand
//! still while others go on; and whether git is to do all that could be done in process. A program that was built for use has
//! none.

/// Dies here if `PROQ_TEST_DIE_AT` says `name`, or `name:N` and this is the N-th time. Stands still if `PROQ_TEST_STAND_AT` does,
/// until it is told to go on. Each may name several points, with commas in between.
pub(crate) fn point(name: &str) {
    use rustix::process::Signal;

    static DIE: Wish = Wish::of("PROQ_TEST_DIE_AT");
    static STAND: Wish = Wish::of("PROQ_TEST_STAND_AT");
    // Not left out by an attribute: what tests have compiled is then all that there is to compile.
    if !cfg!(debug_assertions) {
        return;
    }
    for (wish, signal) in [(&DIE, Signal::KILL), (&STAND, Signal::STOP)] {
        if wish.is_for(name) {
            let _sent = rustix::process::kill_process(rustix::process::getpid(), signal);
        }
    }
}

/// Whether `PROQ_TEST_BY_GIT` asks for git's way wherever there is another one to look into a worktree or to keep it.
pub(crate) fn is_by_git() -> bool {
    static SAID: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    cfg!(debug_assertions) && *SAID.get_or_init(|| std::env::var_os("PROQ_TEST_BY_GIT").is_some())
}

/// What a variable says.
struct Wish {
    variable: &'static str,
    places: std::sync::OnceLock<Vec<Place>>,
}

/// A point, and at which of the times that it is come to.
struct Place {
    name: String,
    time: usize,
    times: std::sync::atomic::AtomicUsize,
}

impl Wish {
    const fn of(variable: &'static str) -> Wish {
        Wish { variable, places: std::sync::OnceLock::new() }
    }

    fn is_for(&self, name: &str) -> bool {
        let places = self.places.get_or_init(|| {
            let text = std::env::var(self.variable).unwrap_or_default();
            text.split(',').filter_map(Place::parse).collect()
        });
        places.iter().filter(|place| place.name == name).any(Place::is_now)
    }
}

impl Place {
    fn parse(text: &str) -> Option<Place> {
        let (name, time) = text.split_once(':').unwrap_or((text, "1"));
        Some(Place { name: name.to_owned(), time: time.parse().ok()?, times: 0.into() })
    }

    fn is_now(&self) -> bool {
        self.times.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1 == self.time
    }
}
