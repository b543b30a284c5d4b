//! Scripts of `hooks/` that are set as hooks, or that ring a terminal.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::OutputLines;
use rustix::process::{Pid, Signal, kill_process_group};

use super::user_hooks::{hook_log, hook_output};

fn script_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(name)
}

/// Sets a script as the hook of an event.
fn set_hook(sandbox: &Sandbox, event: &str, name: &str) {
    sandbox.git(&["config", &format!("proq.hook.{event}"), script_path(name).to_str().unwrap()]);
}

/// Puts a program on `PATH` that records its arguments and, with `reads`, its input.
fn stub(sandbox: &Sandbox, name: &str, reads: bool) {
    let read = if reads { "printf '|<'; tr '\\n' ' '; printf '>'" } else { ":" };
    sandbox.program(name, &format!("{{ printf {name}; printf '|%s' \"$@\"; {read}; echo; }} >> $ROOT/told"));
}

#[test]
fn desktop_notice_names_lane_and_event() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "notify-send", false);
    set_hook(&sandbox, "run.ended", "desktop.sh");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "sh", "-c", "exit 3"]).fails(4);
    assert_eq!(hook_output(&sandbox), "notify-send|--|git proq: bad|lane 'bad': failed (exit code 3)\n");
}

#[test]
fn sound_depends_on_outcome() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "paplay", false);
    sandbox.write_in(&sandbox.root(), "good.wav", "");
    sandbox.write_in(&sandbox.root(), "bad.wav", "");
    let line = format!(
        "PROQ_SOUND=$ROOT/good.wav PROQ_SOUND_BAD=$ROOT/bad.wav '{}'",
        script_path("sound.sh").display()
    );
    sandbox.git(&["config", "proq.hook.run.ended", &line]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "false"]).fails(4);
    assert_eq!(hook_output(&sandbox), "paplay|[ROOT]/bad.wav\n");
    sandbox.run_lane("pay", "echo pay > pay.txt");
    assert_eq!(hook_output(&sandbox), "paplay|[ROOT]/bad.wav\npaplay|[ROOT]/good.wav\n");
}

#[test]
fn webhook_url_is_not_a_command_line_argument() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "curl", true);
    set_hook(&sandbox, "lane.created", "webhook.sh");
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/webhook", "https://example.com/secret\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay"]).ok();
    let body = "{\"at\":\"2026-01-02T03:04:05Z\",\"event\":\"lane.created\",\"lane\":\"pay\",\"message\":\"created lane 'pay' from main\",\"n\":2,\"schema\":1,\"state\":\"idle\"}";
    let curl_options =
        "--silent|--show-error|--fail|--max-time|10|--retry|2|--header|Content-Type: application/json";
    assert_eq!(
        hook_output(&sandbox),
        format!(
            "curl|{curl_options}|--data-binary|{body}|--output|/dev/null|--config|-|<url = \"https://example.com/secret\" >\n"
        )
    );
    assert!(!hook_log(&sandbox).contains("example.com"), "{}", hook_log(&sandbox));
}

#[test]
fn slack_message_is_escaped() {
    let sandbox = Sandbox::new();
    stub(&sandbox, "curl", true);
    set_hook(&sandbox, "run.ended", "slack.sh");
    sandbox.write_in(&sandbox.root(), "home/.config/git-proq/slack", "https://example.com/secret\n");
    let mut command = sandbox.command(script_path("slack.sh"), &sandbox.repo);
    command.env("PROQ_REPO", &sandbox.repo).env("PROQ_MESSAGE", "a \"quote\", <b> & c\\d\nnext");
    let _ = sandbox.output(command).ok();
    let recorded = hook_output(&sandbox);
    assert!(recorded.contains(r#"|{"text": "repo: a \"quote\", &lt;b&gt; &amp; c\\d next"}|"#), "{recorded}");
    assert!(recorded.ends_with("|--config|-|<url = \"https://example.com/secret\" >\n"), "{recorded}");
    sandbox.run_lane("pay", "echo pay > pay.txt");
    assert!(
        hook_output(&sandbox).contains("|{\"text\": \"repo: lane 'pay': done\"}|"),
        "{}",
        hook_output(&sandbox)
    );
}

/// A script that follows events; its process group ends when this is dropped.
struct FollowingScript(Child);

impl Drop for FollowingScript {
    fn drop(&mut self) {
        kill_process_group(Pid::from_raw(self.0.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn title_shows_last_event() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("pay", "echo pay > pay.txt");
    let mut command = sandbox.command(script_path("title.sh"), &sandbox.repo);
    let child = command.arg("--since").arg("0").process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut titles = FollowingScript(child);
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

/// Each notifier of the settings has a script as well, and the page of the scripts lists each one.
#[test]
fn every_notifier_has_a_script() {
    let (scripts, notifiers) =
        (include_str!("../../hooks/README.md"), include_str!("../../docs/guide/hooks.md"));
    let files = std::fs::read_dir(script_path("")).unwrap().flatten();
    let mut names: Vec<String> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "README.md");
    for name in &names {
        assert!(scripts.contains(&format!("| [{name}]({name}) |")), "{name}");
    }
    let notifiers = notifiers.lines().filter_map(|line| line.strip_prefix("| `notify.")?.split('`').next());
    let notifiers: Vec<&str> = notifiers.filter(|name| *name != "events").collect();
    assert_eq!(notifiers.len(), 6, "{notifiers:?}");
    for name in notifiers {
        assert!(names.contains(&format!("{name}.sh")), "{name}");
    }
}

#[test]
fn bell_rings_for_run_end_and_landing() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("pay", "echo pay > pay.txt");
    let mut command = sandbox.command(script_path("bell.sh"), &sandbox.repo);
    let child = command.arg("--since").arg("0").process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut bell = FollowingScript(child);
    let lines = OutputLines::read_from(bell.0.stdout.take().unwrap());
    assert_eq!(lines.next(), "\x07lane 'pay': done");
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(lines.next(), "\x07lane 'pay' landed on main");
}
