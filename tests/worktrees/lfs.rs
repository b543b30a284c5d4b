//! Lanes whose large files stay pointers, with a filter that does what git-lfs does.

use std::path::Path;

use proq_test_kit::{Sandbox, WorktreeState};

/// Stores the content of files elsewhere and leaves pointers, with the same arguments as git-lfs. Each smudge
/// is recorded in `smudged`.
const FILTER: &str = r#"
exec python3 - "$@" 3<&0 <<'END'
import hashlib, os, subprocess, sys
store = os.path.join(subprocess.check_output(["git", "rev-parse", "--path-format=absolute", "--git-common-dir"], text=True).strip(), "lfs/objects")
inp, out = os.fdopen(3, "rb"), sys.stdout.buffer
mode, skip = sys.argv[1], "--skip" in sys.argv
MARK = b"version https://git-lfs.github.com/spec/v1\n"
def clean(data):
    if data.startswith(MARK): return data
    oid = hashlib.sha256(data).hexdigest()
    os.makedirs(store, exist_ok=True)
    open(os.path.join(store, oid), "wb").write(data)
    return MARK + f"oid sha256:{oid}\nsize {len(data)}\n".encode()
def smudge(data):
    if skip or not data.startswith(MARK): return data
    open(os.path.join(os.environ["ROOT"], "smudged"), "a").write(mode + "\n")
    return open(os.path.join(store, data.split(b"sha256:")[1].split()[0].decode()), "rb").read()
def read():
    size = inp.read(4)
    if not size: sys.exit(0)
    n = int(size, 16)
    return inp.read(n - 4) if n > 4 else None
def lines():
    found = []
    while (line := read()) is not None: found.append(line.rstrip(b"\n"))
    return found
def send(*all):
    for data in all: out.write(b"0000" if data is None else b"%04x" % (len(data) + 4) + data)
    out.flush()
if mode != "filter-process":
    out.write((clean if mode == "clean" else smudge)(inp.read()))
    sys.exit(0)
lines(); send(b"git-filter-server\n", b"version=2\n", None)
lines(); send(b"capability=clean\n", b"capability=smudge\n", None)
while True:
    wish = lines()
    data = b""
    while (part := read()) is not None: data += part
    data = (clean if b"command=clean" in wish else smudge)(data)
    send(b"status=success\n", None, *[data[i:i + 60000] for i in range(0, len(data), 60000)], None, None)
END"#;

const BIG: &str = "large and larger\n";

/// Returns a sandbox with one large file, filtered by single calls or by one process.
fn sandbox_with_large_file(process: bool, setting: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program_verbatim("git-lfs", FILTER);
    sandbox.sh(
        "git config --global filter.lfs.clean 'git-lfs clean -- %f'; git config --global filter.lfs.smudge 'git-lfs smudge -- %f'
        git config --global filter.lfs.required true",
    );
    if process {
        sandbox.sh("git config --global filter.lfs.process 'git-lfs filter-process'");
    }
    sandbox.git(&["config", "proq.lane.lfs", setting]);
    sandbox.write(".gitattributes", "*.bin filter=lfs -text\n");
    sandbox.write("big.bin", BIG);
    sandbox.commit_all("big");
    assert!(sandbox.git(&["show", "HEAD:big.bin"]).starts_with("version https://git-lfs"));
    sandbox
}

fn read_text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Promise: new-lane/lfs-pointers
#[test]
fn lane_setting_chooses_full_files_or_pointers() {
    for (process, setting) in [(false, "pointer"), (true, "full")] {
        let sandbox = sandbox_with_large_file(process, setting);
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
        let lane = sandbox.lane_path("x");
        let is_full = read_text(&lane.join("big.bin")) == BIG;
        assert_eq!(is_full, setting == "full", "{process} {setting}");
        assert_eq!(sandbox.root().join("smudged").exists(), is_full, "{process} {setting}");
        // Git does not trust its stat data for a file as young as the index: it reads the content.
        sandbox.sh_in(&lane, "touch -d 2001-01-01 big.bin a.txt");
        assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "", "{process} {setting}");
        // A full file that an agent creates is stored as a pointer.
        sandbox.sh_in(&lane, "echo new > new.bin; git add -A; git commit -qm new; git checkout -q HEAD~1; git checkout -q proq/x");
        assert!(sandbox.git_in(&lane, &["show", "HEAD:new.bin"]).starts_with("version https://git-lfs"));
        assert_eq!(read_text(&lane.join("new.bin")) == "new\n", setting == "full");
        assert_eq!(sandbox.git(&["diff", "--stat", "main", "proq/x", "--", "big.bin"]), "");
        let _ = sandbox.proq(&["preview", "x"]).ok();
        assert_eq!(sandbox.read("new.bin"), "new\n");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        let _ = sandbox.proq(&["merge", "x"]).ok();
        assert_eq!((sandbox.read("new.bin"), sandbox.read("big.bin")), ("new\n".into(), BIG.into()));
        assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(read_text(&lane.join("new.bin")) == "new\n", setting == "full");
        sandbox.assert_healthy();
    }
}

/// Promise: new-lane/populate-interrupt
#[test]
fn failed_filter_is_explained_and_creates_no_lane() {
    for process in [false, true] {
        let sandbox = sandbox_with_large_file(process, "full");
        let fails = |script: &str| {
            sandbox.program_verbatim("git-lfs", script);
            let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]).fails(1);
            assert!(!sandbox.lane_path("x").exists());
            assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
            out.split("error: ").nth(1).unwrap().to_owned()
        };
        insta::allow_duplicates! {
            insta::assert_snapshot!(
                fails("#!/bin/sh\necho 'Downloading big.bin' >&2; echo 'Error downloading object: big.bin: EOF' >&2; exit 2"),
                @"
            cannot convert files: a git filter failed: Error downloading object: big.bin: EOF; nothing was changed
            hint: fetch the missing files: git lfs fetch
            hint: or use pointers in lanes: git config proq.lane.lfs pointer
            ");
            insta::assert_snapshot!(fails("#!/bin/sh\necho \"$0: 1: git-lfs: not found\" | sed 's|.*/||' >&2; exit 127"), @"
            cannot convert files: a git filter failed: git-lfs: 1: git-lfs: not found; nothing was changed
            hint: git-lfs is not on PATH here; install it: https://git-lfs.com
            ");
        }
    }
    let sandbox = Sandbox::new();
    sandbox.sh("git config filter.mine.clean cat; git config filter.mine.required true");
    sandbox.write(".gitattributes", "*.bin filter=mine\n");
    sandbox.write("big.bin", BIG);
    sandbox.commit_all("big");
    sandbox.git(&["config", "filter.mine.smudge", "exit 3"]);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).to_text(), @r"
    --- stderr
    error: cannot convert files: a git filter failed: external filter 'exit 3' failed 3; nothing was changed
    hint: list the filters: git config --get-regexp '^filter'
    --- code 1
    ");
}

#[test]
fn failed_filter_leaves_main_checkout_unchanged() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitattributes", "*.bin filter=mine\n");
    sandbox.write("big.bin", BIG);
    sandbox.commit_all("big");
    sandbox.lane_with_commit("x", "echo other >big.bin");
    sandbox
        .sh("git config filter.mine.clean cat; git config filter.mine.required true; git config filter.mine.smudge 'exit 3'; echo mine >mine");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let text = sandbox.proq(&["preview", "x"]).fails(1);
    assert!(text.contains("external filter 'exit 3' failed 3; nothing was changed"), "{text}");
    assert_eq!(before, WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: new-lane/lfs-pointers
#[test]
fn pointers_without_filter_write_no_setting() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.lfs", "pointer"]);
    sandbox.write(".gitattributes", "*.bin filter=lfs -text\n");
    sandbox.write("big.bin", "version https://git-lfs.github.com/spec/v1\n");
    sandbox.commit_all("big");
    let before = sandbox.read(".git/config");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "");
    assert_eq!(sandbox.read(".git/config"), before);
}

#[test]
fn bare_repository_warns_that_files_are_not_pointers() {
    let sandbox = sandbox_with_large_file(false, "pointer");
    sandbox.sh("git clone -q --bare . ../bare.git; mkdir -p ../bare.git/lfs; cp -r .git/lfs/objects ../bare.git/lfs/");
    let bare = sandbox.root().join("bare.git");
    sandbox.git_in(&bare, &["config", "proq.lane.lfs", "pointer"]);
    let out = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "x"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stderr.contains("files of git-lfs are downloaded in this lane"), "{}", out.to_text());
    assert_eq!(read_text(&sandbox.root().join("bare.proq-worktrees/x/big.bin")), BIG);
    assert_eq!(sandbox.git_in(&bare, &["rev-parse", "--is-bare-repository"]), "true");
}
