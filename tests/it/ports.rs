//! Owns the tests of the ports that each lane has: who finds them, that nobody else has them, and that they come free again.

use std::net::TcpListener;

use super::support::Sandbox;

fn port(sandbox: &Sandbox, lane: &str) -> u16 {
    let shown = sandbox.proq(&["show", lane, "--json"]).json();
    shown["port"].as_u64().unwrap_or(0).try_into().unwrap()
}

/// What a program finds of its ports.
const FOUND: &str = "env | grep '^PROQ_PORT' | sort -t_ -k3 -n | cut -d= -f2 | tr '\\n' ' '";

fn ten(first: u16) -> String {
    let all: Vec<String> = (first..first + 10).map(|port| port.to_string()).collect();
    all.join(" ") + " "
}

#[test]
fn agent_checks_and_hooks_find_the_ports_of_their_lane() {
    let sandbox = Sandbox::new();
    sandbox.pipe("hook");
    let hook = format!("{FOUND} > $ROOT/hook");
    sandbox.git(&["config", "proq.hook.run.ended", &hook]);
    sandbox.git(&["config", "proq.hook.pre-remove", &format!("{FOUND} > $ROOT/removed")]);
    let check = format!("{FOUND} > $ROOT/check");
    sandbox.program("robot", &format!("{FOUND} > $ROOT/agent"));
    let spawn = ["spawn", "--wait", "-n", "x", "--check", &check, "robot", "do it"];
    let _ = sandbox.proq(&spawn).ok();
    let first = port(&sandbox, "x");
    assert!((20_000..=31_990).contains(&first) && first.is_multiple_of(10), "{first}");
    assert_eq!(sandbox.hear("hook"), ten(first));
    let told = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    assert_eq!((told("agent"), told("check")), (ten(first), ten(first)));
    // The sandbox leaves that line out of what commands say.
    let shown = sandbox.proq_command(&sandbox.repo, &["show", "x"]).output().unwrap();
    let line = format!("ports      {first}-{}\n", first + 9);
    assert!(String::from_utf8_lossy(&shown.stdout).contains(&line));
    // It keeps them.
    let _ = sandbox.proq(&["run", "x", "robot", "--wait"]).ok();
    assert_eq!((port(&sandbox, "x"), told("agent")), (first, ten(first)));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(told("removed"), ten(first));
}

#[test]
fn what_is_checked_for_a_landing_has_ports_that_are_no_lanes() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo one > one");
    sandbox.git(&["config", "proq.verify.commands", &format!("{FOUND} > $ROOT/verify")]);
    let taken = port(&sandbox, "x");
    let mut merge = sandbox.proq_command(&sandbox.repo, &["merge", "x"]);
    // As if an agent of another lane had begun it.
    merge.env("PROQ_PORT", "1").env("PROQ_PORT_9", "2");
    let _ = sandbox.output(merge).ok();
    let found = std::fs::read_to_string(sandbox.root().join("verify")).unwrap();
    let first: u16 = found.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(found, ten(first));
    assert_ne!(first, taken);
}

#[test]
fn nobody_gets_what_another_has_or_listens_at_and_what_a_lane_had_is_free_again() {
    let sandbox = Sandbox::new();
    let empty = |name: &str| {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
        port(&sandbox, name)
    };
    // Two blocks are all that there is.
    let first = empty("a");
    let _ = sandbox.proq(&["discard", "a"]).ok();
    assert_eq!(empty("a"), first, "free again");
    let range = format!("{first}-{}", first + 10);
    sandbox.git(&["config", "proq.lane.ports", &range]);
    let said = sandbox.proq(&["spawn", "--empty", "-n", "b"]).stderr;
    assert_eq!(port(&sandbox, "b"), 0, "there is one block, and it is a's");
    let warning = format!(
        "lane 'b' has no ports: other lanes have all of lane.ports ({range}), or somebody listens there\n"
    );
    assert!(said.contains(&warning), "{said}");
    sandbox.program("robot", &format!("{FOUND} > $ROOT/agent"));
    // As if an agent of another lane had begun it.
    let mut run = sandbox.proq_command(&sandbox.repo, &["run", "b", "robot", "do it", "--wait"]);
    run.env("PROQ_PORT", "1").env("PROQ_PORT_9", "2");
    let _ = sandbox.output(run).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("agent")).unwrap(), "");
    let _ = sandbox.proq(&["discard", "a"]).ok();
    let listener = TcpListener::bind(("127.0.0.1", first + 4));
    if let Ok(listener) = listener {
        assert_eq!(empty("c"), 0, "somebody listens there");
        drop(listener);
        let _ = sandbox.proq(&["discard", "c"]).ok();
    }
    assert_eq!(empty("d"), first);
    sandbox.git(&["config", "proq.lane.ports", ""]);
    let said = sandbox.proq(&["spawn", "--empty", "-n", "e"]).stderr;
    assert!(port(&sandbox, "e") == 0 && !said.contains("ports"), "nobody wants any: {said}");
    for range in ["80-99", "2000-2008", "3000"] {
        sandbox.git(&["config", "proq.lane.ports", range]);
        let said = sandbox.proq(&["list"]).fails(1);
        assert!(
            said.contains("it takes the first and the last of ten ports or more, none below 1024"),
            "{said}"
        );
    }
}

#[test]
fn a_lane_that_comes_back_to_find_its_ports_given_away_gets_others() {
    let sandbox = super::looking::with_claude("say yes");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
    let first = port(&sandbox, "old");
    let _ = sandbox.proq(&["discard", "old"]).ok();
    sandbox.git(&["config", "proq.lane.ports", &format!("{first}-{}", first + 9)]);
    // One that only looks is no operation, so the last one is still that.
    let _ = sandbox.proq(&["spawn", "-n", "new", "--mode", "answer", "--wait", "claude", "y?"]).ok();
    assert_eq!(port(&sandbox, "new"), first);
    sandbox.git(&["config", "--unset", "proq.lane.ports"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(port(&sandbox, "old"), first, "as it was");
    sandbox.program("robot", &format!("{FOUND} > $ROOT/agent"));
    let _ = sandbox.proq(&["run", "old", "robot", "do it", "--wait"]).ok();
    let now = port(&sandbox, "old");
    assert!(now != 0 && now != first);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("agent")).unwrap(), ten(now));
    assert_eq!(port(&sandbox, "new"), first);
}
