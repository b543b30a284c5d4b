//! Repositories in the states that commands find them in: a dirty checkout with lanes, an open preview, a
//! landing that conflicts.

use super::Sandbox;

/// Script that creates files of every kind, to be committed.
const BASE_FILES: &str = r"
    mkdir dir; echo b > b.txt; echo c > dir/c.txt; echo gone > dir/gone.txt; echo 'one line for all' > shared.txt
    seq 1 30 > long.txt; printf '#!/bin/sh\n' > run.sh; ln -s a.txt link; printf '*.log\nbuild/\n' > .gitignore";

/// Script of the changes that a lane makes besides a file of its own.
const LANE_CHANGES: &str =
    "echo changed > shared.txt; git rm -q dir/c.txt; chmod +x run.sh; mkdir deep; echo one > deep/one";

/// Script that makes every kind of change a checkout can have.
const DIRTY_CHANGES: &str = r"
    echo staged > b.txt; echo new > staged.txt; git add b.txt staged.txt; echo later > b.txt; echo changed > a.txt
    echo notes > notes.txt; mkdir 'new dir'; echo n > 'new dir/with space.txt'; echo n > planned.txt; echo d > debug.log
    git add -N planned.txt; rm dir/gone.txt; chmod +x a.txt; ln -sf b.txt link; ln -s nowhere dangling";

fn base_repo() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(BASE_FILES);
    sandbox.commit_all("base");
    sandbox
}

/// A clean checkout of files of every kind.
pub fn clean_checkout() -> Sandbox {
    base_repo()
}

/// A clean checkout with `core.sharedRepository` set. Only git knows what that setting means for the files it
/// creates.
pub fn shared_repository() -> Sandbox {
    let sandbox = base_repo();
    sandbox.git(&["config", "core.sharedRepository", "umask"]);
    sandbox
}

/// A clean checkout and two lanes with commits.
pub fn two_lanes() -> Sandbox {
    let sandbox = base_repo();
    sandbox.lane_with_commit("one", &format!("echo one > one.txt; {LANE_CHANGES}"));
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox
}

/// A dirty checkout without a lane.
pub fn dirty_without_lanes() -> Sandbox {
    let sandbox = base_repo();
    sandbox.sh(DIRTY_CHANGES);
    sandbox
}

/// A dirty checkout and two lanes with commits.
pub fn dirty_with_lanes() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.sh(DIRTY_CHANGES);
    sandbox
}

/// A preview of lane one over a dirty checkout.
pub fn preview_over_dirty() -> Sandbox {
    let sandbox = dirty_with_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox
}

/// A preview over a dirty checkout, with edits made while it is open.
pub fn edited_preview() -> Sandbox {
    let sandbox = preview_over_dirty();
    sandbox.sh("echo edited > one.txt; echo idea > idea.txt; echo c > chosen.txt; git add chosen.txt");
    sandbox
}

/// An edited preview whose lane has newer commits.
pub fn outdated_preview() -> Sandbox {
    let sandbox = edited_preview();
    sandbox.commit_in_lane("one", "echo later > later.txt; git rm -q b.txt");
    sandbox
}

/// A preview with a commit made in it, which belongs to the lane.
pub fn preview_with_commit() -> Sandbox {
    let sandbox = preview_over_dirty();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix; echo after > one.txt");
    sandbox
}

/// A preview whose base has moved since, in a file that the user had changed as well.
pub fn preview_with_moved_base() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.commit_in_lane("two", "sed -i 1s/.*/first/ long.txt");
    sandbox.sh("echo last >> long.txt; mkdir made; echo notes > made/notes.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    sandbox
}

/// A dirty checkout with a change in a file that lane one changes elsewhere.
pub fn changes_in_the_way() -> Sandbox {
    let sandbox = dirty_with_lanes();
    sandbox.commit_in_lane("one", "sed -i 1s/.*/first/ long.txt");
    sandbox.sh("echo last >> long.txt");
    sandbox
}

/// A lane that changes lines which have changed on the base.
pub fn conflicting_lane() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.lane_with_commit("clash", "echo mine > shared.txt");
    sandbox.sh(&format!("echo theirs > shared.txt; git commit -qm theirs shared.txt; {DIRTY_CHANGES}"));
    sandbox
}

/// Lanes `clash` and `two`, which land together, and `one`, which conflicts with `clash`.
pub fn lanes_with_one_conflict() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.lane_with_commit("clash", "echo mine > shared.txt");
    sandbox.sh(DIRTY_CHANGES);
    sandbox
}

/// Two lanes whose base is checked out in no worktree.
pub fn base_not_checked_out() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.sh(&format!("git switch -q -c other; {DIRTY_CHANGES}"));
    sandbox
}

/// A lane with work of every kind that is on no base.
pub fn unfinished_lane() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.sh_in(
        &sandbox.lane_path("one"),
        "echo changed > one.txt; echo s > staged.txt; git add staged.txt; echo n > new.txt; echo d > debug.log
        mkdir build; echo o > build/out",
    );
    sandbox
}

/// A lane that has landed and was kept.
pub fn landed_lane() -> Sandbox {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    sandbox
}

/// A snapshot that can be restored onto a clean checkout.
pub fn restorable_snapshot() -> Sandbox {
    let sandbox = dirty_with_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    sandbox
}
