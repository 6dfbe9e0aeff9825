//! What belongs to the process: signals of the host's all the time, and what must not grow.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static ALARMS: AtomicU64 = AtomicU64::new(0);

/// The host's own: uses stack and vector registers.
extern "C" fn alarm(_: libc::c_int) {
    let mut all = [0_f64; 64];
    for (index, place) in all.iter_mut().enumerate() {
        *place = std::hint::black_box(index as f64).sqrt();
    }
    std::hint::black_box(all);
    ALARMS.fetch_add(1, Ordering::Relaxed);
}

/// A timer that interrupts some thread every millisecond, wherever it is.
pub(crate) fn make_signals() {
    // SAFETY: a handler of the right signature; plain structures.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = alarm as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        let time = libc::timeval {
            tv_sec: 0,
            tv_usec: 1000,
        };
        let timer = libc::itimerval {
            it_interval: time,
            it_value: time,
        };
        libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
    }
}

/// They came, and the handler is the host's own still.
pub(crate) fn assert_signals() {
    assert!(ALARMS.load(Ordering::Relaxed) > 100);
    // SAFETY: only asks.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGALRM, std::ptr::null(), &mut action);
        assert_eq!(action.sa_sigaction, alarm as *const () as usize);
    }
}

/// What must not grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    descriptors: usize,
    mappings: usize,
    threads: usize,
}

impl Usage {
    /// When threads that are about to end have ended.
    pub(crate) fn at_rest(before: Self) -> Self {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let now = Self::now();
            if now.threads <= before.threads || Instant::now() > until {
                return now;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn now() -> Self {
        let count = |path| std::fs::read_dir(path).expect("a directory").count();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("a file");
        Self {
            descriptors: count("/proc/self/fd"),
            mappings: maps.lines().count(),
            threads: count("/proc/self/task"),
        }
    }

    /// Windows, stacks and the allocator's arenas wait for the next user: these have a bound. Descriptors
    /// and threads have none.
    pub(crate) fn assert_as(self, before: Self) {
        assert_eq!(self.descriptors, before.descriptors);
        assert_eq!(self.threads, before.threads);
        assert!(
            self.mappings <= before.mappings + 200,
            "{before:?}, then {self:?}"
        );
    }
}

/// Panics on purpose are not worth a line.
pub(crate) fn say_panic(info: &std::panic::PanicHookInfo<'_>) {
    let text = info.to_string();
    if !text.contains("on purpose") {
        eprintln!("{text}");
    }
}
