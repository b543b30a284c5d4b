//! Owns running a program to its end while listening to it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::{Ended, Start};

/// How long is waited for the last words of a program that has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How one is listened to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hearing {
    /// How long it may take.
    pub(crate) limit: Duration,
    /// How long it has to end once it was asked to.
    pub(crate) grace: Duration,
    /// How many bytes of what it writes are kept, from the beginning.
    pub(crate) most: usize,
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub(crate) struct Heard {
    /// How it ended; why not, in words, when it could not be started or was given up.
    pub(crate) ended: Result<Ended, String>,
    /// What it wrote, on both streams.
    pub(crate) words: String,
}

impl Start {
    /// Runs it to its end in a process group of its own, with `input` to read; whatever it leaves running in that group ends
    /// with it, and nobody waits for what fled from there. It is ended early when `stop` says so.
    pub(crate) fn hear(self, input: Vec<u8>, how: Hearing, stop: &dyn Fn() -> bool) -> Heard {
        self.try_hear(input, how, stop).unwrap_or_else(|e| Heard { ended: Err(e), words: String::new() })
    }

    fn try_hear(self, input: Vec<u8>, how: Hearing, stop: &dyn Fn() -> bool) -> Result<Heard, String> {
        let failed = |e: std::io::Error| e.to_string();
        let (stdin, mut tell) = std::io::pipe().map_err(failed)?;
        let (hear, stdout) = std::io::pipe().map_err(failed)?;
        let stderr = stdout.try_clone().map_err(failed)?;
        let file = |end: OwnedFd| File::from(end);
        let start = self.stdin(file(stdin.into())).output(file(stdout.into()), file(stderr.into()));
        let mut watched = start.spawn_limited(how.limit, how.grace).map_err(|e| e.to_string())?;
        // It need not read it, so nobody waits until it has.
        std::thread::spawn(move || drop(tell.write_all(&input)));
        let words = Words::listen(hear, how.most);
        let mut pause = Duration::from_millis(1);
        let ended = loop {
            match watched.poll() {
                Ok(Some(ended)) => break Ok(ended),
                Ok(None) if stop() => break Err("interrupted".to_owned()),
                Ok(None) => {}
                Err(e) => break Err(e.to_string()),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(40));
        };
        drop(watched);
        Ok(Heard { ended, words: words.so_far() })
    }
}

/// What a program says, while it says it.
struct Words {
    said: Arc<Mutex<Vec<u8>>>,
    over: mpsc::Receiver<()>,
}

impl Words {
    fn listen(mut from: std::io::PipeReader, most: usize) -> Words {
        let said = Arc::new(Mutex::new(Vec::new()));
        let (tell, over) = mpsc::channel::<()>();
        let keep = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut some) {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                let left = most.saturating_sub(kept.len());
                kept.extend_from_slice(&some[..count.min(left)]);
            }
            drop(tell);
        });
        Words { said, over }
    }

    /// All of it, or what there is when a process that left the group still holds the pipe.
    fn so_far(&self) -> String {
        let _over = self.over.recv_timeout(LAST_WORDS);
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use super::*;

    const HOW: Hearing = Hearing { limit: Duration::from_mins(1), grace: Duration::from_secs(5), most: 10 };

    fn sh(script: &str) -> Start {
        Start::new(Path::new("/bin/sh"), Path::new("/")).args(["-c", script])
    }

    #[test]
    fn it_is_told_and_heard() {
        let heard = sh("cat; echo 0123456789 >&2; exit 3").hear(b"abc ".to_vec(), HOW, &|| false);
        assert_eq!(heard.words, "abc 012345");
        assert_eq!(heard.ended.unwrap(), Ended::Code(3));
        assert_eq!(sh("sleep 600").hear(Vec::new(), HOW, &|| true).ended.unwrap_err(), "interrupted");
    }

    #[test]
    fn nobody_waits_for_what_fled_with_the_pipe() {
        if !cfg!(target_os = "linux") {
            return;
        }
        let since = Instant::now();
        let heard = sh("setsid sleep 30 & echo said").hear(Vec::new(), HOW, &|| false);
        assert_eq!(heard.words, "said");
        assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    }
}
