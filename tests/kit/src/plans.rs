//! A repository with a plan, its agent, and whether a batch is at work.

use crate::Sandbox;

/// Installs an agent that records its run and commits a file named after its task; before that it runs the
/// script `more`.
pub fn install_worker(sandbox: &Sandbox, prelude: &str) {
    let script = format!(
        r#"
name=$(echo "$PROQ_TASK" | tr / -)
echo "$PROQ_TASK $PROQ_TASK_ATTEMPT" >> "$ROOT/ran"
{prelude}
echo "work of $PROQ_TASK" > "$name.txt"
git add -A && git commit -qm "work of $PROQ_TASK"
"#
    );
    sandbox.program("worker", &script);
}

/// Creates a repository with a plan in it.
pub fn repo_with_plan(plan: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("plan.toml", plan);
    install_worker(&sandbox, "");
    sandbox
}
