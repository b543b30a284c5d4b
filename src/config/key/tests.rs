//! Owns the tests of the table of settings.

use super::*;

#[test]
fn the_table_is_sorted_and_its_defaults_have_their_form() {
    assert!(KEYS.is_sorted_by(|a, b| a.name < b.name));
    for key in KEYS {
        assert!(key.form.accepts(key.default), "{}", key.name);
        assert!(!key.about.ends_with('.'), "{}", key.name);
    }
}

#[test]
fn keys_are_found_as_git_spells_them() {
    assert_eq!(Key::find("agent.stop-grace").unwrap().name, "agent.stop_grace");
    assert_eq!(Key::find("agent.stopGrace").unwrap().name, "agent.stop_grace");
    assert!(Key::find("agent.nothing").is_none());
    assert_eq!(Key::find("lock.timeout").unwrap().variable(), "PROQ_LOCK_TIMEOUT");
}
