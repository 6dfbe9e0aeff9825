//! Modules whose faults are tried, and what each does meanwhile.
//!
//! Files in memory (`/dev`) are no matter of any of these modules. They are made first, and looked at twice: before a module that
//! was ended has been loaded again, and at the end.

use crate::images;
use crate::kernel::{Setup, at};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A module and its work.
#[derive(Debug)]
pub struct Subject {
    /// Its name.
    pub module: &'static str,
    /// The functions that get faults: those that the work runs. None: all of the sources.
    pub(crate) within: &'static [&'static str],
    /// What is loaded, in this order.
    loaded: &'static [&'static str],
    /// The form of its disks.
    pub(crate) form: Form,
    /// The disks: the first one is looked at afterwards.
    pub(crate) disks: &'static [&'static str],
    /// In the first program's words.
    pub(crate) script: &'static str,
}

/// How disks are made, and looked at.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// By `mke2fs` and `e2fsck`.
    Ext2,
    /// By `mkfs.minix` and `fsck.minix`.
    Minix,
    /// By `mkfs.bfs`, and by a look at names, inodes and blocks.
    Bfs,
    /// By this program, with such a look.
    SystemV,
    /// By this program, with a look at tables and chains.
    Fat,
    /// By `mkfs.cramfs`, with files that are only read.
    Cramfs,
    /// The same by `mksquashfs`.
    Squashfs,
    /// By this program, with files that are only read: what changes is wrong.
    Read(fn() -> Vec<u8>),
    /// By this program, and nothing here looks at such disks. What was written has to be read behind a second mount.
    Kept(fn() -> Vec<u8>),
}

/// Work of a compressing disk; the algorithm is the only difference.
macro_rules! compressing {
    ($algorithm:literal) => {
        concat!(
            "tree /dev 4\nset /sys/block/zram0/comp_algorithm ",
            $algorithm,
            "\nset /sys/block/zram0/disksize 8M\nfill /dev/zram0 1024 1\ncheck /dev/zram0 1024 1\nlook /dev 4\nrest more\n",
            "set /sys/block/zram0/reset 1\nset /sys/block/zram0/comp_algorithm ",
            $algorithm,
            "\nset /sys/block/zram0/disksize 8M\nfill /dev/zram0 512 7\ncheck /dev/zram0 512 7\nlook /dev 4\n"
        )
    };
}

/// A module, of which a part is loaded as an algorithm that has a name: work without disks.
macro_rules! without_disks {
    ($module:literal, $loaded:expr, $script:expr) => {
        Subject {
            module: $module,
            within: &[],
            loaded: $loaded,
            form: Form::Ext2,
            disks: &[],
            script: $script,
        }
    };
}

/// Digests and checksums from sockets.
macro_rules! hashes {
    ($module:literal, $loaded:literal, $algorithm:literal) => {
        without_disks!(
            $module,
            &["cryptomgr", $loaded, "algif_hash"],
            concat!(
                "tree /dev 4\nhash ",
                $algorithm,
                " 60\nlook /dev 4\nrest more\nhash ",
                $algorithm,
                " 9\nlook /dev 4\n"
            )
        )
    };
}

/// Digests with a key: by tables that another module makes of it.
macro_rules! keyed {
    ($module:literal) => {
        without_disks!(
            $module,
            &["cryptomgr", "ghash_generic", "algif_hash"],
            "tree /dev 4\nhash ghash 60 16\nlook /dev 4\nrest more\nhash ghash 9 16\nlook /dev 4\n"
        )
    };
}

/// A cipher, there and back, with a key of so many bytes.
macro_rules! hides {
    ($module:literal, $loaded:literal, $algorithm:literal, $key:literal) => {
        without_disks!(
            $module,
            &["cryptomgr", "ecb", $loaded, "algif_skcipher"],
            concat!(
                "tree /dev 4\ncipher ecb(",
                $algorithm,
                ") ",
                $key,
                " 60\nlook /dev 4\nrest more\ncipher ecb(",
                $algorithm,
                ") ",
                $key,
                " 9\nlook /dev 4\n"
            )
        )
    };
}

/// A compressing disk.
macro_rules! compresses {
    ($module:literal, $loaded:literal, $algorithm:literal) => {
        without_disks!(
            $module,
            &["cryptomgr", $loaded, "zram"],
            compressing!($algorithm)
        )
    };
}

/// An image is read, and a second one listed: the module, and the name of its file systems.
macro_rules! reads {
    ($module:literal, $kind:literal, $form:expr) => {
        Subject {
            module: $module,
            within: &[],
            loaded: &[$module],
            form: $form,
            disks: TWO,
            script: concat!(
                "tree /dev 4\nmount ",
                $kind,
                " /dev/ubda /mnt\nlist /mnt\nagain /mnt 40\numount /mnt\nlook /dev 4\nrest more\nmount ",
                $kind,
                " /dev/ubdb /mnt\nlist /mnt\numount /mnt\nrmmod ",
                $module,
                "\nlook /dev 4\n"
            ),
        }
    };
}

/// An empty file system is filled, and read behind a second mount; a second one is listed.
macro_rules! fills {
    ($module:literal, $image:expr) => {
        fills!($module, $image, "more /mnt\n")
    };
    ($module:literal, $image:expr, $more:literal) => {
        Subject {
            module: $module,
            within: &[],
            loaded: &[$module],
            form: Form::Kept($image),
            disks: TWO,
            script: concat!(
                "tree /dev 4\nmount ",
                $module,
                " /dev/ubda /mnt\nflat /mnt 16\ntree /mnt 4\nlist /mnt\numount /mnt\nmount ",
                $module,
                " /dev/ubda /mnt\nagain /mnt 16\nlook /mnt 4\n",
                $more,
                "umount /mnt\nlook /dev 4\nrest more\nmount ",
                $module,
                " /dev/ubdb /mnt\nlist /mnt\numount /mnt\nrmmod ",
                $module,
                "\nlook /dev 4\n"
            ),
        }
    };
}

/// The same for FAT, with tables of characters: the module with the fault, the kind, what is loaded, and the mount's option.
macro_rules! fat {
    ($module:literal, $kind:literal, $loaded:expr, $option:literal, $make:literal, $look:literal) => {
        Subject {
            module: $module,
            within: &[],
            loaded: $loaded,
            form: Form::Fat,
            disks: TWO,
            script: concat!(
                "tree /dev 4\nmount ",
                $kind,
                " /dev/ubda /mnt",
                $option,
                "\n",
                $make,
                "more /mnt\nlist /mnt\numount /mnt\nmount ",
                $kind,
                " /dev/ubda /mnt",
                $option,
                "\n",
                $look,
                "umount /mnt\nlook /dev 4\nrest more\nmount ",
                $kind,
                " /dev/ubdb /mnt",
                $option,
                "\nlist /mnt\numount /mnt\nrmmod ",
                $kind,
                "\nlook /dev 4\n"
            ),
        }
    };
}

/// Long names, by tables of characters.
macro_rules! long_names {
    ($module:literal, $loaded:expr, $option:literal) => {
        fat!(
            $module,
            "vfat",
            $loaded,
            $option,
            "tree /mnt 4\n",
            "look /mnt 4\n"
        )
    };
}

/// Short names in one folder.
macro_rules! short_names {
    ($module:literal) => {
        fat!(
            $module,
            "msdos",
            &["nls_cp437", "msdos"],
            "",
            "flat /mnt 24\n",
            "again /mnt 24\n"
        )
    };
}

/// Libraries that an ordinary module calls as it begins, twice.
macro_rules! tries {
    ($module:literal, $loaded:expr) => {
        without_disks!(
            $module,
            $loaded,
            "tree /dev 4\ninsmod mullion_try\nlook /dev 4\nrest more\nrmmod mullion_try\ninsmod mullion_try\nlook /dev 4\n"
        )
    };
}

const CHECKSUMS: &[&str] = &["crc4", "crc7", "crc8", "crc64", "crc_itu_t"];
const BY_ALGORITHMS: &[&str] = &[
    "cryptomgr",
    "crc32c_generic",
    "crct10dif_generic",
    "libcrc32c",
    "crc_t10dif",
];
const LONG: &[&str] = &["nls_cp437", "nls_iso8859_1", "vfat"];
const LONGER: &[&str] = &["nls_cp437", "nls_iso8859_1", "nls_utf8", "vfat"];

const DEFLATE: &str = compressing!("deflate");
const ZSTD: &str = compressing!("zstd");

const TWO: &[&str] = &["disk", "other"];

/// Two thirds of its source are for XDP, which is refused, and for questions that nobody asks here.
const VETH: &[&str] = &[
    "veth_alloc_queues",
    "veth_close",
    "veth_dellink",
    "veth_dev_free",
    "veth_dev_init",
    "veth_disable_gro",
    "veth_forward_skb",
    "veth_free_queues",
    "veth_get_num_queues",
    "veth_get_stats64",
    "veth_init",
    "veth_init_queues",
    "veth_newlink",
    "veth_open",
    "veth_setup",
    "veth_skb_is_eligible_for_gro",
    "veth_stats_rx",
    "veth_validate",
    "veth_xmit",
];

/// All of them.
pub static SUBJECTS: [Subject; 86] = [
    Subject {
        module: "ext2",
        within: &[],
        loaded: &["ext2"],
        form: Form::Ext2,
        disks: TWO,
        script: "tree /dev 4\nmount ext2 /dev/ubda /mnt\ntree /mnt 6\nmore /mnt\numount /mnt\n\
                 mount ext2 /dev/ubda /mnt\nlook /mnt 6\numount /mnt\nlook /dev 4\nrest more\n\
                 mount ext2 /dev/ubdb /mnt\nlist /mnt\numount /mnt\nrmmod ext2\nlook /dev 4\n",
    },
    Subject {
        module: "minix",
        within: &[],
        loaded: &["minix"],
        form: Form::Minix,
        disks: TWO,
        script: "tree /dev 4\nmount minix /dev/ubda /mnt\ntree /mnt 6\nmore /mnt\numount /mnt\n\
                 mount minix /dev/ubda /mnt\nlook /mnt 6\numount /mnt\nlook /dev 4\nrest more\n\
                 mount minix /dev/ubdb /mnt\nlist /mnt\numount /mnt\nrmmod minix\nlook /dev 4\n",
    },
    Subject {
        module: "bfs",
        within: &[],
        loaded: &["bfs"],
        form: Form::Bfs,
        disks: TWO,
        script: "tree /dev 4\nmount bfs /dev/ubda /mnt\nflat /mnt 24\nlist /mnt\numount /mnt\n\
                 mount bfs /dev/ubda /mnt\nagain /mnt 24\numount /mnt\nlook /dev 4\nrest more\n\
                 mount bfs /dev/ubdb /mnt\nlist /mnt\numount /mnt\nrmmod bfs\nlook /dev 4\n",
    },
    Subject {
        module: "md5",
        within: &[],
        loaded: &["cryptomgr", "md5", "algif_hash"],
        form: Form::Ext2,
        disks: &[],
        script: "tree /dev 4\nhash md5 60\nlook /dev 4\nrest more\nhash md5 9\nlook /dev 4\n",
    },
    Subject {
        module: "lz4_compress",
        within: &[],
        loaded: &["cryptomgr", "lz4", "zram"],
        form: Form::Ext2,
        disks: &[],
        script: "tree /dev 4\nset /sys/block/zram0/comp_algorithm lz4\nset /sys/block/zram0/disksize 8M\n\
                 fill /dev/zram0 1024 1\ncheck /dev/zram0 1024 1\nlook /dev 4\nrest more\n\
                 set /sys/block/zram0/reset 1\nset /sys/block/zram0/comp_algorithm lz4\n\
                 set /sys/block/zram0/disksize 8M\nfill /dev/zram0 512 7\ncheck /dev/zram0 512 7\nlook /dev 4\n",
    },
    Subject {
        module: "dummy",
        within: &[],
        loaded: &["dummy"],
        form: Form::Ext2,
        disks: &[],
        script: "tree /dev 4\nnet dummy0 60\nlook /dev 4\nrest more\nnet dummy0 9\nrmmod dummy\nlook /dev 4\n",
    },
    Subject {
        module: "veth",
        within: VETH,
        loaded: &["veth"],
        form: Form::Ext2,
        disks: &[],
        script: "tree /dev 4\npair one 12 2 1\nlook /dev 4\nrest more\npair two 6 1\nrmmod veth\nlook /dev 4\n",
    },
    Subject {
        module: "brd",
        within: &[],
        loaded: &["brd"],
        form: Form::Ext2,
        disks: &[],
        script: "tree /dev 4\nfill /dev/ram0 512 1\ncheck /dev/ram0 512 1\nlook /dev 4\nrest more\nrest more\n\
                 fill /dev/ram1 256 7\ncheck /dev/ram1 256 7\nrmmod brd\nlook /dev 4\n",
    },
    Subject {
        module: "zlib_inflate",
        within: &[],
        loaded: &["cryptomgr", "deflate", "zram"],
        form: Form::Ext2,
        disks: &[],
        script: DEFLATE,
    },
    Subject {
        module: "zlib_deflate",
        within: &[],
        loaded: &["cryptomgr", "deflate", "zram"],
        form: Form::Ext2,
        disks: &[],
        script: DEFLATE,
    },
    Subject {
        module: "zstd_compress",
        within: &[],
        loaded: &["cryptomgr", "zstd", "zram"],
        form: Form::Ext2,
        disks: &[],
        script: ZSTD,
    },
    Subject {
        module: "zstd_decompress",
        within: &[],
        loaded: &["cryptomgr", "zstd", "zram"],
        form: Form::Ext2,
        disks: &[],
        script: ZSTD,
    },
    Subject {
        module: "sysv",
        within: &[],
        loaded: &["sysv"],
        form: Form::SystemV,
        disks: TWO,
        script: "tree /dev 4\nmount sysv /dev/ubda /mnt\nflat /mnt 24\nlist /mnt\numount /mnt\n\
                 mount sysv /dev/ubda /mnt\nagain /mnt 24\numount /mnt\nlook /dev 4\nrest more\n\
                 mount sysv /dev/ubdb /mnt\nlist /mnt\numount /mnt\nrmmod sysv\nlook /dev 4\n",
    },
    reads!("befs", "befs", Form::Read(images::befs)),
    reads!("qnx6", "qnx6", Form::Read(images::qnx6)),
    reads!("ufs", "ufs", Form::Read(images::ufs)),
    reads!("adfs", "adfs", Form::Read(images::adfs)),
    reads!("freevxfs", "vxfs", Form::Read(images::freevxfs)),
    hashes!("md4", "md4", "md4"),
    hashes!("rmd160", "rmd160", "rmd160"),
    hashes!("sha512_generic", "sha512_generic", "sha512"),
    hashes!("sha3_generic", "sha3_generic", "sha3-256"),
    hashes!("sm3", "sm3_generic", "sm3"),
    hashes!("sm3_generic", "sm3_generic", "sm3"),
    hashes!("streebog_generic", "streebog_generic", "streebog256"),
    hashes!("wp512", "wp512", "wp512"),
    hashes!("crc32_generic", "crc32_generic", "crc32"),
    hashes!("crc32c_generic", "crc32c_generic", "crc32c"),
    hashes!("crct10dif_generic", "crct10dif_generic", "crct10dif"),
    hashes!("crct10dif_common", "crct10dif_generic", "crct10dif"),
    hashes!("xxhash_generic", "xxhash_generic", "xxhash64"),
    hashes!("xxhash", "xxhash_generic", "xxhash64"),
    hides!("anubis", "anubis", "anubis", "16"),
    hides!("blowfish_generic", "blowfish_generic", "blowfish", "16"),
    hides!("blowfish_common", "blowfish_generic", "blowfish", "16"),
    hides!("camellia_generic", "camellia_generic", "camellia", "16"),
    hides!("cast5_generic", "cast5_generic", "cast5", "16"),
    hides!("cast6_generic", "cast6_generic", "cast6", "16"),
    hides!("des_generic", "des_generic", "des", "8"),
    hides!("libdes", "des_generic", "des", "8"),
    hides!("serpent_generic", "serpent_generic", "serpent", "16"),
    hides!("tea", "tea", "tea", "16"),
    hides!("twofish_generic", "twofish_generic", "twofish", "16"),
    hides!("twofish_common", "twofish_generic", "twofish", "16"),
    compresses!("lz4", "lz4", "lz4"),
    compresses!("lz4_decompress", "lz4", "lz4"),
    compresses!("lz4hc", "lz4hc", "lz4hc"),
    compresses!("lz4hc_compress", "lz4hc", "lz4hc"),
    compresses!("lzo", "lzo", "lzo"),
    compresses!("lzo_rle", "lzo_rle", "lzo-rle"),
    compresses!("lzo_compress", "lzo", "lzo"),
    compresses!("lzo_decompress", "lzo", "lzo"),
    compresses!("842", "842", "842"),
    compresses!("842_compress", "842", "842"),
    compresses!("842_decompress", "842", "842"),
    compresses!("deflate", "deflate", "deflate"),
    compresses!("zstd", "zstd", "zstd"),
    compresses!("zstd_common", "zstd", "zstd"),
    keyed!("ghash_generic"),
    keyed!("gf128mul"),
    reads!("romfs", "romfs", Form::Read(images::romfs)),
    reads!("cramfs", "cramfs", Form::Cramfs),
    reads!("isofs", "iso9660", Form::Read(images::iso)),
    reads!("squashfs", "squashfs", Form::Squashfs),
    reads!("qnx4", "qnx4", Form::Read(images::qnx4)),
    reads!("efs", "efs", Form::Read(images::efs)),
    fills!("affs", images::affs),
    fills!("omfs", images::omfs),
    fills!("exfat", images::exfat),
    fills!("hpfs", images::hpfs),
    fills!("udf", images::udf),
    // Its files have no holes, and `more` gives up with one of them open.
    fills!("hfs", images::hfs, ""),
    long_names!("fat", LONG, ""),
    long_names!("vfat", LONG, ""),
    long_names!("nls_cp437", LONG, ""),
    long_names!("nls_iso8859_1", LONG, ""),
    long_names!("nls_utf8", LONGER, " iocharset=utf8"),
    short_names!("msdos"),
    tries!("crc4", CHECKSUMS),
    tries!("crc7", CHECKSUMS),
    tries!("crc8", CHECKSUMS),
    tries!("crc64", CHECKSUMS),
    tries!("crc_itu_t", CHECKSUMS),
    tries!("libcrc32c", BY_ALGORITHMS),
    tries!("crc_t10dif", BY_ALGORITHMS),
    tries!("slhc", &["slhc"]),
];

impl Subject {
    /// By its module's name.
    #[must_use]
    pub fn named(module: &str) -> Option<&'static Subject> {
        SUBJECTS.iter().find(|one| one.module == module)
    }

    /// What is loaded.
    pub(crate) fn modules(&self) -> Vec<String> {
        self.loaded.iter().map(|one| (*one).to_owned()).collect()
    }

    /// Whether no result is wrong, and no file differs from what was written. A result that is missing is not wrong.
    pub(crate) fn is_right(&self, said: &str) -> bool {
        let is_known = |line: &str| match line.split_once("mullion: ") {
            // As the ordinary module `mullion_try` says it.
            Some((_, what)) if what.starts_with("serial line:") => what.ends_with(", 0 wrong"),
            Some((_, what)) if what.starts_with("algorithms:") => {
                what.ends_with(": crc32c crc-t10dif")
            }
            Some((_, what)) if what.starts_with("checksums:") => {
                what.ends_with(": crc4 crc7 crc8 crc64 crc-itu-t")
            }
            _ => line.contains(", 0 differ") || !line.contains(" differ"),
        };
        if !said.lines().map(str::trim_end).all(is_known) {
            return false;
        }
        let results = [
            "init: hash ",
            "init: cipher ",
            "init: check ",
            "init: net ",
            "init: pair ",
        ];
        let mut lines = said
            .lines()
            .filter(|line| results.iter().any(|one| line.starts_with(one)));
        lines.all(|line| line.contains(", 0 wrong") || !line.contains(" wrong"))
    }
}

impl Form {
    /// An empty file system of some MiB, or an image with files.
    ///
    /// # Errors
    /// A program is not here, or fails.
    pub fn make(self, disk: &Path) -> Result<(), Setup> {
        match self {
            Form::Ext2 => fresh_disk(disk),
            Form::Minix => fresh(disk, 8, &["mkfs.minix", "-n", "30"]),
            Form::Bfs => fresh(disk, 4, &["mkfs.bfs"]),
            Form::SystemV => fs::write(disk, images::sysv()).map_err(at(disk)),
            Form::Fat => fs::write(disk, images::fat()).map_err(at(disk)),
            Form::Cramfs => from_files(disk, &["mkfs.cramfs"], &[]),
            Form::Squashfs => from_files(disk, &["mksquashfs"], &SQUASHFS),
            Form::Kept(image) | Form::Read(image) => fs::write(disk, image()).map_err(at(disk)),
        }
    }

    pub(crate) fn is_sound(self, disk: &Path) -> Result<bool, Setup> {
        match self {
            Form::Ext2 => is_sound(disk),
            Form::Minix => finds_nothing(disk, &["fsck.minix", "-f"]),
            Form::Bfs => Ok(bfs_is_sound(&fs::read(disk).map_err(at(disk))?)),
            Form::SystemV => Ok(images::sysv_is_sound(&fs::read(disk).map_err(at(disk))?)),
            Form::Fat => Ok(images::fat_is_wrong(&fs::read(disk).map_err(at(disk))?).is_none()),
            Form::Cramfs | Form::Squashfs => {
                let other = disk.with_extension("again");
                self.make(&other)?;
                let read = |disk: &Path| fs::read(disk).map_err(at(disk));
                Ok(read(disk)? == read(&other)?)
            }
            Form::Read(image) => Ok(fs::read(disk).map_err(at(disk))? == image()),
            Form::Kept(_) => Ok(true),
        }
    }
}

/// An empty file system of 8 MiB.
///
/// # Errors
/// `mke2fs` is not here, or fails.
pub fn fresh_disk(disk: &Path) -> Result<(), Setup> {
    fresh(disk, 8, &["mke2fs", "-q", "-F", "-t", "ext2", "-b", "1024"])
}

/// Whether `e2fsck` finds nothing wrong.
///
/// # Errors
/// It is not here.
pub fn is_sound(disk: &Path) -> Result<bool, Setup> {
    finds_nothing(disk, &["e2fsck", "-fn"])
}

fn fresh(disk: &Path, mebibytes: u64, words: &[&str]) -> Result<(), Setup> {
    let file = fs::File::create(disk).map_err(at(disk))?;
    file.set_len(mebibytes << 20).map_err(at(disk))?;
    let mut make = program(words);
    let made = make.arg(disk).stdout(Stdio::null()).status();
    match made.map_err(at(Path::new(words[0])))?.success() {
        true => Ok(()),
        false => Err(Setup::Build(format!("{} fails", words[0]))),
    }
}

/// The same files give the same image.
const SQUASHFS: [&str; 13] = [
    "-noappend",
    "-quiet",
    "-no-progress",
    "-no-xattrs",
    "-all-root",
    "-comp",
    "gzip",
    "-processors",
    "1",
    "-all-time",
    "0",
    "-mkfs-time",
    "0",
];

/// An image of a folder with the files that the first program looks for.
fn from_files(disk: &Path, words: &[&str], options: &[&str]) -> Result<(), Setup> {
    let from = disk.with_extension("files");
    fs::create_dir_all(&from).map_err(at(&from))?;
    for (name, content) in images::files() {
        let file = from.join(name);
        fs::write(&file, content).map_err(at(&file))?;
    }
    let mut make = program(words);
    make.arg(&from).arg(disk).args(options);
    // A time from there and one on the command line exclude each other.
    make.env_remove("SOURCE_DATE_EPOCH");
    let made = make.stdout(Stdio::null()).status();
    match made.map_err(at(Path::new(words[0])))?.success() {
        true => Ok(()),
        false => Err(Setup::Build(format!("{} fails", words[0]))),
    }
}

fn finds_nothing(disk: &Path, words: &[&str]) -> Result<bool, Setup> {
    let mut check = program(words);
    check.arg(disk).stdout(Stdio::null()).stderr(Stdio::null());
    let found = check.status().map_err(at(Path::new(words[0])))?;
    Ok(found.success())
}

/// Users may not have the administrators' programs in their path.
fn program(words: &[&str]) -> Command {
    let own = std::env::var("PATH").unwrap_or_default();
    let mut program = Command::new(words[0]);
    program.args(&words[1..]).stdin(Stdio::null());
    program.env("PATH", format!("{own}:/usr/sbin:/sbin"));
    program
}

/// Whether each name of the only folder leads to an inode, and no two files have a block in common. There is no program for that.
fn bfs_is_sound(disk: &[u8]) -> bool {
    const BLOCK: usize = 512;
    let word = |at: usize| {
        let bytes = disk.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let check = || -> Option<bool> {
        let (first, last) = (word(4)?, word(8)?);
        let inode = |number: usize| {
            let at = BLOCK + number.checked_sub(2)? * 64;
            let own = disk.get(at..at + 2)?;
            let is_it = usize::from(u16::from_le_bytes([own[0], own[1]])) == number;
            (at + 64 <= first && is_it).then_some(at)
        };
        let root = inode(2)?;
        let (from, to) = (word(root + 4)? * BLOCK, word(root + 12)?);
        let mut taken = vec![(word(root + 4)?, word(root + 8)?)];
        let mut seen = std::collections::BTreeSet::new();
        for entry in disk.get(from..=to)?.chunks_exact(16) {
            let number = usize::from(u16::from_le_bytes([entry[0], entry[1]]));
            // `.` and `..` are the folder itself.
            if number == 0 || number == 2 || !seen.insert(number) {
                continue;
            }
            let at = inode(number)?;
            let (start, end, offset) = (word(at + 4)?, word(at + 8)?, word(at + 12)?);
            // A file without blocks begins at 0.
            if start != 0 {
                let is_within = start <= end && end * BLOCK <= last && offset / BLOCK <= end;
                if !is_within || start * BLOCK < first {
                    return Some(false);
                }
                taken.push((start, end));
            }
        }
        taken.sort_unstable();
        Some(taken.windows(2).all(|two| two[0].1 < two[1].0))
    };
    check().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_right_or_wrong() {
        let md5 = Subject::named("md5").expect("a subject");
        let right = "init: hash md5: 60 digests, 0 failed, 0 wrong, the last done\n";
        assert!(md5.is_right(right));
        assert!(md5.is_right(&right.replace("0 failed", "9 failed")));
        assert!(!md5.is_right(&right.replace("0 wrong", "3 wrong")));
        let written = "init: fill /dev/zram0: 64 KiB, 0 failed, 0 wrong, 7 us\n";
        let read = "init: check /dev/zram0: 64 KiB, 0 failed, 1 wrong, 7 us\n";
        assert!(md5.is_right(written));
        assert!(!md5.is_right(&[written, read].concat()));
    }

    #[test]
    fn a_fresh_disk_is_sound_and_a_changed_one_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        for (form, at) in [(Form::Ext2, 2048), (Form::Minix, 2048), (Form::Bfs, 512)] {
            let disk = folder.path().join("disk");
            form.make(&disk).expect("a disk");
            assert!(form.is_sound(&disk).expect("a look"), "{form:?}");
            let mut bytes = fs::read(&disk).expect("the disk");
            bytes[at..at + 64].fill(0xa5);
            fs::write(&disk, bytes).expect("the disk");
            assert!(!form.is_sound(&disk).expect("a look"), "{form:?}");
        }
    }
}
