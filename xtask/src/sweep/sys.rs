//! Kernel calls without a safe form: ptrace, the seccomp filter, waiting for traced threads.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_long, c_void, pid_t, sock_filter, sock_fprog, user_regs_struct};

use super::mutating_calls;

/// `AUDIT_ARCH_X86_64`, which the libc crate does not define.
const AUDIT_ARCH: u32 = 0xC000_003E;
/// Offsets into the kernel's `struct seccomp_data`.
const NUMBER_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const ARGS_OFFSET: u32 = 16;

/// Event of a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The thread is at the entry of a system call that the filter reports.
    Call,
    /// Another requested event.
    Event,
    /// A signal is about to be delivered.
    Signal(c_int),
    /// The thread has ended: its exit code, or 128 + the signal's number.
    End(i32),
}

/// Makes `command` traced, in a process group of its own; its mutating calls are reported to this thread.
pub(super) fn enable_tracing(command: &mut Command) {
    let filter = filter();
    command.process_group(0);
    // SAFETY: the closure runs between fork and exec; it makes system calls only, allocates nothing and takes
    // no lock. `filter` lives in the closure, so the pointer is valid for the length of the call.
    unsafe {
        command.pre_exec(move || {
            let program = sock_fprog {
                len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
                filter: filter.as_ptr().cast_mut(),
            };
            check_errno(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))?;
            check_errno(c_long::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))?;
            check_errno(c_long::from(libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            )))
        });
    }
}

/// Requests the events of a thread and of all that it starts, and that they are killed when this thread ends.
pub(super) fn set_trace_options(pid: pid_t) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: takes no pointers; a wrong pid is an error.
    unsafe { check_errno(libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options)) }
}

/// Resumes a stopped thread and delivers `signal`, unless it is zero. A thread that has ended is no error.
pub(super) fn resume(pid: pid_t, signal: c_int) {
    // SAFETY: takes no pointers; a wrong pid is an error, which is a thread that has ended.
    let _ = unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, signal) };
}

/// Returns the registers of a stopped thread.
pub(super) fn registers(pid: pid_t) -> io::Result<user_regs_struct> {
    let mut regs = std::mem::MaybeUninit::<user_regs_struct>::zeroed();
    // SAFETY: the kernel writes one `user_regs_struct`; all bits zero are one as well.
    unsafe {
        check_errno(libc::ptrace(libc::PTRACE_GETREGS, pid, 0, regs.as_mut_ptr().cast::<c_void>()))?;
        Ok(regs.assume_init())
    }
}

/// Makes the call at whose entry a thread is stopped return `errno` as its error without running.
pub(super) fn fail_call(pid: pid_t, errno: c_int) -> io::Result<()> {
    let mut regs = registers(pid)?;
    regs.orig_rax = u64::MAX;
    regs.rax = i64::from(-errno).cast_unsigned();
    // SAFETY: the kernel reads one `user_regs_struct`, which outlives the call.
    unsafe { check_errno(libc::ptrace(libc::PTRACE_SETREGS, pid, 0, (&raw const regs).cast::<c_void>())) }
}

/// Sends a signal to a process, or to a group if the number is negative. A missing process is no error.
pub(super) fn signal(pid: pid_t, signal: c_int) {
    // SAFETY: takes no pointers.
    let _ = unsafe { libc::kill(pid, signal) };
}

/// Waits for the next event of a child or traced thread of this thread; none if no thread is left.
pub(super) fn wait() -> io::Result<Option<(pid_t, Stop)>> {
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes one int.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid >= 0 {
            return Ok(Some((pid, parse_status(status))));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ECHILD) => return Ok(None),
            Some(libc::EINTR) => {}
            _ => return Err(error),
        }
    }
}

/// Returns this thread's number, by which traced processes name their tracer.
pub(super) fn thread_id() -> pid_t {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// Gives this thread, and all that it starts, a mount namespace of its own.
pub(super) fn unshare_mounts() -> io::Result<()> {
    // SAFETY: takes no pointers.
    check_errno(c_long::from(unsafe { libc::unshare(libc::CLONE_NEWNS) }))
}

fn parse_status(status: c_int) -> Stop {
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

fn check_errno(result: c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the filter: calls that cannot change a file run at full speed, the others stop for the tracer.
fn filter() -> Vec<sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const ANY_BITS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt,
        jf,
        k,
    };
    let mut out = vec![
        instruction(LOAD, 0, 0, ARCH_OFFSET),
        instruction(EQUAL, 1, 0, AUDIT_ARCH),
        // A 32-bit program would escape the filter; there is none here.
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD, 0, 0, NUMBER_OFFSET),
    ];
    for (call, argument, bits) in mutating_calls::conditional_calls() {
        out.push(instruction(EQUAL, 0, 4, call));
        out.push(instruction(LOAD, 0, 0, ARGS_OFFSET + 8 * argument));
        out.push(instruction(ANY_BITS, 0, 1, bits));
        out.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_TRACE));
        out.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    for call in mutating_calls::unconditional_calls() {
        out.push(instruction(EQUAL, 0, 1, call));
        out.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_TRACE));
    }
    out.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    out
}
