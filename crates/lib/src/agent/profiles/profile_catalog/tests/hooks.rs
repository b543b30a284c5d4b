//! Tests of hooks in profiles: which agents have them, and the command that they run.

use super::*;

#[test]
fn codex_starts_hooks_when_enabled() {
    let all =
        profiles_with_user_config("[agents.codex]\ncapabilities.hooks = true\ncapabilities.stop_gate = true\n[agents.claude]\ncapabilities.hooks = false\n")
            .unwrap();
    let start = |name: &str| command_line(&all[name], &all[name].args.start, Permission::Edit, &samples());
    assert!(start("codex").contains("--dangerously-bypass-hook-trust"), "{}", start("codex"));
    for (event, kind) in [
        ("UserPromptSubmit", "prompt"),
        ("PermissionRequest", "permission"),
        ("PostToolUse", "tool"),
        ("Stop", "stop"),
    ] {
        let words = all["codex"].expand_args(&all["codex"].args.resume, Permission::Edit, &samples());
        let word =
            words.iter().find_map(|word| word.to_str()?.strip_prefix(&format!("hooks.{event}="))).unwrap();
        let table: toml::Table = toml::from_str(&format!("x={word}")).unwrap();
        let hook = &table["x"][0]["hooks"][0];
        assert_eq!(hook["command"].as_str(), Some(&*format!("\"$PROQ_PROGRAM\" _agent-event {kind}")));
    }
    assert!(all["codex"].capabilities.stop_gate);
    // An agent without hooks cannot have its end of turn refused.
    assert!(!all["claude"].capabilities.stop_gate);
}
