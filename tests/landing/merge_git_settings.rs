//! Tests of landings under git's own merge settings, and of dry runs that refuse what the landing refuses.

use proq_test_kit::Sandbox;

fn sandbox_with(lane: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo '*.log' > .gitignore");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", lane);
    sandbox
}

/// Asserts that the landing and its dry run are refused with the same text and leave `main` unmoved. Returns
/// that text.
#[track_caller]
fn assert_dry_run_refuses_alike(sandbox: &Sandbox, args: &[&str]) -> String {
    let tip = sandbox.git(&["rev-parse", "main"]);
    let dry = sandbox.proq(&[args, &["--dry-run"]].concat()).fails(1);
    let landing = sandbox.proq(args).fails(1);
    assert_eq!(dry, landing);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    landing
}

/// Promise: snapshots/dry-run-refuses
#[test]
fn dry_run_refuses_dirty_or_busy_checkout() {
    let lane = "echo lane > new.txt; echo lane > long.txt; echo x > x.log; git add -f x.log";
    for (script, expected) in [
        ("echo mine > new.txt", "new.txt"),
        ("echo mine > x.log", "x.log"),
        ("echo mine > long.txt", "long.txt"),
        (
            "git switch -q -c side HEAD^; echo s > s; git add s; git commit -qm s; git switch -q main; git merge -q --no-commit side 2>&1 || true",
            "merge",
        ),
        (
            "git bisect start -q HEAD HEAD^ > /dev/null || git bisect start HEAD HEAD^ > /dev/null; git switch -q main",
            "bisect",
        ),
        ("GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD^ 2> /dev/null", "rebase"),
    ] {
        let sandbox = sandbox_with(lane);
        sandbox.sh(script);
        let text = assert_dry_run_refuses_alike(&sandbox, &["merge", "one"]);
        assert!(text.contains(expected), "{script}: {text}");
    }
}

/// Promise: snapshots/dry-run-refuses
#[test]
fn dry_run_refuses_dirty_linked_checkout_of_base() {
    let sandbox = sandbox_with("echo lane > long.txt");
    sandbox
        .sh("git switch -q -c elsewhere; git worktree add -q ../other main; echo mine > ../other/long.txt");
    let text = assert_dry_run_refuses_alike(&sandbox, &["merge", "one"]);
    assert!(text.contains("[ROOT]/other are in the way: long.txt"), "{text}");
}

/// Program that signs any input and accepts its own signatures.
const GPG: &str = r#"case " $* " in
*" --verify "*) cat > /dev/null; printf '[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 0123456789ABCDEF Ann\n[GNUPG:] VALIDSIG 0123456789ABCDEF0123456789ABCDEF01234567 2026-01-01 0 0 4 0 1 8 00 0123456789ABCDEF0123456789ABCDEF01234567\n[GNUPG:] TRUST_ULTIMATE 0 pgp\n' ;;
*) cat > /dev/null; echo "[GNUPG:] SIG_CREATED " >&2
   printf -- '-----BEGIN PGP SIGNATURE-----\nfake\n-----END PGP SIGNATURE-----\n' ;;
esac"#;

/// Promise: snapshots/git-merge-settings
#[test]
fn verify_signatures_refuses_unsigned_lane() {
    for setting in
        [["merge.verifySignatures", "true"], ["branch.main.mergeOptions", "--no-ff --verify-signatures"]]
    {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.program_verbatim("gpg", GPG);
        let program = sandbox.root().join("bin/gpg");
        sandbox.git(&["config", "gpg.program", program.to_str().unwrap()]);
        sandbox.git(&["config", setting[0], setting[1]]);
        let text = assert_dry_run_refuses_alike(&sandbox, &["merge", "one"]);
        assert!(text.contains("has no valid signature, which merge.verifySignatures requires"), "{text}");
        let hint = text.lines().find_map(|line| line.strip_prefix("hint: sign it: ")).unwrap();
        sandbox.sh(&hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert!(sandbox.repo.join("lane.txt").exists());
    }
}

/// Promise: snapshots/git-merge-settings
#[test]
fn refuses_signature_by_untrusted_key() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.program_verbatim("gpg", &GPG.replace("TRUST_ULTIMATE", "TRUST_UNDEFINED"));
    let program = sandbox.root().join("bin/gpg");
    sandbox.git(&["config", "gpg.program", program.to_str().unwrap()]);
    sandbox.git(&["config", "merge.verifySignatures", "true"]);
    sandbox.git_in(&sandbox.lane_path("one"), &["commit", "-q", "--amend", "--no-edit", "-S"]);
    let git_output = sandbox.sh("git merge --no-edit proq/one 2>&1 || :");
    assert!(git_output.contains("untrusted GPG signature"), "{git_output}");
    let _ = assert_dry_run_refuses_alike(&sandbox, &["merge", "one"]);
    sandbox.git(&["config", "gpg.minTrustLevel", "undefined"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(sandbox.repo.join("lane.txt").exists());
}

/// Promise: snapshots/git-merge-settings
#[test]
fn unsupported_merge_options_are_refused_by_name() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    for options in ["-Xours", "--no-ff --squash", "--ff-only", "--signoff"] {
        sandbox.git(&["config", "branch.main.mergeOptions", options]);
        let text = assert_dry_run_refuses_alike(&sandbox, &["merge", "one"]);
        let option = options.split(' ').next_back().unwrap();
        assert!(text.contains(&format!("branch.main.mergeOptions has {option}, which")), "{text}");
        assert!(text.contains("git config --show-origin --get branch.main.mergeOptions"), "{text}");
    }
    let _ = sandbox.proq(&["merge", "one", "--dry-run", "--strategy", "rebase"]).ok();
    sandbox.git(&["config", "branch.main.mergeOptions", "--no-ff --no-edit --stat"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
}
