//! Every shell block of README.md and the guide runs, in the order of its page.
//!
//! A block runs in a new repository of the page, where known agents are stand-ins. Invisible comments prepare
//! it: `<!-- test` to `-->` is a script that runs before the next block, `<!-- exit 3 -->` names the exit code
//! of the next block, and `<!-- not run: REASON -->` leaves it out.

use std::time::{Duration, Instant};

use proq_test_kit::Sandbox;

use super::readme::{guide_pages, read_page};

/// Pages with the number of their blocks that cannot run here. The page has the reason of each.
const NOT_RUN: &[(&str, usize)] = &[
    ("README.md", 2),
    ("docs/guide/agents.md", 4),
    ("docs/guide/hooks.md", 2),
    ("docs/guide/installing.md", 3),
    ("docs/guide/landing.md", 1),
    ("docs/guide/plans.md", 3),
    ("docs/guide/recipes.md", 2),
];

/// Stand-in for an agent: it adds a file to its lane, if it has a branch of its own, and answers.
const AGENT: &str = r#"cat > /dev/null
if git rev-parse --abbrev-ref HEAD | grep -q ^proq/; then
    mkdir -p src; echo "$$" >> "src/$(basename "$PWD").txt"; git add -A; git commit -qm "Work of $(basename "$PWD")"
fi
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m"}'
echo '{"type":"thread.started","thread_id":"s-1"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"In src/tax.rs."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":2}}'
echo '{"type":"result","subtype":"success","status":"success","is_error":false,"result":"In src/tax.rs.","session_id":"s-1"}'"#;

/// Part of a page that runs, or is left out.
#[derive(Debug, PartialEq)]
enum Block {
    /// Script, and the exit code that it has to end with.
    Run(String, i32),
    /// Shell block that cannot run here.
    NotRun,
}

/// Returns the blocks of a page in their order, those that prepare others included.
fn blocks(page: &str) -> Vec<Block> {
    let (mut out, mut exit, mut is_left_out) = (Vec::new(), 0, false);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(reason) = line.strip_prefix("<!-- not run: ").and_then(|l| l.strip_suffix(" -->")) {
            assert!(reason.len() > 10, "{line}");
            is_left_out = true;
        } else if let Some(code) = line.strip_prefix("<!-- exit ").and_then(|l| l.strip_suffix(" -->")) {
            exit = code.parse().unwrap();
        } else if line == "<!-- test" {
            let script: Vec<&str> = lines.by_ref().take_while(|line| *line != "-->").collect();
            out.push(Block::Run(script.join("\n"), 0));
        } else if let Some(language) = line.trim_start().strip_prefix("```") {
            let text: Vec<&str> =
                lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
            match language {
                "sh" if is_left_out => out.push(Block::NotRun),
                "sh" => out.push(Block::Run(text.join("\n"), exit)),
                "text" | "toml" | "json" | "markdown" | "yaml" => assert!(!is_left_out, "{page}"),
                _ => panic!("a block of the language '{language}'"),
            }
            (exit, is_left_out) = (0, false);
        }
    }
    out
}

fn run_page(name: &str) {
    let sandbox = Sandbox::new();
    for agent in ["claude", "codex", "gemini", "opencode"] {
        sandbox.program(agent, AGENT);
    }
    // A block begins in the folder in which the one before ended.
    sandbox.write_in(&sandbox.root(), "folder", &sandbox.repo.display().to_string());
    for block in blocks(&read_page(name)) {
        let Block::Run(script, exit) = block else { continue };
        let mut command = sandbox.command("bash", &sandbox.repo);
        let script = format!("cd \"$(cat $ROOT/folder)\"; trap 'pwd > $ROOT/folder' EXIT\n{script}");
        command.args(["-euo", "pipefail", "-c", &script]);
        let out = sandbox.output(command);
        assert_eq!(out.code, exit, "{name}\n{script}\n--- stdout\n{}--- stderr\n{}", out.stdout, out.stderr);
    }
    let _ = sandbox.proq(&["stop", "--all"]);
}

/// The first steps of a newcomer: from an empty home to a first landing, pasted from the top.
#[test]
fn readme_blocks_run_within_two_minutes() {
    let begin = Instant::now();
    run_page("README.md");
    assert!(begin.elapsed() < Duration::from_mins(2));
}

#[test]
fn blocks_of_the_guide_run() {
    let pages = guide_pages();
    // Each page has a repository of its own, and waits for agents most of its time.
    std::thread::scope(|scope| {
        let runs = pages.iter().map(|page| (page, scope.spawn(|| run_page(page)))).collect::<Vec<_>>();
        let failed = runs.into_iter().filter_map(|(page, run)| run.join().is_err().then_some(page));
        assert_eq!(failed.collect::<Vec<_>>(), [""; 0]);
    });
}

#[test]
fn few_blocks_are_left_out() {
    let pages = ["README.md".to_owned()].into_iter().chain(guide_pages());
    let mut found = Vec::new();
    for page in pages {
        let count = blocks(&read_page(&page)).iter().filter(|block| **block == Block::NotRun).count();
        if count > 0 {
            found.push((page, count));
        }
    }
    let expected: Vec<_> = NOT_RUN.iter().map(|(page, count)| ((*page).to_owned(), *count)).collect();
    assert_eq!(found, expected);
}

#[test]
fn splits_pages_into_blocks() {
    let page = "<!-- test\na\n-->\n```sh\nb\n```\n<!-- exit 3 -->\n```sh\nc\n```\n\
                <!-- not run: needs a network -->\n```sh\nd\n```\n```toml\ne\n```\n";
    let run = |script: &str, exit| Block::Run(script.to_owned(), exit);
    assert_eq!(blocks(page), [run("a", 0), run("b", 0), run("c", 3), Block::NotRun]);
}
