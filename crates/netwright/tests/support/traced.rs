//! Stops a program before each system call that could change anything outside of it.
//!
//! The kernel passes every call to the tracer (by seccomp) that is not on a list of harmless ones.
//! So an unexpected write counts too; a hook in our own code would count only the writes that the
//! code knows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{ffi::CString, os::unix::ffi::OsStrExt, path::Path};

use super::NETWRIGHT;

/// What happens to a run at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The call is made.
    GoOn,
    /// `kill -9`, before the call is made.
    Kill,
    /// `kill -HUP`, and the call is made.
    HangUp,
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Killed by the test at a point.
    Killed,
    /// It exited with this code.
    Exited(i32),
}

/// Calls that change nothing outside of the process, or only what ends with it (descriptors,
/// memory, its threads, locks). `openat` is one of them for reading.
const HARMLESS: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_prlimit64,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_getsockname,
    libc::SYS_setsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_ppoll,
    libc::SYS_pipe2,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fcntl,
    libc::SYS_flock,
    libc::SYS_getcwd,
    libc::SYS_uname,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_prctl,
    libc::SYS_openat2,
    libc::SYS_sysinfo,
    libc::SYS_gettimeofday,
    libc::SYS_membarrier,
    libc::SYS_process_vm_readv,
    libc::SYS_syslog, // asked for reading alone
];

#[cfg(target_arch = "x86_64")]
const HARMLESS_HERE: &[libc::c_long] = &[
    libc::SYS_open, // the C library opens through openat
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const HARMLESS_HERE: &[libc::c_long] = &[];

const ALLOW: u32 = 0x7fff_0000;
const TRACE: u32 = 0x7ff0_0000;

/// The filter: 2 instructions for each harmless call, then `openat` by its flags.
fn filter() -> Vec<libc::sock_filter> {
    let load = |offset| libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: offset };
    let give = |k| libc::sock_filter { code: 0x06, jt: 0, jf: 0, k };
    let unless = |k: libc::c_long| libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: k as u32 };
    let mut program = vec![load(0)];
    for call in HARMLESS.iter().chain(HARMLESS_HERE) {
        program.extend([unless(*call), give(ALLOW)]);
    }
    let writes = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    program.push(libc::sock_filter { code: 0x15, jt: 0, jf: 3, k: libc::SYS_openat as u32 });
    program.push(load(16 + 2 * 8)); // the low half of the third argument
    program.push(libc::sock_filter { code: 0x45, jt: 1, jf: 0, k: writes as u32 });
    program.push(give(ALLOW));
    program.push(give(TRACE));
    program
}

/// Runs `netwright tune ARGS` with this folder for journals. `point` is asked before each call that
/// could change anything, with the call's number among those, from 1.
pub fn tune(state: &Path, args: &[&str], point: &mut dyn FnMut(usize) -> Then) -> End {
    let text = |s: &[u8]| CString::new(s).expect("no NUL");
    let mut argv = vec![text(NETWRIGHT.as_bytes()), text(b"tune")];
    argv.extend(args.iter().map(|a| text(a.as_bytes())));
    let mut state_env = b"NETWRIGHT_STATE=".to_vec();
    state_env.extend(state.as_os_str().as_bytes());
    let env = [text(&state_env), text(b"PATH=/usr/sbin:/usr/bin:/sbin:/bin")];
    let pointers = |all: &[CString]| -> Vec<*const libc::c_char> {
        all.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv_p, env_p) = (pointers(&argv), pointers(&env));
    let program = filter();
    // SAFETY: after fork the child makes only async-signal-safe calls, with prepared data.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork");
    if pid == 0 {
        child(&argv_p, &env_p, &program);
    }
    trace(pid, point)
}

fn child(
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
    program: &[libc::sock_filter],
) -> ! {
    let filter =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: as the caller says; every pointer is to what outlives the calls.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        libc::raise(libc::SIGSTOP);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) != 0 {
            libc::_exit(120);
        }
        libc::execve(argv[0], argv.as_ptr(), env.as_ptr());
        libc::_exit(121)
    }
}

fn wait() -> (i32, i32) {
    let mut status = 0;
    // SAFETY: the pointer is to our own value; only children of this very thread are waited for.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    assert!(tid > 0, "waitpid: {}", std::io::Error::last_os_error());
    (tid, status)
}

/// `struct ptrace_syscall_info` of a seccomp stop: the call and its arguments.
fn call_of(tid: i32) -> (u64, [u64; 6]) {
    const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
    let mut info = [0u64; 11];
    let size = size_of_val(&info);
    // SAFETY: a stopped child of ours; the kernel fills at most the size that is given.
    let got = unsafe { libc::ptrace(GET_SYSCALL_INFO, tid, size, info.as_mut_ptr()) };
    assert!(got >= 80, "PTRACE_GET_SYSCALL_INFO (since Linux 5.3)");
    let [_, _, _, nr, args @ .., _] = info;
    (nr, [args[0], args[1], args[2], args[3], args[4], args[5]])
}

/// Reads bytes of a stopped child's memory.
fn read_memory<const N: usize>(tid: i32, at: u64) -> [u8; N] {
    let mut bytes = [0u8; N];
    let ours = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: N };
    let theirs = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: N };
    // SAFETY: our side is as long as it says; theirs is checked by the kernel.
    let n = unsafe { libc::process_vm_readv(tid, &raw const ours, 1, &raw const theirs, 1, 0) };
    assert_eq!(n, N as isize, "reading the child's memory");
    bytes
}

/// Whether a call that may change a device or a route only reads: an ethtool command of probe's
/// list, a netlink dump, a family's or a namespace's number.
fn only_asks(tid: i32) -> bool {
    /// Numbers of the reading ethtool commands (`ETHTOOL_G…` of include/uapi/linux/ethtool.h).
    const QUESTIONS: [u32; 14] =
        [0x03, 0x0e, 0x10, 0x12, 0x1b, 0x1d, 0x29, 0x2d, 0x2e, 0x37, 0x3a, 0x3c, 0x46, 0x4c];
    const GETNSID: u16 = 90;
    const DUMP: u16 = 0x300;
    let (nr, args) = call_of(tid);
    match nr as libc::c_long {
        libc::SYS_ioctl if args[1] == libc::SIOCETHTOOL => {
            let data = u64::from_ne_bytes(read_memory(tid, args[2] + 16));
            QUESTIONS.contains(&u32::from_ne_bytes(read_memory(tid, data)))
        }
        libc::SYS_sendto => {
            let head: [u8; 17] = read_memory(tid, args[1]);
            let word = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
            let (kind, flags) = (word(4), word(6));
            let get_family = i32::from(kind) == libc::GENL_ID_CTRL && head[16] == 3;
            flags & DUMP == DUMP || kind == GETNSID || get_family
        }
        _ => false,
    }
}

fn trace(pid: i32, point: &mut dyn FnMut(usize) -> Then) -> End {
    let (first, status) = wait();
    assert!(first == pid && libc::WIFSTOPPED(status), "the child does not stop");
    let options = libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    // SAFETY: a stopped child of ours.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
    let go_on = |tid: i32, signal: i32| {
        // SAFETY: a stopped child of ours.
        unsafe { libc::ptrace(libc::PTRACE_CONT, tid, 0, signal) };
    };
    go_on(pid, 0);
    let mut count = 0;
    let mut killed = false;
    loop {
        let (tid, status) = wait();
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if tid == pid {
                assert!(killed || libc::WIFEXITED(status), "ended by a signal: {status}");
                return if killed { End::Killed } else { End::Exited(libc::WEXITSTATUS(status)) };
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_SECCOMP << 8 {
            if only_asks(tid) {
                go_on(tid, 0);
                continue;
            }
            count += 1;
            if std::env::var_os("POINTS").is_some() {
                println!("{count}: {:?}", call_of(tid));
            }
            match if killed { Then::GoOn } else { point(count) } {
                Then::Kill => {
                    killed = true;
                    // SAFETY: our own child.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                    continue;
                }
                Then::HangUp => {
                    // SAFETY: our own child.
                    unsafe { libc::kill(pid, libc::SIGHUP) };
                }
                Then::GoOn => {}
            }
            go_on(tid, 0);
        } else {
            go_on(tid, if matches!(signal, libc::SIGTRAP | libc::SIGSTOP) { 0 } else { signal });
        }
    }
}
