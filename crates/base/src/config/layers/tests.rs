//! Tests of the configuration layers.

use std::time::Duration;

use super::*;
use crate::config::choices::LfsContent;
use crate::money::NanoDollars;

fn key(name: &str) -> &'static Key {
    Key::find(name).unwrap()
}

#[test]
fn later_layers_win_and_name_their_origin() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("proq.toml"),
        "[merge]\nuncommitted = 'commit'\n[agent]\nstop_grace = 3\n",
    )
    .unwrap();
    let git = [("merge.uncommitted".to_owned(), "snapshot".to_owned())];
    let env = |name: &str| (name == "PROQ_LOCK_TIMEOUT").then(|| "5".to_owned());
    let layers = Layers::read(Some(dir.path()), None, &git, &env).unwrap();
    assert_eq!(layers.get(key("merge.uncommitted")), ("snapshot", &Origin::Git));
    assert_eq!(layers.get(key("agent.stop_grace")).0, "3");
    assert_eq!(layers.get(key("lock.timeout")).1.to_string(), "$PROQ_LOCK_TIMEOUT");
    assert_eq!(layers.get(key("trash.keep")), ("7", &Origin::Default));
}

#[test]
fn takes_user_checks_from_earlier_layers() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("proq.toml"), "[verify]\ncommands = ['make']\ntimeout = 9\n").unwrap();
    let read = |git: &[(&str, &str)]| {
        let git: Vec<_> = git.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Layers::read(Some(dir.path()), None, &git, &|_| None).unwrap()
    };
    let [unset, user, other] =
        [&[][..], &[("verify.commands", "own")], &[("verify.commands", "other"), ("verify.timeout", "1")]]
            .map(read);
    let checks = |layers: &Layers| {
        ["verify.commands", "verify.timeout"].map(|name| layers.get(key(name)).0.to_owned())
    };
    for (current, earlier, expected) in [
        (&other, &unset, ["make", "9"]),
        (&unset, &other, ["other", "1"]),
        (&other, &user, ["own", "9"]),
        (&unset, &unset, ["make", "9"]),
    ] {
        assert_eq!(checks(&current.with_user_checks_from(earlier)), expected);
    }
}

#[test]
fn list_is_array_in_file_or_repeated_git_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("proq.toml");
    let read = |git: &[&str]| {
        let git: Vec<_> = git.iter().map(|v| ("verify.commands".to_owned(), (*v).to_owned())).collect();
        let layers = Layers::read(Some(dir.path()), None, &git, &|_| None)?;
        Ok::<_, Error>(layers.get(key("verify.commands")).0.to_owned())
    };
    std::fs::write(&file, "[verify]\ncommands = ['make', 'make test']\n").unwrap();
    assert_eq!(read(&[]).unwrap(), "make\nmake test");
    assert_eq!(read(&["a b", "c"]).unwrap(), "a b\nc");
    assert_eq!(read(&["a", "", "c"]).unwrap(), "c");
    for bad in ["commands = [1]", "commands = ['a\\nb', \"a\\nb\"]", "commands = \"a\\u0000b\""] {
        std::fs::write(&file, format!("[verify]\n{bad}\n")).unwrap();
        assert!(matches!(read(&[]), Err(Error::InvalidValue { .. })), "{bad}");
    }
}

#[test]
fn reads_tables_from_user_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("git-proq/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let read = || Layers::read(None, Some(dir.path()), &[], &|_| None);
    std::fs::write(&file, "[prices.\"claude-*\"]\ninput = 3\n[agents.x]\nprogram = 'x'\n").unwrap();
    let layers = read().unwrap();
    assert_eq!(layers.listed_unknown_keys(), [""; 0]);
    let (prices, path) = layers.user_table("prices").unwrap();
    assert_eq!((prices["claude-*"]["input"].as_integer(), path), (Some(3), file.as_path()));
    assert!(layers.user_table("agents").is_some());
    std::fs::write(&file, "agents = 1\n").unwrap();
    assert!(matches!(read(), Err(Error::NotATable { .. })));
}

#[test]
fn rejects_bad_values_forbidden_keys_and_broken_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("proq.toml");
    let read = || Layers::read(Some(dir.path()), None, &[], &|_| None);
    std::fs::write(&file, "[merge]\nuncommitted = 'maybe'\n").unwrap();
    assert!(read().unwrap_err().to_string().contains("'maybe'"));
    std::fs::write(&file, "[trash]\nkeep = 0\n").unwrap();
    assert!(matches!(read(), Err(Error::NotForRepository { .. })));
    std::fs::write(&file, "[agents.claude]\nprogram = 'evil'\n").unwrap();
    assert!(matches!(read(), Err(Error::NotForRepository { key, .. }) if key == "agents"));
    std::fs::write(&file, "[merge").unwrap();
    assert!(matches!(read(), Err(Error::InvalidToml { .. })));
    std::fs::write(&file, "[merge]\nnew_thing = 1\n").unwrap();
    assert_eq!(read().unwrap().listed_unknown_keys().len(), 1);
}

#[test]
fn typed_fields_have_the_units_of_their_docs() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[agent]\nbudget = '2.5'\ncontext_stop = 80\n[lane]\nlfs = 'pointer'\ncopy = [' a ', '']\n\
                [notify]\nevents = 'a, b'\n[swarm]\nmax_idle = 0\nareas = ['x=y']\nreviewer = ' z '\n";
    std::fs::create_dir(dir.path().join("git-proq")).unwrap();
    std::fs::write(dir.path().join("git-proq/config.toml"), text).unwrap();
    let settings = Settings::from_layers(&Layers::read(None, Some(dir.path()), &[], &|_| None).unwrap());
    let days = |count: u64| Duration::from_secs(count * 24 * 60 * 60);
    assert_eq!((settings.op_keep, settings.trash_keep), (days(30), days(7)));
    assert_eq!(
        (settings.lock_timeout, settings.reset_wait),
        (Duration::from_secs(30), Duration::from_mins(30))
    );
    assert_eq!((settings.max_time, settings.stall_limit), (None, Some(Duration::from_mins(30))));
    assert_eq!((settings.autocommit_limit, settings.snapshot_ignored), (Some(10 << 20), 64 << 20));
    assert_eq!((settings.event_log.max_file_size, settings.event_log.max_full_files), (8 << 20, 4));
    assert_eq!((settings.context_stop, settings.context_warn), (Some(80), None));
    assert_eq!((settings.run_budget, settings.swarm.budget), (Some(NanoDollars::new(2_500_000_000)), None));
    assert_eq!((settings.port_range, settings.model), (Some((20_000, 31_999)), None));
    assert!(settings.lane_checkout.lfs == LfsContent::Pointer && !settings.stop_gate);
    assert_eq!(
        (settings.set_up.copy_patterns, settings.notify.events),
        (vec![" a ".to_owned()], vec!["a".to_owned(), "b".to_owned()])
    );
    assert_eq!(settings.swarm.areas, [("x".to_owned(), "y".to_owned())]);
    assert_eq!((settings.swarm.max_idle, settings.swarm.reviewer.as_deref()), (1, Some("z")));
}
