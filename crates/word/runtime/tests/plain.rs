//! Texts of reports, whatever the module's author has called things.

mod module;

use module::{build, function};
use mullion_word_runtime::{Host, Module, Policy, ReachedField};

type Fn2 = extern "C" fn(u64, u64) -> u64;

/// Names of symbols, lines, types and members are as the module's author has them.
#[test]
fn a_report_has_one_line_whatever_a_module_s_names_say() {
    let text = "gate f\n nop\n .globl its_name_has_these_bytes_and_more\nits_name_has_these_bytes_and_more:\n checked 2, 0, (%rdi), mov %esi, (%rdi)\n ret";
    let mut bytes = build("names", text);
    let name = b"its_name_has_these_bytes_and_more";
    let hostile = "f\n[crit] \u{1b}[2J\u{202e}";
    let mut found = 0;
    for at in 0..bytes.len() - name.len() {
        if bytes[at..].starts_with(name) {
            bytes[at..at + name.len()].fill(b'x');
            bytes[at..at + hostile.len()].copy_from_slice(hostile.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0);
    // SAFETY: a test's module, with another name for a symbol.
    let module = unsafe { Module::unchecked("names", &bytes) }.unwrap();
    module.set_lines(|_| Some("a.c\nb.c:3\u{9b}1m".into()));
    module.set_fields(|_| {
        Some(ReachedField {
            variable: "v\u{7f}".into(),
            of: "struct\tt".into(),
            member: "m\u{2028}".into(),
            ..ReachedField::default()
        })
    });
    let host = Host::new().unwrap();
    let domain = host.load(&module, Policy::new()).unwrap();
    let f: Fn2 = function(&domain, "f");
    let cell = 0u64;
    f(&raw const cell as u64, 7);
    domain.end("one\ntwo\u{1b}c");
    let reports = domain.take_reports();
    assert_eq!(reports.len(), 2);
    for report in reports {
        let said = format!("{report}");
        let acts = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}');
        assert!(!said.contains(acts), "{said:?}");
        assert!(said.contains("\\n"), "{said:?}");
    }
}
