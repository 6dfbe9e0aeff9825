//! The code in the guides is compiled, each piece as a file of its own. (That of
//! docs/host-rust.md is a doctest of `crates/host/mullion`.)

#[path = "../../crates/host/mullion/tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;

/// The pieces of a page in one language.
fn pieces(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(page);
    let text = std::fs::read_to_string(path).expect("a page");
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

fn compile_for_the_host(kind: &str, compiler: &str, standard: &str, pieces: &[String]) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    for (number, piece) in pieces.iter().enumerate() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = directory.path().join(format!("piece.{kind}"));
        std::fs::write(&source, piece).expect("written");
        let output = Command::new(compiler)
            .args([
                standard,
                "-Wall",
                "-Wextra",
                "-pedantic",
                "-Werror",
                "-c",
                "-o",
                "/dev/null",
                "-I",
            ])
            .arg(&include)
            .arg(&source)
            .output()
            .expect("a compiler");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "piece {number}: {said}");
    }
}

#[test]
fn the_guide_for_hosts_in_c_and_cxx() {
    let c = pieces("host-c.md", "c");
    assert_eq!(c.len(), 8);
    compile_for_the_host("c", "gcc", "-std=c99", &c);
    let cxx = pieces("host-c.md", "cpp");
    assert_eq!(cxx.len(), 3);
    compile_for_the_host("cc", "g++", "-std=c++17", &cxx);
}

/// What the page says of cancelling, pools and new images is so: its functions are run.
#[test]
fn the_guide_for_hosts_in_c_does_what_it_says() {
    const EXTENSION: &str = "#include <mullion/ext.h>\n#include <stdint.h>\n\
        static volatile int turns;\n\
        MULLION_EXPORT(int32_t, answer, (void)) { return 42; }\n\
        MULLION_EXPORT(int32_t, spin, (void)) { for (;;) turns++; }\n\
        MULLION_EXPORT(int32_t, work, (int32_t number))\n\
        { return number < 0 ? *(volatile int32_t *)8 : number * VERSION; }\n";
    const HOST: &str = r#"
#include <stdio.h>
#include <stdlib.h>

static void expect(int condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "%s: %s\n", what, mullion_error_message());
		exit(1);
	}
}
#define EXPECT(condition) expect(condition, #condition)
#define OK(call) EXPECT((call) == MULLION_OK)

int main(int count, char **words)
{
	mullion_image images[2];
	mullion_domain domain;
	mullion_function answer, spin, work;
	mullion_pool pool;
	mullion_live live;
	mullion_value result = MULLION_INTEGER_RESULT, argument = mullion_integer(21);
	mullion_status status;
	EXPECT(count == 3);
	OK(mullion_image_open(words[1], &images[0]));
	OK(mullion_image_open(words[2], &images[1]));

	OK(mullion_domain_load(images[0], NULL, MULLION_NO_IMPORTS, NULL, &domain));
	OK(mullion_function_find(domain, "answer", &answer));
	OK(mullion_function_find(domain, "spin", &spin));
	EXPECT(at_most(domain, spin, &result) == MULLION_TIMED_OUT);
	do /* a busy machine may need more than one attempt */
		status = at_most(domain, answer, &result);
	while (status == MULLION_TIMED_OUT);
	OK(status);
	EXPECT(result.as.integer == 42);
	OK(mullion_function_free(answer));
	OK(mullion_function_free(spin));
	OK(mullion_domain_unload(domain));

	OK(make_pool(images[0], MULLION_NO_IMPORTS, &pool));
	OK(serve(pool, 21, &result));
	EXPECT(result.as.integer == 21);
	EXPECT(serve(pool, -1, &result) == MULLION_FAULT);
	OK(serve(pool, 5, &result));
	EXPECT(result.as.integer == 5);
	OK(mullion_pool_free(pool));

	OK(mullion_domain_load(images[0], NULL, MULLION_NO_IMPORTS, NULL, &domain));
	OK(offer(domain, &live, &work));
	OK(mullion_call(work, &argument, 1, &result));
	EXPECT(result.as.integer == 21);
	OK(renew(live, images[1], MULLION_NO_IMPORTS));
	OK(mullion_call(work, &argument, 1, &result));
	EXPECT(result.as.integer == 42);
	OK(mullion_function_free(work));
	OK(mullion_live_free(live));
	return 0;
}
"#;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("extension.c");
    std::fs::write(&source, EXTENSION).expect("written");
    let images = ["1", "2"].map(|version| {
        let image = directory.path().join(format!("{version}.mx"));
        support::build(&source, &image, &[&format!("-DVERSION={version}")]);
        image
    });
    let all = pieces("host-c.md", "c");
    let named = ["at_most(", "make_pool(", "renew("];
    let of_page = named.map(|name| {
        let mut found = all.iter().filter(|piece| piece.contains(name));
        let piece = found.next().expect("the page has it");
        assert!(found.next().is_none(), "twice: {name}");
        piece.as_str()
    });
    let host = directory.path().join("host.c");
    std::fs::write(&host, format!("{}{HOST}", of_page.concat())).expect("written");
    support::cargo_build(&["mullion-capi"]);
    let program = directory.path().join("host");
    let output = Command::new("gcc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../include"))
        .arg(&host)
        .arg("-o")
        .arg(&program)
        .arg(support::target().join("libmullion.a"))
        .args(["-lgcc_s", "-lpthread", "-ldl", "-lm"])
        .output()
        .expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let output = Command::new(&program).args(&images).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

#[test]
fn the_hosts_of_the_first_steps() {
    let c = pieces("first-steps.md", "c");
    assert_eq!(c.len(), 3, "a program, a library, a host");
    compile_for_the_host("c", "gcc", "-std=c99", &c[2..]);
    let cxx = pieces("first-steps.md", "cpp");
    assert_eq!(cxx.len(), 1);
    compile_for_the_host("cc", "g++", "-std=c++17", &cxx);
}

#[test]
fn the_guide_for_extensions() {
    for (language, kind) in [("c", "c"), ("cpp", "cc")] {
        let pieces = pieces("extension.md", language);
        assert_eq!(pieces.len(), if kind == "c" { 2 } else { 1 });
        for piece in &pieces {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let source = directory.path().join(format!("piece.{kind}"));
            std::fs::write(&source, piece).expect("written");
            let image = directory.path().join("piece.mx");
            support::build(&source, &image, &["-Wall", "-Wextra", "-Werror"]);
        }
    }
}
