//! Owns every call into the kernel that has no safe form: ptrace, the seccomp filter, waiting for traced threads.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_long, c_void, pid_t, sock_filter, sock_fprog, user_regs_struct};

use super::calls;

/// `AUDIT_ARCH_X86_64`, which the libc crate does not name.
const ARCH: u32 = 0xC000_003E;
/// Offsets into the kernel's `struct seccomp_data`.
const NR: u32 = 0;
const ARCH_AT: u32 = 4;
const ARGS: u32 = 16;

/// What happened to a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At the entry of a system call that the filter reports.
    Call,
    /// One of the other events that were asked for.
    Event,
    /// A signal is about to be delivered.
    Signal(c_int),
    /// It is gone: its exit code, or 128 + the signal's number.
    End(i32),
}

/// Makes `command` a traced one, in a process group of its own, whose mutating calls are reported to this thread.
pub(super) fn traced(command: &mut Command) {
    let filter = filter();
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec; it calls system calls only, allocates nothing and takes no lock.
    // `filter` lives in the closure, so the pointer is good for the length of the call.
    unsafe {
        command.pre_exec(move || {
            let program = sock_fprog {
                len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
                filter: filter.as_ptr().cast_mut(),
            };
            check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))?;
            check(c_long::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))?;
            check(c_long::from(libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )))
        });
    }
}

/// Asks for the events of a thread and of all that it starts, and for its end when this thread ends.
pub(super) fn follow(pid: pid_t) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: takes no pointers; a wrong pid is an error.
    unsafe { check(libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options)) }
}

/// Lets a stopped thread go on, with `signal` delivered unless that is zero. One that is gone already is no error.
pub(super) fn resume(pid: pid_t, signal: c_int) {
    // SAFETY: takes no pointers; a wrong pid is an error, which is a thread that has ended meanwhile.
    let _ = unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, signal) };
}

/// The registers of a stopped thread.
pub(super) fn registers(pid: pid_t) -> io::Result<user_regs_struct> {
    let mut regs = std::mem::MaybeUninit::<user_regs_struct>::zeroed();
    // SAFETY: the kernel writes one `user_regs_struct`; all bits zero are one as well.
    unsafe {
        check(libc::ptrace(libc::PTRACE_GETREGS, pid, 0, regs.as_mut_ptr().cast::<c_void>()))?;
        Ok(regs.assume_init())
    }
}

/// Lets the call at whose entry a thread is stopped not happen, and return `errno` as its error.
pub(super) fn fail_call(pid: pid_t, errno: c_int) -> io::Result<()> {
    let mut regs = registers(pid)?;
    regs.orig_rax = u64::MAX;
    regs.rax = i64::from(-errno).cast_unsigned();
    // SAFETY: the kernel reads one `user_regs_struct`, which outlives the call.
    unsafe { check(libc::ptrace(libc::PTRACE_SETREGS, pid, 0, (&raw const regs).cast::<c_void>())) }
}

/// Sends a signal to a process, or to a group when the number is negative. Nobody there is no error.
pub(super) fn signal(pid: pid_t, signal: c_int) {
    // SAFETY: takes no pointers.
    let _ = unsafe { libc::kill(pid, signal) };
}

/// Waits for the next thing that happens to a child or traced thread of this thread; None when there is none left.
pub(super) fn wait() -> io::Result<Option<(pid_t, Stop)>> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one int.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid >= 0 {
            return Ok(Some((pid, stop_of(status))));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) => {}
            _ => return Err(error),
        }
    }
}

/// This thread's number, by which what it traces names it.
pub(super) fn thread() -> pid_t {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Gives this thread, and all that it starts, mounts of their own.
pub(super) fn mounts_alone() -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(c_long::from(unsafe { libc::unshare(libc::CLONE_NEWNS) }))
}

fn stop_of(status: c_int) -> Stop {
    if libc::WIFEXITED(status) {
        return Stop::End(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Stop::End(128 + libc::WTERMSIG(status));
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (libc::SIGTRAP, libc::PTRACE_EVENT_SECCOMP) => Stop::Call,
        (libc::SIGTRAP, event) if event != 0 => Stop::Event,
        (signal, _) => Stop::Signal(signal),
    }
}

fn check(answer: c_long) -> io::Result<()> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The filter: calls that cannot change a file run at full speed, the others stop for the tracer.
fn filter() -> Vec<sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const ANY: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const ANSWER: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt,
        jf,
        k,
    };
    let mut out = vec![
        step(LOAD, 0, 0, ARCH_AT),
        step(EQUAL, 1, 0, ARCH),
        // A 32-bit program would slip through; there is none here.
        step(ANSWER, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(LOAD, 0, 0, NR),
    ];
    for (call, argument, bits) in calls::conditional() {
        out.push(step(EQUAL, 0, 4, call));
        out.push(step(LOAD, 0, 0, ARGS + 8 * argument));
        out.push(step(ANY, 0, 1, bits));
        out.push(step(ANSWER, 0, 0, libc::SECCOMP_RET_TRACE));
        out.push(step(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    for call in calls::always() {
        out.push(step(EQUAL, 0, 1, call));
        out.push(step(ANSWER, 0, 0, libc::SECCOMP_RET_TRACE));
    }
    out.push(step(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW));
    out
}
