//! Owns the named points at which a test ends this program, as a crash would: at once, with nothing put right. A program
//! that was built for use has none.

/// Dies here if `PROQ_TEST_DIE_AT` says `name`, or `name:N` and this is the N-th time.
#[cfg(debug_assertions)]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static WISH: OnceLock<Option<(String, usize)>> = OnceLock::new();
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let wish = WISH.get_or_init(|| {
        let text = std::env::var("PROQ_TEST_DIE_AT").ok()?;
        let (name, times) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), times.parse().ok()?))
    });
    let Some((wanted, times)) = wish else { return };
    if wanted == name && TIMES.fetch_add(1, Ordering::Relaxed) + 1 == *times {
        use rustix::process::{Signal, getpid, kill_process};
        let _dying = kill_process(getpid(), Signal::KILL);
    }
}

/// Nothing happens here.
#[cfg(not(debug_assertions))]
pub(crate) fn point(_name: &str) {}
