//! Library example: discards lanes after saving their uncommitted and unlanded work.
//!
//!     cargo run --example throw_away -- PATH-TO-REPOSITORY LANE...

use git_proq::Proq;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let proq = Proq::open(args.next().ok_or("usage: throw_away PATH-TO-REPOSITORY LANE...")?)?;
    for lane in args {
        match proq.discard(&lane, true) {
            Ok(()) => println!("{lane}: gone"),
            Err(e) => println!("{lane}: kept, {e}"),
        }
    }
    Ok(())
}
