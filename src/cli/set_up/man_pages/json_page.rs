//! The page about the outputs in JSON, made from their schemas.

use serde_json::Value;

use super::page_name;
use super::roff;
use crate::cli::set_up::schema::output_schemas;

/// Text before the keys of each command.
const DESCRIPTION: &str = "With --json, a command prints one object, also for an error: see ERROR below. The key \
    schema is the version of the form, 1. New keys may be added; a key keeps its meaning. Keys with a question mark \
    are left out where they have nothing to say. A key after [] is one of each object in a list. Times are in UTC as \
    in 2026-11-30T22:03:00Z, durations in seconds, and commits full object ids.\n\nThe same as JSON Schema: `git proq \
    schema COMMAND`. Commands that follow something print an object a line: events --follow, list --watch.";

/// Returns the page.
pub(super) fn json_page() -> String {
    let mut out = roff::title("git-proq-json", 5, "Output of git-proq in JSON");
    out.push_str(".SH SYNOPSIS\n.nf\ngit proq \\fIcommand\\fR \\-\\-json\n.fi\n");
    out.push_str(&roff::paragraphs("DESCRIPTION", DESCRIPTION));
    for (command, schema) in output_schemas() {
        out.push_str(&format!(".SH \"{}\"\n", roff::escape(&command.to_uppercase())));
        let mut keys = Vec::new();
        list_keys("", &schema, &mut keys);
        out.extend(keys.iter().map(|(key, form)| roff::entry(key, form)));
    }
    let pages = [("git-proq".to_owned(), 1), page_name("schema", 1), page_name("events", 1)];
    out + &roff::see_also(&pages)
}

/// Adds the keys of an object, and of the objects in it, each with the form of its value.
fn list_keys(prefix: &str, schema: &Value, keys: &mut Vec<(String, String)>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, value) in properties.iter().filter(|(name, _)| !(prefix.is_empty() && *name == "schema")) {
        let (key, mark) =
            (format!("{prefix}{name}"), if required.contains(&name.as_str()) { "" } else { "?" });
        keys.push((format!("{key}{mark}"), describe(value)));
        list_keys(&format!("{key}."), value, keys);
        list_keys(&format!("{key}[]."), &value["items"], keys);
    }
}

/// Returns the form of a value in words.
fn describe(schema: &Value) -> String {
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let words: Vec<String> = types
        .iter()
        .map(|name| match name.as_str().unwrap_or("any value") {
            "array" if schema["items"]["type"].is_null() => "list".to_owned(),
            "array" => format!("list: {}", describe(&schema["items"])),
            name => name.to_owned(),
        })
        .collect();
    words.join(" or ")
}
