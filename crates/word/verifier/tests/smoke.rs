//! One module that has everything, and what the verifier says of it.

mod support;

use mullion_word_verifier::{Value, verify};

const EVERYTHING: &str = r#"
    lea -64(%r15), %r15
    movq %rbx, (%r15)
    hot "8(%rdi,%rax,4)", r14d, cold
back: movl %esi, 8(%rdi,%rax,4)
    incl variable(%rip)
    movq text(%rip), %rcx
    hot "(%rsi)", r14, cold8
back8: movq (%rsi), %rdx
    movq %rdx, (%rsi)
    mov %rax, %r11
    xor %r15, %r11
    and $0x7fffff, %r11d
    xor %r11, %r15
    movq (%r15), %rbx
    addq $64, %r15
    movq -8(%r15), %rbx
    enter rbx, away
    call *%rbx
behind: call stub
    own rdx, trap
    jmp *%rdx
    label
    call *LEAVE(%rip)
    ret
away: mov %rbx, %r11
    call *LEAVE(%rip)
    jmp behind
trap: ud1 %eax, %eax
    .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
cold: cold2 "8(%rdi,%rax,4)", "11(%rdi,%rax,4)", 2, back
cold8: cold3 "(%rsi)", "4(%rsi)", "7(%rsi)", 2, back8
stub: jmp *IMPORT(%rip)
"#;

#[test]
fn a_symbol_with_an_endless_name_is_none() {
    let name = "n".repeat(5000);
    let text = format!("    ret\n    .globl short, {name}\nshort:\n{name}:\n    nop");
    let module = verify(support::assemble(&text).bytes).unwrap();
    let names: Vec<&str> = module.symbols().map(|(_, symbol)| symbol.name).collect();
    assert!(names.contains(&"short") && !names.iter().any(|name| name.len() > 4096));
}

#[test]
fn everything_that_the_form_has_is_accepted_and_found() {
    let module = support::assemble(EVERYTHING);
    let at = |name: &str| module.symbols[name];
    let verified = verify(module.bytes.clone()).unwrap_or_else(|rejected| panic!("{rejected:#?}"));
    let stats = verified.stats();
    assert_eq!((stats.checks, stats.checked, stats.labels), (2, 3, 1));
    assert_eq!((stats.indirect, stats.slots), (2, 3));
    let gates: Vec<u64> = verified.gates().iter().map(|gate| gate.address).collect();
    assert_eq!(gates, [at("_start")]);
    assert_eq!(verified.gates()[0].body, at("_start") + 32);
    assert_eq!(verified.init(), gates);
    assert_eq!(verified.imports(), ["import"]);
    assert_eq!(verified.slots(), at("__slots_start")..at("__slots_end"));
    // Between the compare and the store, and between the compare and the last of two accesses.
    let ranges = verified.checked_ranges();
    let inside = |address: u64| ranges.iter().any(|range| range.contains(&address));
    for (name, expected) in [
        ("back", true),
        ("back8", true),
        ("cold", true),
        ("cold8", true),
        ("behind", false),
        ("away", false),
        ("trap", false),
        ("stub", false),
    ] {
        assert_eq!(inside(at(name)), expected, "{name}");
    }
    assert_eq!(
        ranges
            .iter()
            .filter(|range| range.contains(&at("cold")))
            .count(),
        1
    );
    let [first, second] = verified.refused() else {
        panic!("{:?}", verified.refused());
    };
    assert_eq!(
        (first.trap + 3, first.access),
        (at("cold8"), Some(at("back")))
    );
    assert_eq!(
        (first.base, first.index, first.scale),
        (Some(7), Some(0), 4)
    );
    assert_eq!((first.displacement, first.writes), (8, true));
    assert_eq!(first.write, 8..12);
    assert_eq!(
        (second.access, second.base, second.read.clone()),
        (Some(at("back8")), Some(6), 0..8)
    );
    assert_eq!(verified.refused_at(second.trap), Some(second));
    // Relocations: of the module itself, and of a symbol of the host.
    let values: Vec<Value> = verified
        .relocations()
        .map(|relocation| relocation.value)
        .collect();
    assert!(values.contains(&Value::Base(at("_start"))));
    let symbol = values.iter().find_map(|value| match value {
        Value::Symbol(number, 0) => verified.symbol(*number),
        _ => None,
    });
    assert_eq!(
        symbol.map(|symbol| (symbol.name, symbol.address)),
        Some(("import_data", None))
    );
    let exported: Vec<&str> = verified
        .symbols()
        .filter(|(_, symbol)| symbol.address.is_some())
        .map(|(_, symbol)| symbol.name)
        .collect();
    assert!(
        exported.contains(&"_start") && exported.contains(&"exported"),
        "{exported:?}"
    );
}

#[test]
fn the_end_of_every_prefix_of_a_file_is_harmless() {
    let module = support::assemble(EVERYTHING);
    for length in 0..module.bytes.len() {
        let cut = module.bytes[..length].to_vec();
        if length % 7 == 0 || length < 600 {
            assert!(verify(cut).is_err() || length > 0x3000, "{length} bytes");
        }
    }
}

/// A check of lines, with points from `first` on, and accesses behind it.
fn lines(compares: &str, first: i64, accesses: &str) -> bool {
    let points = |number: i64| {
        let refuse = if number < 63 { "je refuse" } else { "jne back" };
        format!("look \"{}(%rdi)\", 2\n{refuse}\n", first + 4 * number)
    };
    let points: String = (0..64).map(points).collect();
    let text = format!(
        "lea (%rdi), %r11\nnot %r11\nsar $6, %r11\n{compares}\nback: {accesses}\nret\ncold: {points}refuse: refuse\n"
    );
    verify(support::assemble(&text).bytes).is_ok()
}

#[test]
fn a_check_of_lines_covers_what_it_must_wherever_in_a_line_the_address_is() {
    let compare = |own: &str, at: i64| format!("cmp %{own}, %gs:{at}(%r11,%r11)\njne cold\n");
    let (one, two, four) = (compare("r14w", 0), compare("r14d", -2), compare("r14", -6));
    let six = four.clone() + &compare("r14d", -10);
    // The first byte that is covered, and the one behind the last.
    for (compares, first, end) in [
        (&one, 0, 1),
        (&compare("r14w", -8), 256, 257),
        (&two, 0, 65),
        (&compare("r14d", 0), -64, 1),
        (&compare("r14d", 2), -128, -63),
        (&four, 0, 193),
        (&compare("r14", 0), -192, 1),
        (&six, 0, 321),
    ] {
        let byte = |at: i64| format!("movb %al, {at}(%rdi)");
        assert!(lines(compares, first - 4, &byte(first)), "{compares}");
        assert!(lines(compares, end - 128, &byte(end - 1)), "{compares}");
        assert!(!lines(compares, first - 4, &byte(first - 1)), "{compares}");
        assert!(!lines(compares, end - 128, &byte(end)), "{compares}");
    }
    assert!(lines(&two, 0, "movups %xmm0, 49(%rdi)"));
    assert!(!lines(&two, 0, "movups %xmm0, 50(%rdi)"));
    // Four bytes of the last line at least, once the address is a multiple of four.
    assert!(lines(
        &two,
        0,
        "movaps %xmm0, 48(%rdi)\nmovl %eax, 64(%rdi)"
    ));
    assert!(!lines(
        &two,
        0,
        "movaps %xmm0, 48(%rdi)\nmovl %eax, 65(%rdi)"
    ));
    assert!(!lines(
        &two,
        0,
        "movl %eax, 64(%rdi)\nmovaps %xmm0, 48(%rdi)"
    ));
    assert!(lines(&two, 0, "movaps %xmm0, 52(%rdi)"));
    assert!(!lines(&two, 0, "movaps %xmm0, 56(%rdi)"));
}
