//! Owns telling people of events where no terminal is needed: notices of the desktop, and sounds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Event;
use super::dispatch::Sink;
use super::hook::{self, About, Hook};
use crate::config::{Desktop, Notify};
use crate::process;
use crate::store::Store;

/// How long showing a notice or playing a sound may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Programs that play a file of sound, with what they are told beside it.
const PLAYERS: &[(&str, &[&str])] = &[
    ("paplay", &[]),
    ("pw-play", &[]),
    ("afplay", &[]),
    ("ffplay", &["-nodisp", "-autoexit", "-loglevel", "quiet"]),
    ("aplay", &["-q"]),
];

/// What shows a notice on macOS: text and title are its arguments, never part of the script.
const SCRIPT: &str =
    "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

/// The desktop and the loudspeaker.
pub(super) struct Local {
    /// What is wanted.
    pub(super) notify: Notify,
    /// Where their programs run.
    pub(super) home: PathBuf,
}

impl Local {
    /// Whether there is anything to do for it.
    pub(super) fn is_on(notify: &Notify) -> bool {
        notify.sound.is_some() || matches!(notify.desktop, Desktop::Auto | Desktop::NotifySend)
    }

    /// What shows an event.
    fn notice(&self, event: &Event) -> Option<Hook> {
        let (title, text) = (title(event), event.message.clone());
        if self.notify.desktop == Desktop::NotifySend || finds_desktop(&self.notify, &self.home) {
            if let Ok(program) = process::find("notify-send", &self.home) {
                // What looks like markup is text.
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                return Some(Hook::Program(program, vec!["--".to_owned(), title, text]));
            }
            let program = process::find("osascript", &self.home).ok()?;
            return Some(Hook::Program(program, vec!["-e".to_owned(), SCRIPT.to_owned(), title, text]));
        }
        None
    }

    /// What makes the sound.
    fn sound(&self) -> Option<Hook> {
        let sound = self.notify.sound.as_ref()?;
        let file = match (sound.strip_prefix("~/"), std::env::home_dir()) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(sound),
        };
        if !file.is_file() {
            return Some(Hook::Line(sound.into()));
        }
        let player = |(name, args): &(&str, &[&str])| {
            let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
            args.push(file.display().to_string());
            Some(Hook::Program(process::find(name, &self.home).ok()?, args))
        };
        PLAYERS.iter().find_map(player)
    }
}

impl Sink for Local {
    fn name(&self) -> &'static str {
        "notify"
    }

    fn take(&self, store: &Store, event: &Event) {
        if !self.notify.wants(&event.name.text(), event.state.as_deref()) {
            return;
        }
        let at = format!("{} {}", event.n, event.name.text());
        let about = About::event(store, event, &self.home);
        for (what, found) in [("desktop", self.notice(event)), ("sound", self.sound())] {
            let Some(program) = found else {
                let asked = if what == "sound" {
                    self.notify.sound.is_some()
                } else {
                    self.notify.desktop == Desktop::NotifySend
                };
                if asked {
                    hook::log(store, &at, what, "no program for it was found", "");
                }
                continue;
            };
            let ran = hook::run(&program, &about, LIMIT, &|| false);
            hook::log(store, &at, what, &ran.end(), ran.words());
        }
    }
}

/// The title of a notice.
pub(super) fn title(event: &Event) -> String {
    event.lane.as_ref().map_or_else(|| "git proq".to_owned(), |lane| format!("git proq: {lane}"))
}

/// Whether `auto` means a program that shows notices, rather than the terminal: there is one, and a desktop to show them on.
pub(super) fn finds_desktop(notify: &Notify, dir: &Path) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"].into_iter().any(set);
    notify.desktop == Desktop::Auto
        && (desktop && process::find("notify-send", dir).is_ok() || process::find("osascript", dir).is_ok())
}
