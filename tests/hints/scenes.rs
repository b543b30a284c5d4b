//! Scenes of hints, as shell scripts, and how each is played.

use proq_test_kit::{Output, Sandbox};

/// A scene that prints a hint. All scripts run in the main checkout.
pub struct Scene {
    /// Script that makes the scene.
    pub before: &'static str,
    /// Command line that prints the hint.
    pub command: &'static str,
    /// How the hint begins.
    pub hint: &'static str,
    /// Text that the hint's command prints; empty for one that has to succeed.
    pub prints: &'static str,
    /// Script that succeeds once the hint was followed.
    pub after: &'static str,
}

/// Shell functions for the scripts: a lane with a commit, the same of a run, a lane that conflicts with its
/// base, a program on `PATH`, a `claude` that answers with a text, a plan of two tasks for an agent with
/// a script of its own, and a command during which a script runs while it is stopped at a named point.
const FUNCTIONS: &str = r#"
lane() {
    git proq spawn -q --empty -n "$1"
    (cd ".proq-worktrees/$1" && echo x > "new-$1.txt" && git add -A && git commit -qm "Add $1")
}
run_lane() { git proq spawn -q --wait -n "$1" -- sh -c "echo x > new-$1.txt; git add -A; git commit -qm 'Add $1'"; }
conflict() {
    git proq spawn -q --empty -n "$1"
    (cd ".proq-worktrees/$1" && echo lane > a.txt && git commit -qam 'Change a')
    echo base > a.txt
    git commit -qam 'Change a too'
}
program() {
    mkdir -p "$ROOT/bin"
    printf '#!/bin/sh\n%s\n' "$2" > "$ROOT/bin/$1"
    chmod +x "$ROOT/bin/$1"
}
says() {
    local result='{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":'
    program claude "printf '%s\\n' '$result\"$1\"}'"
}
plan() {
    program worker "${1-echo x > \$PROQ_TASK.txt; git add -A; git commit -qm work}"
    printf 'format = 1\nsummary = "Two"\nagent = "worker"\n[[task]]\nid = "one"\ntitle = "One"\n' > plan.toml
    printf '[[task]]\nid = "two"\ntitle = "Two"\nneeds = ["one"]\n' >> plan.toml
}
batch() { ls .git/proq/batches; }
while_stopped_at() {
    local point="$1" act="$2"
    shift 2
    PROQ_TEST_STAND_AT="$point" "$@" &
    pid=$!
    until case $(ps -o stat= -p $pid) in
        T*) ;;
        '' | Z*) echo "never at $point"; return ;;
        *) false ;;
    esac; do :; done
    eval "$act"
    kill -CONT $pid
    wait $pid
}
"#;

/// Exit codes of a command that cannot do what its hint promises: wrong usage, a bug, no such program.
const USELESS_EXITS: [i32; 4] = [2, 70, 126, 127];

/// Mark of a scene whose hint has no command: it only has to be printed.
pub const NO_COMMAND: &str = "(no command)";

/// The fields of a [`Scene`], in their order.
pub type Row = [&'static str; 5];

/// Plays each scene in a sandbox of its own: makes it, prints the hint, follows it, and looks at the result.
/// A row has the fields of a [`Scene`].
#[track_caller]
pub fn play(scenes: &[Row]) {
    play_after(scenes, |_| ());
}

/// Plays each scene as an ordinary user, whom permissions bind, once it is made.
#[track_caller]
pub fn play_as_ordinary_user(scenes: &[Row]) {
    play_after(scenes, Sandbox::give_to_ordinary_user);
}

/// Plays each scene; `prepare` runs once the scene is made.
#[track_caller]
fn play_after(scenes: &[Row], prepare: fn(&Sandbox)) {
    let failures: Vec<String> = scenes
        .iter()
        .filter_map(|&[before, command, hint, prints, after]| {
            play_one(&Scene { before, command, hint, prints, after }, prepare).err()
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Plays one scene and returns what went wrong.
fn play_one(scene: &Scene, prepare: fn(&Sandbox)) -> Result<(), String> {
    let sandbox = Sandbox::new();
    let shell = |script: &str| {
        let mut command = sandbox.command("sh", &sandbox.repo);
        command.args(["-c", &format!("{FUNCTIONS}{script}")]);
        sandbox.output(command)
    };
    let fail = |what: &str, out: &Output| {
        Err(format!("{}\n{what} ({})\n{}\n{}", scene.command, out.code, out.stdout, out.stderr))
    };
    let made = shell(&format!("set -e; {}", scene.before));
    if made.code != 0 {
        return fail("cannot make the scene", &made);
    }
    prepare(&sandbox);
    let out = shell(scene.command);
    let printed = format!("{}{}", out.stdout, out.stderr);
    if !printed.contains(&format!("hint: {}", scene.hint)) {
        return fail(&format!("no hint '{}'", scene.hint), &out);
    }
    if scene.prints == NO_COMMAND {
        return Ok(());
    }
    let followed = sandbox.follow_hint(&printed, scene.hint);
    let is_expected = match scene.prints {
        "" => followed.code == 0,
        text => {
            !USELESS_EXITS.contains(&followed.code)
                && format!("{}{}", followed.stdout, followed.stderr).contains(text)
        }
    };
    if !is_expected {
        return fail(&format!("hint '{}' does not print '{}'", scene.hint, scene.prints), &followed);
    }
    let checked = shell(&format!("set -e; {}", scene.after));
    if checked.code != 0 { fail(&format!("after '{}'", scene.hint), &checked) } else { Ok(()) }
}
