//! Debian's unmodified SQLite shell with SQLite's own extensions, native and behind the wall; and with an extension that
//! attacks.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own.

use mullion_driver::{Arguments, Language, assemble, compile, link};
use mullion_fetch::Lock;
use mullion_mmp::config::Config;
use mullion_mmp::event::TraceEvent;
use mullion_mmp::machine::Machine;
use mullion_mmp::measurement::{Crossings, Measurement};
use mullion_mmp::recorder::ADDRESS_BITS;
use mullion_mmp::trace::TraceReader;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let program = PathBuf::from(arguments.next().unwrap_or_default());
    let tool = match program.file_name().and_then(|name| name.to_str()) {
        Some("as") => assemble(arguments),
        Some("ld") => link(arguments),
        _ => {
            if let Err(missing) = shell_is_there() {
                println!("skipped: {missing}");
                assert!(
                    std::env::var_os("MULLION_REQUIRE_SQLITE").is_none(),
                    "{missing}"
                );
                return ExitCode::SUCCESS;
            }
            let place = Place::new();
            if std::env::args().any(|argument| argument == "cost") {
                place.cost();
                return ExitCode::SUCCESS;
            }
            place.extensions_answer_as_without_the_wall();
            place.attacks_end_as_errors_and_the_shell_goes_on();
            place.modules_cannot_touch_each_other();
            place.what_a_policy_does_not_name_is_refused();
            place.a_table_may_ask_itself();
            place.a_policy_bounds_sql();
            place.a_run_is_a_trace_for_the_hardware_model();
            return ExitCode::SUCCESS;
        }
    };
    tool.unwrap_or_else(|error| {
        eprintln!("mullion: {error}");
        ExitCode::FAILURE
    })
}

/// What the hardware model says of these events.
fn modelled(events: &[TraceEvent]) -> Measurement {
    let mut machine = Machine::new(&Config::default(), ADDRESS_BITS).expect("a machine");
    for event in events {
        machine.step(event).expect("it is possible");
    }
    machine.report()
}

/// The stock shell, new enough, and allowed to load extensions.
fn shell_is_there() -> Result<(), String> {
    let output = Command::new("sqlite3").arg("--version").output();
    let output =
        output.map_err(|_| "there is no `sqlite3` (Debian's package sqlite3)".to_owned())?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = version
        .split(['.', ' '])
        .map(|part| part.parse::<u32>().unwrap_or(0));
    match (numbers.next(), numbers.next()) {
        (Some(3), Some(40..)) => Ok(()),
        _ => Err(format!(
            "the shell is SQLite {}, and 3.40 is needed",
            version.trim()
        )),
    }
}

/// Where modules are made.
struct Place {
    scratch: tempfile::TempDir,
    sources: PathBuf,
    headers: PathBuf,
    library: PathBuf,
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

impl Place {
    fn new() -> Place {
        let lock = Lock::parse(include_str!("../../../sysroot/sources.toml")).expect("a lock file");
        let fetched = |name| {
            let source = lock.source(name).expect("it is listed");
            mullion_fetch::fetch(source).expect("the package client has it")
        };
        let program = std::env::current_exe().expect("a path");
        let deps = program.parent().expect("a folder");
        let folders = [deps.to_path_buf(), deps.join("..")];
        let libraries = folders.map(|folder| folder.join("libmullion_sqlite.so"));
        let library = libraries.into_iter().find(|library| library.is_file());
        Place {
            scratch: tempfile::tempdir().expect("a temporary directory"),
            sources: fetched("sqlite-extensions").join("ext/misc"),
            headers: fetched("sqlite").join("sqlite3"),
            library: library.expect("Cargo builds the library with its tests"),
        }
    }

    fn native(&self, source: &Path, name: &str) -> PathBuf {
        // SQLite finds the entry by the file's name.
        let folder = self.scratch.path().join("native");
        fs::create_dir_all(&folder).expect("made");
        let to = folder.join(format!("{name}.so"));
        let mut command = Command::new("gcc");
        command
            .args(["-O2", "-w", "-shared", "-fPIC"])
            .arg("-I")
            .arg(&self.headers);
        command.arg(source).arg("-o").arg(&to).arg("-lm");
        assert!(command.status().expect("gcc starts").success(), "{name}");
        to
    }

    fn walled(&self, source: &Path, name: &str, policy: &str) -> PathBuf {
        let to = self.scratch.path().join(format!("{name}.so"));
        self.compile(source, &to, &[]);
        fs::write(to.with_extension("toml"), policy).expect("written");
        to
    }

    fn compile(&self, source: &Path, to: &Path, options: &[&str]) {
        let mut line: Vec<OsString> = ["--wall=word", "-O2", "-g", "-w", "-I"]
            .map(OsString::from)
            .into();
        line.extend([
            (&self.headers).into(),
            source.into(),
            "-o".into(),
            to.into(),
        ]);
        line.extend(options.iter().map(OsString::from));
        let arguments = Arguments::parse(&line).expect("a good command line");
        let compiled = compile(Language::C, &arguments).expect("a compiler");
        assert_eq!(compiled.code, 0, "{source:?}");
    }

    /// What the shell prints, standard error included, and its status.
    fn shell(&self, extensions: &[&Path], library: &Path, script: &str) -> (String, Option<i32>) {
        self.shell_with(&[], extensions, library, script)
    }

    fn shell_with(
        &self,
        variables: &[(&str, &Path)],
        extensions: &[&Path],
        library: &Path,
        script: &str,
    ) -> (String, Option<i32>) {
        let listed = std::env::join_paths(extensions).expect("no colons");
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec sqlite3 -batch -init /dev/null :memory: 2>&1"]);
        shell
            .envs(variables.iter().copied())
            .env("MULLION_SQLITE_LOAD", listed)
            .current_dir(self.scratch.path());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("it starts");
        let mut input = shell.stdin.take().expect("a pipe");
        let script = format!(".load {}\n{script}", library.display());
        let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
        let output = shell.wait_with_output().expect("it ends");
        let _read_or_not = writer.join();
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            output.status.code(),
        )
    }

    fn extensions_answer_as_without_the_wall(&self) {
        let folder = fs::read_dir(here("tests/queries")).expect("a folder");
        let mut scripts: Vec<_> = folder
            .map(|entry| entry.expect("an entry").path())
            .collect();
        scripts.sort();
        assert!(scripts.len() >= 20, "{}", scripts.len());
        for script in &scripts {
            let name = script.file_stem().expect("a name").to_string_lossy();
            let source = self.sources.join(format!("{name}.c"));
            let policy = fs::read_to_string(here("policies").join(format!("{name}.toml")));
            let walled = self.walled(&source, &name, &policy.expect("each has a policy"));
            let script = fs::read_to_string(script).expect("text");
            let native = self.native(&source, &name);
            let expected = self.shell(&[], &native, &script);
            let found = self.shell(&[&walled], &self.library, &script);
            assert!(expected.0.lines().count() > 0, "{name} answers nothing");
            assert_eq!(found, expected, "{name}");
            self.a_learnt_policy_serves(&walled, &script, &expected);
        }
        println!("{} extensions answer as without the wall", scripts.len());
    }

    /// What two extensions were granted and lost leads the model through the same calls.
    fn a_run_is_a_trace_for_the_hardware_model(&self) {
        let modules = ["rot13", "uuid"].map(|name| {
            let policy = fs::read_to_string(here("policies").join(format!("{name}.toml")));
            let source = self.sources.join(format!("{name}.c"));
            self.walled(&source, name, &policy.expect("each has a policy"))
        });
        let file = self.scratch.path().join("run.mmt");
        let listed = modules.each_ref().map(PathBuf::as_path);
        let script = "SELECT rot13('uryyb'), length(uuid());\n";
        for steps in ["0", "1"] {
            let variables = [
                ("MULLION_WORD_TRACE", file.as_path()),
                ("MULLION_WORD_STEPS", Path::new(steps)),
            ];
            let (said, _) = self.shell_with(&variables, &listed, &self.library, script);
            assert_eq!(said, "hello|36\n");
            let bytes = fs::read(&file).expect("the shell has written it");
            let mut reader = TraceReader::new(&bytes[..]).expect("a trace");
            let mut events = Vec::new();
            while let Some(block) = reader.next_block().expect("it is whole") {
                events.extend(block.events().map(|event| event.expect("an event")));
            }
            let report = modelled(&events);
            assert!(report.refusals.is_empty(), "{:?}", report.refusals);
            assert!(report.supervisor_calls > 100, "{}", report.supervisor_calls);
            let (crossings, instructions) = (report.crossings, report.cycles.instructions);
            // Both modules call SQLite several times for each answer, and all of these calls come back.
            let is_whole = match steps {
                "0" => crossings.calls == 0 && instructions == 0,
                _ => {
                    crossings.calls > 12
                        && crossings.calls == crossings.returns
                        && crossings.calls == crossings.to_other
                        && instructions > 200
                }
            };
            assert!(is_whole, "{crossings:?}, {instructions} instructions");
            // Without one of them, the code behind it runs in another domain, or a call is missing that did nothing.
            let counted = |crossings: Crossings| crossings.calls + crossings.returns;
            for (at, event) in events.iter().enumerate() {
                if !matches!(event, TraceEvent::Call { .. } | TraceEvent::Return { .. }) {
                    continue;
                }
                let mut others = events.clone();
                others.remove(at);
                let without = modelled(&others);
                let is_noticed =
                    !without.refusals.is_empty() || counted(without.crossings) < counted(crossings);
                assert!(is_noticed, "without event {at}: {event:?}");
            }
            println!(
                "a run is a trace of {} calls of the supervisor, {} between domains and {instructions} instructions",
                report.supervisor_calls, crossings.calls
            );
        }
    }

    /// A run without a policy, in which nothing is refused, gives one with which the same run goes.
    fn a_learnt_policy_serves(
        &self,
        module: &Path,
        script: &str,
        expected: &(String, Option<i32>),
    ) {
        let learnt = self.scratch.path().join("learnt");
        fs::create_dir_all(&learnt).expect("made");
        let name = module.file_name().expect("a name");
        fs::remove_file(module.with_extension("toml")).expect("it was there");
        let (library, all) = (&self.library, [module]);
        let first = self.shell_with(&[("MULLION_WORD_LEARN", &learnt)], &all, library, script);
        assert_eq!(&first, expected, "{name:?} learns");
        let second = self.shell_with(&[("MULLION_WORD_POLICIES", &learnt)], &all, library, script);
        assert_eq!(&second, expected, "{name:?} with what it has learnt");
        let policy = learnt.join(name).with_extension("toml");
        let policy = fs::read_to_string(policy).expect("written");
        let (all, name) = (policy.matches("sqlite3_").count(), name.to_string_lossy());
        // One call that ends its function has no place behind it.
        let has_places = policy.contains(&*name.replace(".so", ".c:"));
        assert!(all > 1 && (has_places || all <= 3), "{policy}");
    }

    /// For people: what the wall costs, by the shell's own timer.
    fn cost(&self) {
        let table = "CREATE TABLE t AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<100000) \
                     SELECT i, (i*7919)%100003 AS n, printf('file%d of some words', (i*7919)%100003) AS x FROM c;";
        let queries = [
            (
                "series",
                "SELECT sum(value) FROM generate_series(1,1000000)",
            ),
            ("rot13", "SELECT sum(length(rot13(x))) FROM t"),
            ("sha1", "SELECT count(DISTINCT sha1(x)) FROM t"),
            ("sha1", "SELECT sha1(zeroblob(20000000))"),
            (
                "regexp",
                "SELECT count(*) FROM t WHERE x REGEXP '[0-4]{3}.*of'",
            ),
            ("decimal", "SELECT decimal_sum(n) FROM t"),
            ("decimal", "SELECT max(decimal_mul(n, '1.5')) FROM t"),
            ("percentile", "SELECT percentile(n, 50) FROM t"),
            (
                "uint",
                "SELECT max(x) FROM (SELECT x FROM t ORDER BY x COLLATE uint)",
            ),
            ("totype", "SELECT sum(tointeger(n)) FROM t"),
            (
                "spellfix",
                "SELECT sum(spellfix1_editdist(x, 'file 17 of words')) FROM t",
            ),
        ];
        println!(
            "| extension | query | native ms | write | read-write |\n| --- | --- | ---: | ---: | ---: |"
        );
        for (name, query) in queries {
            let source = self.sources.join(format!("{name}.c"));
            let policy = fs::read_to_string(here("policies").join(format!("{name}.toml")));
            // A limit on time has its own cost: the policies have one, and so has this.
            let policy = policy
                .expect("each has a policy")
                .replace("\"2 s\"", "\"100 s\"");
            let native = self.native(&source, name);
            let library = self.library.clone();
            let both = self.walled(&source, name, &policy);
            let writes = self.scratch.path().join("write");
            fs::create_dir_all(&writes).expect("made");
            let only_writes = writes.join(format!("{name}.so"));
            fs::write(only_writes.with_extension("toml"), &policy).expect("written");
            self.compile(&source, &only_writes, &["--protection=write"]);
            let script = format!("{table}\n.timer on\n{query};\n");
            let ways: [(&[&Path], &Path); 3] = [
                (&[], &native),
                (&[&only_writes], &library),
                (&[&both], &library),
            ];
            let mut best = [f64::MAX; 3];
            for _ in 0..9 {
                for (best, (extensions, library)) in best.iter_mut().zip(ways) {
                    let (said, _) = self.shell(extensions, library, &script);
                    let line = said
                        .lines()
                        .find(|line| line.starts_with("Run Time"))
                        .expect("a time");
                    let numbers = line.split(' ').filter_map(|word| word.parse::<f64>().ok());
                    // Real, user, system.
                    *best = best.min(numbers.skip(1).sum::<f64>() * 1000.0);
                }
            }
            let [plain, write, both] = best;
            println!(
                "| {name} | `{query}` | {plain:.1} | {:.2} | {:.2} |",
                write / plain,
                both / plain
            );
        }
    }

    fn hostile(&self) -> PathBuf {
        let policy = "allow = [\"@plain\", \"@sql\", \"sqlite3_context_db_handle\"]\n[limits]\ntime = \"300 ms\"\nmemory = \"8 MiB\"\n";
        self.walled(&here("tests/hostile.c"), "hostile", policy)
    }

    fn attacks_end_as_errors_and_the_shell_goes_on(&self) {
        let hostile = self.hostile();
        let attacks = [
            ("heap()", "memory of the host; at heap (", true),
            ("other(4096)", "Access of 0x1000", true),
            (
                "unnamed()",
                "a call of sqlite3_sleep, which `allow = [\"sqlite3_sleep\"]`",
                true,
            ),
            ("foreign()", "are not the module's to read", true),
            ("text()", "are not the module's to read", true),
            ("loop()", "its time is over", true),
            ("recurse()", "its stack is full", true),
            ("forged()", "is not the context of this call", true),
            ("value()", "is no value that the module was given", true),
            ("format()", "are not the module's to read", true),
            ("writes()", "`%n` in a format is not for modules", true),
            ("frees()", "is no block of the module's heap", true),
            ("again()", "is no block of the module's heap", true),
            ("jump()", "Call of 0x", true),
            ("table()", "memory of the host; at table (", true),
            ("divide()", "Arithmetic", true),
            ("stale()", "is no value that the module was given", true),
            // An allocator without room answers null.
            ("eats()", "7", false),
        ];
        for (attack, expected, ends) in attacks {
            let script = format!(
                "SELECT hostile_{attack};\nSELECT hostile_twice(3);\nSELECT mullion_restart('hostile');\n\
                 SELECT 'again', hostile_twice(3);\nSELECT 'done';\n"
            );
            let (said, _) = self.shell(&[&hostile], &self.library, &script);
            let first = said.lines().next().unwrap_or_default();
            assert!(first.contains(expected), "{attack}: {said}");
            assert_eq!(
                said.matches("the wall stopped hostile").count(),
                if ends { 2 } else { 0 },
                "{attack}: {said}"
            );
            assert!(said.ends_with("again|6\ndone\n"), "{attack}: {said}");
        }
        println!("{} attacks end as errors", attacks.len());
    }

    fn modules_cannot_touch_each_other(&self) {
        let hostile = self.hostile();
        let policy = "entry = \"sqlite3_victim_init\"\nallow = [\"@plain\"]\n";
        let victim = self.walled(&here("tests/hostile.c"), "victim", policy);
        let policy = "entry = \"sqlite3_hostile_init\"\nallow = [\"@plain\"]\n";
        fs::write(hostile.with_extension("toml"), policy).expect("written");
        let script = "SELECT hostile_other(victim_where());\nSELECT victim_precious();\n";
        let (said, _) = self.shell(&[&hostile, &victim], &self.library, script);
        assert!(said.contains("memory of victim"), "{said}");
        assert!(said.ends_with("\n42\n"), "{said}");
    }

    /// A method of a table runs SQL that uses the same table, seven times over; the eighth has an error.
    fn a_table_may_ask_itself(&self) {
        let source = here("tests/hostile.c");
        let policy =
            "entry = \"sqlite3_mirror_init\"\nallow = [\"@plain\", \"@sql\", \"@tables\"]\n";
        let walled = self.walled(&source, "mirror", policy);
        let native = self.native(&source, "mirror");
        let script = "SELECT n FROM mirror;\nSELECT n FROM mirror;\n";
        let expected = self.shell(&[], &native, script);
        let found = self.shell(&[&walled], &self.library, script);
        assert_eq!(found, expected);
        assert!(found.0.starts_with("8\n8\n"), "{}", found.0);
    }

    /// `[group] statements` lists statements by their first words.
    fn a_policy_bounds_sql(&self) {
        let hostile = self.hostile();
        let allow = "allow = [\"@plain\", \"@sql\", \"sqlite3_context_db_handle\"]\n[group]\n";
        let script =
            "CREATE TABLE precious(n);\nSELECT hostile_flush();\nSELECT count(*) FROM precious;\n";
        for (words, is_kept) in [("\"SELECT\"", true), ("\"SELECT\", \"DROP\"", false)] {
            let policy = format!("{allow}statements = [{words}]\n");
            fs::write(hostile.with_extension("toml"), policy).expect("written");
            let (said, _) = self.shell(&[&hostile], &self.library, script);
            let expected = "the statement DROP, which `statements = [\"DROP\"]` in [group] of its policy would allow";
            assert_eq!(said.contains(expected), is_kept, "{said}");
            assert_eq!(said.ends_with("\n0\n"), is_kept, "{said}");
        }
    }

    fn what_a_policy_does_not_name_is_refused(&self) {
        let source = self.sources.join("rot13.c");
        let module = self.walled(
            &source,
            "rot13",
            "allow = [\"@functions\", \"@values\", \"@memory\"]\n",
        );
        let (said, _) = self.shell(
            &[],
            &self.library,
            "SELECT mullion_load('rot13.so');\nSELECT rot13('x');\nSELECT 1;\n",
        );
        let expected = "a call of sqlite3_result_text, which `allow = [\"sqlite3_result_text\"]`";
        assert!(said.contains(expected) && said.ends_with("\n1\n"), "{said}");
        fs::write(
            module.with_extension("toml"),
            "allow = [\"@functions\",\n  \"result_text\"]\n",
        )
        .expect("written");
        let (said, _) = self.shell(&[], &self.library, "SELECT mullion_load('rot13.so');\n");
        assert!(said.contains("`sqlite3_result_text` is"), "{said}");
        fs::write(
            module.with_extension("toml"),
            "allow = [\"@functions\",\n  5]\n",
        )
        .expect("written");
        let (said, _) = self.shell(&[], &self.library, "SELECT mullion_load('rot13.so');\n");
        assert!(said.contains("rot13.toml: line 2, column 3: "), "{said}");
    }
}
