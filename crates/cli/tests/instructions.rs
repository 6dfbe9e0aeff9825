//! Types whose calls have a bound of instructions, found when they are compiled.

#[allow(dead_code, reason = "others use more of it")]
mod office;

use office::Office;

fn office() -> Office {
    Office::with(&["root"], &["own.toml".to_owned()])
}

impl Office {
    /// The bound that the record names, or what was said.
    fn bound(
        &self,
        language: &str,
        table: &str,
        environment: &str,
        program: &str,
    ) -> Result<u64, String> {
        self.recorded("instructions", language, table, environment, program)
    }

    fn recorded(
        &self,
        what: &str,
        language: &str,
        table: &str,
        environment: &str,
        program: &str,
    ) -> Result<u64, String> {
        let (env, file) = match language {
            "c" => ("env.c", "a.c"),
            _ => ("env.rs", "a.rs"),
        };
        self.file(env, environment);
        let digest = mullion_trust::Sha256Digest::of(environment.as_bytes());
        let text = format!(
            "version = 1\nid = \"own\"\nlanguage = \"{language}\"\nprotection = \"read-write-call\"\nmechanism = [\"window\"]\n\
             imports = [\"__mullion_system\"]\n[elastic]\n{table}\nentries = [\"main_of\"]\nexports = [\"main\"]\n\
             [elastic.environment]\nfile = \"{env}\"\nsha256 = \"{digest}\"\npublic = [\"data\", \"put\", \"get\"]\n"
        );
        self.file("own.toml", &text);
        self.file(file, program);
        let (good, said) = self.compile_as_root("own.toml", file);
        if !good {
            return Err(said);
        }
        let said = self.record();
        let number = said["elastic"][what].as_u64();
        number.ok_or_else(|| said.to_string())
    }
}

const C: &str = "int data[64];\nint main_of(int n);\nint main(int argc, char **argv) { (void)argv; return main_of(argc + 40) != EXPECTED; }\n";

#[test]
fn a_call_in_c_has_a_bound_that_it_keeps() {
    let office = office();
    let table = "memory = \"checked\"\ninstructions = 100000";
    for (expected, program, least, most) in [
        ("82", "int main_of(int n) { return n * 2; }", 2, 20),
        // 64 rounds of at least two instructions; counted twice at most, and some for the rest.
        (
            "41",
            "int main_of(int n) { for (int i = 0; i < 64; i++) data[i] += n; return data[63]; }",
            64 * 2,
            64 * 40,
        ),
        (
            "492",
            "static int one(int n) { int s = 0; for (int i = 3; i >= 1; i--) s += data[i] + n; return s; }\n\
             int main_of(int n) { int s = 0; for (unsigned k = 0; k != 4; k++) s += one(n); return s; }",
            12 * 2,
            12 * 80,
        ),
        (
            "5",
            "int main_of(int n) { switch (n) { case 41: return 5; case 42: return 7; default: return 1; } }",
            3,
            40,
        ),
    ] {
        let found = office.bound("c", table, &C.replace("EXPECTED", expected), program);
        let found = found.unwrap_or_else(|said| panic!("{program}: {said}"));
        assert!((least..=most).contains(&found), "{program}: {found}");
        let ran = office.run(&["run", "--as", "root", "x.mx"], None);
        assert_eq!(
            ran.status.code(),
            Some(0),
            "{program}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        // A type that allows one less has no such program.
        let less = format!("memory = \"checked\"\ninstructions = {}", found - 1);
        let said = office.bound("c", &less, &C.replace("EXPECTED", expected), program);
        let said = said.expect_err("one less");
        assert!(
            said.contains("error[instruction-bound]")
                && said.contains(&format!("{found} instructions")),
            "{said}"
        );
    }
}

#[test]
fn what_does_not_end_by_itself_is_refused_with_its_place() {
    let office = office();
    let table = "instructions = 100000";
    for (rule, program) in [
        (
            "unbounded-loops",
            "int main_of(int n) { while (n > 0) n--; return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { do n--; while (n > 0); return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (int i = 0; i < n; i++) data[i] = 1; return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (;;) if (n) return 1; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (int i = 0; i < 4; i++) i -= n; return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (int i = 0; i < 4; i++) { int *p = &i; *p = n; } return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (unsigned i = 3; i >= 0; i--) data[i] = n; return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (unsigned char i = 0; i < 256; i++) data[i & 63] = n; return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (int i = 0; i != 5; i += 2) data[i] = n; return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (int i = 0; i > -5; i++) data[0] = n; return n; }",
        ),
        (
            "unbounded-loops",
            "int main_of(int n) { for (int i = 2147483646; i <= 2147483647; i++) n++; return n; }",
        ),
        (
            "recursion",
            "int main_of(int n) { return n ? main_of(n - 1) : 0; }",
        ),
        (
            "backward-goto",
            "int main_of(int n) { again: n--; if (n) goto again; return n; }",
        ),
    ] {
        let said = office.bound("c", table, &C.replace("EXPECTED", "0"), program);
        let said = said.expect_err(program);
        assert!(
            said.contains(&format!("error[{rule}]")) && said.contains("a.c:1:"),
            "{program}: {said}"
        );
    }
    // The environment is counted too, unless the type says how much it is.
    let environment = format!(
        "{}__attribute__((noinline)) int get(int n) {{ while (n & 1) n += data[n & 63]; return n; }}\n",
        C.replace("EXPECTED", "0")
    );
    let program = "int main_of(int n) { return get(n); }";
    let said = office
        .bound("c", table, &environment, program)
        .expect_err("a loop");
    assert!(
        said.contains("a way back that no counted loop makes"),
        "{said}"
    );
    let known = format!("{table}\nknown-instructions = {{ get = 1000 }}");
    let found = office
        .bound("c", &known, &environment, program)
        .expect("known");
    assert!((1000..1020).contains(&found), "{found}");
}

#[test]
fn a_call_in_rust_has_a_bound_that_it_keeps() {
    let office = office();
    let environment = "#![no_std]\npub fn get(n: u32) -> u32 { n ^ 5 }\nunsafe extern \"C\" { safe fn main_of(n: u32) -> u32; }\n\
                       #[unsafe(no_mangle)]\npub extern \"C\" fn main(n: i32, _: usize) -> i32 { (main_of(n as u32) != 19) as i32 }\n";
    let table = "forbid = [\"panics\"]\ninstructions = 10000";
    let program = "pub fn main_of(n: u32) -> u32 { match n { 0 => 7, 1 => environment::get(n).wrapping_mul(5).wrapping_sub(1), 2 => 9, 3 => 4, 4 => 12, 5 => 99, _ => n } }";
    let found = office.bound("rust", table, environment, program);
    if let Err(said) = &found
        && said.contains("rustup")
    {
        assert!(
            std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none(),
            "{said}"
        );
        eprintln!("not tested: elastic Rust: {said}");
        return;
    }
    let found = found.expect("a bound");
    assert!((5..100).contains(&found), "{found}");
    let ran = office.run(&["run", "--as", "root", "x.mx"], None);
    assert_eq!(
        ran.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    counted_loops_in_rust(&office, environment);
}

/// The rounds are in the text behind the compiler, and nothing loops without them.
fn counted_loops_in_rust(office: &Office, environment: &str) {
    let table = "forbid = [\"panics\"]\ninstructions = 1000000";
    for (expected, program, least, most) in [
        (
            "2061063808",
            "const END: u32 = 64;\npub fn main_of(n: u32) -> u32 { let mut s = 0u32; for i in 0..END { s = s.wrapping_mul(5) ^ i ^ n; } s }",
            64,
            64 * 40,
        ),
        (
            "52",
            "fn of(a: &[u32; 3]) -> u32 { let mut s = 0u32; for x in a { s = s.wrapping_add(*x); } s }\n\
             pub fn main_of(n: u32) -> u32 { let mut s = 0u32; for k in (1..=4u32).rev() { if k & n == 1 { s = s.wrapping_add(of(&[n, 2, 3])); } } s }",
            8,
            12 * 200,
        ),
        (
            "2100",
            "pub fn main_of(n: u32) -> u32 { let mut s = 0u32; for i in 0..(n as u8) { for j in 0..10u32 { s = s.wrapping_add(u32::from(i) ^ (j & 0)); } } s }",
            255,
            1_000_000,
        ),
    ] {
        let environment = environment
            .replace("19", expected)
            .replace("n as u32", "21");
        // Without a name of the environment, rustc leaves it out.
        let program = &format!("use environment::get; {program}");
        let found = office.bound("rust", table, &environment, program);
        let found = found.unwrap_or_else(|said| panic!("{program}: {said}"));
        assert!((least..=most).contains(&found), "{program}: {found}");
        let ran = office.run(&["run", "--as", "root", "x.mx"], None);
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{program}: {said}");
        let less = format!("forbid = [\"panics\"]\ninstructions = {}", found - 1);
        let said = office.bound("rust", &less, &environment, program);
        let said = said.expect_err("one less");
        assert!(said.contains(&format!("{found} instructions")), "{said}");
    }
    for body in [
        "for i in 0..n { s ^= i; }",
        "while s < n { s = s.wrapping_add(3); }",
        "loop { if s > n { break; } s = s.wrapping_add(3); }",
        "let mut r = 0..3; r.end = n; for i in r { s ^= i; }",
        "for i in { let mut r = 0..3u32; r.end = n; r } { s ^= i; }",
        "for i in &mut (0..n) { s ^= i; }",
        "for i in (0..9u32).map(|i| i ^ n) { s ^= i; }",
        "s = (0..9u32).fold(0, |a, b| a ^ b);",
        "let mut r = 0..3u32; while let Some(i) = r.next() { s ^= i; }",
        "fn of<T>(_: T) -> u32 { let mut s = 0; for i in 0..3 { s ^= i; } s } s = of(n);",
    ] {
        let program = format!(
            "use environment::get; pub fn main_of(n: u32) -> u32 {{ let mut s = 0u32; {body} s }}"
        );
        let said = office.bound("rust", table, environment, &program);
        let said = said.expect_err(body);
        let there = said.contains("error[unbounded-loops]") && said.contains("a.rs:1:");
        assert!(there, "{body}: {said}");
    }
}

const RUST: &str = "#![no_std]\npub fn get(n: u32) -> u32 { n }\nunsafe extern \"C\" { safe fn main_of(n: u32) -> u32; }\n\
                    #[unsafe(no_mangle)]\npub extern \"C\" fn main(n: i32, _: usize) -> i32 { (main_of(n as u32) != 1) as i32 }\n";

/// By the frames of everything that is linked; and a panic there is a fault.
#[test]
fn a_linked_program_in_rust_has_a_bound_of_stack() {
    let office = office();
    let program = "#[inline(never)]\nfn fill(a: &mut [u32; 1000], n: u32) { a[(n & 511) as usize] = n; }\n\
                   pub fn main_of(n: u32) -> u32 { let mut a = [0; 1000]; fill(&mut a, environment::get(n)); a[n as usize & 511] }";
    let found = office.recorded("stack", "rust", "stack = \"8K\"", RUST, program);
    if let Err(said) = &found
        && said.contains("rustup")
    {
        assert!(
            std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none(),
            "{said}"
        );
        eprintln!("not tested: elastic Rust: {said}");
        return;
    }
    let found = found.expect("a bound");
    assert!((4000..6000).contains(&found), "{found}");
    let ran = office.run(&["run", "--as", "root", "x.mx"], None);
    assert_eq!(
        ran.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let less = format!("stack = \"{}\"", found - 1);
    let said = office
        .recorded("stack", "rust", &less, RUST, program)
        .expect_err("one less");
    assert!(
        said.contains("error[stack-bound]") && said.contains(&format!("{found} bytes")),
        "{said}"
    );

    let panics =
        "pub fn main_of(n: u32) -> u32 { let a = [1u32, 2]; a[environment::get(n) as usize + 1] }";
    office
        .recorded("stack", "rust", "stack = \"8K\"", RUST, panics)
        .expect("a bound");
    let ran = office.run(&["run", "--as", "root", "x.mx"], None);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        !ran.status.success() && said.contains("a.rs:1"),
        "{:?} {said}",
        ran.status
    );
}

/// Where a type of Rust bounds the stack and has recursion, the depth is checked when it runs.
#[test]
fn recursion_in_rust_checks_its_depth() {
    let office = office();
    let program = |depth: &str| {
        format!(
            "#[inline(never)]\nfn f(n: u32, up: &[u32; 100]) -> u32 {{\n    let mut a = [n; 100];\n    \
             a[(n & 63) as usize] = up[(n & 31) as usize];\n    \
             if n == 0 {{ 1 }} else {{ f(n - 1, &a).wrapping_add(a[70] - n) }}\n}}\n\
             pub fn main_of(n: u32) -> u32 {{ f(environment::get(n) * {depth}, &[0; 100]) }}"
        )
    };
    let found = office.recorded("stack", "rust", "stack = \"16K\"", RUST, &program("10"));
    if let Err(said) = &found
        && said.contains("rustup")
    {
        assert!(
            std::env::var_os("MULLION_REQUIRE_RUSTC_DEV").is_none(),
            "{said}"
        );
        eprintln!("not tested: elastic Rust: {said}");
        return;
    }
    // The type's bound, and the way behind the last check.
    let found = found.expect("a bound");
    assert!((16_384 + 400..16_384 + 4000).contains(&found), "{found}");
    let run = || office.run(&["run", "--as", "root", "x.mx"], None);
    assert_eq!(
        run().status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&run().stderr)
    );
    // 60 frames of more than 400 bytes are more than 16 KiB, and less than the domain's stack.
    let deep = office.recorded("stack", "rust", "stack = \"16K\"", RUST, &program("60"));
    assert_eq!(deep, Ok(found));
    let ran = run();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        !ran.status.success() && said.contains("a.rs:2"),
        "{:?} {said}",
        ran.status
    );
    let deep = office.recorded("stack", "rust", "stack = \"64K\"", RUST, &program("60"));
    deep.expect("a bound");
    assert_eq!(run().status.code(), Some(0));
    // A bound of loops, and so one of instructions, has no recursion.
    let said = office
        .recorded(
            "stack",
            "rust",
            "stack = \"64K\"\nloops = 1",
            RUST,
            &program("10"),
        )
        .expect_err("recursion");
    assert!(said.contains("error[recursion]"), "{said}");
}
