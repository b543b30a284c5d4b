//! Snapshot tests of the recorded streams: events and summary of each one, in a file next to the recording.

use std::collections::BTreeSet;

use super::{RECORDED_AGENTS, fixture_dir, recorded_exit_codes, replay};

#[test]
fn recorded_streams_match_snapshots() {
    for (agent, _) in RECORDED_AGENTS {
        for (scenario, _) in recorded_exit_codes(agent) {
            let (events, summary) = replay(agent, &scenario);
            let mut shown = String::new();
            for event in &events {
                shown += &serde_json::to_string(event).unwrap();
                shown.push('\n');
            }
            shown += &serde_json::to_string_pretty(&summary).unwrap();
            insta::with_settings!({
                snapshot_path => fixture_dir(agent),
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, { insta::assert_snapshot!(scenario, shown) });
        }
    }
}

#[test]
fn every_recorded_stream_has_exit_code() {
    for (agent, _) in RECORDED_AGENTS {
        let listed: BTreeSet<String> = recorded_exit_codes(agent).into_iter().map(|(name, _)| name).collect();
        let mut recorded = BTreeSet::new();
        for entry in std::fs::read_dir(fixture_dir(agent)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let (stem, extension) = name.rsplit_once('.').unwrap();
            if ["jsonl", "txt"].contains(&extension) && stem != "exit-codes" {
                recorded.insert(stem.to_owned());
            }
        }
        assert_eq!(listed, recorded, "{agent}");
    }
}
