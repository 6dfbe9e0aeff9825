//! Random runs against a model: who may touch which word, written down by hand from what the host did. Real checked code
//! loads and stores; each access must end as the model says, and the table must agree with the model word by word.
//!
//! `MULLION_WORD_RUNS=1000000 cargo test --release -p mullion-word-runtime --test random -- --nocapture` is the long form,
//! with another `MULLION_SEED` for another run. Groups are the table's own test's (`crates/word/table/tests`): the run time has none.

mod module;

use module::{function, module};
use mullion_word_runtime::{Domain, Effect, FunctionPolicy, Granted, Host, Module, Policy, Size};
use mullion_word_table::Access;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const TEXT: &str = "
    import  malloc
    import  free
    # As `checked`, for one byte.
.macro checked1 right, operand, access:vararg
    lea     \\operand, %r11
    shr     $2, %r11
    cmp     %r14w, %gs:(%r11,%r11)
81: jne     82f
83: \\access
84:
    .pushsection .text.cold, \"ax\", @progbits
82: lea     \\operand, %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $\\right, %gs:(%r14d,%r11d)
    jne     83b
85: ud1     %ecx, %eax
    .popsection
    .pushsection .mullion.checked, \"\", @progbits
    .quad   81b, 84b, 82b, 85b
    .popsection
.endm
    gate    store
    checked 2, 0, (%rdx), mov %ecx, (%rdx)
    mov     $1, %eax
    ret
    gate    load
    checked 1, 0, (%rdx), mov (%rdx), %eax
    bts     $32, %rax
    ret
    gate    store1
    checked1 2, (%rdx), mov %cl, (%rdx)
    mov     $1, %eax
    ret
    gate    load1
    checked1 1, (%rdx), movzbl (%rdx), %eax
    bts     $32, %rax
    ret
    gate    in_store
    checked 2, 0, (%rdx), mov %ecx, (%rdx)
    mov     $1, %eax
    ret
    gate    in_load
    checked 1, 0, (%rdx), mov (%rdx), %eax
    bts     $32, %rax
    ret
    gate    inout_store
    checked 2, 0, (%rdx), mov %ecx, (%rdx)
    mov     $1, %eax
    ret
    gate    get
    call_import malloc
    ret
    gate    drop
    call_import free
    mov     $1, %eax
    ret
    gate    pass                    # calls the gate in %r8
    mov     %r8, %rax
    call_by %rax
    ret";

type Fn5 = extern "C" fn(u64, u64, u64, u64, u64) -> u64;

const WORDS: usize = 96;
static POOL: [AtomicU32; WORDS] = [const { AtomicU32::new(0) }; WORDS];

fn pool(word: usize) -> u64 {
    POOL.as_ptr() as u64 + 4 * word as u64
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

/// 0 nothing, 1 read, 2 read and write.
type Right = u8;

/// A domain, and what it may do by the model.
struct Life {
    domain: Domain,
    /// Whether its exports have policies.
    policies: bool,
    rights: [Right; WORDS],
    blocks: BTreeMap<u64, u64>,
    /// Whose gates it may enter, by place.
    links: BTreeSet<usize>,
}

impl Life {
    /// Of the word at an address.
    fn right(&self, address: u64) -> Right {
        let word = address / 4;
        if let Some(at) = word
            .checked_sub(pool(0) / 4)
            .filter(|at| *at < WORDS as u64)
        {
            return self.rights[at as usize];
        }
        let inside = |(at, bytes): (&u64, &u64)| (at / 4..=(at + bytes - 1) / 4).contains(&word);
        if self.blocks.iter().any(inside) { 2 } else { 0 }
    }

    fn may(&self, address: u64, bytes: u64, right: Right) -> bool {
        (address / 4..=(address + bytes - 1) / 4).all(|word| self.right(4 * word) >= right)
    }
}

/// Threads that call for us, one at a time.
struct Caller {
    to: Sender<Box<dyn FnOnce() -> u64 + Send>>,
    from: Receiver<u64>,
}

impl Caller {
    fn new() -> Self {
        let (to, jobs) = channel::<Box<dyn FnOnce() -> u64 + Send>>();
        let (answers, from) = channel();
        std::thread::spawn(move || {
            for job in jobs {
                let _gone = answers.send(job());
            }
        });
        Self { to, from }
    }

    fn call(&self, job: impl FnOnce() -> u64 + Send + 'static) -> u64 {
        self.to.send(Box::new(job)).expect("the thread lives");
        self.from.recv().expect("it answers")
    }
}

struct Run {
    host: Host,
    module: Arc<Module>,
    lives: Vec<Life>,
    callers: Vec<Caller>,
    /// Grants that end: whose, by number of the life, and for each word what was there and what was given.
    handles: Vec<(Granted, u64, Vec<(usize, Right, Right)>)>,
    /// Numbers of lives, by place.
    numbers: Vec<u64>,
    next: u64,
    random: Random,
    counts: BTreeMap<&'static str, u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut run = Self {
            host: Host::new().unwrap(),
            module: module("random", TEXT),
            lives: Vec::new(),
            callers: (0..3).map(|_| Caller::new()).collect(),
            handles: Vec::new(),
            numbers: Vec::new(),
            next: 0,
            random: Random(seed | 1),
            counts: BTreeMap::new(),
        };
        for at in 0..5 {
            let life = run.begin(at % 2 == 0);
            run.lives.push(life);
        }
        run
    }

    fn begin(&mut self, policies: bool) -> Life {
        let mut policy = Policy::new().allocators();
        if policies {
            let of = |effect| FunctionPolicy::of(&[effect]);
            let size = Size::Argument(1);
            policy = policy
                .export("in_store", of(Effect::In(0, size)))
                .export("in_load", of(Effect::In(0, size)))
                .export("inout_store", of(Effect::InOut(0, size)));
        }
        let domain = self.host.load(&self.module, policy).unwrap();
        self.next += 1;
        self.numbers.push(self.next);
        Life {
            domain,
            policies,
            rights: [0; WORDS],
            blocks: BTreeMap::new(),
            links: BTreeSet::new(),
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn range(&mut self) -> (usize, usize) {
        let first = self.random.below(WORDS);
        let most = if self.random.below(4) == 0 { WORDS } else { 9 };
        (
            first,
            first + 1 + self.random.below((WORDS - first).min(most)),
        )
    }

    fn call(&mut self, who: usize, name: &str, arguments: [u64; 5]) -> u64 {
        let call = function::<Fn5>(&self.lives[who].domain, name);
        let [a, b, c, d, e] = arguments;
        match self.random.below(4) {
            0 => call(a, b, c, d, e),
            thread => self.callers[thread - 1].call(move || call(a, b, c, d, e)),
        }
    }

    /// A domain that a refusal has ended begins anew; one that has not must not have ended.
    fn settle(&mut self, who: usize, refused: bool) {
        let life = &mut self.lives[who];
        assert_eq!(
            life.domain.is_ended(),
            refused,
            "{:?}",
            life.domain.take_reports()
        );
        if refused {
            assert_eq!(life.domain.take_reports().len(), 1);
            life.domain.restart().unwrap();
            // Blocks go back; what was lent stays.
            life.blocks.clear();
        }
    }

    /// As [`address`](Self::address), more often than not where this domain has something.
    fn address_of(&mut self, who: usize) -> u64 {
        let life = &self.lives[who];
        let rights = (0..WORDS - 1).filter(|word| life.rights[*word] > 0);
        let mut places: Vec<u64> = rights.map(pool).collect();
        places.extend(life.blocks.keys());
        match self.random.below(3) {
            0 => self.address(),
            _ if places.is_empty() => self.address(),
            1 => places[self.random.below(places.len())],
            _ => places[self.random.below(places.len())] + self.random.below(4) as u64,
        }
    }

    /// An address in the pool, or in somebody's block, now and then across a border.
    fn address(&mut self) -> u64 {
        let blocks: Vec<u64> = self
            .lives
            .iter()
            .flat_map(|life| life.blocks.keys().copied())
            .collect();
        let start = match self.random.below(4) {
            0 if !blocks.is_empty() => {
                blocks[self.random.below(blocks.len())] + 4 * self.random.below(6) as u64
            }
            _ => pool(self.random.below(WORDS - 1)),
        };
        start + [0, 0, 0, 1, 2, 3][self.random.below(6)]
    }

    /// What the access at `address` does, by what the domain may do there.
    fn judge(
        &mut self,
        kind: Kind,
        address: u64,
        value: u32,
        before: [u8; 4],
        answer: u64,
        may: bool,
    ) {
        let bytes = if kind.one { 1 } else { 4 };
        let after = read(address);
        let mut wanted = before;
        if may && kind.stores {
            wanted[..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        let mut loaded = [0; 4];
        loaded[..bytes].copy_from_slice(&before[..bytes]);
        let result = match (may, kind.stores) {
            (false, _) => 0,
            (_, true) => 1,
            (_, false) => 1 << 32 | u64::from(u32::from_le_bytes(loaded)),
        };
        assert_eq!(
            (answer, after),
            (result, wanted),
            "{kind:?} at {address:#x}, allowed: {may}"
        );
        self.count(if may { "allowed" } else { "refused" });
    }

    fn access(&mut self) {
        let who = self.random.below(self.lives.len());
        let kind = Kind {
            stores: self.random.below(2) == 0,
            one: self.random.below(3) == 0,
        };
        let (address, value) = (self.address_of(who), self.random.below(1 << 32) as u32);
        let name = match (kind.stores, kind.one) {
            (true, false) => "store",
            (true, true) => "store1",
            (false, false) => "load",
            (false, true) => "load1",
        };
        let before = read(address);
        let may = self.lives[who].may(
            address,
            if kind.one { 1 } else { 4 },
            1 + Right::from(kind.stores),
        );
        let answer = self.call(who, name, [0, 0, address, value.into(), 0]);
        self.judge(kind, address, value, before, answer, may);
        self.settle(who, !may);
    }

    /// A call that lends for its length, by the host or by another module.
    fn lend(&mut self) {
        let who = self.random.below(self.lives.len());
        if !self.lives[who].policies {
            return;
        }
        let name = ["in_store", "in_load", "inout_store"][self.random.below(3)];
        let kind = Kind {
            stores: name != "in_load",
            one: false,
        };
        let given: Right = if name == "inout_store" { 2 } else { 1 };
        let (first, end) = self.range();
        let (lent, bytes) = (pool(first), 4 * (end - first) as u64);
        let within = first + self.random.below(end - first);
        let address = match self.random.below(3) {
            0 => self.address_of(who),
            _ => pool(within.min(WORDS - 2)) + self.random.below(2) as u64,
        };
        let value = self.random.below(1 << 32) as u32;
        let before = read(address);
        let kept = self.lives[who].rights;
        for right in &mut self.lives[who].rights[first..end] {
            *right = (*right).max(given);
        }
        let mut may = self.lives[who].may(address, 4, 1 + Right::from(kind.stores));
        self.lives[who].rights = kept;
        let arguments = [lent, bytes, address, value.into(), 0];
        let from = self.random.below(self.lives.len());
        if from == who || self.random.below(2) == 0 {
            let answer = self.call(who, name, arguments);
            self.judge(kind, address, value, before, answer, may);
            self.settle(who, !may);
            return self.count("lent by the host");
        }
        // By another module, which must be linked, and must have what it lends.
        let linked = self.lives[from].links.contains(&who);
        let has = self.lives[from].may(lent, bytes, given);
        let gate = self.lives[who].domain.function(name).unwrap() as u64;
        let begun = linked && has;
        may &= begun;
        let [a, b, c, d, _] = arguments;
        let answer = self.call(from, "pass", [a, b, c, d, gate]);
        self.judge(kind, address, value, before, answer, may);
        self.settle(from, !linked);
        if linked && !has {
            let reports = self.lives[who].domain.take_reports();
            assert_eq!(
                reports.len(),
                1,
                "the callee is told why its call did not begin"
            );
        }
        self.settle(who, begun && !may);
        self.count("lent by a module");
    }

    fn grant(&mut self) {
        let who = self.random.below(self.lives.len());
        let ((first, end), write) = (self.range(), self.random.below(2) == 0);
        let given: Right = 1 + Right::from(write);
        let (domain, address, bytes) = (
            self.lives[who].domain,
            pool(first) as usize,
            4 * (end - first),
        );
        let mut changed = Vec::new();
        for word in first..end {
            let right = &mut self.lives[who].rights[word];
            if *right < given {
                changed.push((word, *right, given));
                *right = given;
            }
        }
        // SAFETY: the pool is for anybody to write.
        unsafe {
            if self.random.below(3) == 0 && self.handles.len() < 20 {
                let handle = self.host.grant_for(&domain, address, bytes, write).unwrap();
                self.handles.push((handle, self.numbers[who], changed));
                self.count("granted for a while");
            } else {
                self.host.grant(&domain, address, bytes, write).unwrap();
                self.count("granted");
            }
        }
    }

    /// A grant ends: what was taken away or raised meanwhile stays as it is.
    fn lower(&mut self) {
        if self.handles.is_empty() {
            return;
        }
        let at = self.random.below(self.handles.len());
        let (handle, number, changed) = self.handles.swap_remove(at);
        drop(handle);
        if let Some(who) = self.numbers.iter().position(|other| *other == number) {
            for (word, before, given) in changed {
                let right = &mut self.lives[who].rights[word];
                if *right == given {
                    *right = before;
                }
            }
        }
        self.count("a grant has ended");
    }

    fn revoke(&mut self) {
        let (first, end) = self.range();
        self.host
            .revoke(pool(first) as usize, 4 * (end - first))
            .unwrap();
        for life in &mut self.lives {
            life.rights[first..end].fill(0);
        }
        self.count("revoked");
    }

    fn allocate(&mut self) {
        let who = self.random.below(self.lives.len());
        let bytes = 1 + self.random.below(40) as u64;
        let block = self.call(who, "get", [bytes, 0, 0, 0, 0]);
        assert_ne!(block, 0);
        self.lives[who].blocks.insert(block, bytes);
        self.count("allocated");
    }

    /// Its own block, or somebody else's, or none.
    fn free(&mut self) {
        let mut who = self.random.below(self.lives.len());
        let mut address = self.address();
        let holder = self.lives.iter().position(|life| !life.blocks.is_empty());
        if let Some(holder) = holder.filter(|_| self.random.below(4) > 0) {
            who = holder;
            let blocks: Vec<u64> = self.lives[who].blocks.keys().copied().collect();
            address = blocks[self.random.below(blocks.len())];
        }
        let own = self.lives[who].blocks.contains_key(&address);
        let answer = self.call(who, "drop", [address, 0, 0, 0, 0]);
        assert_eq!(answer, u64::from(own), "{address:#x}");
        self.lives[who].blocks.remove(&address);
        self.settle(who, !own);
        self.count(if own { "freed" } else { "not freed" });
    }

    fn link(&mut self) {
        let (from, to) = (
            self.random.below(self.lives.len()),
            self.random.below(self.lives.len()),
        );
        if from == to {
            return;
        }
        for name in ["in_store", "in_load", "inout_store"] {
            let (from, to) = (self.lives[from].domain, self.lives[to].domain);
            self.host.link(&from, &to, name).unwrap();
        }
        self.lives[from].links.insert(to);
        self.count("linked");
    }

    /// A domain ends, and another one takes its place, and perhaps its number.
    fn renew(&mut self) {
        let who = self.random.below(self.lives.len());
        self.lives[who].domain.unload().unwrap();
        let policies = self.random.below(2) == 0;
        let life = self.begin(policies);
        self.lives[who] = life;
        self.numbers[who] = self.numbers.pop().unwrap();
        for life in &mut self.lives {
            life.links.remove(&who);
        }
        self.count("ended");
    }

    fn restart(&mut self) {
        let who = self.random.below(self.lives.len());
        self.lives[who].domain.restart().unwrap();
        self.lives[who].blocks.clear();
        self.count("restarted");
    }

    /// The table has what the model has.
    fn compare(&self) {
        for life in &self.lives {
            for word in 0..WORDS {
                let found = [Access::WRITE, Access::READ]
                    .map(|access| life.domain.view().allows(pool(word), 1, access));
                let right = life.rights[word];
                assert_eq!(
                    found,
                    [right == 2, right >= 1],
                    "word {word} of {:?}",
                    life.domain
                );
            }
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=44 => self.access(),
            45..=59 => self.lend(),
            60..=71 => self.grant(),
            72..=77 => self.lower(),
            78..=83 => self.revoke(),
            84..=88 => self.allocate(),
            89..=92 => self.free(),
            93..=95 => self.link(),
            96..=97 => self.restart(),
            _ => self.renew(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    stores: bool,
    one: bool,
}

/// Four bytes as the host sees them.
fn read(address: u64) -> [u8; 4] {
    // SAFETY: the pool, or a block of the allocator with room behind it; nobody writes while the host reads.
    unsafe { (address as *const [u8; 4]).read_volatile() }
}

fn setting(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn every_access_ends_as_the_model_says() {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    for word in &POOL {
        word.store(7, Ordering::Relaxed);
    }
    let steps = setting("MULLION_WORD_RUNS", 6_000);
    let mut run = Run::new(setting("MULLION_SEED", 0x6d75_6c6c_776f_7264));
    for step in 0..steps {
        run.step();
        if step % 8 == 0 {
            run.compare();
        }
    }
    println!("{:?}", run.counts);
    for what in [
        "allowed",
        "refused",
        "lent by a module",
        "a grant has ended",
        "ended",
        "freed",
    ] {
        assert!(
            run.counts
                .get(what)
                .is_some_and(|count| *count > steps / 400),
            "{what}: {:?}",
            run.counts
        );
    }
}
