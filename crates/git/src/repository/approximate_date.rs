//! Dates as git's options take them: `2026-11-30`, `yesterday`, `3 hours ago`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{Error, Repo};

impl Repo {
    /// Returns the time that git means by a text, at the time `now`. Returns `None` for a text without a date.
    ///
    /// # Errors
    /// Fails if git cannot be run.
    pub fn parse_date(&self, text: &str, now: SystemTime) -> Result<Option<SystemTime>, Error> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let command = self.git_in(self.command_dir()).env("GIT_TEST_DATE_NOW", now.to_string());
        let out = command.args(["rev-parse", &format!("--since={text}")]).run()?;
        let seconds = out.trimmed_stdout().strip_prefix("--max-age=").and_then(|text| text.parse().ok());
        // git takes a text without a date for the present.
        let is_present = ["now", "today"].contains(&text.trim().to_lowercase().as_str());
        let seconds = seconds.filter(|seconds: &u64| is_present || *seconds != now);
        Ok(seconds.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::test_repo::TestRepo;

    #[test]
    fn dates_are_those_of_git_and_other_texts_are_none() {
        let fixture = TestRepo::new();
        let repo = Repo::discover(&fixture.parent_dir.join("repo")).unwrap();
        let now = UNIX_EPOCH + Duration::from_hours(24 * 20_000);
        let hours_ago = |text: &str| {
            let time = repo.parse_date(text, now).unwrap()?;
            Some(now.duration_since(time).unwrap().as_secs() / 3600)
        };
        for (text, hours) in [
            ("3 hours ago", Some(3)),
            ("yesterday", Some(24)),
            ("2.days.ago", Some(48)),
            ("now", Some(0)),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(hours_ago(text), hours, "{text}");
        }
        let midnight = UNIX_EPOCH + Duration::from_hours(24 * 19_000);
        assert_eq!(repo.parse_date("2022-01-08T00:00:00Z", now).unwrap(), Some(midnight));
    }
}
