//! Owns the settings of the event log and of what is told by it.

use super::{Key, Layers};

/// How much of the event log is kept: `event.rotate` and `event.keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// A file of this many bytes is full.
    pub(crate) size: u64,
    /// So many full files are kept.
    pub(crate) files: usize,
}

impl Room {
    /// As the layers say.
    pub(super) fn of(layers: &Layers) -> Room {
        let count = |name: &str| {
            Key::find(name).and_then(|key| layers.get(key).0.parse::<u64>().ok()).unwrap_or_default()
        };
        Room {
            size: count("event.rotate") * 1024,
            files: usize::try_from(count("event.keep")).unwrap_or(usize::MAX),
        }
    }
}

/// How notices of the desktop are shown: `notify.desktop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Desktop {
    /// Not at all.
    #[default]
    Off,
    /// By a program where there is one, else by the terminal if it is known to understand that.
    Auto,
    /// By `notify-send`, or what macOS has.
    NotifySend,
    /// By the terminal, with the sequence OSC 9.
    Osc9,
    /// By the terminal, with the sequence OSC 777.
    Osc777,
}

/// Who is told of events: `notify.*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Notify {
    /// Of which.
    pub(crate) events: Vec<String>,
    /// Rings the terminal.
    pub(crate) bell: bool,
    /// Sets its title.
    pub(crate) title: bool,
    /// Shows a notice.
    pub(crate) desktop: Desktop,
    /// A file of sound, or a line for the shell.
    pub(crate) sound: Option<String>,
    /// An address for the event in JSON.
    pub(crate) webhook: Option<String>,
    /// One for its message.
    pub(crate) slack: Option<String>,
}

impl Notify {
    /// As the layers say.
    pub(super) fn of(layers: &Layers) -> Notify {
        let text =
            |name: &str| Key::find(name).map(|key| layers.get(key).0.trim().to_owned()).unwrap_or_default();
        let some = |name: &str| Some(text(name)).filter(|text| !text.is_empty());
        Notify {
            events: text("notify.events")
                .split([' ', ','])
                .filter(|e| !e.is_empty())
                .map(str::to_owned)
                .collect(),
            bell: text("notify.bell") == "true",
            title: text("notify.title") == "true",
            desktop: match text("notify.desktop").as_str() {
                "auto" => Desktop::Auto,
                "notify-send" => Desktop::NotifySend,
                "osc9" => Desktop::Osc9,
                "osc777" => Desktop::Osc777,
                _ => Desktop::Off,
            },
            sound: some("notify.sound"),
            webhook: some("notify.webhook"),
            slack: some("notify.slack"),
        }
    }

    /// Whether anybody is to be told of an event of this name after which something is in this state: `NAME` stands for all of
    /// that name, `NAME:STATE` for those.
    pub(crate) fn wants(&self, event: &str, state: Option<&str>) -> bool {
        self.events.iter().any(|wanted| match wanted.split_once(':') {
            None => wanted == event,
            Some((name, wanted)) => name == event && state == Some(wanted),
        })
    }
}

/// An address without what is secret about it.
pub(crate) fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}/…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        assert_eq!(masked("https://hooks.example.com/services/T0/B0/xyz"), "https://hooks.example.com/…");
        assert_eq!(masked("https://user:pass@example.com:8443?token=1"), "https://example.com:8443/…");
        assert_eq!(masked(""), "");
    }
}
