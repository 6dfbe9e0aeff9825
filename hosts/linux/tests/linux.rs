//! Boots the kernel of the cache, plain and with modules behind the wall, and works with them.
//!
//! gcc calls this very program as its assembler and linker, so it has a `main` of its own. The kernel is made by
//! `make linux`: without it this test says so, and `MULLION_REQUIRE_LINUX` makes that a failure.

use mullion_linux::{Boot, Built, Maker, Module, Outcome, Protection, stand, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a RAM disk that compresses needs, besides what these need.
const DISK: [&str; 3] = ["cryptomgr", "lz4", "zram"];
/// Those of them that are walled, with their policies.
const WALLED: [(&str, &str); 2] = [
    (
        "lz4_compress",
        include_str!("../policies/lz4_compress.toml"),
    ),
    (
        "lz4_decompress",
        include_str!("../policies/lz4_decompress.toml"),
    ),
];

/// Sets the disk up, and says whose name the machine has.
const BEGIN: &str = "set /sys/block/zram0/comp_algorithm lz4\nset /sys/block/zram0/disksize 8M\n\
                     show /sys/block/zram0/comp_algorithm\n";
const WORK: &str =
    "fill /dev/zram0 4096 1\ncheck /dev/zram0 4096 1\nshow /sys/block/zram0/mm_stat\n";
/// A page that begins with it is the changed compressor's sign.
const MARK: char = '!';
const END: &str = "show /proc/sys/kernel/ostype\n";

fn main() -> ExitCode {
    if let Some(done) = tool() {
        return done;
    }
    let Some(built) = Built::cached().expect("a cache") else {
        let missing = "User-Mode Linux is not built (make linux)";
        println!("skipped: {missing}");
        assert!(
            std::env::var_os("MULLION_REQUIRE_LINUX").is_none(),
            "{missing}"
        );
        return ExitCode::SUCCESS;
    };
    let place = Place::new(&built);
    place.plain_modules_work();
    place.walled_modules_do_the_same();
    place.a_wild_store_is_refused_and_the_kernel_goes_on();
    println!("the kernel boots, and its walled modules work");
    ExitCode::SUCCESS
}

struct Place<'b> {
    built: &'b Built,
    maker: Maker<'b>,
    all: Vec<Module>,
    scratch: tempfile::TempDir,
}

impl<'b> Place<'b> {
    fn new(built: &'b Built) -> Place<'b> {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let maker = Maker::new(built, &scratch.path().join("made")).expect("a folder");
        let all = maker.modules().expect("kbuild's lists");
        Place {
            built,
            maker,
            all,
            scratch,
        }
    }

    fn module(&self, name: &str) -> &Module {
        let found = self.all.iter().find(|module| module.name == name);
        found.unwrap_or_else(|| panic!("the kernel has no {name}"))
    }

    /// What the disk needs, in an order in which it can be loaded.
    fn disk(&self) -> Vec<&Module> {
        let order = self.maker.in_order(&self.all, &DISK);
        order.expect("kbuild's modules")
    }

    fn script(&self, more: &str) -> String {
        let disk = self.disk();
        let load = disk
            .iter()
            .map(|module| format!("insmod {}\n", module.name));
        load.chain([BEGIN, WORK, more, END].map(str::to_owned))
            .collect()
    }

    fn plain_modules_work(&self) {
        let said = self.boot_with(None, None, "");
        expect_work(&said);
    }

    /// Images, policies and the modules that stand for walled ones, in a folder of this name. `change` is made to the
    /// compressor's source.
    fn walled(&self, folder: &str, change: &dyn Fn(String) -> String) -> PathBuf {
        let folder = self.scratch.path().join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        for (name, policy) in WALLED {
            let module = self.module(name);
            let changed = folder.join(format!("{name}.changed.c"));
            let made = self
                .maker
                .make_with(module, Protection::ReadWrite, &mut |source| {
                    let text = fs::read_to_string(self.built.build_folder().join(source));
                    let text = change(text.expect("the source"));
                    // Headers beside the source are found from there.
                    let from = Path::new(source).parent().expect("a folder").display();
                    let text = text.replace(
                        "#include \"lz4defs.h\"",
                        &format!("#include \"{from}/lz4defs.h\""),
                    );
                    fs::write(&changed, text).expect("a file");
                    Some(changed.clone())
                })
                .expect("tools");
            assert!(
                matches!(made.outcome, Outcome::Verified { .. }),
                "{name}: {:?}",
                made.outcome
            );
            let image = self.maker.place(module, Protection::ReadWrite);
            fs::copy(image, folder.join(format!("{name}.so"))).expect("a copy");
            fs::write(folder.join(format!("{name}.toml")), policy).expect("a file");
            stand(self.built, &self.maker, module, policy, &folder).expect("kbuild");
        }
        folder
    }

    fn boot_walled(&self, folder: &Path, more: &str) -> String {
        let wall = (library(), folder.to_path_buf());
        self.boot_with(Some((folder, "")), Some(wall), more)
    }

    /// With kbuild's modules, but for those that are in a folder, of which one may be named.
    fn boot_with(
        &self,
        ours: Option<(&Path, &str)>,
        wall: Option<(PathBuf, PathBuf)>,
        more: &str,
    ) -> String {
        let files = self.disk().into_iter().map(|module| {
            let name = format!("{}.ko", module.name);
            let ours = ours.filter(|(_, only)| only.is_empty() || *only == name);
            let ours = ours.map(|(folder, _)| folder.join(&name));
            match ours.filter(|file| file.is_file()) {
                Some(file) => (name, file),
                None => (name, self.maker.plain(module)),
            }
        });
        let boot = Boot {
            files: files.collect(),
            script: self.script(more),
            wall,
        };
        boot.run(self.built).expect("a boot")
    }

    fn walled_modules_do_the_same(&self) {
        let folder = self.walled("same", &|text| text);
        let said = self.boot_walled(&folder, "");
        expect_work(&said);
    }

    /// The compressor writes to a variable of the kernel when it is given a page with the mark. Behind the wall the store
    /// is refused, and the kernel and its other modules go on. Without it, the variable has changed.
    fn a_wild_store_is_refused_and_the_kernel_goes_on(&self) {
        let wild = |text: String| {
            let body = "return LZ4_compress_fast(source, dest, inputSize,";
            assert!(text.contains(body) || !text.contains("LZ4_compress_default("));
            let store = format!("if (source[0] == '{MARK}') panic_timeout = 77;\n{body}");
            "#include <linux/panic.h>\n".to_owned() + &text.replacen(body, &store, 1)
        };
        let harm = "mark /dev/zram0 64 1\nshow /proc/sys/kernel/panic\ncheck /dev/zram0 2048 33\n";
        let folder = self.walled("hostile", &wild);
        let said = self.boot_walled(&folder, harm);
        expect_work(&said);
        expect(
            &said,
            &[
                "mullion: lz4_compress: Access in LZ4_compress_default",
                "lz4_compress.changed.c:",
                "init: mark /dev/zram0: 64 KiB, 1 failed, 0 wrong",
                "init: show /proc/sys/kernel/panic: -1",
                // The decompressor has a domain of its own.
                "init: check /dev/zram0: 2048 KiB, 0 failed, 512 wrong",
            ],
        );

        let plain = self.plainly(&folder);
        let said = self.boot_with(Some((&plain, "lz4_compress.ko")), None, harm);
        expect(
            &said,
            &[
                "init: mark /dev/zram0: 64 KiB, 0 failed, 0 wrong",
                "init: show /proc/sys/kernel/panic: 77",
            ],
        );
    }

    /// The changed compressor as an ordinary module.
    fn plainly(&self, folder: &Path) -> PathBuf {
        let plain = folder.join("plain");
        fs::create_dir_all(&plain).expect("a folder");
        let source = folder.join("lz4_compress.changed.c");
        fs::copy(source, plain.join("lz4_compress.c")).expect("a copy");
        fs::write(plain.join("Kbuild"), "obj-m := lz4_compress.o\n").expect("a file");
        let mut make = self.built.kbuild();
        make.arg(format!("M={}", plain.display())).arg("modules");
        let output = make.output().expect("make");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        plain
    }
}

/// What every boot does.
fn expect_work(said: &str) {
    let lines = [
        "init: insmod zram: done",
        "init: show /sys/block/zram0/comp_algorithm: lzo lzo-rle [lz4] ",
        "init: fill /dev/zram0: 4096 KiB, 0 failed, 0 wrong",
        "init: check /dev/zram0: 4096 KiB, 0 failed, 0 wrong",
        "init: show /proc/sys/kernel/ostype: Linux",
        "init: ends",
    ];
    expect(said, &lines);
}

fn expect(said: &str, lines: &[&str]) {
    for line in lines {
        assert!(said.contains(line), "no \"{line}\" in:\n{said}");
    }
}

/// The wall's library, as cargo has built it for this test.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program");
    let folder = program.parent().expect("a folder");
    let name = "libmullion_linux_wall.so";
    let places = [folder.join(name), folder.with_file_name(name)];
    let found = places.into_iter().find(|place| place.is_file());
    found.expect("cargo builds the wall's library with this test")
}
