//! Signals at every instruction of the trampolines.
//!
//! The program runs itself again as a child, which calls a domain over and over,
//! and steps through one call to learn its instructions. Then it stops one call after
//! the other: at the first instruction it delivers a signal, then at the second, and so
//! on. The child checks what each call returned. Signals with a handler of the host's, on
//! the alternate stack and on whatever stack there is, and the signal of a time limit that
//! passed exactly there. A breakpoint of the processor's leads to each instruction; where
//! there is none, single steps do, and the short form leaves instructions out, as it does
//! for time limits, which have to be waited for. MULLION_LONG=1 leaves none out.

mod support;

use mullion_runtime::{CallArguments, CallError, CallLimits, Cause, Claimed, Limits, LinkOptions};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Loaded, Program, host};

/// Of the calls that time out: enough to get to each instruction.
const LIMIT: Duration = Duration::from_millis(20);

/// How often the same instruction of a call has a signal.
const REPEATED: u32 = 8;

/// So many steps in one place are an endless loop.
const LOOP: usize = 50;

const VARIANT: &str = "MULLION_STEPPED_VARIANT";

/// `links`: through three domains that are linked, none of which accesses memory through `%gs`;
/// `links-mixed`: the first and the last do.
const VARIANTS: [&str; 6] = [
    "returns",
    "many-arguments",
    "faults",
    "times-out",
    "links",
    "links-mixed",
];

fn main() {
    match std::env::var(VARIANT) {
        Ok(variant) => child(&variant),
        Err(_) => {
            for avx in [true, false] {
                for variant in VARIANTS {
                    let steps = trace(variant, avx);
                    assert!(steps > 50, "the trampolines alone are longer");
                }
            }
        }
    }
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

/// A host's handler: uses stack and vector registers, and changes nothing.
extern "C" fn handler(_: libc::c_int) {
    let mut buffer = [0_f64; 128];
    for (index, place) in buffer.iter_mut().enumerate() {
        *place = std::hint::black_box(index as f64).sqrt();
    }
    let sum: f64 = std::hint::black_box(buffer).iter().sum();
    HANDLED.fetch_add(sum as u64, Ordering::Relaxed);
}

unsafe extern "C" {
    fn mullion_enter_sse();
    fn mullion_copy();
}

const PROGRAM: &str = "
        import add
        export returns
            subq $24, %r15
            movq %rdi, 8(%r15)
            call add
            addq 8(%r15), %rax
            addq $24, %r15
            testb $0, -8(%r15)
            ret
        export many_arguments
            subq $24, %r15
            addq 24(%r15), %rdi
            movq %rdi, 8(%r15)
            call add
            addq 8(%r15), %rax
            addq $24, %r15
            testb $0, -8(%r15)
            ret
        export faults
            call add
            ud2
        export times_out
            call add
        1:  jmp 1b
            ret
        export links
            subq $24, %r15
            movq %rdi, 8(%r15)
            call add
            ADD_ARGUMENT
            addq $24, %r15
            testb $0, -8(%r15)
            ret
        ";

/// A domain of the program, with its accesses through `%gs` or without.
fn load(segment: bool) -> Loaded {
    let (program, add) = match segment {
        true => (Program::new as fn(&str) -> _, "addq %gs:8(%r15d), %rax"),
        false => (Program::leanest as fn(&str) -> _, "addq 8(%r15), %rax"),
    };
    let program: Program = program(&PROGRAM.replace("ADD_ARGUMENT", add));
    let add = host(|caller| Ok(caller.integers()[0] + 1));
    program.load_with(vec![add], Limits::default())
}

/// A domain, and those that it is linked to.
fn domains(variant: &str) -> (Loaded, Vec<Loaded>) {
    let kinds = match variant {
        "links" => [false; 3],
        "links-mixed" => [true, false, true],
        _ => return (load(true), Vec::new()),
    };
    let [one, two, three] = kinds.map(load);
    for (from, to) in [(&one, &two), (&two, &three)] {
        let entry = to.domain.entry(Claimed(to.address("links"))).unwrap();
        let options = LinkOptions::default();
        from.domain.link(0, &to.domain, entry, options).unwrap();
    }
    (one, vec![two, three])
}

fn child(variant: &str) {
    let (mut loaded, _linked) = domains(variant);
    // Stacks and the watchdog come into being here, not where each step counts.
    let _ = call(&loaded, variant, LIMIT);
    loaded.domain.restart().unwrap();
    let base = loaded.domain.memory().base();
    println!(
        "{} {} {base}",
        mullion_enter_sse as *const () as usize, mullion_copy as *const () as usize
    );
    // SAFETY: installs handlers of the right signature, and asks to be traced.
    unsafe {
        for (signal, flags) in [(libc::SIGUSR1, 0), (libc::SIGUSR2, libc::SA_ONSTACK)] {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = flags;
            libc::sigaction(signal, &action, ptr::null_mut());
        }
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        libc::raise(libc::SIGSTOP);
    }
    // Steps take their time: the call that they go through has more of it.
    let mut limit = Duration::from_secs(3600);
    loop {
        // SAFETY: the tracer waits for this breakpoint.
        unsafe { std::arch::asm!("int3") };
        let result = call(&loaded, variant, limit);
        let is_first = std::mem::replace(&mut limit, LIMIT) != LIMIT;
        match (variant, &result) {
            ("times-out", Ok(_)) if is_first => continue,
            ("returns" | "many-arguments", Ok(returned)) if returned.integer == 41 + 42 => continue,
            // Each adds its argument to what the next one returns, the last to the host's.
            ("links" | "links-mixed", Ok(returned)) if returned.integer == 3 * 41 + 42 => continue,
            ("faults", Err(CallError::Fault(fault))) if fault.cause == Cause::Trap => {}
            ("times-out", Err(CallError::Fault(fault)))
                if matches!(fault.cause, Cause::TimeLimit { .. }) => {}
            _ => panic!("{variant}: {result:?}"),
        }
        // A new domain: it may have another window, so the old one is kept until then.
        loaded.domain.restart().unwrap();
    }
}

fn call(
    loaded: &Loaded,
    variant: &str,
    limit: Duration,
) -> Result<mullion_runtime::Returned, CallError> {
    let entry = loaded
        .domain
        .entry(Claimed(loaded.address(&export(variant))))?;
    let arguments = match variant {
        "many-arguments" => CallArguments::new(&[1, 0, 0, 0, 0, 0, 40, 0]).with_doubles(&[1.0]),
        _ => CallArguments::new(&[41]),
    };
    let limits = CallLimits {
        time: (variant == "times-out").then_some(limit),
        ..CallLimits::default()
    };
    match limits.time {
        None => loaded
            .domain
            .call(entry, &arguments)
            .map_err(|error| *error),
        Some(_) => loaded
            .domain
            .call_limited(entry, &arguments, &limits)
            .map_err(|error| *error),
    }
}

/// What a variant calls.
fn export(variant: &str) -> String {
    match variant.strip_suffix("-mixed") {
        Some(links) => links.to_owned(),
        None => variant.replace('-', "_"),
    }
}

/// Steps the child through its calls; how many instructions had a signal.
fn trace(variant: &str, avx: bool) -> usize {
    let begin = Instant::now();
    let mut command = Command::new(std::env::current_exe().unwrap());
    if !avx {
        command.env("MULLION_WITHOUT_AVX", "1");
    }
    let mut child = command
        .env(VARIANT, variant)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let numbers: Vec<u64> = line
        .split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect();
    let tracee = Tracee(child.id() as libc::pid_t);
    assert_eq!(tracee.wait(), libc::SIGSTOP);
    let marker = tracee.to_marker(0);
    let trace = tracee.record(marker);
    let interesting = |address: &u64| {
        (numbers[0]..numbers[1]).contains(address) || in_windows(*address, numbers[2])
    };
    // The endless loop comes thousands of times: a few of them are as good.
    let mut seen = HashMap::new();
    let places: Vec<usize> = (0..trace.len())
        .filter(|step| trace[*step].is_new && interesting(&trace[*step].address))
        .filter(|step| {
            let times: &mut u32 = seen.entry(trace[*step].address).or_default();
            *times += 1;
            *times <= REPEATED
        })
        .collect();
    // 0 stands for the time limit's signal.
    let quick = tracee.breakpoint(Some(marker)) && tracee.breakpoint(None);
    let long = std::env::var_os("MULLION_LONG").is_some();
    let (stride, signals): (usize, &[libc::c_int]) = match variant {
        "times-out" => (if long { 1 } else { 9 }, &[0]),
        _ => (
            if long || quick { 1 } else { 3 },
            &[libc::SIGUSR1, libc::SIGUSR2],
        ),
    };
    let (mut count, mut missed) = (0, 0);
    for step in places.iter().step_by(stride) {
        for signal in signals {
            let reached = match quick {
                true => {
                    tracee.run(&trace, *step, marker) || tracee.run_before(&trace, *step, marker)
                }
                false => tracee.step(*step),
            };
            if !reached {
                missed += 1;
                continue;
            }
            if *signal == 0 {
                std::thread::sleep(LIMIT + Duration::from_millis(8));
            }
            tracee.to_marker(*signal);
            count += 1;
        }
    }
    end(&mut child);
    let kind = if avx { "AVX" } else { "SSE" };
    println!(
        "{variant}, {kind}: {} instructions of {}, {count} signals, {missed} missed, {:.1} s",
        places.len(),
        trace.len(),
        begin.elapsed().as_secs_f64()
    );
    // A call whose time is up before it is where it should be goes another way.
    assert!(variant == "times-out" || missed == 0, "{missed} missed");
    places.len()
}

/// The child's windows lie next to each other.
fn in_windows(address: u64, base: u64) -> bool {
    let windows: Range<u64> = base - (3 << 32)..base + (4 << 32);
    windows.contains(&address)
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Where it is after a step.
struct Step {
    address: u64,
    /// Whether it has come there just now.
    is_new: bool,
}

struct Tracee(libc::pid_t);

impl Tracee {
    /// Waits until it stops; the signal that stopped it.
    fn wait(&self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: `status` is written.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0);
        assert!(libc::WIFSTOPPED(status), "the child has ended: {status:#x}");
        libc::WSTOPSIG(status)
    }

    fn go(&self, request: libc::c_uint, signal: libc::c_int) {
        // SAFETY: no memory operands.
        let result = unsafe { libc::ptrace(request, self.0, 0_usize, signal as usize) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }

    fn instruction(&self) -> u64 {
        // SAFETY: the structure is plain and written.
        unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            assert_eq!(
                libc::ptrace(libc::PTRACE_GETREGS, self.0, 0, &mut registers),
                0
            );
            registers.rip
        }
    }

    /// Lets it run, first into a handler of `signal`, to the next breakpoint.
    fn to_marker(&self, mut signal: libc::c_int) -> u64 {
        loop {
            self.go(libc::PTRACE_CONT, signal);
            signal = self.wait();
            if signal == libc::SIGTRAP {
                return self.instruction();
            }
        }
    }

    /// Steps on by one instruction, into a handler if a signal comes.
    fn step_once(&self, pending: &mut libc::c_int) {
        self.go(libc::PTRACE_SINGLESTEP, *pending);
        let signal = self.wait();
        *pending = if signal == libc::SIGTRAP { 0 } else { signal };
    }

    /// Where it is after each step, from the breakpoint to the next one.
    fn record(&self, marker: u64) -> Vec<Step> {
        let (mut trace, mut pending) = (Vec::new(), 0);
        while trace.len() < 20_000 {
            self.step_once(&mut pending);
            let address = self.instruction();
            // A signal stops it where it was.
            let is_new = pending == 0;
            trace.push(Step { address, is_new });
            if address == marker && is_new {
                return trace;
            }
            let last = &trace[trace.len().saturating_sub(LOOP)..];
            if last.len() == LOOP && last.iter().all(|step| step.address == address) {
                self.leave_loop(address);
                break;
            }
        }
        self.to_marker(pending);
        trace
    }

    /// Goes on behind an instruction that jumps to itself.
    fn leave_loop(&self, address: u64) {
        // SAFETY: the structure is plain and written; `ret` is behind the short jump.
        unsafe {
            let mut registers: libc::user_regs_struct = std::mem::zeroed();
            libc::ptrace(libc::PTRACE_GETREGS, self.0, 0, &mut registers);
            registers.rip = address + 2;
            let set = libc::ptrace(libc::PTRACE_SETREGS, self.0, 0, &registers);
            assert_eq!(set, 0);
        }
    }

    /// Sets the processor's breakpoint at this address, or takes it away; whether there
    /// is one to be had.
    fn breakpoint(&self, address: Option<u64>) -> bool {
        let set = |register: usize, value: u64| {
            let place = std::mem::offset_of!(libc::user, u_debugreg) + 8 * register;
            // SAFETY: writes to the child's debug registers, which lead to addresses of
            // its own only.
            unsafe { libc::ptrace(libc::PTRACE_POKEUSER, self.0, place, value as usize) == 0 }
        };
        match address {
            Some(address) => set(0, address) && set(7, 1),
            None => set(7, 0),
        }
    }

    /// Lets it run from the breakpoint in front of a call to where it is after so many
    /// steps; `false`: it came to the next call without.
    fn run(&self, trace: &[Step], step: usize, marker: u64) -> bool {
        let address = trace[step].address;
        let earlier = trace[..=step].iter();
        let mut left = earlier
            .filter(|earlier| earlier.is_new && earlier.address == address)
            .count();
        assert!(self.breakpoint(Some(address)));
        let mut signal = 0;
        while left > 0 {
            self.go(libc::PTRACE_CONT, signal);
            signal = self.wait();
            if signal == libc::SIGTRAP {
                signal = 0;
                match self.instruction() {
                    at if at == address => left -= 1,
                    at => {
                        assert_eq!(at, marker, "nothing else stops it");
                        break;
                    }
                }
            }
        }
        assert!(self.breakpoint(None));
        left == 0
    }

    /// As [`Tracee::run`], to the step in front, and then one step: breakpoints do not
    /// stop at where the handler of a fault returns to, since a fault leaves the flag
    /// that holds back the breakpoint of the next instruction.
    fn run_before(&self, trace: &[Step], step: usize, marker: u64) -> bool {
        if step == 0 || !self.run(trace, step - 1, marker) {
            return false;
        }
        let mut pending = 0;
        self.step_once(&mut pending);
        let reached = pending == 0 && self.instruction() == trace[step].address;
        if !reached {
            self.to_marker(pending);
        }
        reached
    }

    fn step(&self, index: usize) -> bool {
        let mut pending = 0;
        for _ in 0..=index {
            self.step_once(&mut pending);
        }
        if pending != 0 {
            self.step_once(&mut pending);
        }
        true
    }
}
