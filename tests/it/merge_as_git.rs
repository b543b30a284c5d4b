//! Owns the tests of landings beside what git's own settings say about merges, and of dry runs that refuse what the landing
//! refuses.

use super::support::Sandbox;

fn sandbox_with(lane: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo '*.log' > .gitignore");
    sandbox.commit_all("base");
    sandbox.lane_of("one", lane);
    sandbox
}

/// Whatever the landing is refused for, its dry run is refused for in the same words.
#[track_caller]
fn refused_alike(sandbox: &Sandbox, args: &[&str]) -> String {
    let tip = sandbox.git(&["rev-parse", "main"]);
    let dry = sandbox.proq(&[args, &["--dry-run"]].concat()).fails(1);
    let real = sandbox.proq(args).fails(1);
    assert_eq!(dry, real);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    real
}

#[test]
fn a_dry_run_sees_what_stands_in_the_way_in_the_checkout() {
    let lane = "echo lane > new.txt; echo lane > long.txt; echo x > x.log; git add -f x.log";
    for (script, named) in [
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
        let said = refused_alike(&sandbox, &["merge", "one"]);
        assert!(said.contains(named), "{script}: {said}");
    }
}

#[test]
fn a_dry_run_sees_what_stands_in_the_way_in_another_checkout_of_the_base() {
    let sandbox = sandbox_with("echo lane > long.txt");
    sandbox
        .sh("git switch -q -c elsewhere; git worktree add -q ../other main; echo mine > ../other/long.txt");
    let said = refused_alike(&sandbox, &["merge", "one"]);
    assert!(said.contains("[ROOT]/other stand in the way: long.txt"), "{said}");
}

/// A program that signs whatever it is given, and finds its own signatures good.
const GPG: &str = r#"case " $* " in
*" --verify "*) cat > /dev/null; printf '[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 0123456789ABCDEF Ann\n[GNUPG:] VALIDSIG 0123456789ABCDEF0123456789ABCDEF01234567 2026-01-01 0 0 4 0 1 8 00 0123456789ABCDEF0123456789ABCDEF01234567\n[GNUPG:] TRUST_ULTIMATE 0 pgp\n' ;;
*) cat > /dev/null; echo "[GNUPG:] SIG_CREATED " >&2
   printf -- '-----BEGIN PGP SIGNATURE-----\nfake\n-----END PGP SIGNATURE-----\n' ;;
esac"#;

#[test]
fn only_what_is_signed_lands_where_git_is_told_so() {
    for setting in
        [["merge.verifySignatures", "true"], ["branch.main.mergeOptions", "--no-ff --verify-signatures"]]
    {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.program_as_it_is("gpg", GPG);
        let program = sandbox.root().join("bin/gpg");
        sandbox.git(&["config", "gpg.program", program.to_str().unwrap()]);
        sandbox.git(&["config", setting[0], setting[1]]);
        let said = refused_alike(&sandbox, &["merge", "one"]);
        assert!(said.contains("has no good signature, which merge.verifySignatures asks for"), "{said}");
        let hint = said.lines().find_map(|line| line.strip_prefix("hint: sign it: ")).unwrap();
        sandbox.sh(&hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert!(sandbox.repo.join("lane.txt").exists());
    }
}

#[test]
fn a_key_that_nobody_trusts_signs_nothing_as_for_git() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.program_as_it_is("gpg", &GPG.replace("TRUST_ULTIMATE", "TRUST_UNDEFINED"));
    let program = sandbox.root().join("bin/gpg");
    sandbox.git(&["config", "gpg.program", program.to_str().unwrap()]);
    sandbox.git(&["config", "merge.verifySignatures", "true"]);
    sandbox.git_in(&sandbox.lane("one"), &["commit", "-q", "--amend", "--no-edit", "-S"]);
    let by_git = sandbox.sh("git merge --no-edit proq/one 2>&1 || :");
    assert!(by_git.contains("untrusted GPG signature"), "{by_git}");
    let _ = refused_alike(&sandbox, &["merge", "one"]);
    sandbox.git(&["config", "gpg.minTrustLevel", "undefined"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(sandbox.repo.join("lane.txt").exists());
}

#[test]
fn an_option_for_merges_into_the_base_is_harmless_or_refused_by_name() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    for options in ["-Xours", "--no-ff --squash", "--ff-only", "--signoff"] {
        sandbox.git(&["config", "branch.main.mergeOptions", options]);
        let said = refused_alike(&sandbox, &["merge", "one"]);
        let option = options.split(' ').next_back().unwrap();
        assert!(said.contains(&format!("branch.main.mergeOptions has {option}, which")), "{said}");
        assert!(said.contains("git config --show-origin --get branch.main.mergeOptions"), "{said}");
    }
    let _ = sandbox.proq(&["merge", "one", "--dry-run", "--strategy", "rebase"]).ok();
    sandbox.git(&["config", "branch.main.mergeOptions", "--no-ff --no-edit --stat"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
}
