//! How many mappings a domain of an extension with its C library takes: the usual limit
//! on them, 65,530, must be enough for ten thousand.

mod support;

use mullion::{Domain, Image};
use std::path::Path;

const SOURCE: &str = r#"
#include <mullion/ext.h>
static const char *const words[] = { "one", "two" };
static int count;
MULLION_EXPORT(int, next, (void)) { return ++count + words[count & 1][0]; }
"#;

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    maps.lines().count()
}

#[test]
fn a_domain_takes_six_mappings() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| directory.path().join(name);
    std::fs::write(file("next.c"), SOURCE).expect("a file");
    support::build(Path::new(&file("next.c")), &file("next.mx"), &[]);
    let image = Image::open(file("next.mx")).expect("a verified image");
    // What the process has once comes with the first domain.
    let _first = image.domain().load().expect("a domain");
    let before = mappings();
    let domains: Vec<Domain> = (0..100)
        .map(|_| image.domain().load().expect("a domain"))
        .collect();
    for domain in &domains {
        let next = domain.function::<fn() -> i32>("next").expect("exported");
        assert_eq!(next.call().expect("it returns"), 1 + i32::from(b't'));
    }
    let each = (mappings() - before) as f64 / domains.len() as f64;
    assert!(each < 6.2, "{each} mappings each");
}
