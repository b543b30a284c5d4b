//! Tests of the TCP ports reserved for each lane: which commands get them, that no other lane does, and that
//! they are released.

use std::net::TcpListener;

use proq_test_kit::Sandbox;

fn first_port(sandbox: &Sandbox, lane: &str) -> u16 {
    let shown = sandbox.proq(&["show", lane, "--json"]).json();
    shown["port"].as_u64().unwrap_or(0).try_into().unwrap()
}

/// Shell command that prints the ports in its environment, in order.
const PRINT_PORTS: &str = "env | grep '^PROQ_PORT' | sort -t_ -k3 -n | cut -d= -f2 | tr '\\n' ' '";

fn ten_ports(first: u16) -> String {
    let all: Vec<String> = (first..first + 10).map(|port| port.to_string()).collect();
    all.join(" ") + " "
}

#[test]
fn agents_checks_and_hooks_get_the_ports_of_their_lane() {
    let sandbox = Sandbox::new();
    sandbox.pipe("hook");
    let hook = format!("{PRINT_PORTS} > $ROOT/hook");
    sandbox.git(&["config", "proq.hook.run.ended", &hook]);
    sandbox.git(&["config", "proq.hook.pre-remove", &format!("{PRINT_PORTS} > $ROOT/removed")]);
    let check = format!("{PRINT_PORTS} > $ROOT/check");
    sandbox.program("robot", &format!("{PRINT_PORTS} > $ROOT/agent"));
    let spawn = ["spawn", "--wait", "-n", "x", "--check", &check, "robot", "do it"];
    let _ = sandbox.proq(&spawn).ok();
    let first = first_port(&sandbox, "x");
    assert!((20_000..=31_990).contains(&first) && first.is_multiple_of(10), "{first}");
    assert_eq!(sandbox.read_pipe("hook"), ten_ports(first));
    let read_output = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    assert_eq!((read_output("agent"), read_output("check")), (ten_ports(first), ten_ports(first)));
    // The sandbox removes that line from the output of commands.
    let shown = sandbox.proq_command(&sandbox.repo, &["show", "x"]).output().unwrap();
    let line = format!("ports      {first}-{}\n", first + 9);
    assert!(String::from_utf8_lossy(&shown.stdout).contains(&line));
    // Later runs of the lane get the same ports.
    let _ = sandbox.proq(&["run", "x", "robot", "--wait"]).ok();
    assert_eq!((first_port(&sandbox, "x"), read_output("agent")), (first, ten_ports(first)));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(read_output("removed"), ten_ports(first));
}

#[test]
fn checks_of_a_landing_get_ports_of_no_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo one > one");
    sandbox.git(&["config", "proq.verify.commands", &format!("{PRINT_PORTS} > $ROOT/verify")]);
    let taken = first_port(&sandbox, "x");
    let mut merge = sandbox.proq_command(&sandbox.repo, &["merge", "x"]);
    // The environment of an agent in another lane.
    merge.env("PROQ_PORT", "1").env("PROQ_PORT_9", "2");
    let _ = sandbox.output(merge).ok();
    let ports = std::fs::read_to_string(sandbox.root().join("verify")).unwrap();
    let first: u16 = ports.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(ports, ten_ports(first));
    assert_ne!(first, taken);
}

/// Promise: new-lane/ports
#[test]
fn assigns_only_free_ports_and_reuses_released_ones() {
    let sandbox = Sandbox::new();
    let spawn_lane = |name: &str| {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
        first_port(&sandbox, name)
    };
    // A released block is assigned again; the range set after that allows one block only.
    let first = spawn_lane("a");
    let _ = sandbox.proq(&["discard", "a"]).ok();
    assert_eq!(spawn_lane("a"), first, "free again");
    let range = format!("{first}-{}", first + 10);
    sandbox.git(&["config", "proq.lane.ports", &range]);
    let stderr = sandbox.proq(&["spawn", "--empty", "-n", "b"]).stderr;
    assert_eq!(first_port(&sandbox, "b"), 0, "there is one block, and it is a's");
    let warning = format!(
        "lane 'b' has no ports: other lanes have all of lane.ports ({range}), or another program uses them\n"
    );
    assert!(stderr.contains(&warning), "{stderr}");
    sandbox.program("robot", &format!("{PRINT_PORTS} > $ROOT/agent"));
    // The environment of an agent in another lane.
    let mut run = sandbox.proq_command(&sandbox.repo, &["run", "b", "robot", "do it", "--wait"]);
    run.env("PROQ_PORT", "1").env("PROQ_PORT_9", "2");
    let _ = sandbox.output(run).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("agent")).unwrap(), "");
    let _ = sandbox.proq(&["discard", "a"]).ok();
    let listener = TcpListener::bind(("127.0.0.1", first + 4));
    if let Ok(listener) = listener {
        assert_eq!(spawn_lane("c"), 0, "somebody listens there");
        drop(listener);
        let _ = sandbox.proq(&["discard", "c"]).ok();
    }
    assert_eq!(spawn_lane("d"), first);
    sandbox.git(&["config", "proq.lane.ports", ""]);
    let stderr = sandbox.proq(&["spawn", "--empty", "-n", "e"]).stderr;
    assert!(first_port(&sandbox, "e") == 0 && !stderr.contains("ports"), "nobody wants any: {stderr}");
    for range in ["80-99", "2000-2008", "3000"] {
        sandbox.git(&["config", "proq.lane.ports", range]);
        let refusal = sandbox.proq(&["cleanup"]).fails(1);
        assert!(
            refusal.contains("expected the first and the last of ten ports or more, none below 1024"),
            "{refusal}"
        );
    }
}

#[test]
fn restored_lane_gets_new_ports_if_its_own_are_taken() {
    let sandbox = proq_test_kit::claude::with_claude("say yes");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
    let first = first_port(&sandbox, "old");
    let _ = sandbox.proq(&["discard", "old"]).ok();
    sandbox.git(&["config", "proq.lane.ports", &format!("{first}-{}", first + 9)]);
    // A read-only run is not an operation, so the discard is still the last one.
    let _ = sandbox.proq(&["spawn", "-n", "new", "--mode", "answer", "--wait", "claude", "y?"]).ok();
    assert_eq!(first_port(&sandbox, "new"), first);
    sandbox.git(&["config", "--unset", "proq.lane.ports"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(first_port(&sandbox, "old"), first, "as it was");
    sandbox.program("robot", &format!("{PRINT_PORTS} > $ROOT/agent"));
    let _ = sandbox.proq(&["run", "old", "robot", "do it", "--wait"]).ok();
    let new_port = first_port(&sandbox, "old");
    assert!(new_port != 0 && new_port != first);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("agent")).unwrap(), ten_ports(new_port));
    assert_eq!(first_port(&sandbox, "new"), first);
}
