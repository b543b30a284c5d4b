//! Reading the event log, and waiting until an event is in it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::Sandbox;

impl Sandbox {
    /// Returns all events of this name, in order.
    #[track_caller]
    pub fn events(&self, name: &str) -> Vec<Value> {
        let all = self.proq(&["events", "--json"]).json();
        all["events"].as_array().unwrap().iter().filter(|event| event["event"] == name).cloned().collect()
    }

    /// Waits until `times` events of this name have happened in a lane.
    #[track_caller]
    pub fn wait_for_events(&self, name: &str, lane: &str, times: usize) {
        let mut command = self.command("timeout", &self.repo);
        command.args(["60", "git-proq", "events", "-f", "--json", "--last", "999"]);
        let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
        let seen = BufReader::new(follower.stdout.take().unwrap())
            .lines()
            .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
            .filter(|event| event["event"] == name && event["lane"] == lane)
            .take(times)
            .count();
        // `timeout` passes the signal on to the git-proq that it runs.
        let _ = self.sh(&format!("kill {} || true", follower.id()));
        follower.wait().unwrap();
        let all = self.proq(&["events"]).stdout;
        assert_eq!(seen, times, "{all}");
    }
}
