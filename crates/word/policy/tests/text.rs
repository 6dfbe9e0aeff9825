//! Policies as text: what is read is what was written, and errors tell the place.

use mullion_word_policy::{
    Call, Export, File, HostVariable, Interface, Limits, LowerError, TextError,
};
use mullion_word_runtime::{Bits, Effect, ErrorValue, Number, Size, Sum, Term};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

fn wrong(text: &str) -> TextError {
    File::parse(text).expect_err("it is wrong")
}

#[test]
fn a_file_says_what_it_says() {
    let file = File::parse(
        "module = \"m\"\nentry = \"start\"\nallow = [\"@malloc\", \"puts\"]\nerror = -1\n[limits]\ntime = \"20 ms\"\n\
         memory = \"3 MiB\"\n[call.fill]\nparameters = [\"to\", \"n\", \"size\"]\neffects = [\"out(to, n * size)\", \
         \"callback(3)\"]\nstacked = 2\n[export.sum]\neffects = [\"in(0, 16)\"]\nerror = 1.5\n",
    )
    .expect("it is right");
    assert_eq!(file.module.as_deref(), Some("m"));
    assert_eq!(file.entry.as_deref(), Some("start"));
    assert_eq!(file.allow, ["@malloc", "puts"]);
    assert_eq!(file.limits.time, Some(Duration::from_millis(20)));
    assert_eq!(file.limits.memory, Some(3 << 20));
    assert_eq!(file.limits.stack, None);
    let fill = &file.calls["fill"];
    assert_eq!(
        fill.effects,
        [Effect::Out(0, Size::Product(1, 2)), Effect::Callback(3)]
    );
    assert_eq!(fill.stacked, 2);
    let sum = &file.exports["sum"];
    assert_eq!(sum.call.effects, [Effect::In(0, Size::Bytes(16))]);
    assert_eq!(sum.error.map(|error| error.float), Some(1.5));
}

#[test]
fn sizes_are_sums_of_what_is_passed() {
    let effects = |parameters: &str, effect: &str| {
        let text = format!("[call.f]\nparameters = [{parameters}]\neffects = [\"{effect}\"]");
        let file = File::parse(&text).unwrap_or_else(|error| panic!("{effect}: {error}"));
        file.calls["f"].effects[0]
    };
    let of = |effect| effects("\"p\", \"int n\", \"size_t m\", \"q\"", effect);
    let n = Number::of(1, Bits::I32);
    let term = |times, first, second| {
        Some(Term {
            times,
            factors: [first, second],
        })
    };
    let alone = |number| Size::Sum(Sum::from(number));
    assert_eq!(of("in(p, n)"), Effect::In(0, alone(n)));
    assert_eq!(of("in(p, m)"), Effect::In(0, Size::Argument(2)));
    assert_eq!(of("in(p, n:u64)"), Effect::In(0, Size::Argument(1)));
    assert_eq!(
        of("in(p, #2:u16)"),
        Effect::In(0, alone(Number::of(2, Bits::U16)))
    );
    let sum = Sum([
        term(4, Some(n), None),
        term(8, None, None),
        term(-1, Some(Number::of(2, Bits::U64)), None),
    ]);
    assert_eq!(of("out(p, n * 4 + 8 - m)"), Effect::Out(0, Size::Sum(sum)));
    let field = Number::field(3, 12, Bits::U32);
    assert_eq!(of("inout(p, q@12:u32)"), Effect::InOut(0, alone(field)));
    let product = Sum([term(1, Some(n), Some(field)), None, None]);
    assert_eq!(
        of("out(p, vectors(n * q@12:u32))"),
        Effect::Out(0, Size::Vectors(product))
    );
    assert_eq!(of("list(p)"), Effect::In(0, Size::List));
    assert_eq!(of("in(q, strings)"), Effect::In(3, Size::Texts));
    assert_eq!(of("copyin(q, string)"), Effect::CopyIn(3, Size::Text));
    assert_eq!(of("copyinout(p, 8)"), Effect::CopyInOut(0, Size::Bytes(8)));
    assert_eq!(of("into(p, 8, q)"), Effect::Into(0, Size::Bytes(8), 3));
    assert_eq!(of("into(p, m, 3)"), Effect::Into(0, Size::Argument(2), 3));
    for (effect, what) in [
        ("copyin(p, list)", "always copied"),
        ("copyin(p, vectors(n))", "always copied"),
        ("copyinout(p, string)", "of its own"),
        ("copyinout(p, vectors(n))", "of its own"),
        ("in(p, n * n * n)", "two values"),
        ("in(p, 1 + n + 2 + m)", "three products"),
        ("in(p, q@4)", "has a type"),
        ("in(p, n:u24)", "a type is wanted"),
        ("in(p, n + 9223372036854775808)", "below 2^63"),
        ("out(p, strings)", "only `in`"),
        ("takes(p, vectors(n))", "of vectors"),
        ("into(p, string, q)", "only `in`"),
        ("into(p, vectors(n), q)", "of vectors"),
        ("into(p, 8)", "`,` is wanted"),
        ("into(p, 8, r)", "is none of"),
    ] {
        let text = format!(
            "[call.f]\nparameters = [\"p\", \"int n\", \"m\", \"q\"]\neffects = [\"{effect}\"]"
        );
        assert!(
            wrong(&text).what.contains(what),
            "{effect}: {}",
            wrong(&text)
        );
    }
    assert!(
        wrong("[call.f]\nparameters = [\"float f\"]")
            .what
            .contains("no type")
    );
    assert!(
        wrong("[call.f]\nparameters = [\"int f\", \"f\"]")
            .what
            .contains("two parameters")
    );
}

#[test]
fn variables_of_the_host_have_a_size_and_a_right() {
    let file = File::parse(
        "stays-mapped = true\n[data.environ]\n[data.ap_hooks]\nbytes = 40\nwrite = true\nreason = \"r\"\n",
    )
    .expect("it is right");
    assert!(file.stays_mapped);
    assert_eq!(file.data["environ"], HostVariable::default());
    assert_eq!(file.data["ap_hooks"].bytes, Some(40));
    assert!(file.data["ap_hooks"].write);
    assert!(
        wrong("[data.environ]\nwrites = true")
            .what
            .contains("unknown field")
    );
    assert!(wrong("[data.\"a b\"]").what.contains("no name"));
}

/// The run time holds a block to its allocator by this name.
#[test]
fn allocators_have_names() {
    let text = "allow = [\"pool_get\", \"pool_put\", \"free\"]\n\
        [call.pool_get]\nparameters = [\"n\"]\neffects = [\"gives(n)\"]\nallocator = \"pool\"\n\
        [call.pool_put]\nparameters = [\"p\"]\neffects = [\"frees(p)\"]\nallocator = \"pool\"\n";
    let file = File::parse(text).expect("it is right");
    for name in ["pool_get", "pool_put"] {
        assert_eq!(file.calls[name].allocator.as_deref(), Some("pool"));
    }
    let policy = Interface::new(&[]).policy(&file).expect("all is known");
    let said = format!("{policy:?}");
    assert_eq!(said.matches("allocator: \"pool\"").count(), 2, "{said}");
    assert_eq!(said.matches("allocator: \"\"").count(), 1, "{said}");
    for (wrong_text, what) in [
        (
            "[call.f]\neffects = [\"in(0, 4)\"]\nallocator = \"pool\"",
            "only what gives",
        ),
        (
            "[call.f]\neffects = [\"gives(4)\"]\nallocator = \"a b\"",
            "no name",
        ),
        ("[export.f]\nallocator = \"pool\"", "unknown field"),
    ] {
        let error = wrong(wrong_text);
        assert!(error.what.contains(what), "{error}");
    }
}

#[test]
fn errors_tell_line_and_column() {
    let cases = [
        ("alow = []", 1, 1, "unknown field"),
        ("allow = [\n  5]", 2, 3, "expected a string"),
        ("\nallow = [\"a b\"]", 2, 10, "no name"),
        (
            "[call.f]\neffects = [\"in(p, 4)\"]",
            2,
            16,
            "`p` is no parameter",
        ),
        (
            "[call.f]\nparameters = [\"p\"]\neffects = [\"in(q, 4)\"]",
            3,
            16,
            "none of p",
        ),
        (
            "[call.f]\neffects = [\"read(0, 4)\"]",
            2,
            13,
            "is no effect",
        ),
        (
            "[call.f]\neffects = [\"in(6, 4)\"]",
            2,
            16,
            "not passed in a register",
        ),
        ("[call.f]\neffects = [\"in(0)\"]", 2, 17, "`,` is wanted"),
        (
            "[call.f]\neffects = [\"in(0, 4) x\"]",
            2,
            22,
            "behind the effect",
        ),
        (
            "[call.f]\neffects = [\"out(0, string)\"]",
            2,
            13,
            "only `in`",
        ),
        (
            "[call.f]\nparameters = [\"a\", \"a\"]",
            2,
            20,
            "two parameters",
        ),
        ("[call.f]\nstacked = 17", 2, 11, "at most 16"),
        (
            "[call.f]\neffects = [\"in(0, 2 * #1 x)\"]",
            2,
            26,
            "`)` is wanted",
        ),
        (
            "[call.f]\neffects = [\"in(0, #1 * x)\"]",
            2,
            24,
            "is no parameter",
        ),
        ("[limits]\ntime = \"5 minutes\"", 2, 8, "a whole number"),
        (
            "[limits]\nmemory = \"99999999999999999999 B\"",
            2,
            10,
            "a whole number",
        ),
        (
            "[limits]\nmemory = \"99999999999999 GiB\"",
            2,
            10,
            "a whole number",
        ),
        ("[export.f]\nerror = \"x\"", 2, 9, ""),
    ];
    for (text, line, column, what) in cases {
        let error = wrong(text);
        assert!(error.what.contains(what), "{text}: {error}");
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{text}: {error}"
        );
    }
}

#[test]
fn names_that_no_interface_has_are_refused() {
    let interface =
        Interface::new(&[
            File::parse("[group]\ng = [\"host_f\", \"@g\"]\n[call.host_f]").expect("right"),
        ]);
    let lower = |text| {
        interface
            .policy(&File::parse(text).expect("right"))
            .map(drop)
    };
    assert_eq!(lower("allow = [\"@g\", \"@malloc\"]"), Ok(()));
    assert_eq!(
        lower("allow = [\"@h\"]"),
        Err(LowerError::Group("h".to_owned()))
    );
    let unknown = LowerError::Unknown {
        name: "f".to_owned(),
        near: Some("host_f".to_owned()),
    };
    assert_eq!(lower("allow = [\"f\"]"), Err(unknown));
    assert_eq!(lower("allow = [\"mine\"]\n[call.mine]"), Ok(()));
}

/// What ends the process, or escapes it, is not offered as a function of the C library.
#[test]
fn the_c_library_has_nothing_that_ends_the_process() {
    let interface = Interface::new(&[]);
    let names: Vec<&str> = interface.names().collect();
    assert!(names.contains(&"malloc"));
    for name in [
        "abort", "exit", "_exit", "longjmp", "dlopen", "mmap", "system", "printf",
    ] {
        assert!(!names.contains(&name), "{name}");
    }
}

fn name() -> impl Strategy<Value = String> {
    "[a-z_][a-zA-Z0-9_]{0,8}"
}

fn size() -> impl Strategy<Value = Size> + Clone {
    prop_oneof![
        any::<u64>().prop_map(Size::Bytes),
        (0u8..6).prop_map(Size::Argument),
        (0u8..6, 0u8..6).prop_map(|(a, b)| Size::Product(a, b)),
        sum().prop_map(Size::Sum),
    ]
}

fn number() -> impl Strategy<Value = Number> {
    use Bits::{I8, I16, I32, I64, U8, U16, U32, U64};
    let bits = proptest::sample::select(vec![U8, I8, U16, I16, U32, I32, U64, I64]);
    (0u8..6, proptest::option::of(any::<u32>()), bits).prop_map(|(argument, field, bits)| Number {
        argument,
        field,
        bits,
    })
}

/// Two or three products: fewer may be the same as a simpler size.
fn sum() -> impl Strategy<Value = Sum> {
    let term = (
        -1i64 << 40..1 << 40,
        proptest::option::of(number()),
        proptest::option::of(number()),
    );
    let term = term.prop_map(|(times, first, second)| Term {
        times,
        factors: [first.or(second), first.and(second)],
    });
    (proptest::collection::vec(term, 2..=3)).prop_map(|terms| {
        let mut all = terms.into_iter();
        Sum([all.next(), all.next(), all.next()])
    })
}

fn effect() -> impl Strategy<Value = Effect> {
    let at = 0u8..6;
    let size = size();
    prop_oneof![
        (at.clone(), size.clone()).prop_map(|(at, size)| Effect::In(at, size)),
        at.clone().prop_map(|at| Effect::In(at, Size::Text)),
        at.clone().prop_map(|at| Effect::In(at, Size::List)),
        at.clone().prop_map(|at| Effect::In(at, Size::Texts)),
        (at.clone(), sum()).prop_map(|(at, sum)| Effect::Out(at, Size::Vectors(sum))),
        (at.clone(), size.clone()).prop_map(|(at, size)| Effect::Out(at, size)),
        (at.clone(), size.clone(), at.clone())
            .prop_map(|(at, size, of)| Effect::Into(at, size, of)),
        (at.clone(), size.clone()).prop_map(|(at, size)| Effect::InOut(at, size)),
        (at.clone(), size.clone()).prop_map(|(at, size)| Effect::CopyIn(at, size)),
        at.clone().prop_map(|at| Effect::CopyIn(at, Size::Text)),
        (at.clone(), size.clone()).prop_map(|(at, size)| Effect::CopyInOut(at, size)),
        (at.clone(), size.clone()).prop_map(|(at, size)| Effect::Takes(at, size)),
        (at.clone(), size.clone()).prop_map(|(at, size)| Effect::Moves(at, size)),
        size.prop_map(Effect::Gives),
        at.clone().prop_map(Effect::Frees),
        at.clone().prop_map(Effect::Instance),
        at.prop_map(Effect::Callback),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let types = vec!["", "int ", "unsigned char ", "size_t ", "i16 "];
    let typed = proptest::collection::vec(proptest::sample::select(types), 6);
    let parameters = (proptest::collection::btree_set(name(), 0..6), typed);
    let parameters = parameters.prop_map(|(names, types)| -> Vec<String> {
        names
            .iter()
            .zip(types)
            .map(|(name, kind)| format!("{kind}{name}"))
            .collect()
    });
    let reason = proptest::option::of(".{0,30}");
    let allocator = proptest::option::of(name());
    (parameters, 0u8..=16, allocator, reason).prop_flat_map(
        |(parameters, stacked, allocator, reason)| {
            proptest::collection::vec(effect(), 0..5).prop_map(move |effects| {
                let mut call = Call {
                    parameters: parameters.clone(),
                    effects,
                    stacked,
                    reason: reason.clone(),
                    ..Call::default()
                };
                let takes = |at: &usize| call.effects.contains(&Effect::Callback(*at as u8));
                let functions = (0..call.parameters.len()).filter(takes);
                for parameter in functions.map(|at| call.parameters[at].clone()) {
                    let callback = Call {
                        callbacks: BTreeMap::new(),
                        allocator: None,
                        ..call.clone()
                    };
                    let name = parameter.rsplit(' ').next().unwrap_or_default();
                    call.callbacks.insert(name.to_owned(), callback);
                }
                call.allocator = allocator.clone().filter(|_| call.allocates());
                call
            })
        },
    )
}

fn error() -> impl Strategy<Value = Option<ErrorValue>> {
    proptest::option::of(any::<i64>().prop_map(|integer| ErrorValue {
        integer,
        float: 0.0,
    }))
}

fn file() -> impl Strategy<Value = File> {
    use proptest::collection::{btree_map, vec};
    use proptest::option::of;
    let bytes = || of(any::<u64>());
    let limits =
        (of(0u64..1 << 50), bytes(), bytes(), bytes()).prop_map(|(time, memory, stack, image)| {
            Limits {
                time: time.map(Duration::from_micros),
                memory,
                stack,
                image,
            }
        });
    let exports = btree_map(
        name(),
        (call(), error()).prop_map(|(mut call, error)| {
            call.allocator = None;
            call.callbacks.clear();
            Export { call, error }
        }),
        0..3,
    );
    let names = (
        of(".{0,20}"),
        of(name()),
        vec(name(), 0..20),
        btree_map("[@a-z_ ]{1,9}", ".{0,30}", 0..3),
    );
    let data =
        (of(0u64..1 << 60), any::<bool>(), of(".{0,30}")).prop_map(|(bytes, write, reason)| {
            HostVariable {
                bytes,
                write,
                reason,
            }
        });
    let data = (btree_map(name(), data, 0..3), any::<bool>(), any::<bool>());
    let parts = (
        names,
        error(),
        limits,
        btree_map("[a-z]{1,5}", vec(name(), 0..4), 0..3),
        btree_map("[a-z]{1,5}", vec(".{0,20}", 0..4), 0..3),
        btree_map(name(), call(), 0..4),
        exports,
        data,
    );
    parts.prop_map(
        |(
            (module, entry, allow, reasons),
            error,
            limits,
            groups,
            lists,
            calls,
            exports,
            (data, stays_mapped, instances),
        )| File {
            module,
            entry,
            allow,
            reasons,
            error,
            limits,
            groups,
            lists,
            calls,
            exports,
            data,
            stays_mapped,
            instances,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(file in file()) {
        let text = file.to_string();
        prop_assert_eq!(File::parse(&text).map_err(|error| format!("{error}\n{text}")), Ok(file));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _either = File::parse(&text);
    }

    /// A good file with a piece cut out or doubled.
    #[test]
    fn damaged_files_are_read_or_refused(file in file(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let text: Vec<char> = file.to_string().chars().collect();
        prop_assume!(!text.is_empty());
        let (a, b) = (from.index(text.len()), to.index(text.len()));
        let damaged: String = text[..a].iter().chain(&text[b..]).collect();
        if let Ok(read) = File::parse(&damaged) {
            prop_assert_eq!(File::parse(&read.to_string()).map_err(|error| error.to_string()), Ok(read));
        }
    }

    #[test]
    fn any_effect_is_read_or_refused(effect in "[a-z(),*0-9 ]{0,24}") {
        let _either = File::parse(&format!("[call.f]\neffects = [\"{effect}\"]"));
    }
}
