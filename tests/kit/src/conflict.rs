//! A lane with a conflict on record, an agent that resolves it, and the commands of hints.

use crate::Sandbox;

/// The file of [`sandbox_with_conflict`] with both sides kept.
pub const RESOLVED: &str = "1 x\nlane 2\n3 x\n4 x\nmain and lane 5\n6 x\n7 x\nmain 8\n9 x\n";

/// Script of a good agent, which keeps both sides.
pub const GOOD_SCRIPT: &str = r"sed -i -e '/^<<<<<<<\|^=======\|^>>>>>>>/d' -e '/^lane 5/d' -e 's/^main 5/main and lane 5/' long.txt
git add long.txt; echo both kept";

/// Returns a sandbox with a lane that changes lines 2 and 5, a base that changes 5 and 8, and the conflict on
/// record.
pub fn sandbox_with_conflict() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("long.txt", "1 x\n2 x\n3 x\n4 x\n5 x\n6 x\n7 x\n8 x\n9 x\n");
    sandbox.commit_all("base");
    sandbox.program(
        "plain-agent",
        "sed -i -e 's/^2 x/lane 2/' -e 's/^5 x/lane 5/' long.txt; git commit -qam 'Say lane'",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "clash", "plain-agent", "Say lane everywhere"]).ok();
    sandbox.sh("sed -i -e 's/^5 x/main 5/' -e 's/^8 x/main 8/' long.txt; git commit -qam 'main goes on'");
    let _ = sandbox.proq(&["merge", "clash"]).fails(3);
    sandbox.program("good", GOOD_SCRIPT);
    sandbox
}

/// Returns the path of the worktree in which the conflict of lane `clash` is resolved.
pub fn resolve_worktree(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.lane_path(".resolve/clash")
}

/// Returns the commands of the hints in an output.
pub fn hint_commands(sandbox: &Sandbox, text: &str) -> Vec<String> {
    sandbox.hint_commands(text)
}
