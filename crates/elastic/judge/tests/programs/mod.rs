//! The programs of the tests: files of cases, the preprocessor, the types.

use mullion_elastic::Elastic;
use mullion_judge::{JudgedProgram, ProgramSource, SourceRefusal, judge};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// One program, with what is expected of it.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The other words of its first line.
    pub(crate) expected: Vec<String>,
    /// The lines of `[elastic]`.
    pub(crate) table: String,
    pub(crate) text: String,
}

/// The cases of a file. Each begins with `//== NAME WORDS... | TABLE; TABLE`.
pub(crate) fn cases(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(file);
    let text = std::fs::read_to_string(path).expect("it is there");
    let mut found = Vec::new();
    for part in text.split("//== ").skip(1) {
        let (head, text) = part.split_once('\n').expect("a program");
        let (words, table) = head.split_once('|').unwrap_or((head, ""));
        let mut words = words.split_whitespace().map(str::to_owned);
        found.push(Case {
            name: words.next().expect("a name"),
            expected: words.collect(),
            table: table.replace(';', "\n"),
            text: text.to_owned(),
        });
    }
    found
}

/// What the module sees of the environment.
const PUBLIC: &str = "public = [\"byte\", \"address_t\", \"struct packet\", \"union word\", \"enum verdict\", \"PASS\", \
     \"DROP\", \"LIMIT\", \"public_add\", \"public_bump\", \"public_fill\", \"public_any\", \"public_sum\", \
     \"public_print\", \"public_half\", \"public_apply\", \"public_buffer\", \"public_address\"]";

/// A module type with these lines in `[elastic]`.
pub(crate) fn elastic(table: &str) -> Elastic {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/environment.c");
    let bytes = std::fs::read(&environment).expect("it is there");
    let digest = mullion_decide::Sha256Digest::of(&bytes);
    let text = format!(
        "version = 1\nid = \"tested\"\nlanguage = \"c\"\nprotection = \"read-write-call\"\nmechanism = [\"window\"]\n\
         [elastic]\n{table}\n[elastic.environment]\nfile = {:?}\nsha256 = \"{digest}\"\n{PUBLIC}\n",
        environment.display().to_string()
    );
    let read = Elastic::parse(&text, Path::new("tested.toml"));
    let (_, elastic) = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
    elastic.expect("a table")
}

fn preprocessed(arguments: &[&str], file: &Path) -> String {
    let mut gcc = Command::new("gcc");
    gcc.args(["-E", "-std=gnu11", "-nostdinc"])
        .args(arguments)
        .arg(file);
    let output = gcc.output().expect("gcc is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// The environment behind the preprocessor, which is the same for all.
static ENVIRONMENT: LazyLock<String> = LazyLock::new(|| {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/environment.c");
    preprocessed(&[], &environment)
});

/// The program behind the preprocessor, with what is needed to show its lines.
pub(crate) fn source(directory: &Path, case: &Case) -> ProgramSource {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/environment.c");
    let mut files = HashMap::new();
    let mut paths: Vec<PathBuf> = Vec::new();
    // `//-D NAME=VALUE`, at the end, is an option of the compiler's.
    let (text, flags) = case.text.split_once("//-D ").unwrap_or((&case.text, ""));
    let flag = format!("-D{}", flags.trim_end());
    // `//-- NAME` begins another file.
    for (index, part) in text.split("//-- ").enumerate() {
        let (name, text) = match index {
            0 => ("program.c", part),
            _ => part.split_once('\n').expect("a file"),
        };
        let path = directory.join(name);
        std::fs::write(&path, text).expect("room");
        files.insert(path.display().to_string(), text.to_owned());
        paths.push(path);
    }
    ProgramSource {
        environment: ENVIRONMENT.clone(),
        program: preprocessed(
            &[
                "-imacros",
                environment.to_str().expect("text"),
                if flags.is_empty() { "-DNO_FLAG" } else { &flag },
            ],
            &paths[0],
        ),
        files,
    }
}

/// Judges a case.
pub(crate) fn judged(directory: &Path, case: &Case) -> Result<JudgedProgram, Vec<SourceRefusal>> {
    judge(&elastic(&case.table), &source(directory, case))
}
