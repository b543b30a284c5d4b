//! System calls that change files, and what each of them is about to change.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use libc::{O_CREAT, O_RDWR, O_TRUNC, O_WRONLY, c_long, pid_t, user_regs_struct};

/// Position of a call's subject in its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Path in this argument.
    Path(usize),
    /// Two paths, in these arguments.
    Paths(usize, usize),
    /// File descriptor in this argument; it counts only if it is a file's.
    Fd(usize),
    /// Path to open, in this argument.
    Open(usize),
}

use Subject::{Fd, Open, Path as One, Paths};

/// Name, number, subject, and whether the call needs disk space. `fsync` is missing: it changes nothing.
const CALLS: &[(&str, c_long, Subject, bool)] = &[
    ("open", libc::SYS_open, Open(0), true),
    ("openat", libc::SYS_openat, Open(1), true),
    ("openat2", libc::SYS_openat2, Open(1), true),
    ("creat", libc::SYS_creat, Open(0), true),
    ("write", libc::SYS_write, Fd(0), true),
    ("pwrite64", libc::SYS_pwrite64, Fd(0), true),
    ("writev", libc::SYS_writev, Fd(0), true),
    ("pwritev", libc::SYS_pwritev, Fd(0), true),
    ("pwritev2", libc::SYS_pwritev2, Fd(0), true),
    ("sendfile", libc::SYS_sendfile, Fd(0), true),
    ("splice", libc::SYS_splice, Fd(2), true),
    ("copy_file_range", libc::SYS_copy_file_range, Fd(2), true),
    ("fallocate", libc::SYS_fallocate, Fd(0), true),
    ("ioctl", libc::SYS_ioctl, Fd(0), true),
    ("ftruncate", libc::SYS_ftruncate, Fd(0), false),
    ("truncate", libc::SYS_truncate, One(0), false),
    ("rename", libc::SYS_rename, Paths(0, 1), true),
    ("renameat", libc::SYS_renameat, Paths(1, 3), true),
    ("renameat2", libc::SYS_renameat2, Paths(1, 3), true),
    ("link", libc::SYS_link, Paths(0, 1), true),
    ("linkat", libc::SYS_linkat, Paths(1, 3), true),
    ("symlink", libc::SYS_symlink, Paths(0, 1), true),
    ("symlinkat", libc::SYS_symlinkat, Paths(0, 2), true),
    ("unlink", libc::SYS_unlink, One(0), false),
    ("unlinkat", libc::SYS_unlinkat, One(1), false),
    ("rmdir", libc::SYS_rmdir, One(0), false),
    ("mkdir", libc::SYS_mkdir, One(0), true),
    ("mkdirat", libc::SYS_mkdirat, One(1), true),
    ("mknod", libc::SYS_mknod, One(0), true),
    ("mknodat", libc::SYS_mknodat, One(1), true),
    ("chmod", libc::SYS_chmod, One(0), false),
    ("fchmod", libc::SYS_fchmod, Fd(0), false),
    ("fchmodat", libc::SYS_fchmodat, One(1), false),
    ("fchmodat2", libc::SYS_fchmodat2, One(1), false),
    ("chown", libc::SYS_chown, One(0), false),
    ("fchown", libc::SYS_fchown, Fd(0), false),
    ("fchownat", libc::SYS_fchownat, One(1), false),
    ("utime", libc::SYS_utime, One(0), false),
    ("utimes", libc::SYS_utimes, One(0), false),
    ("futimesat", libc::SYS_futimesat, One(1), false),
    ("utimensat", libc::SYS_utimensat, One(1), false),
    ("setxattr", libc::SYS_setxattr, One(0), true),
];

/// Flags of an open that changes something.
const WRITES: u32 = (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR).cast_unsigned();

/// Returns the calls that count only if one of these bits is set in an argument: number, argument, bits.
pub(super) fn conditional_calls() -> [(u32, u32, u32); 3] {
    // FICLONE and FICLONERANGE are 0x40049409 and 0x4020940D; no other request in use here has this group and
    // direction.
    [
        (call_number(libc::SYS_open), 1, WRITES),
        (call_number(libc::SYS_openat), 2, WRITES),
        (call_number(libc::SYS_ioctl), 1, 0x4000_0000),
    ]
}

/// Returns the numbers of all other calls that may count.
pub(super) fn unconditional_calls() -> Vec<u32> {
    let conditional = conditional_calls().map(|(call, _, _)| call);
    CALLS.iter().map(|c| call_number(c.1)).filter(|n| !conditional.contains(n)).collect()
}

fn call_number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Call that is about to change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// Name of the call.
    pub(super) name: &'static str,
    /// What the call changes: one path or two.
    pub(super) subject: String,
    /// Whether a full disk can make the call fail.
    pub(super) needs_disk_space: bool,
    /// Process that makes the call: its command line, shortened.
    pub(super) process: String,
    /// Whether a process other than the command itself makes the call.
    pub(super) is_from_child: bool,
}

impl Call {
    /// Returns the call at whose entry thread `pid` is stopped, if it changes a file. `root` is the command;
    /// `ignored_files` belong to the harness itself.
    pub(super) fn from_stopped(
        pid: pid_t,
        root: pid_t,
        regs: &user_regs_struct,
        ignored_files: &[PathBuf],
    ) -> Option<Call> {
        let number = c_long::try_from(regs.orig_rax).ok()?;
        let &(name, _, subject, needs_room) = CALLS.iter().find(|c| c.1 == number)?;
        let args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        let subject = match subject {
            Fd(at) => fd_path(pid, args[at])?,
            // `utimensat` and others accept a descriptor without a path.
            One(at) if args[at] == 0 => fd_path(pid, args[0])?,
            Open(at) | One(at) => read_path(pid, args[at]),
            Paths(from, to) => {
                let mut both = read_path(pid, args[from]).into_os_string();
                both.push(" -> ");
                both.push(read_path(pid, args[to]));
                both.into()
            }
        };
        if name == "ioctl" && ![0x4004_9409, 0x4020_940D].contains(&(args[1] & 0xFFFF_FFFF)) {
            return None;
        }
        if is_kernel_file(&subject) || ignored_files.contains(&subject) {
            return None;
        }
        let subject = subject.as_os_str().as_bytes().escape_ascii().to_string();
        let is_from_child = !Path::new(&format!("/proc/{root}/task/{pid}")).exists();
        Some(Call { name, subject, needs_disk_space: needs_room, process: process_name(pid), is_from_child })
    }
}

/// Returns whether a path is a device or a file of the kernel, where nothing is stored.
fn is_kernel_file(path: &Path) -> bool {
    ["/dev/null", "/dev/tty", "/dev/pts", "/proc"].iter().any(|p| path.starts_with(p))
}

/// Returns the file behind a descriptor; none for pipes, sockets and the like.
fn fd_path(pid: pid_t, fd: u64) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/fd/{}", fd & 0xFFFF_FFFF)).ok()?;
    path.is_absolute().then_some(path)
}

/// Returns the path that an argument points to.
fn read_path(pid: pid_t, at: u64) -> PathBuf {
    let mut bytes = Vec::new();
    if let Ok(memory) = std::fs::File::open(format!("/proc/{pid}/mem")) {
        let mut part = [0; 256];
        // A read never crosses a page's end: the next page may not be mapped.
        while bytes.len() < 4096 {
            let from = at + bytes.len() as u64;
            let room = usize::try_from(4096 - from % 4096).unwrap_or(1).min(part.len());
            let Ok(read) = memory.read_at(&mut part[..room], from) else { break };
            let end = part[..read].iter().position(|b| *b == 0);
            bytes.extend_from_slice(&part[..end.unwrap_or(read)]);
            if end.is_some() || read == 0 {
                break;
            }
        }
    }
    OsStr::from_bytes(&bytes).into()
}

/// Returns the name and the subcommand of a process, without options: `git read-tree`.
fn process_name(pid: pid_t) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w));
    let program = words.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let mut skip = false;
    let verb = words.find(|word| {
        let value = std::mem::replace(&mut skip, *word == "-c" || *word == "-C");
        !value && !word.starts_with('-') && !word.is_empty()
    });
    verb.map_or(program.clone(), |verb| format!("{program} {verb}"))
}
