//! Owns what an agent says of requests that it sends again by itself: events while its run lasts, and a reason where the run came to nothing.

use super::stream::Event;
use crate::harmless;

/// The requests of one run that were sent again.
#[derive(Debug, Default)]
pub(super) struct Retries {
    /// How many there were.
    count: u64,
    /// How many there were when that was last told.
    told: u64,
    /// Why the last one is sent again, as long as nothing has come of it.
    open: Option<String>,
}

impl Retries {
    /// Takes note of an event.
    pub(super) fn hears(&mut self, event: &Event) {
        match event {
            Event::Retry { why, .. } => {
                self.count += 1;
                self.open = Some(harmless::line(why));
            }
            Event::Text { .. }
            | Event::Thinking { .. }
            | Event::ToolUse { .. }
            | Event::ToolResult { .. }
            | Event::Result { .. } => self.open = None,
            _ => {}
        }
    }

    /// What is to be told now: of the first request, and each time that there were twice as many, so that one that is sent again for
    /// hours fills no log.
    pub(super) fn due(&mut self) -> Option<String> {
        let is_due = self.count > 0 && self.count >= self.told * 2 && self.count > self.told;
        let why = self.open.as_ref().filter(|_| is_due)?;
        self.told = self.count;
        Some(format!("sends its request again{}: {why}", times(self.count)))
    }

    /// What the run was at, if it was at nothing but that.
    pub(super) fn in_words(&self) -> Option<String> {
        let why = self.open.as_ref()?;
        Some(format!("it was sending its request again{}: {why}", times(self.count)))
    }
}

fn times(count: u64) -> String {
    if count == 1 { String::new() } else { format!(", {count} times so far") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry(why: &str) -> Event {
        Event::Retry { attempt: None, of: None, delay_ms: None, why: why.to_owned() }
    }

    #[test]
    fn the_first_one_is_told_and_then_when_there_were_twice_as_many() {
        let mut retries = Retries::default();
        assert_eq!((retries.due(), retries.in_words()), (None, None));
        let told: Vec<Option<String>> = (1..=8)
            .map(|n| {
                retries.hears(&retry(&format!("status {n}\u{1b}[2J")));
                retries.due()
            })
            .collect();
        let numbers: Vec<usize> = (1..=8).filter(|n| told[n - 1].is_some()).collect();
        assert_eq!(numbers, [1, 2, 4, 8]);
        let first = told[0].as_deref().unwrap();
        assert!(
            first.starts_with("sends its request again: status 1") && !first.contains('\u{1b}'),
            "{first}"
        );
        assert!(told[7].as_deref().unwrap().starts_with("sends its request again, 8 times so far: status 8"));
        assert!(retries.in_words().unwrap().starts_with("it was sending its request again, 8 times so far"));
        // Something has come of it.
        retries.hears(&Event::Text { text: "On it".to_owned(), parent: None });
        assert_eq!((retries.due(), retries.in_words()), (None, None));
    }
}
