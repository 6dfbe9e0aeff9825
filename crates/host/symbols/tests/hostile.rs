//! Debug information that was written to harm whoever reads it: time and memory are bounded.

use mullion_symbols::Symbols;
use object::{Object, ObjectSection};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

mod support;
use support::{Dwarf, compiled};

thread_local! {
    static LIVE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Counts what this thread has allocated, and the most that it had at a time.
struct Counting;

// SAFETY: it passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _counted = LIVE.try_with(|live| {
            let (now, most) = live.get();
            let now = now + layout.size();
            live.set((now, most.max(now)));
        });
        // SAFETY: `layout` has a size, as the trait demands of its caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _counted = LIVE.try_with(|live| {
            let (now, most) = live.get();
            live.set((now.saturating_sub(layout.size()), most));
        });
        // SAFETY: `memory` came from `alloc` with this `layout`, as the trait demands, and so from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Steps of one question, and of the tables of an image of that size, as `lib.rs` and `index.rs` have them.
fn bound(image: &[u8], questions: u64) -> u64 {
    questions * (1 << 20) + (1 << 16) + 16 * image.len() as u64
}

/// Asks everything about an address, on a small stack; returns the steps and the most bytes it took.
fn ask(image: &[u8], offset: u64) -> (u64, usize) {
    let image = image.to_vec();
    let asked = std::thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(move || {
            let size = image.len();
            let before = LIVE.with(Cell::get).0;
            LIVE.with(|live| live.set((before, before)));
            let mut symbols = Symbols::new(image);
            let locations = symbols.find(offset);
            assert!(locations.len() <= 65);
            assert!(
                locations
                    .iter()
                    .all(|found| found.to_string().len() < 20_000)
            );
            let signature = symbols.signature(offset);
            let _text = signature.map_or_else(|unknown| unknown.to_string(), |of| of.to_string());
            let _name = symbols.function_at(offset);
            let names: usize = symbols
                .functions()
                .map(|function| function.name.len())
                .sum();
            assert!(names <= 8 * size + 8192, "{names} bytes of names of {size}");
            (symbols.steps(), LIVE.with(Cell::get).1 - before)
        });
    asked
        .expect("a thread")
        .join()
        .expect("no panic and no overflow")
}

/// The bounds hold, whatever the image says.
fn bounded(what: &str, image: &[u8], offset: u64) {
    let (steps, memory) = ask(image, offset);
    println!(
        "{what}: {} bytes, {steps} steps, {memory} bytes of memory",
        image.len()
    );
    assert!(steps <= bound(image, 2), "{what}: {steps} steps");
    // What gimli keeps of one table (`entry::TABLE`), and 64 bytes for each byte of the image.
    let most = (48 << 20) + 64 * image.len();
    assert!(memory <= most, "{what}: {memory} bytes of memory");
}

const CODE: u64 = 0x20000;

/// Each of two bytes: a number of an abbreviation, and one of a list of ranges.
#[test]
fn functions_inlined_300_000_deep() {
    let mut dwarf = Dwarf::new(CODE, 0x1000);
    let function = dwarf.abbreviation(0x2e, true, &[(0x11, 0x01), (0x12, 0x06)]);
    let inlined = dwarf.abbreviation(0x1d, true, &[(0x55, 0x23)]);
    dwarf.range(CODE, CODE + 0x1000);
    dwarf.entry(function).address(CODE).word(0x1000);
    for _ in 0..300_000 {
        dwarf.entry(inlined).byte(0);
    }
    let image = dwarf.image();
    assert_eq!(
        Symbols::new(&*image).find(CODE + 8).len(),
        65,
        "the ranges cover"
    );
    bounded("inlined", &image, CODE + 8);
}

/// `const` of `const` of `const`, 32 deep and in a circle.
#[test]
fn types_of_types_of_types() {
    for circle in [false, true] {
        let mut dwarf = Dwarf::new(CODE, 0x1000);
        dwarf.range(CODE, CODE + 0x1000);
        let function = dwarf.abbreviation(
            0x2e,
            false,
            &[(0x11, 0x01), (0x12, 0x06), (0x49, 0x13), (0x27, 0x19)],
        );
        let constant = dwarf.abbreviation(0x26, false, &[(0x49, 0x13)]);
        let first = dwarf.position() + 1 + 8 + 4 + 4;
        dwarf.entry(function).address(CODE).word(0x1000).word(first);
        for _ in 0..100 {
            let here = dwarf.position();
            let next = if circle { here } else { here + 5 };
            dwarf.entry(constant).word(next);
        }
        bounded("types", &dwarf.image(), CODE);
    }
}

/// Each of many functions is of the same many pieces.
#[test]
fn ranges_that_many_functions_share() {
    let mut dwarf = Dwarf::new(CODE, 0x1000);
    let function = dwarf.abbreviation(0x2e, false, &[(0x55, 0x17)]);
    for number in 0..8_000_u64 {
        dwarf.range(CODE + number % 7, CODE + 0x1000);
    }
    for _ in 0..8_000 {
        dwarf.entry(function).word(16);
    }
    bounded("ranges", &dwarf.image(), CODE + 8);
}

/// Entries of one byte with attributes of none.
#[test]
fn attributes_that_take_no_room() {
    let mut dwarf = Dwarf::new(CODE, 0x1000);
    let flags: Vec<(u64, u64)> = (0..50_000)
        .map(|number| (0x2000 + number % 0x1000, 0x19))
        .collect();
    let wide = dwarf.abbreviation(0x2e, false, &flags);
    for _ in 0..100_000 {
        dwarf.entry(wide);
    }
    bounded("attributes", &dwarf.image(), CODE + 8);
}

/// Many units that share one table of abbreviations, and one line table with many files.
#[test]
fn tables_that_many_units_share() {
    let mut dwarf = Dwarf::new(CODE, 0x1000);
    for number in 0..20_000 {
        dwarf.abbreviation(0x34, false, &[(number % 0x1000 + 0x2000, 0x19)]);
    }
    dwarf.files(100_000);
    let one = dwarf.unit();
    for _ in 0..5_000 {
        dwarf.more(&one);
    }
    bounded("units", &dwarf.image(), CODE + 8);
}

/// Names that are long and that many share, in the symbol table and in the debug information.
#[test]
fn names_that_many_share() {
    let mut dwarf = Dwarf::new(CODE, 0x1000);
    let function = dwarf.abbreviation(0x2e, false, &[(0x11, 0x01), (0x12, 0x06), (0x03, 0x0e)]);
    dwarf.string(&"x".repeat(2_000_000));
    for _ in 0..10_000 {
        dwarf.entry(function).address(CODE).word(0x1000).word(0);
        dwarf.symbol(CODE);
    }
    bounded("names", &dwarf.image(), CODE + 8);
}

/// A mangled name that stands for one of 2^40 bytes, and one that takes 2^30 attempts to read.
#[test]
fn names_that_grow() {
    let doubling =
        |open: &str, close: &str| format!("_Z1f{}i{}", open.repeat(30), close.repeat(30));
    let names = [
        doubling("T_I", "E"),
        doubling("St4pairI", "S_E"),
        format!(
            "_Z1fSt4pairIiiE{}",
            (0..40)
                .map(|n| format!("St4pairIS{n:X}_S{n:X}_E"))
                .collect::<String>()
        ),
        format!("_R{}", "NvC1a".repeat(200)),
        format!("_RINvC1a1f{}E", "TB2_B2_".repeat(100)),
    ];
    for name in names {
        let mut dwarf = Dwarf::new(CODE, 0x1000);
        let function = dwarf.abbreviation(
            0x2e,
            false,
            &[(0x11, 0x01), (0x12, 0x06), (0x03, 0x0e), (0x6e, 0x0e)],
        );
        dwarf.range(CODE, CODE + 0x1000);
        dwarf.string("f");
        dwarf.string(&name);
        dwarf
            .entry(function)
            .address(CODE)
            .word(0x1000)
            .word(0)
            .word(2);
        bounded(&name[..6], &dwarf.image(), CODE);
    }
}

/// Mutants of a small program's debug information; each is asked for what the
/// whole program knows, and may know anything.
#[test]
fn mutants() {
    let code = "typedef const struct { int a; } *pointer; struct s { pointer p; volatile long l; };\n\
        static inline int h(struct s *s, int x) { return s->p->a * x; }\n\
        static inline int g(struct s *s, int x) { return h(s, x) * 3 + s->l; }\n\
        int f(struct s *s, int x) { return g(s, x) + 1; }\n";
    let seed = std::env::var("MULLION_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1_u64);
    let count = std::env::var("MULLION_MUTANTS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(6000);
    let mut state = seed;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below.max(1)
    };
    let kinds: Vec<Vec<u8>> = ["-gdwarf-4", "-gdwarf-5"]
        .iter()
        .map(|of| compiled(code, "c", &[of]))
        .collect();
    let mut most = (0, 0);
    for number in 0..count {
        let bytes = &kinds[number % kinds.len()];
        let file = object::File::parse(&**bytes).expect("an ELF file");
        let (place, sections) = (file.entry(), file.sections());
        let debug = sections.filter(|section| {
            section
                .name()
                .is_ok_and(|name| name.starts_with(".debug") || name == ".symtab")
        });
        let ranges: Vec<(u64, u64)> = debug.filter_map(|section| section.file_range()).collect();
        if number < kinds.len() {
            let found = Symbols::new(&**bytes).find(place);
            assert!(found.iter().any(|found| found.line == Some(4)), "{found:?}");
        }
        let mut mutant = bytes.clone();
        for _ in 0..=random(4) {
            let (start, length) = ranges[random(ranges.len() as u64) as usize];
            let at = (start + random(length)) as usize;
            mutant[at] = [0, 0xff, 0x7f, 0x80, random(256) as u8][random(5) as usize];
        }
        let (steps, memory) = ask(&mutant, place + random(8));
        assert!(steps <= bound(&mutant, 2), "{steps} steps");
        most = (most.0.max(steps), most.1.max(memory));
    }
    println!(
        "{count} mutants: at most {} steps and {} bytes",
        most.0, most.1
    );
}
