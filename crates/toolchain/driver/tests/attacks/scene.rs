//! What the attacks meet: a block of the host's memory of which 64 bytes are lent to the module, another module, and
//! functions of the host with policies.
//!
//! ```text
//!   block   | victim ...            | lent, 64 bytes | victim ...            |
//! ```

use mullion_word_runtime::{Domain, Effect, FunctionPolicy, Host, Limits, Module, Policy, Size};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

pub type Fn3 = extern "C" fn(u64, u64, u64) -> u64;

const WORDS: usize = 1024;
const SECRET: u32 = 0x5ec2_e700;
const LENT: Range<usize> = 512..528;

#[repr(align(4096))]
struct Block([AtomicU32; WORDS]);

static BLOCK: Block = Block([const { AtomicU32::new(0) }; WORDS]);
static KEPT: AtomicU64 = AtomicU64::new(0);

/// A function of a domain.
pub fn function<F: Copy>(domain: &Domain, name: &str) -> F {
    let address = domain.function(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the caller names the function's type.
    unsafe { std::mem::transmute_copy(&address) }
}

/// Addresses of the host's memory.
pub fn block() -> Range<u64> {
    let start = BLOCK.0.as_ptr() as u64;
    start..start + 4 * WORDS as u64
}

pub fn lent() -> Range<u64> {
    let at = |word: usize| block().start + 4 * word as u64;
    at(LENT.start)..at(LENT.end)
}

/// Whether a number has bytes of the host's memory.
pub fn is_secret(answer: u64) -> bool {
    [0, 8, 16, 24].iter().any(|shift| {
        let shown = (answer >> shift) as u32;
        shown & 0xffff_f000 == SECRET & 0xffff_f000
    }) || (0x5e..=0xec).contains(&answer)
}

pub struct Scene<'a> {
    host: Option<&'a Host>,
    domain: Option<Domain>,
    other: Option<Domain>,
}

impl<'a> Scene<'a> {
    fn fill() {
        for (at, word) in BLOCK.0.iter().enumerate() {
            word.store(SECRET + at as u32, Ordering::SeqCst);
        }
    }

    /// Without a wall.
    pub fn plain() -> Scene<'static> {
        Scene::fill();
        Scene {
            host: None,
            domain: None,
            other: None,
        }
    }

    pub fn new(
        host: &'a Host,
        modules: &BTreeMap<&str, Arc<Module>>,
        file: &str,
        policy: Policy,
    ) -> Scene<'a> {
        Scene::fill();
        let domain = host.load(&modules[file], policy).expect("it is loaded");
        let other = host
            .load(&modules["control"], Policy::new())
            .expect("it is loaded");
        // SAFETY: what a domain writes there harms nobody.
        unsafe { host.grant(&domain, lent().start as usize, 64, true) }.expect("a grant");
        Scene {
            host: Some(host),
            domain: Some(domain),
            other: Some(other),
        }
    }

    pub fn domain(&self) -> &Domain {
        self.domain.as_ref().expect("with a wall")
    }

    pub fn other(&self) -> &Domain {
        self.other.as_ref().expect("with a wall")
    }

    pub fn victim(&self) -> u64 {
        block().start + 64
    }

    pub fn lent(&self) -> u64 {
        lent().start
    }

    /// Whether all is as it was, but for what was lent.
    pub fn unharmed(&self) -> Result<(), String> {
        for (at, word) in BLOCK
            .0
            .iter()
            .enumerate()
            .filter(|(at, _)| !LENT.contains(at))
        {
            let found = word.load(Ordering::SeqCst);
            if found != SECRET + at as u32 {
                return Err(format!("word {at} of the host was changed to {found:#x}"));
            }
        }
        Ok(())
    }

    pub fn leave(&self) -> Result<(), String> {
        if let Some(host) = self.host {
            let none = host.revoke(lent().start as usize, 64);
            none.map_err(|error| error.to_string())?;
        }
        for domain in [self.domain, self.other].into_iter().flatten() {
            domain.unload().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Where the table has what may be done with an address.
    pub fn shadow(&self, address: u64) -> u64 {
        self.domain().view().shadow() as u64 + (address >> 2) * 2
    }

    /// Where the table has the number of its line.
    pub fn line(&self, address: u64) -> u64 {
        self.domain().view().shadow() as u64 - 2 * (address / 64 + 1)
    }

    /// The byte of the domain's map for this number.
    pub fn map(&self, number: u64) -> u64 {
        let own = u64::from(self.domain().view().number());
        self.domain().view().shadow() as u64 + own * 65537 + number
    }

    fn gate(&self) -> u64 {
        let name = ["fine", "target", "own_gate"].into_iter();
        let mut found = name.filter_map(|name| self.domain().function(name));
        found.next().expect("each file has one of them") as u64
    }

    /// The slot that the module's gates jump through.
    pub fn slot(&self) -> u64 {
        let gate = self.gate();
        // SAFETY: a gate's last four bytes are a distance (docs/word-form.md).
        let distance = unsafe { ((gate + 13) as *const i32).read_unaligned() };
        (gate + 17).wrapping_add_signed(distance.into())
    }

    /// Where that slot leads.
    pub fn thunk(&self) -> u64 {
        // SAFETY: a slot of a loaded module, which the host may read.
        unsafe { (self.slot() as *const u64).read() }
    }

    /// What gates know of the domain.
    pub fn inner(&self) -> u64 {
        // SAFETY: a thunk begins with `movabs $Inner, %r10`.
        unsafe { ((self.thunk() + 2) as *const u64).read_unaligned() }
    }

    pub fn text(&self) -> u64 {
        self.gate()
    }

    /// Data of the other module.
    pub fn others_data(&self) -> u64 {
        function::<Fn3>(self.other(), "address_of_data")(0, 0, 0)
    }

    pub fn others_stack(&self) -> u64 {
        function::<Fn3>(self.other(), "address_of_stack")(0, 0, 0)
    }

    /// A gate that the module may not enter.
    pub fn others_gate(&self) -> u64 {
        self.other().function("target").expect("it has it") as u64
    }

    /// The body behind it.
    pub fn others_body(&self) -> u64 {
        let gate = self.others_gate();
        // SAFETY: a gate's bytes 7 to 10 are a distance (docs/word-form.md), and the host may read code.
        let distance = unsafe { ((gate + 7) as *const i32).read_unaligned() };
        (gate + 11).wrapping_add_signed(distance.into())
    }

    /// A word of the thread's control stack: 1 MiB that can be written behind 64 KiB that cannot.
    pub fn control(&self) -> u64 {
        // The stack is there once the thread has entered a domain.
        self.others_stack();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("a list of mappings");
        let mut guard = 0;
        for line in maps.lines() {
            let (range, rest) = line.split_once(' ').expect("a range");
            let (start, end) = range.split_once('-').expect("two ends");
            let number = |text| u64::from_str_radix(text, 16).expect("a number");
            let (start, end) = (number(start), number(end));
            if rest.starts_with("rw-p") && guard == start && end - start >= 1 << 20 {
                return start + (1 << 20) - 64;
            }
            if rest.starts_with("---p") && end - start >= 64 << 10 {
                guard = end;
            }
        }
        panic!("no control stack in\n{maps}")
    }
}

pub extern "C" fn fill(to: *mut u8, bytes: usize) -> u64 {
    // SAFETY: its policy has seen that the module may write there; without a wall it is a victim.
    unsafe { to.write_bytes(1, bytes) };
    1
}

pub extern "C" fn sum(from: *const u8, bytes: usize) -> u64 {
    // SAFETY: its policy has seen that the module may read there; without a wall it is a victim.
    (0..bytes)
        .map(|at| u64::from(unsafe { from.add(at).read() }))
        .sum()
}

pub extern "C" fn length_of(text: *const libc::c_char) -> u64 {
    // SAFETY: its policy has seen that the module may read the text to its end; without a wall it is a victim.
    unsafe { libc::strlen(text) as u64 | 1 }
}

pub extern "C" fn copy(to: *mut u8, from: *const u8, bytes: usize) -> u64 {
    // SAFETY: its policy has seen that the module may read and write there; without a wall it is a victim.
    unsafe {
        to.copy_from(from, bytes);
        u64::from(to.cast::<u32>().read_unaligned())
    }
}

pub extern "C" fn fill_table(to: *mut u8, rows: usize, bytes: usize) -> u64 {
    fill(to, rows.wrapping_mul(bytes))
}

pub extern "C" fn keep(what: u64, _bytes: u64) -> u64 {
    KEPT.store(what, Ordering::SeqCst);
    1
}

pub extern "C" fn call_back(f: extern "C" fn(u64) -> u64, a: u64) -> u64 {
    f(a)
}

pub extern "C" fn pool_get(bytes: usize) -> u64 {
    Box::leak(vec![0u64; bytes.div_ceil(8) + 2].into_boxed_slice()).as_ptr() as u64 + 8
}

pub extern "C" fn pool_drop(_block: u64) -> u64 {
    1
}

pub extern "C" fn never_offered(_: u64) -> u64 {
    1
}

/// The host takes back what it has lent.
pub extern "C" fn take_back(address: u64) -> u64 {
    if let Ok(host) = Host::new() {
        host.revoke(address as usize & !63, 64)
            .expect("it is taken back");
    }
    1
}

type Address = fn() -> usize;

/// Functions of the host that modules import.
pub const HOST: &[(&str, Address)] = &[
    ("fill", || fill as *const () as usize),
    ("sum", || sum as *const () as usize),
    ("length_of", || length_of as *const () as usize),
    ("copy", || copy as *const () as usize),
    ("fill_table", || fill_table as *const () as usize),
    ("keep", || keep as *const () as usize),
    ("call_back", || call_back as *const () as usize),
    ("pool_get", || pool_get as *const () as usize),
    ("pool_drop", || pool_drop as *const () as usize),
    ("never_offered", || never_offered as *const () as usize),
    ("take_back", || take_back as *const () as usize),
];

/// All that a module of these tests may do.
pub fn policy() -> Policy {
    use Effect::{Callback, Frees, Gives, In, Out, Takes};
    let of = |effects: &[Effect]| FunctionPolicy::of(effects);
    let count = Size::Argument;
    let mut policy = Policy::new().allocators().limits(Limits {
        memory: 1 << 20,
        ..Limits::default()
    });
    let rows = [
        ("fill", of(&[Out(0, count(1))])),
        ("sum", of(&[In(0, count(1))])),
        ("length_of", of(&[In(0, Size::Text)])),
        ("copy", of(&[Out(0, count(2)), In(1, count(2))])),
        ("fill_table", of(&[Out(0, Size::Product(1, 2))])),
        ("keep", of(&[Takes(0, count(1))])),
        ("call_back", of(&[Callback(0)])),
        ("pool_get", of(&[Gives(count(0))]).allocator("pool")),
        ("pool_drop", of(&[Frees(0)]).allocator("pool")),
        ("take_back", of(&[])),
    ];
    for (name, row) in rows {
        let (_, address) = HOST
            .iter()
            .find(|(other, _)| *other == name)
            .expect("a function");
        // SAFETY: they do with their arguments what the rows say.
        policy = unsafe { policy.offer(name, address(), Some(row)) };
    }
    policy
}

/// As [`policy`], with a limit on time.
pub fn hurried() -> Policy {
    policy().limits(Limits {
        time: Some(Duration::from_millis(30)),
        ..Limits::default()
    })
}
