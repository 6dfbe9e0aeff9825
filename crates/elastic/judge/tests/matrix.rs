//! Each construct that C can be forbidden, in each place where it may hide. `matrix-c.md` is what the test found;
//! `MULLION_BLESS=1` writes it anew. A cell that is not refused by the construct's own rule is a failure.

#[allow(dead_code, reason = "each test uses a part of it")]
mod programs;

use programs::{Case, judged};
use std::path::Path;

/// Rules, and statements that break them.
const CONSTRUCTS: &[(&str, &str)] = &[
    ("inline-assembly", "asm(\"nop\");"),
    ("computed-goto", "q: ; void *l = &&q;"),
    ("statement-expressions", "int x = ({ 1; });"),
    ("nested-functions", "int q(void) { return 1; }"),
    ("attributes", "int x __attribute__((unused)) = 1;"),
    ("pragmas", "_Pragma(\"pack(1)\")"),
    ("typeof", "typeof(1) x = 1;"),
    ("compiler-builtins", "__builtin_trap();"),
    ("variable-arrays", "int n = 3; int a[n];"),
    ("atomics", "_Atomic int x;"),
    ("thread-local", "static _Thread_local int x;"),
    ("generic-selection", "_Generic(1, int: 1);"),
    ("alignment", "_Alignas(8) int x;"),
    ("extensions", "int x = 1 ?: 2;"),
    ("unknown-name", "nobody();"),
    ("hidden-name", "private_count = 1;"),
    ("reserved-name", "int __x = 1;"),
    ("external-linkage", "extern int environ;"),
    ("loops", "while (0) ;"),
    ("loops", "for (int i = 0; i < 3; i++) ;"),
    ("unbounded-loops", "do ; while (0);"),
    ("goto", "goto q; q: ;"),
    ("backward-goto", "q: ; if (0) goto q;"),
    ("floating-point", "double x = 1.5;"),
    (
        "indirect-calls",
        "int (*g)(int, int) = public_add; g(1, 2);",
    ),
    ("statics", "static int x;"),
    ("unions", "union { int a; } u;"),
    ("pointer-arithmetic", "int a[3]; int *p = a; p = p + 1;"),
    ("unchecked-index", "int a[3]; int *p = a; p[1] = 1;"),
    ("integer-to-pointer", "int *p = (int *)4096;"),
    (
        "pointer-to-integer",
        "int a; unsigned long n = (unsigned long)&a;",
    ),
    ("pointer-casts", "int a; char *p = (char *)&a;"),
    ("address-of-local", "int a; int *p = &a;"),
    ("variadic-calls", "public_print(\"\", 1);"),
    ("division", "int n = 3; n = 7 / n;"),
    ("bit-fields", "struct { int a : 3; } s;"),
    ("volatile", "volatile int x;"),
];

/// Places, and programs in which `@` stands for the statements.
const PLACES: &[(&str, &str)] = &[
    ("plain", "int main(void) { @ return 0; }"),
    (
        "unused",
        "static void f(void) { @ } int main(void) { return 0; }",
    ),
    ("branch", "int main(void) { if (0) { @ } return 0; }"),
    ("macro", "#define M @\nint main(void) { M return 0; }"),
    (
        "nested macro",
        "#define M @\n#define N(x) if (x) { M }\nint main(void) { N(0) return 0; }",
    ),
    (
        "argument",
        "#define ID(...) __VA_ARGS__\nint main(void) { ID(@) return 0; }",
    ),
    (
        "header",
        "#include \"h.h\"\nint main(void) { f(); return 0; }\n//-- h.h\nstatic void f(void) { @ }\n",
    ),
    (
        "header's macro",
        "#include \"h.h\"\nint main(void) { M return 0; }\n//-- h.h\n#define M @\n",
    ),
    (
        "condition",
        "#if LIMIT_OF_BUILD > 1\nint main(void) { @ return 0; }\n#else\nint main(void) { return 0; }\n#endif\n//-D LIMIT_OF_BUILD=2\n",
    ),
    ("build flag", "int main(void) { M return 0; }\n//-D M=@\n"),
];

#[test]
fn a_construct_is_refused_wherever_it_hides() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut table, mut wrong) = (head(), Vec::new());
    for (rule, construct) in CONSTRUCTS {
        table.push_str(&format!("| `{construct}` | `{rule}` |"));
        let optional = mullion_elastic::Rule::ALL
            .iter()
            .find(|known| known.name() == *rule);
        let optional = optional.expect("a rule").is_optional();
        for (place, program) in PLACES {
            let case = Case {
                name: (*place).to_owned(),
                expected: Vec::new(),
                table: if optional {
                    format!("forbid = [\"{rule}\"]")
                } else {
                    String::new()
                },
                text: program.replace('@', construct),
            };
            let found: Vec<_> = match judged(directory.path(), &case) {
                Ok(_) => Vec::new(),
                Err(refusals) => refusals.iter().map(|refusal| refusal.rule.name()).collect(),
            };
            let refused = found.contains(rule);
            table.push_str(if refused { " refused |" } else { " **no** |" });
            if !refused {
                wrong.push(format!("{rule}, {place}: {found:?}\n{}", case.text));
            }
        }
        table.push('\n');
    }
    assert!(
        wrong.is_empty(),
        "{} pass:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/matrix-c.md");
    if std::env::var_os("MULLION_BLESS").is_some() {
        std::fs::write(&path, &table).expect("room");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == table,
        "{} is of another time: MULLION_BLESS=1",
        path.display()
    );
}

fn head() -> String {
    let places: Vec<&str> = PLACES.iter().map(|(place, _)| *place).collect();
    format!(
        "# Constructs of C, and where they hide\n\n`tests/matrix.rs` writes this table: {} constructs in {} places.\n\n\
         | construct | rule | {} |\n|{}\n",
        CONSTRUCTS.len(),
        PLACES.len(),
        places.join(" | "),
        " --- |".repeat(PLACES.len() + 2)
    )
}
