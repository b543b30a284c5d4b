//! Notifications that need no terminal: desktop notices and sounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::config::choices::DesktopNotifier;
use proq_base::config::settings::NotifySettings;
use proq_base::process::find_executable;
use proq_store::Store;

use super::hook;
use super::hook::{Hook, HookContext};
use super::log::Event;
use super::sink::Sink;

/// Timeout for showing a notice or playing a sound.
const NOTIFIER_TIMEOUT: Duration = Duration::from_secs(30);

/// Programs that play a sound file, with their arguments before the file.
const SOUND_PLAYERS: &[(&str, &[&str])] = &[
    ("paplay", &[]),
    ("pw-play", &[]),
    ("afplay", &[]),
    ("ffplay", &["-nodisp", "-autoexit", "-loglevel", "quiet"]),
    ("aplay", &["-q"]),
];

/// Program that shows notices on desktops other than macOS.
const NOTIFY_SEND: &str = "notify-send";

/// Script that shows a notice on macOS: text and title are its arguments, never part of the script.
const OSASCRIPT_NOTICE: &str =
    "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

/// Sink that shows desktop notices and plays sounds.
pub(super) struct LocalNotifier {
    /// Settings for notifications.
    pub(super) notify: NotifySettings,
    /// Working folder of the notifier programs.
    pub(super) working_dir: PathBuf,
}

impl LocalNotifier {
    /// Returns whether the settings enable a notice or a sound.
    pub(super) fn is_enabled(notify: &NotifySettings) -> bool {
        notify.sound.is_some()
            || matches!(notify.desktop, DesktopNotifier::Auto | DesktopNotifier::NotifySend)
    }

    /// Returns the command that shows a notice for an event.
    fn notice_command(&self, event: &Event) -> Option<Hook> {
        let (title, text) = (notice_title(event), event.message.clone());
        if self.notify.desktop != DesktopNotifier::NotifySend
            && !has_desktop_notifier(&self.notify, &self.working_dir)
        {
            return None;
        }
        let (name, program) = self.find_notifier()?;
        if name == NOTIFY_SEND {
            // Escape the message, because notify-send would interpret markup.
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            return Some(Hook::Program(program, vec!["--".to_owned(), title, text]));
        }
        Some(Hook::Program(program, vec!["-e".to_owned(), OSASCRIPT_NOTICE.to_owned(), title, text]))
    }

    /// Returns the name and the path of the program that shows notices on this system.
    fn find_notifier(&self) -> Option<(&'static str, PathBuf)> {
        let locate = |name| Some((name, find_executable::find_executable(name, &self.working_dir).ok()?));
        [NOTIFY_SEND, "osascript"].into_iter().find_map(locate)
    }

    /// Returns the command that plays the sound.
    fn sound_command(&self) -> Option<Hook> {
        let sound = self.notify.sound.as_ref()?;
        let file = match (sound.strip_prefix("~/"), std::env::home_dir()) {
            (Some(relative), Some(home)) => home.join(relative),
            _ => PathBuf::from(sound),
        };
        if !file.is_file() {
            return Some(Hook::Shell(sound.into()));
        }
        let player = |(name, args): &(&str, &[&str])| {
            let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
            args.push(file.display().to_string());
            Some(Hook::Program(find_executable::find_executable(name, &self.working_dir).ok()?, args))
        };
        SOUND_PLAYERS.iter().find_map(player)
    }
}

impl Sink for LocalNotifier {
    fn name(&self) -> &'static str {
        "notify"
    }

    fn deliver(&self, store: &Store, event: &Event) {
        if !self.notify.notifies_about(&event.name.to_text(), event.state.as_deref()) {
            return;
        }
        let event_label = format!("{} {}", event.n, event.name.to_text());
        let context = HookContext::for_event(store, event, &self.working_dir);
        for (channel, command) in [("desktop", self.notice_command(event)), ("sound", self.sound_command())] {
            let Some(program) = command else {
                let is_requested = if channel == "sound" {
                    self.notify.sound.is_some()
                } else {
                    self.notify.desktop == DesktopNotifier::NotifySend
                };
                if is_requested {
                    hook::log(store, &event_label, channel, "no program for it is installed", "");
                }
                continue;
            };
            let result = hook::run(&program, &context, NOTIFIER_TIMEOUT, &|| false);
            hook::log(store, &event_label, channel, &result.exit_text(), result.output());
        }
    }
}

/// Returns the settings that need a notice or sound program that is not installed, each with the names of
/// suitable programs.
pub(crate) fn settings_without_program(notify: &NotifySettings, home: &Path) -> Vec<(&'static str, String)> {
    let notifier = LocalNotifier { notify: notify.clone(), working_dir: home.to_owned() };
    let mut out = Vec::new();
    if notify.desktop == DesktopNotifier::NotifySend && notifier.find_notifier().is_none() {
        out.push(("notify.desktop", "notify-send or osascript".to_owned()));
    }
    if notify.sound.is_some() && notifier.sound_command().is_none() {
        let players: Vec<&str> = SOUND_PLAYERS.iter().map(|(name, _)| *name).collect();
        out.push(("notify.sound", format!("one of {}", players.join(", "))));
    }
    out
}

/// Returns the title of a notice.
pub(super) fn notice_title(event: &Event) -> String {
    event.lane.as_ref().map_or_else(|| "git proq".to_owned(), |lane| format!("git proq: {lane}"))
}

/// Returns whether `auto` selects a desktop notifier instead of the terminal: the program exists, and a
/// desktop is running.
pub(super) fn has_desktop_notifier(notify: &NotifySettings, dir: &Path) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"].into_iter().any(is_set);
    notify.desktop == DesktopNotifier::Auto
        && (has_display && find_executable::find_executable(NOTIFY_SEND, dir).is_ok()
            || find_executable::find_executable("osascript", dir).is_ok())
}
