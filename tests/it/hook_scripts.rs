//! Owns the tests of the scripts of `hooks/` that are set as hooks, or ring a terminal.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::support::Sandbox;
use super::support::patience::Lines;
use super::user_hooks::{log, told};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(name)
}

/// Sets a script as the hook of an event.
fn set(sandbox: &Sandbox, event: &str, name: &str) {
    sandbox.git(&["config", &format!("proq.hook.{event}"), script(name).to_str().unwrap()]);
}

/// Puts a program on `PATH` that writes down its arguments and, if it is to, what it reads.
fn stub(sandbox: &Sandbox, name: &str, reads: bool) {
    let read = if reads { "printf '|<'; tr '\\n' ' '; printf '>'" } else { ":" };
    sandbox.program(name, &format!("{{ printf {name}; printf '|%s' \"$@\"; {read}; echo; }} >> $ROOT/told"));
}

#[test]
fn a_notice_names_the_lane_and_says_what_happened() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "notify-send", false);
    set(&sandbox, "run.ended", "desktop.sh");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "sh", "-c", "exit 3"]).fails(4);
    assert_eq!(told(&sandbox), "notify-send|--|git proq: bad|lane 'bad': failed (exit code 3)\n");
}

#[test]
fn a_sound_says_whether_things_went_well() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "paplay", false);
    sandbox.write_in(&sandbox.root(), "good.wav", "");
    sandbox.write_in(&sandbox.root(), "bad.wav", "");
    let line =
        format!("PROQ_SOUND=$ROOT/good.wav PROQ_SOUND_BAD=$ROOT/bad.wav '{}'", script("sound.sh").display());
    sandbox.git(&["config", "proq.hook.run.ended", &line]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "false"]).fails(4);
    assert_eq!(told(&sandbox), "paplay|[ROOT]/bad.wav\n");
    sandbox.lane_with("pay", "echo pay > pay.txt");
    assert_eq!(told(&sandbox), "paplay|[ROOT]/bad.wav\npaplay|[ROOT]/good.wav\n");
}

#[test]
fn an_event_is_posted_and_its_address_is_no_argument() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "curl", true);
    set(&sandbox, "lane.created", "webhook.sh");
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/webhook", "https://example.com/secret\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay"]).ok();
    let body = "{\"at\":\"2026-01-02T03:04:05Z\",\"event\":\"lane.created\",\"lane\":\"pay\",\"message\":\"lane 'pay' made from main\",\"n\":1,\"schema\":1,\"state\":\"idle\"}";
    let how = "--silent|--show-error|--fail|--max-time|10|--retry|2|--header|Content-Type: application/json";
    assert_eq!(
        told(&sandbox),
        format!(
            "curl|{how}|--data-binary|{body}|--output|/dev/null|--config|-|<url = \"https://example.com/secret\" >\n"
        )
    );
    assert!(!log(&sandbox).contains("example.com"), "{}", log(&sandbox));
}

#[test]
fn a_message_is_posted_as_slack_expects_it() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "curl", true);
    set(&sandbox, "run.ended", "slack.sh");
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/slack", "https://example.com/secret\n");
    let mut command = sandbox.command(script("slack.sh"), &sandbox.repo);
    command.env("PROQ_REPO", &sandbox.repo).env("PROQ_MESSAGE", "a \"quote\", <b> & c\\d\nnext");
    let _ = sandbox.output(command).ok();
    let said = told(&sandbox);
    assert!(said.contains(r#"|{"text": "repo: a \"quote\", &lt;b&gt; &amp; c\\d next"}|"#), "{said}");
    assert!(said.ends_with("|--config|-|<url = \"https://example.com/secret\" >\n"), "{said}");
    sandbox.lane_with("pay", "echo pay > pay.txt");
    assert!(told(&sandbox).contains("|{\"text\": \"repo: lane 'pay': done\"}|"), "{}", told(&sandbox));
}

/// A script that follows events, and what it has started.
struct Bell(Child);

impl Drop for Bell {
    fn drop(&mut self) {
        kill_process_group(Pid::from_raw(self.0.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn the_title_says_what_happened_last() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("pay", "echo pay > pay.txt");
    let mut command = sandbox.command(script("title.sh"), &sandbox.repo);
    let child = command.arg("--since").arg("0").process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut titles = Bell(child);
    let mut out = titles.0.stdout.take().unwrap();
    let mut next = |title: &str| {
        let mut bytes = vec![0; title.len() + 5];
        out.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), format!("\x1b]2;{title}\x07"));
    };
    next("lane 'pay': done");
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    next("lane 'pay' landed on main");
}

/// Each way to be told that settings have is a script as well, and each script is in the page.
#[test]
fn there_is_a_script_for_every_notifier() {
    let page = include_str!("../../hooks/README.md");
    let files = std::fs::read_dir(script("")).unwrap().flatten();
    let mut names: Vec<String> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "README.md");
    for name in &names {
        assert!(page.contains(&format!("| [{name}]({name}) |")), "{name}");
    }
    let notifiers = page.lines().filter_map(|line| line.strip_prefix("| `notify.")?.split('`').next());
    let notifiers: Vec<&str> = notifiers.filter(|name| *name != "events").collect();
    assert_eq!(notifiers.len(), 6, "{notifiers:?}");
    for name in notifiers {
        assert!(names.contains(&format!("{name}.sh")), "{name}");
    }
}

#[test]
fn the_bell_is_rung_for_what_is_wanted() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("pay", "echo pay > pay.txt");
    let mut command = sandbox.command(script("bell.sh"), &sandbox.repo);
    let child = command.arg("--since").arg("0").process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut bell = Bell(child);
    let lines = Lines::of(bell.0.stdout.take().unwrap());
    assert_eq!(lines.next(), "\x07lane 'pay': done");
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(lines.next(), "\x07lane 'pay' landed on main");
}
