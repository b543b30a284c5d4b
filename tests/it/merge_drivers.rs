//! Owns the tests of merge drivers and attributes files: where they run and are found, whatever git and settings.

use super::support::Sandbox;

/// A lane and a base that change a file which a driver of this command line merges.
fn driven(driver: &str, settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "mkdir tools sub; echo 'v merge=own' > .gitattributes; echo 1 > v; echo 7 > VERSION; echo s > sub/s
        printf '#!/bin/sh\ncat VERSION > \"$1\"; echo \"$2\" >> \"$1\"\n' > tools/drv; chmod +x tools/drv",
    );
    sandbox.commit_all("base");
    sandbox.git(&["config", "merge.own.driver", driver]);
    sandbox.sh(settings);
    sandbox.lane_of("one", "echo lane > v");
    sandbox.sh("echo main > v; git commit -qam main");
    sandbox
}

#[test]
fn a_merge_driver_runs_in_the_checkout_whatever_git_and_settings() {
    for settings in ["true", "git config merge.renormalize true"] {
        for (driver, wanted) in [
            ("./tools/drv %A %P", "7\nv\n"),
            ("(cat VERSION || echo none) > %A", "7\n"),
            ("cat \"%O\" %A %B > all; mv all %A", "1\nmain\nlane\n"),
            ("git show :VERSION > %A", "7\n"),
        ] {
            let sandbox = driven(driver, settings);
            let dir = sandbox.repo.join("sub");
            let seen = sandbox.proq(&["matrix", "--json"]).json();
            assert_eq!(seen["pairs"][0]["result"], "clean", "{driver}: {seen}");
            let _ = sandbox.proq_in(&dir, &["merge", "one", "--dry-run"]).ok();
            let _ = sandbox.proq_in(&dir, &["merge", "one"]).ok();
            assert_eq!(sandbox.read("v"), wanted, "{driver}, {settings}");
        }
    }
}

#[test]
fn an_attributes_file_is_found_from_the_top_of_the_checkout() {
    for settings in ["true", "git config merge.renormalize true"] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir sub; echo top > list; echo s > sub/s; echo 'list merge=union' > ../attributes");
        sandbox.commit_all("base");
        sandbox.git(&["config", "core.attributesFile", "../attributes"]);
        sandbox.sh(settings);
        sandbox.lane_of("one", "echo lane >> list");
        sandbox.sh("echo main >> list; git commit -qam main");
        let _ = sandbox.proq_in(&sandbox.repo.join("sub"), &["merge", "one"]).ok();
        assert_eq!(sandbox.read("list"), "top\nmain\nlane\n", "{settings}");
    }
}
