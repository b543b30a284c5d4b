//! Requests that an agent reports to have sent again: warnings during the run, and a reason for the outcome
//! when the run ended while retrying.

use proq_base::terminal_text;
use proq_stream::base::event::StreamEvent;

/// Counter of the requests of one run that were sent again.
#[derive(Debug, Default)]
pub(crate) struct RequestRetryTracker {
    /// Number of retries so far.
    retry_count: u64,
    /// Value of `count` at the last report.
    count_at_last_report: u64,
    /// Reason for the last retry, as long as the agent has produced no output since.
    pending_reason: Option<String>,
}

impl RequestRetryTracker {
    /// Updates the counter with an event of the run.
    pub fn observe(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Retry { reason: why, .. } => {
                self.retry_count += 1;
                self.pending_reason = Some(terminal_text::escape_line(why));
            }
            StreamEvent::Text { .. }
            | StreamEvent::Thinking { .. }
            | StreamEvent::ToolUse { .. }
            | StreamEvent::ToolResult { .. }
            | StreamEvent::Result { .. } => self.pending_reason = None,
            _ => {}
        }
    }

    /// Returns the report that is due now, if any: one for the first retry, and one each time the number has
    /// doubled, so that hours of retries do not flood the log.
    pub(crate) fn next_report(&mut self) -> Option<String> {
        let is_due = self.retry_count > 0
            && self.retry_count >= self.count_at_last_report * 2
            && self.retry_count > self.count_at_last_report;
        let reason = self.pending_reason.as_ref().filter(|_| is_due)?;
        self.count_at_last_report = self.retry_count;
        Some(format!("retries its request{}: {reason}", count_suffix(self.retry_count)))
    }

    /// Describes the retry that the run ended in; none when the agent has produced output since.
    pub fn describe(&self) -> Option<String> {
        let reason = self.pending_reason.as_ref()?;
        Some(format!("it was retrying its request{}: {reason}", count_suffix(self.retry_count)))
    }
}

fn count_suffix(count: u64) -> String {
    if count == 1 { String::new() } else { format!(", {count} times so far") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(reason: &str) -> StreamEvent {
        StreamEvent::Retry { attempt: None, max_attempts: None, delay: None, reason: reason.to_owned() }
    }

    #[test]
    fn reports_first_retry_and_each_doubling() {
        let mut retries = RequestRetryTracker::default();
        assert_eq!((retries.next_report(), retries.describe()), (None, None));
        let reports: Vec<Option<String>> = (1..=8)
            .map(|n| {
                retries.observe(&retry(&format!("status {n}\u{1b}[2J")));
                retries.next_report()
            })
            .collect();
        let numbers: Vec<usize> = (1..=8).filter(|n| reports[n - 1].is_some()).collect();
        assert_eq!(numbers, [1, 2, 4, 8]);
        let first = reports[0].as_deref().unwrap();
        assert!(first.starts_with("retries its request: status 1") && !first.contains('\u{1b}'), "{first}");
        assert!(reports[7].as_deref().unwrap().starts_with("retries its request, 8 times so far: status 8"));
        assert!(retries.describe().unwrap().starts_with("it was retrying its request, 8 times so far"));
        retries.observe(&StreamEvent::Text { text: "On it".to_owned(), parent_call: None });
        assert_eq!((retries.next_report(), retries.describe()), (None, None));
    }
}
