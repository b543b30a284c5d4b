//! Settings of the event log and of notifications about its events.

use super::key::Key;
use super::layers::Layers;

/// Size limits of the event log, from `event.rotate` and `event.keep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLogLimits {
    /// Size in bytes at which a log file is full.
    pub max_file_size: u64,
    /// Number of full files that are kept.
    pub max_full_files: usize,
}

impl EventLogLimits {
    /// Creates the limits from the configuration layers.
    pub(super) fn from_layers(layers: &Layers) -> EventLogLimits {
        let count = |name: &str| {
            Key::find(name).and_then(|key| layers.get(key).0.parse::<u64>().ok()).unwrap_or_default()
        };
        EventLogLimits {
            max_file_size: count("event.rotate") * 1024,
            max_full_files: usize::try_from(count("event.keep")).unwrap_or(usize::MAX),
        }
    }
}

/// Method of showing desktop notifications: setting `notify.desktop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DesktopNotifier {
    /// No desktop notifications.
    #[default]
    Off,
    /// A notification program if one is installed, else the terminal if it is known to support notifications.
    Auto,
    /// `notify-send`, or the equivalent program of macOS.
    NotifySend,
    /// The terminal, with the escape sequence OSC 9.
    Osc9,
    /// The terminal, with the escape sequence OSC 777.
    Osc777,
}

/// Settings of notifications about events: `notify.*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifySettings {
    /// Event filters: `NAME` or `NAME:STATE`.
    pub events: Vec<String>,
    /// Whether to ring the terminal's bell.
    pub bell: bool,
    /// Whether to set the terminal's title.
    pub title: bool,
    /// How to show a desktop notification.
    pub desktop: DesktopNotifier,
    /// Path of a sound file, or a shell command line that plays one.
    pub sound: Option<String>,
    /// URL to which the event is posted as JSON.
    pub webhook: Option<String>,
    /// URL to which the event's message is posted in Slack's format.
    pub slack: Option<String>,
}

impl NotifySettings {
    /// Creates the settings from the configuration layers.
    pub(super) fn from_layers(layers: &Layers) -> NotifySettings {
        let value_of =
            |name: &str| Key::find(name).map(|key| layers.get(key).0.trim().to_owned()).unwrap_or_default();
        let non_empty = |name: &str| Some(value_of(name)).filter(|text| !text.is_empty());
        NotifySettings {
            events: value_of("notify.events")
                .split([' ', ','])
                .filter(|e| !e.is_empty())
                .map(str::to_owned)
                .collect(),
            bell: value_of("notify.bell") == "true",
            title: value_of("notify.title") == "true",
            desktop: match value_of("notify.desktop").as_str() {
                "auto" => DesktopNotifier::Auto,
                "notify-send" => DesktopNotifier::NotifySend,
                "osc9" => DesktopNotifier::Osc9,
                "osc777" => DesktopNotifier::Osc777,
                _ => DesktopNotifier::Off,
            },
            sound: non_empty("notify.sound"),
            webhook: non_empty("notify.webhook"),
            slack: non_empty("notify.slack"),
        }
    }

    /// Returns whether the filters include an event of this name after which its subject is in `state`. A
    /// filter `NAME` matches every event of that name; `NAME:STATE` matches only events with that state.
    pub fn includes(&self, event: &str, state: Option<&str>) -> bool {
        self.events.iter().any(|filter| match filter.split_once(':') {
            None => filter == event,
            Some((name, filter_state)) => name == event && state == Some(filter_state),
        })
    }
}
