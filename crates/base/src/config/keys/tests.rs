//! Tests of the table of settings.

use super::*;

#[test]
fn keys_are_sorted_with_valid_defaults() {
    assert!(KEYS.is_sorted_by(|a, b| a.name < b.name));
    for key in KEYS.iter() {
        assert!(key.format.accepts(key.default), "{}", key.name);
        assert!(!key.summary.ends_with('.'), "{}", key.name);
    }
}

#[test]
fn finds_keys_in_git_spelling() {
    assert_eq!(Key::find("agent.stop-grace").unwrap().name, "agent.stop_grace");
    assert_eq!(Key::find("agent.stopGrace").unwrap().name, "agent.stop_grace");
    assert!(Key::find("agent.nothing").is_none());
    assert_eq!(Key::find("lock.timeout").unwrap().env_var_name(), "PROQ_LOCK_TIMEOUT");
}
