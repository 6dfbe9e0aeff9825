//! Golden files: input, options and expected output in one file. After a change
//! that is meant, `MULLION_BLESS=1 cargo test -p mullion-rewriter --test golden`
//! writes what comes out now; read the difference before it is committed.

use mullion_rewriter::{Base, Options, Protection, Wall, WordProtection, rewrite};
use std::path::{Path, PathBuf};

/// `#### protection`, with `base register` or `wall word` behind it if that is asked for; the input; then the
/// output or the refusals.
struct Golden {
    first: String,
    options: Options,
    input: String,
    expected: String,
}

const OUTPUT: &str = "#### output\n";
const REFUSED: &str = "#### refused\n";

#[test]
fn golden_files() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .expect("the directory of golden files")
        .map(|entry| entry.expect("a golden file").path())
        .collect();
    files.sort();
    assert!(files.len() > 20, "golden files are missing");
    let bless = std::env::var_os("MULLION_BLESS").is_some();
    let mut failed = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a golden file");
        let golden = parse(&text);
        let actual = outcome(&golden);
        if actual == golden.expected {
            continue;
        }
        if bless {
            std::fs::write(file, format!("{}\n{}{actual}", golden.first, golden.input))
                .expect("a golden file written");
        } else {
            failed.push(format!(
                "{}:\nexpected\n{}\ngot\n{actual}",
                file.display(),
                golden.expected
            ));
        }
    }
    assert!(
        failed.is_empty(),
        "{}\n{} golden files differ; if that is meant, run with MULLION_BLESS=1",
        failed.join("\n"),
        failed.len()
    );
}

fn parse(text: &str) -> Golden {
    let (first, rest) = text.split_once('\n').expect("a first line");
    let name = first
        .strip_prefix("#### protection ")
        .expect("the first line names the protection");
    let (name, count) = match name.strip_suffix(" count") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let (name, base) = match name.strip_suffix(" base register") {
        Some(name) => (name, Base::Register),
        None => (name, Base::Segment),
    };
    if let Some(word) = WordProtection::ALL
        .into_iter()
        .find(|word| name == format!("{} wall word", word.name()))
    {
        let options = Options {
            wall: Wall::Word(word),
            ..Options::default()
        };
        return golden(first, rest, options);
    }
    let protection = [
        Protection::WriteCall,
        Protection::ReadWriteCall,
        Protection::Trap,
    ]
    .into_iter()
    .find(|p| p.name() == name)
    .expect("a protection");
    let options = Options {
        wall: Wall::Window,
        protection,
        base,
        count,
    };
    golden(first, rest, options)
}

fn golden(first: &str, rest: &str, options: Options) -> Golden {
    let end = rest
        .find(OUTPUT)
        .or_else(|| rest.find(REFUSED))
        .unwrap_or(rest.len());
    Golden {
        first: first.to_owned(),
        options,
        input: rest[..end].to_owned(),
        expected: rest[end..].to_owned(),
    }
}

fn outcome(golden: &Golden) -> String {
    match rewrite(&golden.input, "input.s", &golden.options) {
        Ok(rewritten) => format!("{OUTPUT}{}", rewritten.text),
        Err(refusals) => {
            let lines: Vec<String> = refusals.iter().map(|r| format!("{r}\n")).collect();
            format!("{REFUSED}{}", lines.concat())
        }
    }
}
