//! Spans: what this process does and how long it takes, for a person to read. The last finished ones are kept
//! in memory, and a subscriber of `tracing`, where one is installed, gets all of them.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tracing::span::EnteredSpan;

/// Number of finished spans that are kept. Their text fits into [`MAX_TRACE_BYTES`].
const RING_SPANS: usize = 512;

/// Maximum length of a span's name, in bytes. The rest is left out.
const MAX_NAME_BYTES: usize = 48;

/// Maximum length of a trace, in bytes: that of its first line and of all kept spans.
pub const MAX_TRACE_BYTES: usize = 64 * 1024;

/// Maximum depth by which a span is indented.
const MAX_INDENT: u8 = 12;

/// Kind of a span: the command, an operation, a step of one, a git command, or the wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Command of the program.
    Command,
    /// Operation, from its begin to its end.
    Operation,
    /// Step of an operation.
    Step,
    /// Git command.
    Git,
    /// Wait for a lock that another process holds.
    Lock,
}

/// Span that has begun and ends when this value is dropped. Its name never holds what a user or an agent wrote:
/// no prompt, no argument and no value of the environment.
#[derive(Debug)]
#[must_use]
pub struct Span {
    record: SpanRecord,
    begin: Instant,
    has_failed: Cell<bool>,
    _entered: EnteredSpan,
}

/// One span as it is kept in memory.
#[derive(Debug, Clone, Copy)]
struct SpanRecord {
    kind: SpanKind,
    name: [u8; MAX_NAME_BYTES],
    name_len: u8,
    /// Number of the spans around this one in its thread.
    depth: u8,
    /// Whether what the span measures failed.
    has_failed: bool,
    /// Thread that the span began in, if an operation was running there; otherwise zero.
    owner: u32,
    /// Time from the first span of this process to the begin, in microseconds.
    begin_micros: u64,
    /// Time from begin to end, in microseconds.
    micros: u64,
}

/// The last finished spans of this process.
struct Ring {
    records: [SpanRecord; RING_SPANS],
    /// Number of all spans that were finished.
    finished: usize,
}

static RING: Mutex<Ring> = Mutex::new(Ring { records: [SpanRecord::EMPTY; RING_SPANS], finished: 0 });

/// Begin of the first span of this process.
static FIRST_BEGIN: OnceLock<Instant> = OnceLock::new();

/// Number of threads that have run an operation.
static OWNERS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Number of the spans of this thread that have begun and not ended.
    static DEPTH: Cell<u8> = const { Cell::new(0) };
    /// Number of this thread; zero before its first operation.
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// Number of the operations of this thread that have begun and not ended.
    static OPERATIONS: Cell<u32> = const { Cell::new(0) };
}

impl SpanKind {
    /// Returns the word for this kind, which is also its target in filters.
    fn word(self) -> &'static str {
        match self {
            SpanKind::Command => "command",
            SpanKind::Operation => "operation",
            SpanKind::Step => "step",
            SpanKind::Git => "git",
            SpanKind::Lock => "lock",
        }
    }

    /// Begins the span for a subscriber; does nothing where none is installed.
    fn enter(self, name: &str) -> EnteredSpan {
        match self {
            SpanKind::Command => tracing::info_span!(target: "command", "command", %name),
            SpanKind::Operation => tracing::info_span!(target: "operation", "operation", %name),
            SpanKind::Step => tracing::info_span!(target: "step", "step", %name),
            SpanKind::Git => tracing::debug_span!(target: "git", "git", %name),
            SpanKind::Lock => tracing::debug_span!(target: "lock", "lock", %name),
        }
        .entered()
    }
}

impl Span {
    /// Begins a span. `name` is a word of this program, or the name of a git command or of a lock.
    pub fn begin(kind: SpanKind, name: &str) -> Span {
        let begin = Instant::now();
        let first = *FIRST_BEGIN.get_or_init(|| begin);
        if kind == SpanKind::Operation {
            if THREAD.get() == 0 {
                THREAD.set(OWNERS.fetch_add(1, Ordering::Relaxed) + 1);
            }
            OPERATIONS.set(OPERATIONS.get() + 1);
        }
        let mut record = SpanRecord {
            kind,
            depth: DEPTH.get(),
            owner: if OPERATIONS.get() == 0 { 0 } else { THREAD.get() },
            begin_micros: micros_between(first, begin),
            ..SpanRecord::EMPTY
        };
        let length = name.floor_char_boundary(MAX_NAME_BYTES);
        record.name[..length].copy_from_slice(&name.as_bytes()[..length]);
        record.name_len = u8::try_from(length).unwrap_or_default();
        DEPTH.set(record.depth.saturating_add(1));
        Span { record, begin, has_failed: Cell::new(false), _entered: kind.enter(name) }
    }

    /// Marks the span as failed.
    pub fn fail(&self) {
        self.has_failed.set(true);
    }

    /// Returns the span as it would be kept if it ended now.
    fn ended_record(&self) -> SpanRecord {
        let micros = micros_between(self.begin, Instant::now());
        SpanRecord { micros, has_failed: self.has_failed.get(), ..self.record }
    }

    /// Returns this span, which has not ended, and the finished spans since its begin as text, one a line in the
    /// order in which they began: milliseconds since its begin, milliseconds taken, kind and name. Those of
    /// other operations are left out.
    pub fn trace(&self) -> String {
        let ring = RING.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &ring.records[..ring.finished.min(RING_SPANS)];
        let is_own = |span: &&SpanRecord| {
            span.begin_micros >= self.record.begin_micros && [0, self.record.owner].contains(&span.owner)
        };
        let mut spans: Vec<SpanRecord> = kept.iter().filter(is_own).copied().collect();
        drop(ring);
        spans.push(self.ended_record());
        spans.sort_by_key(|span| (span.begin_micros, span.depth));
        let mut text = String::new();
        for span in spans {
            span.write_line(&self.record, &mut text);
        }
        text
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let record = self.ended_record();
        DEPTH.set(record.depth);
        if record.kind == SpanKind::Operation {
            OPERATIONS.set(OPERATIONS.get().saturating_sub(1));
        }
        let mut ring = RING.lock().unwrap_or_else(PoisonError::into_inner);
        let place = ring.finished % RING_SPANS;
        ring.records[place] = record;
        ring.finished += 1;
    }
}

impl SpanRecord {
    const EMPTY: SpanRecord = SpanRecord {
        kind: SpanKind::Command,
        name: [0; MAX_NAME_BYTES],
        name_len: 0,
        depth: 0,
        has_failed: false,
        owner: 0,
        begin_micros: 0,
        micros: 0,
    };

    /// Appends the span as one line, with times and indentation relative to `root`.
    fn write_line(&self, root: &SpanRecord, text: &mut String) {
        let millis = |micros: u64| std::time::Duration::from_micros(micros).as_secs_f64() * 1000.0;
        let indent = usize::from(self.depth.saturating_sub(root.depth).min(MAX_INDENT)) * 2;
        let (begin, taken) = (millis(self.begin_micros - root.begin_micros), millis(self.micros));
        let name = String::from_utf8_lossy(&self.name[..usize::from(self.name_len)]);
        let kind = self.kind.word();
        let end = if self.has_failed { " (failed)" } else { "" };
        let _ = writeln!(text, "{begin:>11.3} {taken:>11.3}  {:indent$}{kind} {name}{end}", "");
    }
}

/// Returns the time from `begin` to `end`, in microseconds.
fn micros_between(begin: Instant, end: Instant) -> u64 {
    u64::try_from(end.saturating_duration_since(begin).as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(kind: SpanKind, name: &str) {
        Span::begin(kind, name).fail();
    }

    #[test]
    fn trace_has_own_last_spans_in_order() {
        let earlier = Span::begin(SpanKind::Operation, "earlier");
        drop(Span::begin(SpanKind::Git, "status"));
        drop(earlier);
        let operation = Span::begin(SpanKind::Operation, "spawn");
        let step = Span::begin(SpanKind::Step, "MoveRef");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _other = Span::begin(SpanKind::Operation, "other");
                fail(SpanKind::Git, "gc");
            });
        });
        fail(SpanKind::Git, "update-ref");
        drop(step);
        let long = "é".repeat(MAX_NAME_BYTES);
        drop(Span::begin(SpanKind::Lock, &long));
        operation.fail();
        let cut = format!("  lock {}", &long[..MAX_NAME_BYTES]);
        let expected =
            ["operation spawn (failed)", "  step MoveRef", "    git update-ref (failed)", cut.as_str()];
        let plain_lines: Vec<String> =
            operation.trace().lines().map(|line| line.get(25..).unwrap_or_default().to_owned()).collect();
        assert_eq!(plain_lines, expected);
        for n in 0..2 * RING_SPANS {
            fail(SpanKind::Operation, &format!("{n:04}{long}"));
        }
        let trace = operation.trace();
        assert!(trace.len() <= MAX_TRACE_BYTES && !trace.contains("update-ref"), "{}", trace.len());
        assert_eq!(trace.lines().count(), RING_SPANS + 1);
        assert!(trace.contains(&format!("{:04}é", 2 * RING_SPANS - 1)));
    }
}
