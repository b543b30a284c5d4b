//! Owns the recorded streams as events and summaries, each in a file beside them.

use std::collections::BTreeSet;

use super::{RECORDED, endings, folder, replay};

#[test]
fn every_recorded_stream_is_read_as_it_was_looked_at() {
    for (agent, _) in RECORDED {
        for (scenario, _) in endings(agent) {
            let (events, summary) = replay(agent, &scenario);
            let mut shown = String::new();
            for event in &events {
                shown += &serde_json::to_string(event).unwrap();
                shown.push('\n');
            }
            shown += &serde_json::to_string_pretty(&summary).unwrap();
            insta::with_settings!({
                snapshot_path => folder(agent),
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, { insta::assert_snapshot!(scenario, shown) });
        }
    }
}

#[test]
fn no_recorded_stream_is_left_out() {
    for (agent, _) in RECORDED {
        let told: BTreeSet<String> = endings(agent).into_iter().map(|(name, _)| name).collect();
        let mut there = BTreeSet::new();
        for entry in std::fs::read_dir(folder(agent)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let (stem, ending) = name.rsplit_once('.').unwrap();
            if ["jsonl", "txt"].contains(&ending) && stem != "exit-codes" {
                there.insert(stem.to_owned());
            }
        }
        assert_eq!(told, there, "{agent}");
    }
}
