//! Commands run on pseudo-terminals, within limits of memory and time.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use serde_json::json;

/// Script that runs commands one after the other, each on its own terminal that is 200 columns wide, with
/// little memory, and ends those that take long. Prints `[exit code or -1, output in hex, KiB of memory,
/// seconds of processor]` for each, its children included.
const PTY_RUNNER: &str = r#"
import fcntl, json, os, pty, resource, select, signal, struct, sys, termios, time
MOST, LONG = 2 << 20, float(sys.argv[1])
out = []
for argv in json.load(sys.stdin):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.execvp(argv[0], argv)
    text, end, done = b"", time.monotonic() + LONG, False
    while time.monotonic() < end and len(text) < MOST:
        if not select.select([fd], [], [], 0.5)[0]: continue
        try: part = os.read(fd, 65536)
        except OSError: part = b""
        if not part:
            done = True
            break
        text += part
    if not done: os.kill(pid, signal.SIGKILL)
    os.close(fd)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status) if done else -1
    out.append([code, text.hex(), used.ru_maxrss, used.ru_utime + used.ru_stime])
print(json.dumps(out))
"#;

/// Time limit of a command in seconds. On an idle machine each takes a small part of it.
const COMMAND_TIMEOUT_SECS: &str = "20";

/// Limits of a command: memory in KiB, and seconds of processor. Both are far above an ordinary run.
const MAX_MEMORY_KIB: i64 = 130 << 10;
const MAX_CPU_SECS: f64 = 3.0;

/// Runs all commands on terminals, each within the limits of memory and time, and returns exit code and
/// output of each.
pub fn run_on_terminals(sandbox: &Sandbox, commands: &[Vec<String>]) -> Vec<(i64, Vec<u8>)> {
    let mut command = sandbox.command("python3", &sandbox.repo);
    command
        .args(["-c", PTY_RUNNER, COMMAND_TIMEOUT_SECS])
        .env("TERM", "xterm-256color")
        .env("PAGER", "cat")
        .stdout(Stdio::piped());
    let input = serde_json::to_vec(&json!(commands)).unwrap();
    let out = sandbox.output_with(command, &input).ok();
    let all: Vec<(i64, String, i64, f64)> = serde_json::from_str(&out).unwrap();
    for (line, (_, _, memory, time)) in commands.iter().zip(&all) {
        assert!(
            *memory <= MAX_MEMORY_KIB && *time <= MAX_CPU_SECS,
            "{line:?} took {memory} KiB and {time} s"
        );
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    all.into_iter().map(|(code, hex, ..)| (code, hex.as_bytes().chunks(2).map(byte).collect())).collect()
}
