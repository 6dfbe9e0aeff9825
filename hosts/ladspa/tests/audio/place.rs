//! Where plug-ins are made, native and behind the wall, and what they must answer.

use mullion_driver::{Arguments, Language, compile};
use mullion_fetch::Lock;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct Place {
    scratch: tempfile::TempDir,
    header: PathBuf,
    kit: PathBuf,
    cmt: PathBuf,
    library: PathBuf,
}

pub(crate) fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Attacks, what is said of them, and what happens without the wall: `dies`, or a part of what is printed.
const ATTACKS: [(&str, &str, &str); 17] = [
    (
        "beyond",
        "memory of the host; at run_beyond (",
        "intact false",
    ),
    (
        "before",
        "memory of the host; at run_before (",
        "intact false",
    ),
    (
        "input",
        "memory of the host; at run_input (",
        "intact false",
    ),
    ("reads", "memory of the host; at run_reads (", "first 12345"),
    ("later", "memory of the host; at run_later (", "other false"),
    ("address", "Access of 0x1000", "dies"),
    ("null", "Access of 0x0", "dies"),
    ("handle", "Access of 0x", "dies"),
    ("loop", "its time is over", "loops"),
    ("recurse", "its stack is full", "dies"),
    ("again", "is no block of the module's heap", "dies"),
    ("frees", "is no block of the module's heap", "dies"),
    ("runs", "system: the host does not offer it", "good true"),
    ("jump", "Call of 0x", ""),
    ("data", "Call of 0x", "dies"),
    ("divide", "Arithmetic", "dies"),
    ("eats", "", ""),
];

/// What plug-ins sound like, but for two of CMT's that take two samples of an input for each of an output, and so read
/// beyond it (ambisonic.cpp, `*(pfInY++)` twice): what they find there is nobody's to say.
fn sounds(said: &str) -> Vec<&str> {
    let is_wrong = |line: &&str| line.contains(" bf2quad ") || line.contains(" bf2cube ");
    let is_sound = |line: &&str| line.ends_with(" true") || line.ends_with(" false");
    said.lines()
        .filter(|line| is_sound(line) && !is_wrong(line))
        .collect()
}

impl Place {
    pub(crate) fn new() -> Place {
        let lock =
            Lock::parse(include_str!("../../../../sysroot/sources.toml")).expect("a lock file");
        let fetched = |name| {
            let source = lock.source(name).expect("it is listed");
            mullion_fetch::fetch(source).expect("the package client has it")
        };
        let program = std::env::current_exe().expect("a path");
        let deps = program.parent().expect("a folder");
        let folders = [deps.to_path_buf(), deps.join("..")];
        let libraries = folders.map(|folder| folder.join("libmullion_ladspa.so"));
        let library = libraries.into_iter().find(|library| library.is_file());
        let library = library.expect("Cargo builds the library with its tests");
        let kit = fetched("ladspa-sdk").join("src");
        Place {
            scratch: tempfile::tempdir().expect("a temporary directory"),
            header: kit.clone(),
            kit: kit.join("plugins"),
            cmt: fetched("cmt").join("src"),
            library: library.canonicalize().expect("it is there"),
        }
    }

    /// Libraries, with their sources.
    pub(crate) fn libraries(&self) -> Vec<(&'static str, Vec<PathBuf>)> {
        let kit = |name: &str| vec![self.kit.join(name)];
        let mut cmt = Vec::new();
        let reverb = self.cmt.join("freeverb");
        for folder in [self.cmt.clone(), reverb.clone(), reverb.join("Components")] {
            let entries = fs::read_dir(&folder).expect("a folder").flatten();
            let sources = entries.map(|entry| entry.path());
            cmt.extend(
                sources.filter(|path| path.extension().is_some_and(|extension| extension == "cpp")),
            );
        }
        cmt.sort();
        vec![
            ("amp", kit("amp.c")),
            ("delay", kit("delay.c")),
            ("filter", kit("filter.c")),
            ("noise", kit("noise.c")),
            ("sine", kit("sine.cpp")),
            ("cmt", cmt),
        ]
    }

    fn options(&self) -> [OsString; 4] {
        [
            "-I".into(),
            (&self.header).into(),
            "-I".into(),
            (&self.cmt).into(),
        ]
    }

    pub(crate) fn native(&self, name: &str, sources: &[PathBuf], more: &[&str]) -> PathBuf {
        let folder = self.scratch.path().join("native");
        fs::create_dir_all(&folder).expect("made");
        let to = folder.join(format!("{name}.so"));
        let is_cxx = sources[0]
            .extension()
            .is_some_and(|extension| extension == "cpp");
        let mut command = Command::new(if is_cxx { "g++" } else { "gcc" });
        command
            .args(["-O2", "-w", "-shared", "-fPIC", "-o"])
            .arg(&to);
        command
            .args(self.options())
            .args(more)
            .args(sources)
            .arg("-lm");
        assert!(command.status().expect("gcc starts").success(), "{name}");
        to
    }

    /// A folder with one library.
    pub(crate) fn walled(
        &self,
        name: &str,
        sources: &[PathBuf],
        policy: &str,
        more: &[&str],
    ) -> PathBuf {
        let folder = self.scratch.path().join(format!("{name}.walled"));
        fs::create_dir_all(&folder).expect("made");
        let to = folder.join(format!("{name}.so"));
        // Blocks of the host's, because some plug-ins read what they have not written (`run`).
        let mut line: Vec<OsString> = ["--wall=word", "--heap=host", "-O2", "-g", "-w"]
            .map(OsString::from)
            .into();
        line.extend(self.options());
        line.extend(more.iter().map(OsString::from));
        line.extend(sources.iter().map(OsString::from));
        line.extend(["-o".into(), (&to).into()]);
        let is_cxx = sources[0]
            .extension()
            .is_some_and(|extension| extension == "cpp");
        let arguments = Arguments::parse(&line).expect("a good command line");
        let language = if is_cxx { Language::Cxx } else { Language::C };
        let compiled = compile(language, &arguments).expect("a compiler");
        assert_eq!(compiled.code, 0, "{name}");
        fs::write(to.with_extension("toml"), policy).expect("written");
        folder
    }

    pub(crate) fn policy(name: &str) -> String {
        let policy = fs::read_to_string(here("policies").join(format!("{name}.toml")));
        // The limit is for those who listen. A machine that does other things, too, must pass.
        policy
            .expect("each has a policy")
            .replace("\"100 ms\"", "\"100 s\"")
    }

    /// What a host prints in a process of its own, with what it says; none if it did not end well.
    pub(crate) fn host(&self, folder: Option<&Path>, words: &[&str]) -> (String, bool) {
        let program = std::env::current_exe().expect("a path");
        // A plug-in that loops ends with it.
        let mut host = Command::new("timeout");
        host.arg("60")
            .arg(program)
            .arg("host")
            .args(words)
            .stdin(Stdio::null());
        // Memory that a plug-in has not written is zeros, as it is behind the wall: some read it.
        let zeros = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0";
        host.env("GLIBC_TUNABLES", zeros);
        if let Some(folder) = folder {
            host.env("MULLION_LADSPA_PATH", folder);
        }
        self.output(&mut host)
    }

    fn output(&self, command: &mut Command) -> (String, bool) {
        let output = command.output().expect("it starts");
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        (said, output.status.success())
    }

    pub(crate) fn bridge(&self) -> &str {
        self.library.to_str().expect("a path")
    }

    pub(crate) fn plugins_sound_as_without_the_wall(&self) {
        let mut count = 0;
        for (name, sources) in self.libraries() {
            let native = self.native(name, &sources, &[]);
            let expected = self.host(None, &["digest", native.to_str().expect("a path")]);
            assert!(expected.1, "{name}: {}", expected.0);
            for protection in ["--protection=write", "--protection=read-write"] {
                let folder = self.walled(name, &sources, &Self::policy(name), &[protection]);
                let found = self.host(Some(&folder), &["digest", self.bridge()]);
                assert!(found.1, "{name}, {protection}");
                assert_eq!(
                    sounds(&found.0),
                    sounds(&expected.0),
                    "{name}, {protection}"
                );
                // Where loads are checked, plug-ins that read beyond their inputs are stopped.
                let finds = name == "cmt" && protection.ends_with("read-write");
                for function in ["runBFormatToQuad", "runBFormatToCube"] {
                    let stopped = format!("memory of the host; at {function} (");
                    assert_eq!(found.0.contains(&stopped), finds, "{}", found.0);
                }
            }
            count += sounds(&expected.0).len();
        }
        println!("{count} plug-ins sound as without the wall, to the bit, with both protections");
        assert!(count >= 70, "{count}");
    }

    pub(crate) fn attacks_end_in_silence(&self) {
        let sources = [here("tests/hostile.c")];
        let policy = "allow = [\"@malloc\"]\n[limits]\ntime = \"2 s\"\nmemory = \"8 MiB\"\n";
        for protection in ["--protection=read-write", "--protection=write"] {
            let folder = self.walled("hostile", &sources, policy, &[protection]);
            for (label, expected, _) in ATTACKS {
                let (said, ended_well) =
                    self.host(Some(&folder), &["attack", self.bridge(), label]);
                assert!(ended_well, "{label}, {protection}: {said}");
                assert!(said.contains("good true"), "{label}: {said}");
                // A load is checked where loads are; an allocator without room answers null.
                let goes_on = label == "eats" || label == "reads" && protection.ends_with("=write");
                assert_eq!(
                    said.contains("the wall stopped hostile"),
                    !goes_on,
                    "{label}, {protection}: {said}"
                );
                if !goes_on {
                    assert!(said.contains(expected), "{label}, {protection}: {said}");
                    assert!(
                        said.contains("intact true"),
                        "{label}, {protection}: {said}"
                    );
                    let is_later = label == "later";
                    assert!(said.contains("silent true") || is_later, "{label}: {said}");
                    assert!(said.contains("other true"), "{label}: {said}");
                }
            }
            println!(
                "{} attacks end in silence, and the host goes on ({protection})",
                ATTACKS.len()
            );
        }
    }

    pub(crate) fn attacks_harm_without_the_wall(&self) {
        let native = self.native("hostile", &[here("tests/hostile.c")], &[]);
        let native = native.to_str().expect("a path");
        let mut harmed = 0;
        for (label, _, harm) in ATTACKS {
            if harm.is_empty() || harm == "loops" {
                // The first is not demanded; a host with the second would be waited for.
                continue;
            }
            let (said, ended_well) = self.host(None, &["attack", native, label]);
            let is_harm = match harm {
                "dies" => !ended_well,
                harm => said.contains(harm),
            };
            assert!(is_harm, "{label}: {said}");
            harmed += 1;
        }
        println!(
            "{harmed} of {} attacks do harm without the wall",
            ATTACKS.len()
        );
    }

    /// What a descriptor says is looked at before a host sees it.
    pub(crate) fn lies_are_not_believed(&self) {
        let lies = [
            ("1", "0x1000", "0", "are not the module's to read"),
            ("(1ul<<40)", "0", "0", "a plug-in with 1099511627776 ports"),
            ("0", "0", "0x1230", "is no function of the module"),
            ("0", "0", "0", "a function that hosts always call"),
        ];
        for (count, ports, code, expected) in lies {
            let more = [
                format!("-DWHAT_COUNT={count}"),
                format!("-DWHAT_PORTS={ports}"),
                format!("-DWHAT_CODE={code}"),
            ];
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let folder = self.walled(
                "lies",
                &[here("tests/lies.c")],
                "allow = [\"@malloc\"]\n",
                &more,
            );
            let (said, ended_well) = self.host(Some(&folder), &["digest", self.bridge()]);
            assert!(ended_well && said.contains(expected), "{said}");
        }
        println!("{} lies are not believed", lies.len());
    }

    /// Debian's `analyseplugin` and `applyplugin`.
    pub(crate) fn stock_hosts_take_them(&self) {
        let there = Command::new("applyplugin")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if there.is_err() {
            println!("skipped: there is no `applyplugin` (Debian's package ladspa-sdk)");
            assert!(std::env::var_os("MULLION_REQUIRE_LADSPA").is_none());
            return;
        }
        let folder = self.scratch.path().join("cmt.walled");
        let sound = self.scratch.path().join("in.wav");
        fs::write(&sound, wave()).expect("written");
        let native = self.scratch.path().join("native/cmt.so");
        let mut listed = Command::new("analyseplugin");
        listed
            .arg("-l")
            .arg(&self.library)
            .env("MULLION_LADSPA_PATH", &folder);
        let (said, ended_well) = self.output(&mut listed);
        assert!(ended_well && said.lines().count() >= 60, "{said}");
        let mut sounds = Vec::new();
        let trace = self.scratch.path().join("run.mmt");
        for library in [&native, &self.library] {
            let to = self.scratch.path().join("out.wav");
            let mut applied = Command::new("applyplugin");
            applied
                .arg(&sound)
                .arg(&to)
                .arg(library)
                .args(["delay_1s", "0.3", "0.5"]);
            applied.arg(library).args(["amp_mono", "0.7"]);
            applied.env("MULLION_LADSPA_PATH", &folder);
            applied.env("MULLION_WORD_TRACE", &trace);
            let (said, ended_well) = self.output(&mut applied);
            assert!(ended_well, "{said}");
            sounds.push(fs::read(&to).expect("written"));
        }
        assert!(sounds[0] == sounds[1] && sounds[0].len() > 10_000);
        let traced = fs::metadata(&trace).expect("the host has written it");
        assert!(traced.len() > 100, "{} bytes", traced.len());
        println!(
            "analyseplugin lists {} plug-ins, and applyplugin's sound is the same",
            said.lines().count()
        );
    }
}

/// A second of sound in a file: one channel, 16 bits.
fn wave() -> Vec<u8> {
    let samples: Vec<u8> = (0..44_100)
        .flat_map(|at| (((at as f32 * 0.05).sin() * 12_000.0) as i16).to_le_bytes())
        .collect();
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + samples.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(44_100u32.to_le_bytes());
    file.extend(88_200u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend((samples.len() as u32).to_le_bytes());
    file.extend(samples);
    file
}
