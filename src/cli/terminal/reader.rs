//! The reader of standard output, without whom a command that follows something ends.

use std::io::IsTerminal;

use proq_base::process::closed_reader::wait_for_closed_reader;

/// Ends the program, in the background, as soon as nobody reads its standard output any more: `git proq list
/// --watch | head -1` must not wait for a change.
pub(crate) fn exit_with_reader() {
    if std::io::stdout().is_terminal() {
        return;
    }
    std::thread::spawn(|| {
        if wait_for_closed_reader(&std::io::stdout()) {
            std::process::exit(0);
        }
    });
}
