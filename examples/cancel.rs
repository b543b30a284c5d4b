//! Library example: lands a lane, waits for its agent or follows its run, until a line comes on standard input.
//!
//!     cargo run --example cancel -- PATH-TO-REPOSITORY merge|wait|follow LANE

use git_proq::ops::follow_run::follow_log;
use git_proq::types::CancellationToken;
use git_proq::{Error, Proq, Reporter};

/// Caller that cancels a use case by its token.
struct Caller(CancellationToken);

impl Reporter for Caller {
    fn cancellation(&self) -> Option<&CancellationToken> {
        Some(&self.0)
    }
}

fn main() -> Result<std::process::ExitCode, Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [repository, verb, name] = args.as_slice() else {
        return Err("usage: cancel PATH-TO-REPOSITORY merge|wait|follow LANE".into());
    };
    let token = CancellationToken::default();
    let mut proq = Proq::open(repository)?;
    proq.reporter = Box::new(Caller(token.clone()));
    std::thread::spawn(move || {
        drop(std::io::stdin().read_line(&mut String::new()));
        token.cancel();
    });
    let result = match verb.as_str() {
        "merge" => proq.merge(&[name]).map(drop),
        "wait" => proq.wait(name).map(drop),
        _ => follow(&proq, name),
    };
    let Err(e) = result else { return Ok(std::process::ExitCode::SUCCESS) };
    println!("{e}");
    Ok(e.exit_code().into())
}

fn follow(proq: &Proq, name: &str) -> Result<(), Error> {
    let lane = proq.project.find_any_lane(name)?;
    let log = proq.project.store.layout().run_log(&lane.name, lane.last_run);
    let print = &mut |bytes: &[u8]| print!("{}", String::from_utf8_lossy(bytes));
    follow_log(&proq.project, &lane, &log, &*proq.reporter, print).map(drop)
}
