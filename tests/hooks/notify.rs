//! Tests of notifiers: webhook posts and their retries, desktop notices and sounds, and that addresses stay
//! secret.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use proq_test_kit::waiting::{wait_until, wait_within};
#[cfg(target_os = "linux")]
use proq_test_kit::{PTY_SCRIPT, Sandbox};

use super::user_hooks::{hook_log, hook_output, wait_until_dispatched};

/// Longest wait for the next request to the server.
const MAX_REQUEST_WAIT: Duration = Duration::from_secs(30);

/// HTTP server on this machine that receives notifications.
struct TestServer {
    listener: TcpListener,
    url: String,
}

impl TestServer {
    fn start() -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/secret/path?token=secret", listener.local_addr().unwrap());
        TestServer { listener, url }
    }

    /// Waits for the next connection and returns it.
    fn accept(&self) -> TcpStream {
        self.listener.set_nonblocking(true).unwrap();
        let stream = wait_within(
            MAX_REQUEST_WAIT,
            || "somebody who asks".to_owned(),
            || match self.listener.accept() {
                Ok((stream, _)) => Some(stream),
                Err(e) if e.kind() == ErrorKind::WouldBlock => None,
                Err(e) => panic!("{e}"),
            },
        );
        stream.set_nonblocking(false).unwrap();
        stream
    }

    /// Responds to the next request with `status` and returns its request line, content type header and body.
    fn answer_request(&self, status: &str) -> (String, String, serde_json::Value) {
        let mut stream = self.accept();
        let (head, body) = read_request(&mut stream);
        // A client that gave up does not read the response.
        drop(write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
        let kind = head.to_lowercase().lines().find(|l| l.starts_with("content-type:")).unwrap().to_owned();
        (head.lines().next().unwrap().to_owned(), kind, serde_json::from_slice(&body).unwrap())
    }
}

fn read_request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0);
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let length = |l: &str| l.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok();
        let length: usize = head.lines().find_map(length).unwrap();
        if bytes.len() >= head.len() + 4 + length {
            return (head.to_owned(), bytes.split_off(head.len() + 4));
        }
    }
}

#[test]
fn posts_event_until_accepted() {
    let sandbox = Sandbox::new();
    let server = TestServer::start();
    sandbox.git(&["config", "proq.notify.webhook", &server.url]);
    sandbox.run_lane("pay", "echo pay > pay.txt");
    let first = server.answer_request("500 Not Now");
    assert_eq!(
        (first.0.as_str(), first.1.as_str()),
        ("POST /secret/path?token=secret HTTP/1.1", "content-type: application/json")
    );
    assert_eq!(
        first.2,
        serde_json::json!({
            "at": "2026-01-02T03:04:05Z", "event": "run.ended", "lane": "pay", "message": "lane 'pay': done",
            "n": 4, "repository": "repo", "schema": 1, "state": "done",
        })
    );
    assert_eq!(server.answer_request("503 Not Now"), first);
    assert_eq!(server.answer_request("200 OK"), first);
    wait_until_dispatched(&sandbox);
    let log = hook_log(&sandbox);
    assert!(
        log.contains("4 run.ended: webhook http://127.0.0.1:") && log.contains("/…: delivered (try 3)"),
        "{log}"
    );
    // Only selected events are posted, and each one once.
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(server.answer_request("200 OK").2["event"], "merge.landed");
    wait_until_dispatched(&sandbox);
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn gives_up_after_refusal_or_three_tries_and_continues() {
    let sandbox = Sandbox::new();
    let server = TestServer::start();
    sandbox.git(&["config", "proq.notify.slack", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let body = serde_json::json!({ "text": "repo: created lane 'a' from main" });
    assert_eq!(server.answer_request("404 Not Found").2, body);
    wait_until_dispatched(&sandbox);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    for _ in 0..3 {
        assert_eq!(server.answer_request("500 No").2["text"], "repo: created lane 'b' from main");
    }
    wait_until_dispatched(&sandbox);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "c"]).ok();
    assert_eq!(server.answer_request("200 OK").2["text"], "repo: created lane 'c' from main");
    wait_until_dispatched(&sandbox);
    let log = hook_log(&sandbox);
    assert!(
        log.contains("given up: status 404\n") && log.contains("given up: status 500 (try 3)\n"),
        "{log}"
    );
    assert!(log.contains(": delivered\n"), "{log}");
}

/// Promise: concurrency/notify-address
#[test]
fn silent_address_delays_no_hook() {
    let sandbox = Sandbox::new();
    let server = TestServer::start();
    sandbox.pipe("heard");
    sandbox.git(&["config", "proq.notify.webhook", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    sandbox.git(&["config", "proq.hook.lane.created", "echo $PROQ_LANE > $ROOT/heard"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let silent = server.accept();
    assert_eq!(sandbox.read_pipe("heard"), "a\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(sandbox.read_pipe("heard"), "b\n");
    assert!(!hook_log(&sandbox).contains("webhook"));
    // git-proq gives up automatically although the connection stays open; then the next event is posted.
    let given_up = "/…: given up: no answer within 10 s (try 3)\n";
    wait_until("it is given up", || hook_log(&sandbox).contains(given_up));
    while server.answer_request("200 OK").2["lane"] != "b" {}
    wait_until_dispatched(&sandbox);
    assert!(hook_log(&sandbox).contains(": delivered"), "{}", hook_log(&sandbox));
    drop(silent);
}

/// Promise: concurrency/notify-address
#[test]
fn follows_no_redirect() {
    let sandbox = Sandbox::new();
    let (server, elsewhere) = (TestServer::start(), TestServer::start());
    sandbox.git(&["config", "proq.notify.webhook", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let _ = server.answer_request(&format!("302 Found\r\nLocation: {}", elsewhere.url));
    wait_until_dispatched(&sandbox);
    assert!(hook_log(&sandbox).contains("given up: status 302\n"), "{}", hook_log(&sandbox));
    elsewhere.listener.set_nonblocking(true).unwrap();
    assert_eq!(elsewhere.listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

/// Promise: concurrency/notify-address
#[test]
fn invalid_address_is_hidden_in_the_log() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.notify.webhook", "http://a<b>/secret"]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    wait_until_dispatched(&sandbox);
    let log = hook_log(&sandbox);
    assert!(log.ends_with("webhook http://a<b>/…: given up: it could not be sent (try 3)\n"), "{log}");
}

#[test]
fn escapes_markup_in_messages() {
    let sandbox = Sandbox::new();
    let server = TestServer::start();
    sandbox.program("notify-send", "printf '%s\\n' \"$3\" >> $ROOT/told");
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    sandbox.git(&["config", "proq.notify.slack", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.committed"]);
    sandbox.run_lane("x", "git commit -q --allow-empty -m '<!channel> & <b>'");
    let text = server.answer_request("200 OK").2["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with(" &lt;!channel&gt; &amp; &lt;b&gt;"), "{text}");
    assert!(hook_output(&sandbox).ends_with(" &lt;!channel> &amp; &lt;b>\n"), "{}", hook_output(&sandbox));
}

#[cfg(target_os = "linux")]
#[test]
fn waiting_terminal_gets_bell_title_and_notice() {
    let sandbox = Sandbox::new();
    for (key, value) in [("bell", "true"), ("title", "true"), ("desktop", "osc9")] {
        sandbox.git(&["config", &format!("proq.notify.{key}"), value]);
    }
    let mut terminal = sandbox.command("python3", &sandbox.repo);
    terminal.args([
        "-c",
        PTY_SCRIPT,
        "git-proq",
        "spawn",
        "--wait",
        "-n",
        "a",
        "--",
        "sh",
        "-c",
        "echo 1 > one",
    ]);
    let output = sandbox.output(terminal).ok();
    let notices = "\x1b]2;lane 'a': done\x07\x1b]9;lane 'a': done\x07\x07";
    assert_eq!(output.matches(notices).count(), 1, "{output:?}");
}

#[test]
fn desktop_notices_and_sounds_run_programs() {
    let sandbox = Sandbox::new();
    let log_args = |name: &str| {
        format!("printf '{name}' >> $ROOT/told; printf '|%s' \"$@\" >> $ROOT/told; echo >> $ROOT/told")
    };
    sandbox.program("notify-send", &log_args("notify-send"));
    sandbox.program("paplay", &log_args("paplay"));
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    sandbox.git(&["config", "proq.notify.sound", sandbox.repo.join("a.txt").to_str().unwrap()]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "pay", "--", "sh", "-c", "exit 3"]).fails(4);
    insta::assert_snapshot!(hook_output(&sandbox), @r"
    notify-send|--|git proq: pay|lane 'pay': failed (exit code 3)
    paplay|[ROOT]/repo/a.txt
    ");
    sandbox.git(&["config", "proq.notify.desktop", "off"]);
    sandbox.git(&["config", "proq.notify.sound", "echo $PROQ_EVENT >> $ROOT/told"]);
    sandbox.run_lane("tax", "echo tax > tax.txt");
    assert!(hook_output(&sandbox).ends_with("a.txt\nrun.ended\n"), "{}", hook_output(&sandbox));
}

#[test]
fn auto_shows_notices_only_on_a_desktop() {
    let sandbox = Sandbox::new();
    sandbox.program("notify-send", "echo shown >> $ROOT/told");
    sandbox.git(&["config", "proq.notify.desktop", "auto"]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "a", "--", "true"]).ok();
    assert_eq!(hook_output(&sandbox), "");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "b", "--", "true"]);
    command.env("DISPLAY", ":0");
    let _ = sandbox.output(command).ok();
    assert_eq!(hook_output(&sandbox), "shown\n");
}

/// Promise: concurrency/notify-address
#[test]
fn hides_addresses_and_refuses_them_in_repo_config() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.notify.webhook", "https://me:word@example.com/secret/path?token=secret"]);
    for args in [&["config", "list"][..], &["config", "list", "--show-origin"], &["config", "list", "--json"]]
    {
        let out = sandbox.proq(args).ok();
        assert!(
            out.contains("https://example.com/…") && !out.contains("secret") && !out.contains("word"),
            "{out}"
        );
    }
    let mut command = sandbox.proq_command(&sandbox.repo, &["cleanup"]);
    command.env("PROQ_NOTIFY_SLACK", "secret.example.com");
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    --- stderr
    error: cannot use notify.slack = '(hidden)' of $PROQ_NOTIFY_SLACK: expected an address that begins with https:// or http://
    hint: use the default, 'nothing': unset PROQ_NOTIFY_SLACK
    --- code 1
    ");
    sandbox.write("proq.toml", "[notify]\nslack = 'https://example.com/theirs'\n");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r#"
    --- stderr
    warning: cannot use [ROOT]/repo/proq.toml: a repository may not set notify.slack; until that is corrected, the settings of the repository have their defaults
    no lanes yet
    hint: start an agent in a lane of its own: git proq spawn claude "implement payments"
    --- code 0
    "#);
}

#[test]
fn writes_no_bell_where_output_is_no_terminal() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.notify.bell", "true"]);
    sandbox.git(&["config", "proq.notify.title", "true"]);
    let out = sandbox.proq(&["spawn", "--wait", "-n", "a", "--", "true"]);
    assert!(!out.to_text().contains(['\x07', '\x1b']), "{}", out.to_text());
    // A bell alone starts no dispatcher process, so no other terminal is written to.
    assert!(!sandbox.repo.join(".git/proq/dispatch.toml").exists());
    assert!(!sandbox.repo.join(".git/proq/locks/dispatch.lock").exists());
}
