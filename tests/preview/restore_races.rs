//! Tests of writes to files at the end of a preview, while the user's changes are restored.

use proq_test_kit::Sandbox;
use proq_test_kit::faults::{kill_at, recover};

/// Creates a sandbox that shows lane `one`, with a parked edit of `a.x`, and whose base has moved. git converts the
/// line ends of the file; the edit has others.
fn sandbox_with_preview() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.x text eol=crlf' > .gitattributes; printf 'a\r\n' > a.x");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo 1 > 1");
    sandbox.lane_with_commit("two", "echo 2 > 2");
    sandbox.write("a.x", "mine\n");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git fetch -q . +proq/two:main");
    sandbox
}

/// Ends the preview, and runs a script while it is stopped at a point. Returns what it printed.
#[track_caller]
fn leave_while(sandbox: &Sandbox, point: &str, script: &str) -> String {
    let (code, text) = sandbox.run_while_stopped(&["preview", "--back"], (point, ""), script);
    assert_eq!(code, Some(0), "{text}");
    text
}

/// Asserts that what was written to `a.x` is still there, and that the parked version is named.
#[track_caller]
fn assert_later_write_stays(sandbox: &Sandbox, text: &str) {
    assert_eq!(sandbox.read("a.x"), "later\n", "{text}");
    let start =
        "a.x was written while your changes were restored, and stays as it is; your saved version is ";
    let named = text.split_once(start).unwrap_or_else(|| panic!("{text}")).1.lines().next().unwrap();
    assert_eq!(std::fs::read_to_string(named).unwrap(), "mine\n");
    assert_eq!(sandbox.sh("git branch --show-current; cat 2"), "main\n2");
    sandbox.assert_healthy();
}

/// Promise: worktree/appearing-files
#[test]
fn file_renamed_over_a_parked_one_stays() {
    let sandbox = sandbox_with_preview();
    let text = leave_while(&sandbox, "restore.given", "echo later > temp; mv temp a.x");
    assert_later_write_stays(&sandbox, &text);
}

/// Promise: worktree/late-writes-restored
#[test]
fn write_into_a_parked_file_stays() {
    let sandbox = sandbox_with_preview();
    let text = leave_while(&sandbox, "restore.given", "echo later > a.x");
    assert_later_write_stays(&sandbox, &text);
}

/// A file that an editor writes between the comparison and the rename returns to its name.
///
/// Promise: worktree/appearing-files
#[test]
fn write_after_the_comparison_stays() {
    for script in ["echo later > temp; mv temp a.x", "echo later > a.x"] {
        for point in ["restore.compared", "restore.displaced"] {
            let sandbox = sandbox_with_preview();
            let text = leave_while(&sandbox, point, script);
            assert_later_write_stays(&sandbox, &text);
        }
    }
}

/// Promise: operations/killed-recovery
#[test]
fn killed_return_of_a_copy_is_resumed() {
    let sandbox = sandbox_with_preview();
    let before = sandbox.sh("cat a.x; git status --short --branch");
    for point in ["restore.as-edited", "restore.copy-returned"] {
        let args: &[&str] = if point == "restore.as-edited" { &["preview", "--back"] } else { &["list"] };
        kill_at(&sandbox, point, args);
    }
    let _ = recover(&sandbox);
    assert_eq!(sandbox.sh("cat a.x; git status --short --branch"), before);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.sh("git branch --show-current; cat a.x"), "main\nmine");
    sandbox.assert_healthy();
}
