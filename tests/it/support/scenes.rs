//! Owns repositories in the states that commands find them in: a dirty checkout with lanes, an open preview, a landing
//! that conflicts.

use super::Sandbox;

/// Some files of every kind, committed.
const BASE: &str = r"
    mkdir dir; echo b > b.txt; echo c > dir/c.txt; echo gone > dir/gone.txt; echo 'one line for all' > shared.txt
    seq 1 30 > long.txt; printf '#!/bin/sh\n' > run.sh; ln -s a.txt link; printf '*.log\nbuild/\n' > .gitignore";

/// What a lane does besides a file of its own.
const CHANGES: &str =
    "echo changed > shared.txt; git rm -q dir/c.txt; chmod +x run.sh; mkdir deep; echo one > deep/one";

/// Every kind of change that a checkout can have at once.
const DIRTY: &str = r"
    echo staged > b.txt; echo new > staged.txt; git add b.txt staged.txt; echo later > b.txt; echo changed > a.txt
    echo notes > notes.txt; mkdir 'new dir'; echo n > 'new dir/with space.txt'; echo n > planned.txt; echo d > debug.log
    git add -N planned.txt; rm dir/gone.txt; chmod +x a.txt; ln -sf b.txt link; ln -s nowhere dangling";

fn base() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(BASE);
    sandbox.commit_all("base");
    sandbox
}

/// A clean checkout of files of every kind.
pub fn clean() -> Sandbox {
    base()
}

/// The same with a setting of which only git knows what it means for the files it makes for itself.
pub fn shared() -> Sandbox {
    let sandbox = base();
    sandbox.git(&["config", "core.sharedRepository", "umask"]);
    sandbox
}

/// A clean checkout and two lanes with commits.
pub fn two_lanes() -> Sandbox {
    let sandbox = base();
    sandbox.lane_of("one", &format!("echo one > one.txt; {CHANGES}"));
    sandbox.lane_of("two", "echo two > two.txt");
    sandbox
}

/// A dirty checkout without a lane.
pub fn carried() -> Sandbox {
    let sandbox = base();
    sandbox.sh(DIRTY);
    sandbox
}

/// A dirty checkout and two lanes with commits.
pub fn dirty() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.sh(DIRTY);
    sandbox
}

/// A preview of lane one over a dirty checkout.
pub fn shown() -> Sandbox {
    let sandbox = dirty();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox
}

/// The same with edits made while it is shown.
pub fn edited() -> Sandbox {
    let sandbox = shown();
    sandbox.sh("echo edited > one.txt; echo idea > idea.txt; echo c > chosen.txt; git add chosen.txt");
    sandbox
}

/// The same, and its lane has gone on.
pub fn outdated() -> Sandbox {
    let sandbox = edited();
    sandbox.commit_in_lane("one", "echo later > later.txt; git rm -q b.txt");
    sandbox
}

/// A preview with a commit of its own, which belongs to the lane.
pub fn committed() -> Sandbox {
    let sandbox = shown();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix; echo after > one.txt");
    sandbox
}

/// A preview whose base has moved meanwhile, in a file that the user had changed as well.
pub fn moved() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.commit_in_lane("two", "sed -i 1s/.*/first/ long.txt");
    sandbox.sh("echo last >> long.txt; mkdir made; echo notes > made/notes.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    sandbox
}

/// A lane that changes what has changed on the base.
pub fn conflicting() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.lane_of("clash", "echo mine > shared.txt");
    sandbox.sh(&format!("echo theirs > shared.txt; git commit -qm theirs shared.txt; {DIRTY}"));
    sandbox
}

/// Two lanes that land together, `clash` and `two`, and `one`, which conflicts with the first.
pub fn all_lanes() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.lane_of("clash", "echo mine > shared.txt");
    sandbox.sh(DIRTY);
    sandbox
}

/// The base is checked out nowhere.
pub fn elsewhere() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.sh(&format!("git switch -q -c other; {DIRTY}"));
    sandbox
}

/// A lane with work of every kind that is on no base.
pub fn unfinished() -> Sandbox {
    let sandbox = two_lanes();
    sandbox.sh_in(
        &sandbox.lane("one"),
        "echo changed > one.txt; echo s > staged.txt; git add staged.txt; echo n > new.txt; echo d > debug.log
        mkdir build; echo o > build/out",
    );
    sandbox
}

/// A lane that has landed and was kept.
pub fn landed() -> Sandbox {
    let sandbox = two_lanes();
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    sandbox
}

/// A snapshot that can be brought back onto a clean checkout.
pub fn thrown_away() -> Sandbox {
    let sandbox = dirty();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    sandbox
}
