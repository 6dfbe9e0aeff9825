//! A host of plug-ins: what it is told is a library, and which plug-ins to run how.

use std::ffi::{CStr, CString, c_char, c_int, c_ulong, c_void};
use std::time::Instant;

/// `LADSPA_Descriptor`.
#[repr(C)]
pub(crate) struct Descriptor {
    id: c_ulong,
    label: *const c_char,
    properties: c_int,
    texts: [*const c_char; 3],
    ports: c_ulong,
    kinds: *const c_int,
    names: *const *const c_char,
    hints: *const Hint,
    data: *mut c_void,
    instantiate: extern "C" fn(*const Descriptor, c_ulong) -> *mut c_void,
    connect: extern "C" fn(*mut c_void, c_ulong, *mut f32),
    activate: Option<extern "C" fn(*mut c_void)>,
    run: extern "C" fn(*mut c_void, c_ulong),
    run_adding: Option<extern "C" fn(*mut c_void, c_ulong)>,
    set_gain: Option<extern "C" fn(*mut c_void, f32)>,
    deactivate: Option<extern "C" fn(*mut c_void)>,
    cleanup: Option<extern "C" fn(*mut c_void)>,
}

#[repr(C)]
struct Hint {
    kind: c_int,
    low: f32,
    high: f32,
}

const RATE: c_ulong = 44_100;
/// Samples of a guard on each side of a buffer.
const GUARD: usize = 16;
const UNTOUCHED: f32 = 12345.0;

fn library(path: &str) -> extern "C" fn(c_ulong) -> *const Descriptor {
    let path = CString::new(path).expect("a path");
    // SAFETY: a library of plug-ins, whose function has this type.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null(), "{:?}", CStr::from_ptr(libc::dlerror()));
        let found = libc::dlsym(handle, c"ladspa_descriptor".as_ptr());
        assert!(!found.is_null());
        std::mem::transmute::<*mut c_void, extern "C" fn(c_ulong) -> *const Descriptor>(found)
    }
}

impl Descriptor {
    fn label(&self) -> String {
        // SAFETY: a string of the library.
        unsafe { CStr::from_ptr(self.label) }
            .to_string_lossy()
            .into_owned()
    }

    fn kind(&self, port: usize) -> c_int {
        // SAFETY: the library has so many.
        unsafe { *self.kinds.add(port) }
    }

    fn usual(&self, port: usize) -> f32 {
        // SAFETY: the library's descriptor has a hint for each port.
        let hint = unsafe { &*self.hints.add(port) };
        let scale = if hint.kind & 8 != 0 { RATE as f32 } else { 1.0 };
        let (low, high) = (hint.low * scale, hint.high * scale);
        match hint.kind & 0x3c0 {
            0x40 => low,
            0x80 => low * 0.75 + high * 0.25,
            0xc0 => low * 0.5 + high * 0.5,
            0x100 => low * 0.25 + high * 0.75,
            0x140 => high,
            0x240 => 1.0,
            0x280 => 100.0,
            0x2c0 => 440.0,
            _ if hint.kind & 3 == 3 => low * 0.5 + high * 0.5,
            _ if hint.kind & 1 != 0 => low,
            _ => 0.0,
        }
    }
}

/// An instance with buffers, which have guards on both sides.
struct Running<'a> {
    descriptor: &'a Descriptor,
    handle: *mut c_void,
    audio: Vec<Vec<f32>>,
    controls: Vec<f32>,
    count: usize,
}

impl<'a> Running<'a> {
    fn new(descriptor: &'a Descriptor, count: usize, control: Option<f32>) -> Running<'a> {
        let handle = (descriptor.instantiate)(descriptor, RATE);
        let ports = descriptor.ports as usize;
        let mut running = Running {
            descriptor,
            handle,
            audio: vec![vec![UNTOUCHED; count + 2 * GUARD]; ports],
            controls: (0..ports)
                .map(|port| control.unwrap_or_else(|| descriptor.usual(port)))
                .collect(),
            count,
        };
        if handle.is_null() {
            return running;
        }
        for port in 0..ports {
            let at = match descriptor.kind(port) & 4 != 0 {
                true => &raw mut running.controls[port],
                false => &raw mut running.audio[port][GUARD],
            };
            (descriptor.connect)(handle, port as c_ulong, at);
        }
        if let Some(activate) = descriptor.activate {
            activate(handle);
        }
        running
    }

    fn fill(&mut self, block: usize) {
        for port in 0..self.audio.len() {
            if self.descriptor.kind(port) & 1 != 0 {
                for number in 0..self.count {
                    let at = (block * self.count + number) as f32;
                    self.audio[port][GUARD + number] =
                        (at * 0.05).sin() * (at * 0.0031).cos() * 0.5;
                }
            }
        }
    }

    fn run(&mut self) {
        (self.descriptor.run)(self.handle, self.count as c_ulong);
    }

    /// A number that differs if any sample of any output does.
    fn digest(&self, mut sum: u64) -> u64 {
        for port in 0..self.audio.len() {
            let kind = self.descriptor.kind(port);
            let samples = match kind & 4 != 0 {
                true => std::slice::from_ref(&self.controls[port]),
                false => &self.audio[port][GUARD..GUARD + self.count],
            };
            if kind & 2 != 0 {
                for sample in samples {
                    sum = (sum ^ u64::from(sample.to_bits())).wrapping_mul(0x0100_0000_01b3);
                }
            }
        }
        sum
    }

    fn guards_are_untouched(&self) -> bool {
        self.audio.iter().all(|buffer| {
            let (low, high) = (&buffer[..GUARD], &buffer[GUARD + self.count..]);
            low.iter().chain(high).all(|sample| *sample == UNTOUCHED)
        })
    }

    fn end(self) {
        if let (Some(deactivate), false) = (self.descriptor.deactivate, self.handle.is_null()) {
            deactivate(self.handle);
        }
        if let (Some(cleanup), false) = (self.descriptor.cleanup, self.handle.is_null()) {
            cleanup(self.handle);
        }
    }
}

fn all(path: &str) -> Vec<&'static Descriptor> {
    let descriptor = library(path);
    (0..)
        // SAFETY: what a library answers stays.
        .map_while(|number| unsafe { descriptor(number).as_ref() })
        .collect()
}

/// `digest LIBRARY`, `attack LIBRARY LABEL`, `cost LIBRARY LABEL COUNT`.
pub(crate) fn run(words: &[String]) {
    let [what, library, rest @ ..] = words else {
        panic!("{words:?}");
    };
    let all = all(library);
    let named = |label: &str| {
        *all.iter()
            .find(|one| one.label() == label)
            .expect("it is there")
    };
    match what.as_str() {
        "digest" => all
            .iter()
            .for_each(|descriptor| println!("{}", digest(descriptor))),
        "attack" => attack(named(&rest[0]), named("good")),
        "cost" => cost(named(&rest[0]), rest[1].parse().expect("a number")),
        what => panic!("{what}"),
    }
}

fn digest(descriptor: &Descriptor) -> String {
    // Plug-ins that make noise ask the C library for it.
    // SAFETY: it sets a number.
    unsafe { libc::srand(1) };
    let mut sum = 0xcbf2_9ce4_8422_2325;
    let mut guards = true;
    // As many samples at a time as hosts have, and odd ones.
    for count in [64, 1, 333] {
        let mut running = Running::new(descriptor, count, None);
        assert!(!running.handle.is_null(), "{}", descriptor.label());
        for block in 0..20 {
            running.fill(block);
            running.run();
            sum = running.digest(sum);
        }
        guards &= running.guards_are_untouched();
        running.end();
    }
    format!(
        "{} {} {sum:016x} {guards}",
        descriptor.id,
        descriptor.label()
    )
}

/// Runs a plug-in that attacks, and then a good one of the same library, twice: as it is, and with a fresh instance.
fn attack(descriptor: &Descriptor, good: &Descriptor) {
    let mut before = Running::new(good, 64, None);
    let mut running = Running::new(descriptor, 64, Some(1.0));
    for block in 0..2 {
        running.fill(block);
        // Of which nobody else has a pointer any more.
        let input = running.audio[0].clone();
        // The second time it gets other buffers: the first ones are another plug-in's then.
        if block == 1 {
            let (at, descriptor) = (&raw mut before.audio[1][GUARD], running.descriptor);
            before.audio[1].fill(UNTOUCHED);
            (descriptor.connect)(running.handle, 1, at);
            let first = running.audio[1].clone();
            running.run();
            println!("block 1 other {}", running.audio[1] == first);
            break;
        }
        running.run();
        let silent = running.audio[1][GUARD..GUARD + 64]
            .iter()
            .all(|sample| *sample == 0.0);
        let intact = running.audio[0] == input && running.guards_are_untouched();
        println!(
            "block {block} silent {silent} intact {intact} first {}",
            running.audio[1][GUARD]
        );
    }
    running.end();
    before.end();
    let mut fresh = Running::new(good, 64, None);
    if fresh.handle.is_null() {
        println!("good none");
        return;
    }
    fresh.fill(1);
    fresh.run();
    let input = &fresh.audio[0][GUARD..GUARD + 64];
    let twice = fresh.audio[1][GUARD..]
        .iter()
        .zip(input)
        .all(|(out, input)| *out == 2.0 * input);
    println!("good {twice}");
    fresh.end();
}

fn cost(descriptor: &Descriptor, count: usize) {
    let mut running = Running::new(descriptor, count, None);
    running.fill(0);
    let blocks = (4_000_000 / count).clamp(1, 100_000) / 20;
    let mut best = f64::MAX;
    let mut worst = 0.0f64;
    for _ in 0..20 {
        let begun = Instant::now();
        for _ in 0..blocks {
            running.run();
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / blocks as f64);
        for _ in 0..10 {
            let one = Instant::now();
            running.run();
            worst = worst.max(one.elapsed().as_secs_f64() * 1e9);
        }
    }
    println!("{best} {worst}");
    running.end();
}
