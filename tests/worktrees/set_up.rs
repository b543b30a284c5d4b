//! Files of a new lane: copies, links, and the file with its names and ports.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use proq_test_kit::Sandbox;

/// Returns a sandbox with ignore rules and this list of files to copy.
fn sandbox_with_include_list(list: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\n*.key\ncache/\nnode_modules/\n");
    sandbox.write(".worktreeinclude", list);
    sandbox.commit_all("rules");
    sandbox
}

fn spawn_lane(sandbox: &Sandbox, name: &str) -> String {
    let out = sandbox.proq(&["spawn", "--empty", "-n", name]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    out.stderr
}

/// Returns the files of a lane that git does not track.
fn untracked_files(sandbox: &Sandbox, lane: &str) -> Vec<String> {
    let dir = sandbox.lane_path(lane);
    let out = sandbox.git_in(&dir, &["ls-files", "--others"]);
    out.lines().map(ToOwned::to_owned).collect()
}

/// Promise: new-lane/set-up-overwrites-nothing
#[test]
fn copies_ignored_files_named_in_the_list() {
    let sandbox = sandbox_with_include_list(".env\ncache/\n!cache/tmp/\n/deep/*.key\n*.txt\n# no.key\n");
    for file in [".env", "web/.env", "cache/a/b", "cache/tmp/x", "deep/a.key", "other.key"] {
        sandbox.write(file, file);
    }
    // Another project's file, in a folder that is ignored as one.
    sandbox.write("node_modules/x/.env", "theirs");
    sandbox.write("note.txt", "mine");
    // Changed but committed: the lane has the committed version.
    sandbox.write("a.txt", "dirty\n");
    let stderr = spawn_lane(&sandbox, "x");
    assert_eq!(untracked_files(&sandbox, "x"), [".env", "cache/a/b", "deep/a.key", "web/.env"]);
    assert!(
        stderr.contains(
            "not copied, since git does not ignore it in the lane and it would be committed there: note.txt\n"
        ),
        "{stderr}"
    );
    let lane = sandbox.lane_path("x");
    assert_eq!(std::fs::read_to_string(lane.join("a.txt")).unwrap(), "a\n");
    assert_eq!(std::fs::read_to_string(lane.join("web/.env")).unwrap(), "web/.env");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    // A copy is independent of its source.
    std::fs::write(lane.join(".env"), "changed").unwrap();
    assert_eq!(sandbox.read(".env"), ".env");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(lane.join(".env")).unwrap(), "changed");
    sandbox.assert_healthy();
}

#[test]
fn verbose_lists_copies_and_unmatched_patterns() {
    let sandbox = sandbox_with_include_list("# secrets\n.env\n.evn\n!cache/tmp/\n\na.txt\n");
    for file in [".env", "web/.env", "cache/a", "node_modules/x"] {
        sandbox.write(file, file);
    }
    sandbox.git(&["config", "--add", "proq.lane.copy", "cashe/"]);
    sandbox.git(&["config", "--add", "proq.lane.copy", ".env"]);
    sandbox.git(&["config", "--add", "proq.lane.copy", "../secrets"]);
    sandbox.git(&["config", "--add", "proq.lane.link", "node_modules/"]);
    sandbox.git(&["config", "--add", "proq.lane.link", "modules/"]);
    sandbox.git(&["config", "proq.lane.setup", "true"]);
    let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", "x"]);
    let notes: Vec<&str> = out.stderr.lines().filter(|line| !line.starts_with("files: ")).collect();
    let unmatched = "matches no uncommitted file of the main checkout";
    let expected = [
        &format!(".worktreeinclude: '.evn' {unmatched}"),
        &format!(".worktreeinclude: 'a.txt' {unmatched}"),
        &format!("lane.copy: 'cashe/' {unmatched}"),
        &format!("lane.copy: '../secrets' {unmatched}"),
        &format!("lane.link: 'modules/' {unmatched}"),
        "linked to the main checkout: node_modules",
        "copied from the main checkout: .env, web/.env",
    ];
    assert_eq!(notes[..7], expected);
    assert!(notes[7].starts_with("set-up: 'true' took ") && notes[7].ends_with(" s"), "{notes:?}");
    assert!(!spawn_lane(&sandbox, "y").contains(unmatched), "nobody asked");
    let synced = sandbox.proq(&["sync", "x"]);
    assert_eq!(
        (synced.stdout.as_str(), synced.stderr.matches(unmatched).count()),
        ("lane 'x' is up to date\n", 5)
    );
    assert_eq!(sandbox.proq(&["-q", "sync", "x"]).stderr, "");
}

#[test]
fn settings_extend_list_and_nothing_is_copied_without() {
    let sandbox = sandbox_with_include_list("");
    sandbox.write(".env", "1");
    sandbox.write("my.key", "2");
    let _ = spawn_lane(&sandbox, "none");
    assert_eq!(untracked_files(&sandbox, "none"), [""; 0]);
    sandbox.write("proq.toml", "[lane]\ncopy = ['*.key']\n");
    let _ = spawn_lane(&sandbox, "some");
    assert_eq!(untracked_files(&sandbox, "some"), ["my.key"]);
    sandbox.git(&["config", "proq.lane.copy", ".env"]);
    let _ = spawn_lane(&sandbox, "own");
    assert_eq!(untracked_files(&sandbox, "own"), [".env"]);
}

/// Promise: new-lane/copies-exclude
#[test]
fn keeps_modes_times_links_and_names_skipped_entries() {
    let sandbox = sandbox_with_include_list("cache/\n");
    sandbox.write("cache/run", "#!/bin/sh\n");
    let cache = sandbox.repo.join("cache");
    sandbox.sh(
        "chmod 755 cache/run; touch -d 2020-01-02T03:04:05.678Z cache/run; mkdir cache/d; chmod 500 cache/d",
    );
    sandbox.sh("touch -d 2020-01-02 cache/d; mkfifo cache/pipe; echo x > cache/shut; chmod 000 cache/shut");
    symlink("run", cache.join("near")).unwrap();
    symlink("/etc", cache.join("far")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(cache.join("socket")).unwrap();
    std::fs::create_dir_all(cache.join("repo/.git/objects")).unwrap();
    sandbox.write("cache/repo/file", "x");
    let stderr = spawn_lane(&sandbox, "x");
    assert!(stderr.contains("not copied: cache/pipe: a named pipe\n"), "{stderr}");
    assert!(stderr.contains("not copied: cache/socket: a socket\n"), "{stderr}");
    // An account that may read everything, such as root, can copy it too.
    let is_root = std::fs::File::open(cache.join("shut")).is_ok();
    assert!(is_root || stderr.contains("not copied: cache/shut: permission denied\n"), "{stderr}");
    let copy = sandbox.lane_path("x").join("cache");
    for name in ["run", "d"] {
        let (from, to) = (cache.join(name).metadata().unwrap(), copy.join(name).metadata().unwrap());
        assert_eq!((from.mode(), from.mtime(), from.mtime_nsec()), (to.mode(), to.mtime(), to.mtime_nsec()));
    }
    assert_eq!(std::fs::read_link(copy.join("near")).unwrap(), Path::new("run"));
    assert_eq!(std::fs::read_link(copy.join("far")).unwrap(), Path::new("/etc"));
    assert!(copy.join("repo/file").exists() && !copy.join("repo/.git").exists());
    assert!(copy.join("pipe").symlink_metadata().is_err() && copy.join("socket").symlink_metadata().is_err());
    // Read-only folders are removed all the same.
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.sh("chmod -R u+w cache .git/proq/trash");
}

/// Promise: new-lane/copies-exclude
#[test]
fn copies_exclude_lanes_and_other_worktrees() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "*/\n");
    sandbox.write(".worktreeinclude", "*\n");
    sandbox.sh("git add -f .gitignore .worktreeinclude; git commit -qm rules; mkdir cache; echo 1 > cache/a");
    sandbox.git(&["worktree", "add", "-q", "--detach", "cache/other"]);
    let _ = spawn_lane(&sandbox, "x");
    assert_eq!(untracked_files(&sandbox, "x"), ["cache/a"]);
    let _ = spawn_lane(&sandbox, "y");
    assert_eq!(untracked_files(&sandbox, "y"), ["cache/a"]);
    assert!(!sandbox.lane_path("y").join(".proq-worktrees").exists());
}

/// Promise: new-lane/set-up-inside-lane
#[test]
fn set_up_writes_nothing_outside_the_lane() {
    let sandbox = sandbox_with_include_list("cache/\n");
    let outside = sandbox.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    // At the lane's start, links at the paths of files to copy lead out of the lane.
    sandbox.git(&["switch", "-qc", "trap"]);
    sandbox.sh("mkdir cache; ln -s $ROOT/outside cache/sub; ln -s $ROOT/outside/file cache/file");
    sandbox.sh("git add -Af; git commit -qm trap; git switch -q main");
    sandbox.sh(
        "mkdir -p cache/sub; echo secret > cache/file; echo secret > cache/sub/x; echo fine > cache/fine",
    );
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", "trap"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{}", out.stderr);
    let warning = "not copied: cache/sub: the lane has something else in its place\n";
    assert!(out.stderr.contains(warning), "{}", out.stderr);
    let cache = sandbox.lane_path("x").join("cache");
    assert!(cache.join("sub").is_symlink() && cache.join("file").is_symlink() && cache.join("fine").exists());
    // A list that is a link is not followed.
    sandbox.sh("git rm -q --cached .worktreeinclude; rm .worktreeinclude; ln -s $ROOT/list .worktreeinclude");
    std::fs::write(sandbox.root().join("list"), "*\n").unwrap();
    let stderr = spawn_lane(&sandbox, "y");
    assert!(stderr.contains(".worktreeinclude is no file, so it is not read"), "{stderr}");
}

#[test]
fn copies_files_with_hostile_names() {
    let sandbox = sandbox_with_include_list("cache/\n");
    let names: [&[u8]; 5] = [b"new\nline", b"-rf", b"\xff\xfe", b"a b'\"$(x)", b"\x1b[31mred"];
    for name in names {
        let dir = sandbox.repo.join("cache").join(std::ffi::OsStr::from_bytes(name));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let _ = spawn_lane(&sandbox, "x");
    for name in names {
        let name = std::ffi::OsStr::from_bytes(name);
        let copy = sandbox.lane_path("x").join("cache").join(name).join(name);
        assert_eq!(std::fs::read(copy).unwrap(), name.as_bytes());
    }
    // Warnings escape the names, so that a terminal does not act on them.
    sandbox.sh("mkfifo \"$(printf 'cache/\\033[31mpipe')\"");
    let stderr = spawn_lane(&sandbox, "y");
    assert!(stderr.contains("not copied: cache/\\u{1b}[31mpipe: a named pipe"), "{stderr:?}");
}

#[test]
fn links_configured_folders() {
    let sandbox = sandbox_with_include_list("node_modules/\n.env\n");
    sandbox.write("node_modules/x/index.js", "x");
    sandbox.write(".env", "1");
    sandbox.write("data.bin", "not ignored");
    for link in ["node_modules/", "data.bin"] {
        sandbox.git(&["config", "--add", "proq.lane.link", link]);
    }
    let stderr = spawn_lane(&sandbox, "x");
    assert!(stderr.contains("not linked, since git does not ignore it"), "{stderr}");
    let lane = sandbox.lane_path("x");
    assert_eq!(std::fs::read_link(lane.join("node_modules")).unwrap(), sandbox.repo.join("node_modules"));
    assert!(!lane.join(".env").is_symlink() && lane.join(".env").exists());
    // `node_modules/` is a rule about folders, and a link is none.
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    let exclude = sandbox.read(".git/info/exclude");
    assert_eq!(exclude.lines().filter(|line| *line == "/node_modules").count(), 1);
    // The link is removed with the lane, and its target stays.
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(sandbox.read("node_modules/x/index.js"), "x");
    sandbox.assert_healthy();
}

/// Promise: new-lane/set-up-overwrites-nothing
#[test]
fn lane_has_env_file_with_names_and_ports() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.env", ".env.proq"]);
    let script = "cat \"$PROQ_ENV_FILE\" > $ROOT/told; cp .env.proq $ROOT/own";
    sandbox.program("robot", script);
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "robot", "look"]).ok();
    let read = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    let port = sandbox.proq(&["show", "x", "--json"]).json()["port"].as_u64().unwrap();
    let root = sandbox.repo.display();
    let mut expected =
        format!("PROQ_LANE=x\nPROQ_BRANCH=proq/x\nPROQ_BASE=main\nPROQ_ROOT={root}\nPROQ_PORT={port}\n");
    for n in 1..10 {
        expected.push_str(&format!("PROQ_PORT_{n}={}\n", port + n));
    }
    assert_eq!((read("told"), read("own")), (expected.clone(), expected.clone()));
    // The file is not committed.
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "");
    // The file follows when the lane gets other ports, unless it was edited.
    let record = sandbox.repo.join(".git/proq/lanes/x/lane.toml");
    let moved = std::fs::read_to_string(&record).unwrap().replace(&format!("port = {port}"), "port = 31990");
    std::fs::write(&record, &moved).unwrap();
    let _ = sandbox.proq(&["run", "x", "robot", "again", "--wait"]).ok();
    assert!(read("told").contains("PROQ_PORT=31990\n") && read("own") == read("told"), "{}", read("told"));
    std::fs::write(sandbox.lane_path("x").join(".env.proq"), "mine").unwrap();
    std::fs::write(&record, moved.replace("port = 31990", "port = 31980")).unwrap();
    let _ = sandbox.proq(&["run", "x", "robot", "again", "--wait"]).ok();
    assert!(read("told").contains("PROQ_PORT=31980\n") && read("own") == "mine");
    // A committed file of that name is not overwritten.
    sandbox.write(".env.proq", "theirs");
    sandbox.sh("git add -f .env.proq; git commit -qm env");
    let stderr = spawn_lane(&sandbox, "y");
    assert!(
        stderr.contains("cannot write lane.env '.env.proq': the lane has a file with this name"),
        "{stderr}"
    );
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("y").join(".env.proq")).unwrap(), "theirs");
    for bad in ["../x", "/etc/x", ".git/config", "a/.GIT/x", "x/"] {
        sandbox.git(&["config", "proq.lane.env", bad]);
        assert!(sandbox.proq(&["cleanup"]).fails(1).contains("expected a file of the lane"), "{bad}");
    }
}
