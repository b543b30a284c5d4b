//! Values of settings in TOML as the texts that the other sources of settings have.

use super::key::Key;
use super::value_format::ValueFormat;

/// Returns whether a setting is a list with one value per line.
pub(super) fn is_list_key(key: &Key) -> bool {
    matches!(key.format, ValueFormat::Commands | ValueFormat::AreaFolders | ValueFormat::Patterns)
}

/// Returns the event whose commands `hook.EVENT` sets. `hook.timeout` and the like are settings.
pub(super) fn hook_event(name: &str) -> Option<&str> {
    name.strip_prefix("hook.").filter(|event| event.contains('.') || event.starts_with("pre-"))
}

/// Converts a TOML value to the text that other layers would pass. Returns none for a list with items other
/// than single lines.
pub(super) fn toml_value_text(name: &str, value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Array(items) if Key::find(name).map_or(hook_event(name).is_some(), is_list_key) => {
            let single_line =
                |item: &toml::Value| item.as_str().filter(|l| !l.contains('\n')).map(ToOwned::to_owned);
            items.iter().map(single_line).collect::<Option<Vec<_>>>().map(|lines| lines.join("\n"))
        }
        other => Some(other.to_string()),
    }
}

/// Appends the values of a table and of the tables in it, each with its keys joined by dots.
pub(super) fn flatten_table<'t>(
    prefix: &str,
    table: &'t toml::Table,
    out: &mut Vec<(String, &'t toml::Value)>,
) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten_table(&key, inner, out),
            value => out.push((key, value)),
        }
    }
}
