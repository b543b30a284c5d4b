//! Owns the tests of notifiers: what is posted and how often, notices and sounds, and that addresses stay secret.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

#[cfg(target_os = "linux")]
use super::support::ON_TERMINAL;
use super::support::Sandbox;
use super::support::patience::{wait_until, wait_within};
use super::user_hooks::{all_told, log, told};

/// How long it may take until somebody asks.
const MOST: Duration = Duration::from_secs(30);

/// An address on this machine.
struct Server {
    listener: TcpListener,
    url: String,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/secret/path?token=secret", listener.local_addr().unwrap());
        Server { listener, url }
    }

    /// The next one who asks for something, waiting for it.
    fn accept(&self) -> TcpStream {
        self.listener.set_nonblocking(true).unwrap();
        let stream = wait_within(
            MOST,
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

    /// Answers the next request with a status and returns its first line, its kind and its body.
    fn answer(&self, status: &str) -> (String, String, serde_json::Value) {
        let mut stream = self.accept();
        let (head, body) = request(&mut stream);
        // One that was given up does not listen.
        drop(write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
        let kind = head.to_lowercase().lines().find(|l| l.starts_with("content-type:")).unwrap().to_owned();
        (head.lines().next().unwrap().to_owned(), kind, serde_json::from_slice(&body).unwrap())
    }
}

fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut some = [0; 1024];
    loop {
        let count = stream.read(&mut some).unwrap();
        assert!(count > 0);
        bytes.extend_from_slice(&some[..count]);
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
fn an_event_is_posted_until_it_is_taken() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    sandbox.git(&["config", "proq.notify.webhook", &server.url]);
    sandbox.lane_with("pay", "echo pay > pay.txt");
    let first = server.answer("500 Not Now");
    assert_eq!(
        (first.0.as_str(), first.1.as_str()),
        ("POST /secret/path?token=secret HTTP/1.1", "content-type: application/json")
    );
    assert_eq!(
        first.2,
        serde_json::json!({
            "at": "2026-01-02T03:04:05Z", "event": "run.ended", "lane": "pay", "message": "lane 'pay': done",
            "n": 3, "repository": "repo", "schema": 1, "state": "done",
        })
    );
    assert_eq!(server.answer("503 Not Now"), first);
    assert_eq!(server.answer("200 OK"), first);
    all_told(&sandbox);
    let log = log(&sandbox);
    assert!(
        log.contains("3 run.ended: webhook http://127.0.0.1:") && log.contains("/…: delivered (try 3)"),
        "{log}"
    );
    // Not what nobody asked to be told of, and nothing twice.
    let _ = sandbox.proq(&["merge", "pay"]).ok();
    assert_eq!(server.answer("200 OK").2["event"], "merge.landed");
    all_told(&sandbox);
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn what_is_refused_for_good_or_three_times_is_given_up_and_the_next_goes_out() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    sandbox.git(&["config", "proq.notify.slack", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let body = serde_json::json!({ "text": "repo: lane 'a' made from main" });
    assert_eq!(server.answer("404 Not Found").2, body);
    all_told(&sandbox);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    for _ in 0..3 {
        assert_eq!(server.answer("500 No").2["text"], "repo: lane 'b' made from main");
    }
    all_told(&sandbox);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "c"]).ok();
    assert_eq!(server.answer("200 OK").2["text"], "repo: lane 'c' made from main");
    all_told(&sandbox);
    let log = log(&sandbox);
    assert!(
        log.contains("given up: status 404\n") && log.contains("given up: status 500 (try 3)\n"),
        "{log}"
    );
    assert!(log.contains(": delivered\n"), "{log}");
}

#[test]
fn an_address_that_does_not_answer_holds_up_no_hook() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    sandbox.pipe("heard");
    sandbox.git(&["config", "proq.notify.webhook", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    sandbox.git(&["config", "proq.hook.lane.created", "echo $PROQ_LANE > $ROOT/heard"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let silent = server.accept();
    assert_eq!(sandbox.hear("heard"), "a\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    assert_eq!(sandbox.hear("heard"), "b\n");
    assert!(!log(&sandbox).contains("webhook"));
    // It is given up by itself, in spite of a line that stays open; then the next one goes out.
    let given_up = "/…: given up: no answer within 10 s (try 3)\n";
    wait_until("it is given up", || log(&sandbox).contains(given_up));
    while server.answer("200 OK").2["lane"] != "b" {}
    all_told(&sandbox);
    assert!(log(&sandbox).contains(": delivered"), "{}", log(&sandbox));
    drop(silent);
}

#[test]
fn nobody_is_followed_to_another_address() {
    let sandbox = Sandbox::new();
    let (server, elsewhere) = (Server::start(), Server::start());
    sandbox.git(&["config", "proq.notify.webhook", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let _ = server.answer(&format!("302 Found\r\nLocation: {}", elsewhere.url));
    all_told(&sandbox);
    assert!(log(&sandbox).contains("given up: status 302\n"), "{}", log(&sandbox));
    elsewhere.listener.set_nonblocking(true).unwrap();
    assert_eq!(elsewhere.listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn an_address_that_is_none_is_not_in_the_words_about_it() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.notify.webhook", "http://a<b>/secret"]);
    sandbox.git(&["config", "proq.notify.events", "lane.created"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    all_told(&sandbox);
    let log = log(&sandbox);
    assert!(log.ends_with("webhook http://a<b>/…: given up: it could not be sent (try 3)\n"), "{log}");
}

#[test]
fn what_looks_like_markup_is_text() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    sandbox.program("notify-send", "printf '%s\\n' \"$3\" >> $ROOT/told");
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    sandbox.git(&["config", "proq.notify.slack", &server.url]);
    sandbox.git(&["config", "proq.notify.events", "lane.committed"]);
    sandbox.lane_with("x", "git commit -q --allow-empty -m '<!channel> & <b>'");
    let text = server.answer("200 OK").2["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with(" &lt;!channel&gt; &amp; &lt;b&gt;"), "{text}");
    assert!(told(&sandbox).ends_with(" &lt;!channel> &amp; &lt;b>\n"), "{}", told(&sandbox));
}

#[cfg(target_os = "linux")]
#[test]
fn the_terminal_of_who_waits_is_rung_and_told() {
    let sandbox = Sandbox::new();
    for (key, value) in [("bell", "true"), ("title", "true"), ("desktop", "osc9")] {
        sandbox.git(&["config", &format!("proq.notify.{key}"), value]);
    }
    let mut terminal = sandbox.command("python3", &sandbox.repo);
    terminal.args([
        "-c",
        ON_TERMINAL,
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
    let said = sandbox.output(terminal).ok();
    let all = "\x1b]2;lane 'a': done\x07\x1b]9;lane 'a': done\x07\x07";
    assert_eq!(said.matches(all).count(), 1, "{said:?}");
}

#[test]
fn notices_and_sounds_are_made_by_programs() {
    let sandbox = Sandbox::new();
    let say = |name: &str| {
        format!("printf '{name}' >> $ROOT/told; printf '|%s' \"$@\" >> $ROOT/told; echo >> $ROOT/told")
    };
    sandbox.program("notify-send", &say("notify-send"));
    sandbox.program("paplay", &say("paplay"));
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    sandbox.git(&["config", "proq.notify.sound", sandbox.repo.join("a.txt").to_str().unwrap()]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "pay", "--", "sh", "-c", "exit 3"]).fails(4);
    insta::assert_snapshot!(told(&sandbox), @r"
    notify-send|--|git proq: pay|lane 'pay': failed (exit code 3)
    paplay|[ROOT]/repo/a.txt
    ");
    sandbox.git(&["config", "proq.notify.desktop", "off"]);
    sandbox.git(&["config", "proq.notify.sound", "echo $PROQ_EVENT >> $ROOT/told"]);
    sandbox.lane_with("tax", "echo tax > tax.txt");
    assert!(told(&sandbox).ends_with("a.txt\nrun.ended\n"), "{}", told(&sandbox));
}

#[test]
fn auto_shows_notices_where_there_is_a_desktop() {
    let sandbox = Sandbox::new();
    sandbox.program("notify-send", "echo shown >> $ROOT/told");
    sandbox.git(&["config", "proq.notify.desktop", "auto"]);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "a", "--", "true"]).ok();
    assert_eq!(told(&sandbox), "");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "b", "--", "true"]);
    command.env("DISPLAY", ":0");
    let _ = sandbox.output(command).ok();
    assert_eq!(told(&sandbox), "shown\n");
}

#[test]
fn addresses_are_never_shown_and_come_from_the_user_only() {
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
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command.env("PROQ_NOTIFY_SLACK", "secret.example.com");
    insta::assert_snapshot!(sandbox.output(command).shown(), @r"
    --- stderr
    error: notify.slack = '(hidden)' (from $PROQ_NOTIFY_SLACK) cannot be used; it takes an address that begins with https:// or http://
    hint: correct it where it is set; without it there is none
    --- code 1
    ");
    sandbox.write("proq.toml", "[notify]\nslack = 'https://example.com/theirs'\n");
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r"
    --- stderr
    error: [ROOT]/repo/proq.toml may not set notify.slack: only you may, for yourself
    hint: take it out of that file; to set it for yourself: git config proq.notify.slack VALUE
    --- code 1
    ");
}

#[test]
fn what_is_no_terminal_is_not_rung() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.notify.bell", "true"]);
    sandbox.git(&["config", "proq.notify.title", "true"]);
    let out = sandbox.proq(&["spawn", "--wait", "-n", "a", "--", "true"]);
    assert!(!out.shown().contains(['\x07', '\x1b']), "{}", out.shown());
    // A bell alone starts no process: nobody else's terminal is written to.
    assert!(!sandbox.repo.join(".git/proq/dispatch.toml").exists());
    assert!(!sandbox.repo.join(".git/proq/locks/dispatch.lock").exists());
}
