//! Modules that hand the kernel what they have forged: each is stopped at that call, and the variable that it aims at is as it was.
//!
//! One boot has many attacks. A lookup of a name makes ext2 do one of them. It is ended, loaded again, and mounted again for the next.

use crate::{expect, file_system_work, library};
use mullion_linux::{Instead, Machine, Protection, Work};
use std::fs;
use std::path::Path;

/// What is looked up, what ext2 is stopped with, and what it does.
struct Attack {
    name: String,
    caught: String,
    harm: String,
}

fn attacks() -> Vec<Attack> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parts/attacks.txt");
    let text = fs::read_to_string(file).expect("attacks");
    let mut all: Vec<Attack> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix('\t'), line.split_once(": ")) {
            (Some(harm), _) => {
                let last = all.last_mut().expect("a name before it");
                last.harm.push_str(harm);
                last.harm.push('\n');
            }
            (None, Some((name, caught))) => all.push(Attack {
                name: name.to_owned(),
                caught: caught.to_owned(),
                harm: String::new(),
            }),
            (None, None) => assert!(line.is_empty(), "{line}"),
        }
    }
    assert!(all.len() > 15, "{}", all.len());
    all
}

const USES: &str = "#include <linux/fiemap.h>\n#include <linux/find.h>\n#include <linux/fwnode.h>\n#include <linux/fs.h>\n#include <linux/iomap.h>\n\
     #include <linux/mm.h>\n#include <linux/panic.h>\n#include <linux/parser.h>\n#include <linux/pipe_fs_i.h>\n\
     #include <linux/rbtree.h>\n#include <linux/rcuwait.h>\n#include <linux/seq_file.h>\n#include <linux/slab.h>\n#include <linux/uio.h>\n#include <linux/buffer_head.h>\n#include <linux/fileattr.h>\n";

/// ext2 with all of the attacks.
fn source(attacks: &[Attack], from: &str, to: &Path) {
    let text = fs::read_to_string(from).expect("the source");
    let beside = Path::new(from).parent().expect("a folder").display();
    let body = "if (dentry->d_name.len > EXT2_NAME_LEN)";
    assert!(text.contains(body), "{text}");
    let one = |Attack { name, harm, .. }: &Attack| {
        format!("if (!strcmp(dentry->d_name.name, \"{name}\")) {{\n{harm}}}\n")
    };
    let harms: String = attacks.iter().map(one).collect();
    let text = text
        .replacen(body, &format!("{harms}{body}"), 1)
        .replace("#include \"", &format!("#include \"{beside}/"));
    fs::write(to, format!("{USES}{text}")).expect("a file");
}

pub(crate) fn run(machine: &Machine<'_>, folder: &Path) {
    what_is_registered_is_the_kernel_s(machine, &folder.join("registered"));
    what_a_file_system_forges_is_refused(machine, &folder.join("ext2"));
}

/// A module that says of itself what is not so, or changes what it has registered.
struct Registered {
    name: &'static str,
    module: &'static str,
    /// The file of its source, what stands there, and what stands there then.
    file: &'static str,
    from: &'static str,
    to: &'static str,
    /// What the wall says; nothing: the kernel does not notice.
    caught: &'static str,
    /// What is done with it.
    script: &'static str,
}

const REGISTERED: [Registered; 9] = [
    // The kernel takes it out of its list.
    Registered {
        name: "listed",
        module: "md5",
        file: "/crypto/md5.c",
        from: "crypto_unregister_shash(&alg);",
        to: "static long words[2];\nalg.base.cra_list.next = (void *)((char *)&panic_timeout - 8);\n\
             alg.base.cra_list.prev = (void *)words;\ncrypto_unregister_shash(&alg);",
        caught: "",
        script: "rmmod md5\n",
    },
    // The kernel calls it when the next algorithm comes.
    Registered {
        name: "chained",
        module: "crc_t10dif",
        file: "/lib/crc-t10dif.c",
        from: "crypto_register_notifier(&crc_t10dif_nb);",
        to: "crypto_register_notifier(&crc_t10dif_nb);\nstatic struct notifier_block forged;\n\
             forged.notifier_call = (void *)&panic_timeout;\ncrc_t10dif_nb.next = &forged;",
        caught: "",
        script: "rmmod crc_t10dif\n",
    },
    // The same of one of several.
    Registered {
        name: "several",
        module: "tea",
        file: "/crypto/tea.c",
        from: "crypto_unregister_algs(tea_algs, ARRAY_SIZE(tea_algs));",
        to: "static long words[2];\ntea_algs[0].cra_list.next = (void *)((char *)&panic_timeout - 8);\n\
             tea_algs[0].cra_list.prev = (void *)words;\ncrypto_unregister_algs(tea_algs, ARRAY_SIZE(tea_algs));",
        caught: "",
        script: "rmmod tea\n",
    },
    // The word in front of a digest that is being made leads to what the kernel calls next.
    Registered {
        name: "digest",
        module: "md5",
        file: "/crypto/md5.c",
        from: "mctx->byte_count = 0;\n\n\treturn 0;",
        to: "mctx->byte_count = 0;\nstatic struct crypto_shash forged;\nstatic struct shash_alg other;\n\
             other.update = (void *)&panic_timeout;\nforged.base.__crt_alg = &other.base;\n\
             desc->tfm = &forged;\nreturn 0;",
        caught: "",
        script: "hash md5 3\nrmmod md5\n",
    },
    // So do words in front of a cipher's keys.
    Registered {
        name: "cipher",
        module: "tea",
        file: "/crypto/tea.c",
        from: "struct tea_ctx *ctx = crypto_tfm_ctx(tfm);\n\tconst __le32 *key",
        to: "static struct crypto_alg forged;\nforged.cra_cipher.cia_encrypt = (void *)&panic_timeout;\n\
             tfm->__crt_alg = &forged;\nstruct tea_ctx *ctx = crypto_tfm_ctx(tfm);\n\tconst __le32 *key",
        caught: "mullion: tea: Access in tea_setkey",
        script: "",
    },
    // What the kernel makes room for is less than what the function is lent.
    Registered {
        name: "small",
        module: "md5",
        file: "/crypto/md5.c",
        from: ".descsize\t=\tsizeof(struct md5_state),",
        to: ".descsize\t=\t8,",
        caught: "has words that the kernel may not have",
        script: "hash md5 3\n",
    },
    // The kernel adds to it, and has room for less than its own words.
    Registered {
        name: "context",
        module: "md5",
        file: "/crypto/md5.c",
        from: ".cra_module\t =\tTHIS_MODULE,",
        to: ".cra_module\t =\tTHIS_MODULE,\n.cra_ctxsize = -39,",
        caught: "has words that the kernel may not have",
        script: "hash md5 3\n",
    },
    // The function is lent what stands in an argument that the kernel does not pass there.
    Registered {
        name: "place",
        module: "md5",
        file: "/crypto/md5.c",
        from: ".update\t\t=\tmd5_update,",
        to: ".update\t\t=\t(void *)md5_export,\n.init_tfm = (void *)md5_update,",
        caught: "has words that the kernel may not have",
        script: "hash md5 3\n",
    },
    // The kernel reads 256 letters there.
    Registered {
        name: "letters",
        module: "nls_cp437",
        file: "/fs/nls/nls_cp437.c",
        from: ".charset2lower\t= charset2lower,",
        to: ".charset2lower\t= (void *)&panic_timeout,",
        caught: "has words that the kernel may not have",
        script: "",
    },
];

/// The kernel's lists go through copies of its own.
fn what_is_registered_is_the_kernel_s(machine: &Machine<'_>, folder: &Path) {
    let only = std::env::var("ONLY").ok();
    let is_meant = |one: &&Registered| {
        let names = only.as_deref().map(|only| only.split(','));
        names.is_none_or(|mut names| names.any(|name| name == one.name))
    };
    for one in REGISTERED.iter().filter(is_meant) {
        let folder = folder.join(one.name);
        fs::create_dir_all(&folder).expect("a folder");
        let modules = ["cryptomgr", "algif_hash", one.module, "crc32_generic"];
        let script = format!(
            "show /proc/sys/kernel/panic\n{}rest more\nshow /proc/sys/kernel/panic\nshow /proc/sys/kernel/ostype\n",
            one.script
        );
        let work = Work {
            modules: modules.map(str::to_owned).into(),
            script,
            ..Work::default()
        };
        let changed = folder.join("changed.c");
        let mut wild = |source: &str| {
            source.ends_with(one.file).then(|| {
                let text = fs::read_to_string(source).expect("the source");
                assert!(text.contains(one.from), "{text}");
                let text = text.replacen(one.from, one.to, 1);
                fs::write(&changed, format!("#include <linux/panic.h>\n{text}")).expect("a file");
                changed.clone()
            })
        };
        let walled = machine.wall(&work.modules, Protection::ReadWrite, &folder, &mut wild);
        walled.expect("modules");
        let said = machine.boot(&work, Instead::Walled(&folder, &library()));
        let said = said.unwrap_or_else(|error| panic!("{}: {error}", one.name));
        let gone = format!("init: rmmod {}: done", one.module);
        let gone = if one.script.contains("rmmod") {
            gone.as_str()
        } else {
            ""
        };
        let whole = "init: insmod crc32_generic: done";
        expect(&said, &[gone, one.caught, whole, ": Linux", "init: ends"]);
        let same = said.matches("init: show /proc/sys/kernel/panic: -1");
        assert_eq!(same.count(), 2, "{}:\n{said}", one.name);
    }
}

fn what_a_file_system_forges_is_refused(machine: &Machine<'_>, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let disk = folder.join("disk");
    let mut attacks = attacks();
    if let Ok(only) = std::env::var("ONLY") {
        attacks.retain(|one| only.split(',').any(|name| name == one.name));
    }
    let step = |Attack { name, .. }: &Attack| {
        format!(
            "mount ext2 /dev/ubda /mnt\nshow /mnt/{name}\nshow /proc/sys/kernel/panic\nrest more\nrest more\numount /mnt\n"
        )
    };
    let script: String = attacks.iter().map(step).collect();
    let work = Work {
        script,
        ..file_system_work(&disk)
    };
    let changed = folder.join("namei.c");
    let mut wild = |from: &str| {
        from.ends_with("/ext2/namei.c").then(|| {
            source(&attacks, from, &changed);
            changed.clone()
        })
    };
    let walled = machine.wall(&work.modules, Protection::ReadWrite, folder, &mut wild);
    walled.expect("modules");
    let said = machine.boot(&work, Instead::Walled(folder, &library()));
    let said = said.expect("a boot");
    let mut rest = said.as_str();
    for Attack { name, caught, .. } in &attacks {
        let shown = format!("init: show /mnt/{name}: ");
        let end = rest.find(&shown);
        let end = end.unwrap_or_else(|| panic!("no \"{shown}\" in:\n{said}"));
        let (before, behind) = rest.split_at(end);
        assert!(before.contains(caught), "{name}, no \"{caught}\":\n{said}");
        rest = behind;
    }
    let errors = said.matches(": Input/output error").count();
    // What a call has left is found behind it.
    let is_at_once = |one: &&Attack| !one.caught.starts_with("the call has returned");
    let at_once = attacks.iter().filter(is_at_once).count();
    assert_eq!(errors, at_once, "{said}");
    let whole = said
        .matches("init: show /proc/sys/kernel/panic: -1")
        .count();
    assert_eq!(whole, attacks.len(), "{said}");
    expect(&said, &["init: ends"]);
}
