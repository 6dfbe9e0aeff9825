//! Types of functions, however the compiler was told to write them down.

use mullion_symbols::{Symbols, Unknown};

mod support;
use support::compiled;

fn types(program: Vec<u8>, names: &[&str]) -> Vec<String> {
    let mut symbols = Symbols::new(program);
    let known: Vec<_> = symbols.functions().collect();
    let mut of = |name: &&str| {
        let function = known.iter().find(|function| function.name == *name);
        let found = symbols.signature(function.expect("it is there").offset);
        found.map_or_else(|unknown| unknown.to_string(), |of| of.to_string())
    };
    names.iter().map(&mut of).collect()
}

/// A part that is seldom run lies elsewhere.
const COLD: &str = "
    #ifdef __cplusplus
    extern \"C\" {
    #endif
    void bad(int) __attribute__((cold));
    __attribute__((used)) unsigned first(double x, void *p);
    __attribute__((used)) short third(short);
    int f(unsigned x) { if (x > 1000) { bad(1); bad(x); bad(x ^ 7); } return x + 1; }
    unsigned first(double x, void *p) { if (!p) { bad(3); } return (unsigned)x; }
    short second(short) __attribute__((used, alias(\"third\")));
    short third(short x) { return x; }
    __attribute__((noipa)) void bad(int x) { for (;;) *(volatile int *)8 = x; }
    #ifdef __cplusplus
    }
    #endif
";

#[test]
fn of_functions_in_pieces() {
    let options: [&[&str]; 6] = [
        &["-gdwarf-5"],
        &["-gdwarf-4"],
        &["-gdwarf-4", "-fdebug-types-section"],
        &["-gdwarf-5", "-fdebug-types-section"],
        &["-flto"],
        &["-O3", "-ffunction-sections"],
    ];
    for kind in ["c", "cc"] {
        for options in options {
            let program = compiled(COLD, kind, options);
            let cold = Symbols::new(&*program)
                .functions()
                .any(|of| of.name.starts_with("f.cold"));
            assert!(cold, "{kind} {options:?}: in one piece");
            let pointer = ["f", "first", "second", "third"];
            let found = types(program, &pointer);
            let expected = [
                "int (unsigned int)",
                "unsigned int (double, void *)",
                "short int (short int)",
                "short int (short int)",
            ];
            assert_eq!(found, expected, "{kind} {options:?}");
        }
    }
}

#[test]
fn that_are_written_down_elsewhere_or_not_at_all() {
    for (options, why) in [
        (&["-g1"][..], Unknown::NoTypes),
        (&["-g0"], Unknown::NoInformation),
        (&["-gsplit-dwarf"], Unknown::Split),
        (&["-gz"], Unknown::NoInformation),
    ] {
        for kind in ["c", "cc"] {
            let found = types(compiled(COLD, kind, options), &["f", "third"]);
            assert_eq!(
                found,
                [why.to_string(), why.to_string()],
                "{kind} {options:?}"
            );
        }
    }
}

/// Members, overloads, templates, enumerations in units of their own, and functions that take nothing.
#[test]
fn of_cxx() {
    let source = "
        enum class color : short { red };
        namespace n {
            struct s { int a; int get(color c) const; static long add(int, float); virtual ~s(); };
            int s::get(color c) const { return a + (int)c; }
            long s::add(int a, float b) { return a + (long)b; }
            s::~s() {}
            template <typename T> __attribute__((noinline)) T twice(T x) { return x + x; }
            template double twice(double);
        }
        extern \"C\" void _ZdlPvm(void *, unsigned long) {}
        extern \"C\" { void *__cxa_pure_virtual, *_ZTVN10__cxxabiv117__class_type_infoE[3]; }
        extern \"C\" int f() { return n::twice(2.5) > 1; }
    ";
    let names = [
        "_ZNK1n1s3getE5color",
        "_ZN1n1s3addEif",
        "_ZN1n5twiceIdEET_S1_",
        "f",
    ];
    let expected = [
        "int (const s *, color)",
        "long int (int, float)",
        "double (double)",
        "int (void)",
    ];
    for options in [
        &["-gdwarf-5"][..],
        &["-gdwarf-4", "-fdebug-types-section"],
        &["-fdebug-types-section"],
    ] {
        let program = compiled(source, "cc", options);
        assert_eq!(types(program.clone(), &names), expected, "{options:?}");
        let mut symbols = Symbols::new(program);
        let known: Vec<_> = symbols.functions().collect();
        let mut name = |of: &str| {
            let function = known
                .iter()
                .find(|function| function.name == of)
                .expect("it is there");
            symbols
                .find(function.offset)
                .pop()
                .and_then(|found| found.function)
        };
        assert_eq!(name(names[0]).as_deref(), Some("n::s::get(color)"));
        assert_eq!(name(names[2]).as_deref(), Some("n::twice<double>(double)"));
    }
}
