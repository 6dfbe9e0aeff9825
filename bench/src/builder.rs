//! Builds a workload for a column: objects, a program, and the size of its code.

use crate::catalogue::Workload;
use crate::column::Column;
use crate::elf;
use crate::tools::Tools;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// A workload that can be run in one column.
pub(crate) struct Program {
    /// Program and leading arguments; the number of iterations comes last.
    pub(crate) command: Vec<OsString>,
    /// The file that is loaded.
    pub(crate) image: PathBuf,
    /// Bytes of machine code in the objects of the workload and its library.
    pub(crate) code_bytes: Option<u64>,
}

/// Where sources, tools and results of a build lie.
pub(crate) struct Builder<'a> {
    pub(crate) bench: &'a Path,
    pub(crate) build: &'a Path,
    pub(crate) tools: &'a Tools,
    /// How many times 16 bytes further on native and walled code is to lie than it would.
    pub(crate) place: u8,
}

impl Builder<'_> {
    /// Builds what is not up to date.
    pub(crate) fn build(&self, workload: &Workload, column: Column) -> Result<Program> {
        let folder = self.build.join(column.name()).join(&workload.name);
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        match column {
            Column::Native => {
                self.build_objects(workload, &folder, &words(&["gcc", "-O2"]), "program", &[])
            }
            Column::Reserved => {
                let compiler = ["gcc", "-O2", "-ffixed-r11", "-ffixed-r14", "-ffixed-r15"];
                self.build_objects(workload, &folder, &words(&compiler), "program", &[])
            }
            Column::Musl => self.build_objects(
                workload,
                &folder,
                &words(&["musl-gcc", "-O2"]),
                "program",
                &["-static"],
            ),
            Column::WriteCall
            | Column::ReadWriteCall
            | Column::Register
            | Column::Counted
            | Column::Trap => {
                let mullion = self.tools.mullion.clone().into_os_string();
                let option = match column {
                    Column::Register => "--mullion-base=register".to_owned(),
                    Column::Counted => "--mullion-count".to_owned(),
                    _ => format!("--mullion-protection={}", column.name()),
                };
                let compiler = [mullion, "cc".into(), "-O2".into(), option.into()];
                self.build_objects(workload, &folder, &compiler, "program.mx", &[])
            }
            Column::WordWrite | Column::WordReadWrite => {
                let protection = match column {
                    Column::WordWrite => "--protection=write",
                    _ => "--protection=read-write",
                };
                let mullion = self.tools.mullion.clone().into_os_string();
                let mut compiler = vec![mullion, "cc".into()];
                compiler.extend(words(&["--wall=word", protection, "-O2"]));
                self.build_objects(workload, &folder, &compiler, "program.so", &[])
            }
            Column::Asan => {
                let compiler = ["gcc", "-O2", "-fsanitize=address"];
                let mut program =
                    self.build_objects(workload, &folder, &words(&compiler), "program", &[])?;
                // Workloads leave their memory to the end of the process.
                let environment = words(&["env", "ASAN_OPTIONS=detect_leaks=0"]);
                program.command.splice(..0, environment);
                Ok(program)
            }
            Column::Wasmtime => self.build_wasmtime(workload, &folder),
            Column::Wasm2c => self.build_wasm2c(workload, &folder),
        }
    }

    /// One object for each source, then a program of them all.
    fn build_objects(
        &self,
        workload: &Workload,
        folder: &Path,
        compiler: &[OsString],
        name: &str,
        link: &[&str],
    ) -> Result<Program> {
        let image = folder.join(name);
        let mut steps = Vec::new();
        let mut objects = Vec::new();
        let mut first = Vec::new();
        if self.place > 0 {
            let object = folder.join("place.o");
            let mut step = compiler.to_vec();
            step.extend([
                format!("-DPLACE={}", self.place).into(),
                "-c".into(),
                self.bench.join("peers/place.c").into(),
                "-o".into(),
                object.clone().into(),
            ]);
            steps.push(step);
            first.push(object);
        }
        for (number, source) in workload.sources.iter().enumerate() {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy();
            let object = folder.join(format!("{number}-{stem}.o"));
            let mut step = compiler.to_vec();
            step.extend(configuration(workload));
            step.extend([
                "-c".into(),
                source.into(),
                "-o".into(),
                object.clone().into(),
            ]);
            steps.push(step);
            objects.push(object);
        }
        let mut step = compiler.to_vec();
        step.extend(first.iter().chain(&objects).map(OsString::from));
        step.extend(link.iter().map(OsString::from));
        step.extend(["-lm".into(), "-o".into(), image.clone().into()]);
        steps.push(step);
        self.make(workload, folder, &image, &steps)?;
        let code_bytes = objects
            .iter()
            .map(|object| elf::code_bytes(object))
            .sum::<Result<u64>>()?;
        let command = if name.ends_with(".mx") {
            vec![
                self.tools.mullion.clone().into(),
                "run".into(),
                "--clock".into(),
                "--".into(),
                image.clone().into(),
            ]
        } else if name.ends_with(".so") {
            vec![self.tools.word_host.clone().into(), image.clone().into()]
        } else {
            vec![image.clone().into()]
        };
        Ok(Program {
            command,
            image,
            code_bytes: Some(code_bytes),
        })
    }

    fn build_wasmtime(&self, workload: &Workload, folder: &Path) -> Result<Program> {
        let image = folder.join("program.wasm");
        self.make(
            workload,
            folder,
            &image,
            &[self.wasm(workload, &image, &["-msimd128"])],
        )?;
        let runner = self.bench.join("peers/wasmtime_run.py");
        let command = vec![
            self.tools.python.clone().into(),
            runner.into(),
            image.clone().into(),
        ];
        Ok(Program {
            command,
            image,
            code_bytes: None,
        })
    }

    /// wasm2c of this version knows no vectors, so its module is built without.
    fn build_wasm2c(&self, workload: &Workload, folder: &Path) -> Result<Program> {
        let module = folder.join("program.wasm");
        let (source, image) = (folder.join("program.c"), folder.join("program"));
        let translate = [
            "wasm2c".into(),
            "-n".into(),
            "bench".into(),
            module.clone().into(),
            "-o".into(),
            source.clone().into(),
        ];
        let mut compile = ["gcc", "-O2", "-w"].map(OsString::from).to_vec();
        let mut header = OsString::from("-DBENCH_MODULE=\"");
        header.push(source.with_extension("h"));
        header.push("\"");
        compile.extend([
            header,
            self.bench.join("peers/wasm2c_host.c").into(),
            source.into(),
        ]);
        compile.extend(["-lwasm-rt-impl", "-lm", "-o"].map(OsString::from));
        compile.push(image.clone().into());
        self.make(
            workload,
            folder,
            &image,
            &[
                self.wasm(workload, &module, &[]),
                translate.to_vec(),
                compile,
            ],
        )?;
        Ok(Program {
            command: vec![image.clone().into()],
            image,
            code_bytes: None,
        })
    }

    fn wasm(&self, workload: &Workload, to: &Path, extra: &[&str]) -> Vec<OsString> {
        let mut step = [
            "clang",
            "--target=wasm32-wasi",
            "-O2",
            "-w",
            "-Wl,-z,stack-size=1048576",
        ]
        .map(OsString::from)
        .to_vec();
        step.extend(extra.iter().map(OsString::from));
        step.push("-I".into());
        step.push(self.bench.join("peers/wasi").into());
        step.extend(configuration(workload));
        step.extend(workload.sources.iter().map(OsString::from));
        step.extend(["-lm".into(), "-o".into(), to.into()]);
        step
    }

    /// Runs the steps, unless the same steps have made this file from files that are
    /// no younger: the stamp beside it tells.
    fn make(
        &self,
        workload: &Workload,
        folder: &Path,
        result: &Path,
        steps: &[Vec<OsString>],
    ) -> Result<()> {
        let stamp = folder.join("stamp");
        let wanted = self.stamp(workload, steps)?;
        if result.is_file() && fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
            return Ok(());
        }
        let _ = fs::remove_file(&stamp);
        for step in steps {
            run(step)?;
        }
        fs::write(&stamp, wanted).with_context(|| format!("writing {}", stamp.display()))
    }

    fn stamp(&self, workload: &Workload, steps: &[Vec<OsString>]) -> Result<String> {
        let mut stamp = String::new();
        for step in steps {
            writeln!(stamp, "{step:?}")?;
        }
        let own = steps
            .iter()
            .map(|step| PathBuf::from(&step[0]))
            .filter(|program| program.is_absolute());
        let shared = [
            "workloads/bench.h",
            "peers/wasm2c_host.c",
            "peers/wasi/setjmp.h",
        ]
        .map(|file| self.bench.join(file));
        for file in workload.sources.iter().chain(&shared).cloned().chain(own) {
            let changed = fs::metadata(&file)
                .and_then(|data| data.modified())
                .unwrap_or(SystemTime::UNIX_EPOCH);
            writeln!(stamp, "{} {:?}", file.display(), changed)?;
        }
        Ok(stamp)
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Definitions and include folders, the same for every compiler.
fn configuration(workload: &Workload) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = workload
        .define
        .iter()
        .map(|define| format!("-D{define}").into())
        .collect();
    for folder in &workload.include {
        arguments.extend(["-I".into(), folder.into()]);
    }
    if let Some(header) = &workload.header {
        arguments.extend(["-include".into(), header.into()]);
    }
    arguments
}

/// Runs one step; its error carries the end of what it said.
pub(crate) fn run(step: &[OsString]) -> Result<()> {
    let out = Command::new(&step[0])
        .args(&step[1..])
        .output()
        .with_context(|| format!("starting {:?}", step[0]))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(6)
            .collect();
        bail!(
            "{}: {}\n{}",
            Path::new(&step[0]).display(),
            out.status,
            lines.join("\n")
        );
    }
    Ok(())
}
