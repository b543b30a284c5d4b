//! Owns whose name a new commit carries, where that is plain to read; else git decides, which knows more ways.

use std::sync::OnceLock;

use gix::actor::{Signature, SignatureRef};
use gix::bstr::{BString, ByteSlice};
use jiff::tz::TimeZone;

use super::Repo;

/// What git strips from both ends of a name.
const CRUD: &[u8] = b".,:;<>\"\\'";

/// Somebody, without a time.
struct Person {
    name: BString,
    email: BString,
}

impl Person {
    fn as_ref(&self) -> SignatureRef<'_> {
        SignatureRef { name: self.name.as_bstr(), email: self.email.as_bstr(), time: "" }
    }
}

impl Repo {
    /// Author and committer, as `git commit-tree` would take them now. None where only git can tell: nobody is
    /// configured, a name would have to be cleaned, a date or an encoding is of a kind of its own.
    pub(super) fn people(&self) -> Option<(Signature, Signature)> {
        let (author, committer) = (self.person("author")?, self.person("committer")?);
        self.stamp(author.as_ref(), committer.as_ref())
    }

    /// The committer alone, as git would write it now. None in the same cases.
    pub(super) fn committer(&self) -> Option<Signature> {
        let committer = self.person("committer")?;
        self.stamp(committer.as_ref(), committer.as_ref()).map(|(_, committer)| committer)
    }

    /// The user, as an author is written: `Name <address>`. None when nobody is configured.
    pub(crate) fn user(&self) -> Option<String> {
        let author = self.person("author")?;
        Some(format!("{} <{}>", author.name, author.email))
    }

    /// The name and address that variables or settings give somebody in this role. The library's own answer comes with the
    /// time, for which it reads all names of time zones first.
    fn person(&self, role: &str) -> Option<Person> {
        let settings = self.gix.config_snapshot();
        let find = |what: &str| {
            let variable = format!("GIT_{role}_{what}").to_uppercase();
            let given = std::env::var_os(variable).map(|text| BString::from(text.into_encoded_bytes()));
            let set = |whose: &str| settings.string(format!("{whose}.{what}").as_str());
            let found = given.or_else(|| set(role)).or_else(|| set("user"));
            found.filter(|text| !text.is_empty())
        };
        Some(Person { name: find("name")?, email: find("email")? })
    }

    /// Both with this name and address, and the time that the user's own would have.
    pub(super) fn people_named(&self, name: &str, email: &str) -> Option<(Signature, Signature)> {
        let named = SignatureRef { name: name.into(), email: email.into(), time: "" };
        self.stamp(named, named)
    }

    fn stamp(&self, author: SignatureRef<'_>, committer: SignatureRef<'_>) -> Option<(Signature, Signature)> {
        let encoding = self.setting_text("i18n.commitEncoding");
        if encoding.is_some_and(|name| !name.eq_ignore_ascii_case("utf-8")) {
            return None;
        }
        let sign = |who: SignatureRef<'_>, variable| {
            let plain = is_plain(who.name) && is_plain(who.email);
            let time = time(variable)?;
            plain.then(|| Signature { name: who.name.to_owned(), email: who.email.to_owned(), time })
        };
        Some((sign(author, "GIT_AUTHOR_DATE")?, sign(committer, "GIT_COMMITTER_DATE")?))
    }
}

/// Now, or what the variable says.
fn time(variable: &str) -> Option<gix::date::Time> {
    match std::env::var_os(variable) {
        None => Some(of_a_commit(here_and_now().unwrap_or_else(gix::date::Time::now_local_or_utc))),
        Some(text) => gix::date::parse(text.to_str()?, None).ok(),
    }
}

/// A time for a commit. Git has none before 1970: `git fsck` calls a commit of then broken.
fn of_a_commit(now: gix::date::Time) -> gix::date::Time {
    gix::date::Time { seconds: now.seconds.max(0), ..now }
}

/// Now, in the time zone of the machine. None where a variable names another, or no file says which it is.
fn here_and_now() -> Option<gix::date::Time> {
    static ZONE: OnceLock<Option<TimeZone>> = OnceLock::new();
    if std::env::var_os("TZ").is_some() {
        return None;
    }
    let read = || TimeZone::tzif("", &std::fs::read("/etc/localtime").ok()?).ok();
    let zone = ZONE.get_or_init(read).as_ref()?;
    let now = jiff::Timestamp::now();
    Some(gix::date::Time { seconds: now.as_second(), offset: zone.to_offset(now).seconds() })
}

/// Whether git would take a name as it is.
fn is_plain(text: &[u8]) -> bool {
    let crud = |byte: Option<&u8>| byte.is_none_or(|b| *b <= b' ' || CRUD.contains(b));
    let bad = |b: &u8| b"<>\n\0".contains(b);
    !crud(text.first()) && !crud(text.last()) && !text.iter().any(bad) && std::str::from_utf8(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{here_and_now, is_plain, of_a_commit};

    #[test]
    fn the_machines_time_zone_is_the_one_that_git_would_take() {
        let ours = here_and_now();
        let theirs = std::process::Command::new("date").arg("+%z").output().unwrap().stdout;
        let theirs: i32 = String::from_utf8(theirs).unwrap().trim().parse().unwrap();
        let seconds = theirs / 100 * 3600 + theirs % 100 * 60;
        assert!(ours.is_none_or(|time| time.offset == seconds), "{ours:?} and {seconds}");
    }

    #[test]
    fn a_clock_before_1970_makes_no_commit_that_is_broken_for_git() {
        let at = |seconds| of_a_commit(gix::date::Time { seconds, offset: -3600 }).seconds;
        assert_eq!([at(-86_400), at(0), at(1_700_000_000)], [0, 0, 1_700_000_000]);
    }

    #[test]
    fn names_that_git_would_clean_are_left_to_git() {
        for name in ["Ann Author", "a@b.c", "Øre", "J. R. Doe", "O'Neil"] {
            assert!(is_plain(name.as_bytes()), "{name}");
        }
        for name in ["", " ", "Ann ", "Ann.", "\"Ann\"", "A<b", "A\nB", "'x"] {
            assert!(!is_plain(name.as_bytes()), "{name}");
        }
        assert!(!is_plain(b"\xff"));
    }
}
