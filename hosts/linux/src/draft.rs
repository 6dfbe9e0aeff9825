//! The first policy of a module, for a run that learns: its imports as lists, and every kind of objects told and granted.

use std::fmt::Write as _;

/// The kernel's allocators that the wall's library knows (wall/src/allocators.rs): their results are the module's.
const ALLOCATORS: [&str; 25] = [
    "__kmalloc",
    "__kmalloc_node",
    "kmalloc_trace",
    "kmalloc_node_trace",
    "kmalloc_large",
    "kmem_cache_alloc",
    "kmem_cache_alloc_lru",
    "kmem_cache_alloc_node",
    "kvmalloc_node",
    "kmemdup",
    "kstrdup",
    "kstrndup",
    "krealloc",
    "__get_free_pages",
    "get_zeroed_page",
    "vmalloc",
    "vzalloc",
    "match_strdup",
    "gf128mul_init_4k_lle",
    "kfree",
    "kvfree",
    "kfree_sensitive",
    "vfree",
    "kmem_cache_free",
    "free_pages",
];

/// A policy of a module with these imports, by its name.
#[must_use]
pub fn draft(module: &str, imports: &[String]) -> String {
    let mut imports: Vec<&str> = imports.iter().map(String::as_str).collect();
    imports.sort_unstable();
    let of = |name: &&&str| ALLOCATORS.contains(*name);
    let allocators: Vec<&str> = imports.iter().filter(of).copied().collect();
    let is_log = |name: &&str| *name == "_printk";
    let others = imports.iter().filter(|name| !of(name) && !is_log(name));
    let mut text = format!(
        "# {module}: what it is, in a sentence.\nstays-mapped = true\n# What a call returns that was ended.\nerror = -5\n"
    );
    if imports.iter().any(is_log) {
        text.push_str("allow = [\"@log\"]\n");
    }
    text.push_str(
        "\n[limits]\nstack = \"64 KiB\"\n# Of one call.\ntime = \"10 s\"\n\n[group]\n\
         # The module is NOT confined with this line: the kernel's log tells what to write into `reads` and `writes`.\n\
         learn = []\nreads = []\nwrites = []\nrecovers = [\"memory\"]\n",
    );
    // Writing to a string cannot fail.
    let _ = writeln!(text, "allocates = {allocators:?}");
    text.push_str("# Arguments are looked at by their types alone. Those that take sizes want a [call.NAME] each.\ntrusts = [\n");
    for name in others {
        let _ = writeln!(text, "    \"{name}\",");
    }
    text.push_str(
        "]\n\n# What the kernel passes to a function in memory that no kind describes, such as a structure on its stack:\n\
         # [export.NAME]\n# parameters = [\"one\", \"other\"]\n# effects = [\"inout(other, 48)\"]\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion_word_policy::File;

    #[test]
    fn a_draft_is_a_policy_that_learns() {
        let imports = ["mutex_lock", "kfree", "_printk", "iput"].map(str::to_owned);
        let text = draft("bfs", &imports);
        let file = File::parse(&text).expect("a policy");
        let list = |name: &str| -> Vec<String> {
            let found = file.groups.get(name).into_iter().flatten();
            found.cloned().collect()
        };
        assert!(file.groups.contains_key("learn"));
        assert_eq!(list("allocates"), ["kfree"]);
        assert_eq!(list("trusts"), ["iput", "mutex_lock"]);
        assert!(text.contains("@log"), "{text}");
    }
}
