//! Commands whose journals are golden files: each with the repository that it starts in.

use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::conflict::{RESOLVED, resolve_worktree, sandbox_with_conflict};
use proq_test_kit::plans::repo_with_plan;
use proq_test_kit::runs::sandbox_with_old_lane;
use proq_test_kit::{Sandbox, fixtures};

/// A command that is one or more operations.
#[derive(Clone, Copy)]
pub struct Case {
    /// Name of the golden files.
    pub name: &'static str,
    /// Creates the repository.
    pub scene: fn() -> Sandbox,
    /// Arguments of the command.
    pub args: &'static [&'static str],
    /// Exit code of the command.
    pub code: i32,
    /// Arguments that undo the command; empty where it cannot be undone.
    pub undo: &'static [&'static str],
    /// Commands that lead to the states between before and after that are as correct after a kill.
    pub between: &'static [&'static [&'static str]],
    /// Whether the command is one process with one operation, which can be killed anywhere.
    pub can_be_killed: bool,
}

const CASE: Case = Case {
    name: "",
    scene: fixtures::clean_checkout,
    args: &[],
    code: 0,
    undo: &["undo"],
    between: &[],
    can_be_killed: true,
};

/// Undo that also gives up work which only the operation's own lane has.
const FORCED: &[&str] = &["undo", "--force"];

/// All cases, by name.
pub const CASES: &[Case] = &[
    Case {
        name: "approve",
        scene: plan_with_check,
        args: &["approve", "--plan", "plan.toml", "--yes"],
        ..CASE
    },
    Case {
        name: "batch-cleanup",
        scene: landed_batch,
        args: &["cleanup", "--batch", BATCH],
        undo: &[],
        ..AGENT
    },
    Case { name: "batch-merge", scene: finished_batch, args: &["merge", "--batch", BATCH], ..AGENT },
    Case { name: "cleanup", scene: fixtures::landed_lane, args: &["cleanup"], ..CASE },
    Case { name: "cleanup-unrecorded", scene: unrecorded_worktree, args: &["cleanup"], ..CASE },
    Case { name: "discard", scene: fixtures::unfinished_lane, args: &["discard", "--force", "one"], ..CASE },
    Case { name: "doctor", scene: lost_worktree, args: &["doctor", "--fix"], undo: &[], ..CASE },
    Case { name: "edit", scene: fixtures::two_lanes, args: &["edit", "one", "--title", "The first"], ..CASE },
    Case {
        name: "in-place",
        args: &["spawn", "--in-place", "--wait", "-n", "x", "--", "sh", "-c", "echo new > new"],
        undo: &[],
        ..AGENT
    },
    Case {
        name: "merge",
        scene: fixtures::dirty_with_lanes,
        args: &["merge", "one"],
        between: &[&["merge", "--no-cleanup", "one"]],
        ..CASE
    },
    Case {
        name: "merge-all",
        scene: fixtures::lanes_with_one_conflict,
        args: &["merge", "--all"],
        code: 3,
        between: &[&["merge", "--no-cleanup", "--all"]],
        ..CASE
    },
    Case {
        name: "merge-autostash",
        scene: fixtures::changes_in_the_way,
        args: &["merge", "one", "--autostash"],
        between: &[&["merge", "--no-cleanup", "one", "--autostash"]],
        ..CASE
    },
    Case {
        name: "merge-conflict",
        scene: fixtures::conflicting_lane,
        args: &["merge", "clash"],
        code: 3,
        ..CASE
    },
    Case {
        name: "merge-elsewhere",
        scene: fixtures::base_not_checked_out,
        args: &["merge", "--no-cleanup", "one"],
        ..CASE
    },
    Case {
        name: "merge-rebase",
        scene: moved_base,
        args: &["merge", "--no-cleanup", "--strategy", "rebase", "one"],
        ..CASE
    },
    Case {
        name: "merge-squash",
        scene: moved_base,
        args: &["merge", "--no-cleanup", "--strategy", "squash", "one"],
        ..CASE
    },
    Case {
        name: "pick",
        scene: two_attempts,
        args: &["pick", "pay-1"],
        undo: &["op", "restore", "1"],
        ..AGENT
    },
    Case { name: "preview", scene: fixtures::dirty_with_lanes, args: &["preview", "one"], ..CASE },
    Case { name: "preview-back", scene: fixtures::edited_preview, args: &["preview", "--back"], ..CASE },
    Case {
        name: "preview-back-commit",
        scene: fixtures::preview_with_commit,
        args: &["preview", "--back"],
        ..CASE
    },
    Case {
        name: "preview-back-moved",
        scene: fixtures::preview_with_moved_base,
        args: &["preview", "--back"],
        ..CASE
    },
    Case {
        name: "preview-refresh",
        scene: fixtures::outdated_preview,
        args: &["preview", "--refresh"],
        ..CASE
    },
    Case { name: "preview-switch", scene: fixtures::edited_preview, args: &["preview", "two"], ..CASE },
    Case {
        name: "redispatch",
        scene: sandbox_with_old_lane,
        args: &["redispatch", "old"],
        undo: &[],
        ..AGENT
    },
    Case { name: "redo", scene: undone_landing, args: &["op", "redo"], ..CASE },
    Case { name: "rename", scene: fixtures::two_lanes, args: &["rename", "one", "first"], ..CASE },
    Case {
        name: "resolve",
        scene: recorded_conflict,
        args: &["resolve", "clash", "--tool=none"],
        code: 1,
        ..CASE
    },
    Case { name: "resolve-abort", scene: open_resolution, args: &["resolve", "clash", "--abort"], ..CASE },
    Case {
        name: "resolve-continue",
        scene: open_resolution,
        args: &["resolve", "clash", "--continue"],
        ..CASE
    },
    Case {
        name: "retry",
        scene: busy_agent,
        args: &["spawn", "claude", "do it", "-n", "x", "--wait"],
        undo: &[],
        ..AGENT
    },
    Case {
        name: "snap-restore",
        scene: fixtures::restorable_snapshot,
        args: &["snap", "restore", "20260102"],
        ..CASE
    },
    Case { name: "spawn", args: &["spawn", "--empty", "-n", "new"], ..CASE },
    Case {
        name: "spawn-carry",
        scene: fixtures::dirty_without_lanes,
        args: &["spawn", "--empty", "--carry", "-n", "new"],
        undo: FORCED,
        ..CASE
    },
    Case { name: "spawn-count", args: &["spawn", "--empty", "-n", "new", "--count", "2"], ..CASE },
    Case { name: "spawn-pool", scene: pooled_worktree, args: &["spawn", "--empty", "-n", "b"], ..CASE },
    Case { name: "sync", scene: outdated_set_up, args: &["sync", "one"], ..CASE },
    Case { name: "undo", scene: landed_lane_removed, args: &["undo"], undo: &["op", "redo"], ..CASE },
    Case { name: "undo-pool", scene: reused_worktree, args: &["undo"], undo: &["op", "redo"], ..CASE },
];

const AGENT: Case = Case { can_be_killed: false, ..CASE };

/// Start of the id of every batch: the clock stands still.
const BATCH: &str = "20260102-030405";

fn plan_with_check() -> Sandbox {
    repo_with_plan(
        "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\nchecks = [\"true\"]\n",
    )
}

fn finished_batch() -> Sandbox {
    let sandbox = repo_with_plan("format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n");
    sandbox.commit_all("the plan");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    sandbox
}

fn landed_batch() -> Sandbox {
    let sandbox = finished_batch();
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    sandbox
}

/// An agent whose first run ends early, with a commit and a file, because its service is busy.
fn busy_agent() -> Sandbox {
    sandbox_with_claude(
        "begin; if [ $n -lt 2 ]; then
            echo $n > c; git add c; git commit -q -m try; echo $n > left; busy; exit 1
        fi
        well",
    )
}

/// A worktree of a lane that has no record.
fn unrecorded_worktree() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh("rm -r .git/proq/lanes/x");
    sandbox
}

/// A worktree that git still has on record, without its folder.
fn lost_worktree() -> Sandbox {
    let sandbox = unrecorded_worktree();
    sandbox.sh("rm -r .proq-worktrees/x");
    sandbox
}

/// A lane whose base has a newer commit.
fn moved_base() -> Sandbox {
    let sandbox = fixtures::two_lanes();
    sandbox.write("later.txt", "later\n");
    sandbox.commit_all("later");
    sandbox
}

fn two_attempts() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "2", "-n", "pay"]).ok();
    for n in 1..=2 {
        sandbox.commit_in_lane(&format!("pay-{n}"), &format!("echo {n} > pay.txt"));
    }
    sandbox.write_in(&sandbox.lane_path("pay-2"), "left.txt", "left\n");
    sandbox
}

fn landed_lane_removed() -> Sandbox {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox
}

fn undone_landing() -> Sandbox {
    let sandbox = landed_lane_removed();
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox
}

/// A conflict on record, and a merge tool that resolves nothing.
fn recorded_conflict() -> Sandbox {
    let sandbox = sandbox_with_conflict();
    sandbox.sh("git config mergetool.none.cmd false; git config mergetool.none.trustExitCode true");
    sandbox
}

/// A conflict that is resolved in its worktree, but not finished.
fn open_resolution() -> Sandbox {
    let sandbox = recorded_conflict();
    let _ = sandbox.proq(&["resolve", "clash", "--tool=none"]).fails(1);
    sandbox.write_in(&resolve_worktree(&sandbox), "long.txt", RESOLVED);
    sandbox.sh_in(&resolve_worktree(&sandbox), "git add long.txt");
    sandbox
}

/// A landed lane whose folder the next lane reuses.
fn pooled_worktree() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "target/\n*.log\n");
    sandbox.commit_all("files");
    sandbox.git(&["config", "proq.pool.keep", "target/"]);
    sandbox.lane_with_commit("a", "echo a > a.txt; mkdir target; echo o > target/o; echo l > y.log");
    let _ = sandbox.proq(&["merge", "a"]).ok();
    sandbox
}

/// A landing whose lane's folder was reused by a lane that was removed again.
fn reused_worktree() -> Sandbox {
    let sandbox = pooled_worktree();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox
}

/// A lane whose copied file is older than the main checkout's.
fn outdated_set_up() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\n");
    sandbox.write(".worktreeinclude", ".env\n");
    sandbox.commit_all("includes");
    sandbox.write(".env", "first\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    sandbox.write(".env", "second\n");
    sandbox
}
