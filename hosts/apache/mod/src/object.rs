//! Kinds of objects of the host's that a module passes, by their letters in `httpd.txt` and `callbacks.txt`.

/// Who may have APR or a library work with an object at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One thread: APR does not lock it.
    One,
    /// One thread if it has a buffer that APR does not lock; else any, but no other one while it is closed.
    Buffered,
    /// Several threads: it has a lock, the kernel locks it, or it is only read once it is made. No thread ends it.
    Many,
    /// Several threads, but no other one while it is closed.
    Closed,
}

/// How long an object is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// As long as the memory of its pool.
    Stays,
    /// What it leads to goes in front of that, by a cleanup of its pool. Cleanups of modules may run behind it.
    Ends,
}

/// Each row is a kind: its letter, who may work with it, how long it is good, and what messages call it. A kind without one of these is no Rust.
/// Rows without a letter are the wall's own: no file can name them.
macro_rules! kinds {
    ($($kind:ident $(= $letter:literal)?, $sharing:ident, $life:ident, $name:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($kind),* }

        impl Kind {
            /// The kind of a letter. A letter that two rows have is refused by the compiler.
            #[deny(unreachable_patterns)]
            pub(crate) const fn of(letter: u8) -> Option<Kind> {
                match letter {
                    $($($letter => Some(Kind::$kind),)?)*
                    _ => None,
                }
            }

            #[inline]
            pub(crate) const fn sharing(self) -> Sharing {
                match self {
                    $(Kind::$kind => Sharing::$sharing,)*
                }
            }

            #[inline]
            pub(crate) const fn life(self) -> Life {
                match self {
                    $(Kind::$kind => Life::$life,)*
                }
            }

            /// What messages call it.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Kind::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    Pool = b'p', Many, Stays, "pool";
    Request = b'r', Many, Stays, "request";
    Connection = b'c', One, Stays, "connection";
    Server = b's', Many, Stays, "server";
    Table = b't', One, Stays, "table";
    Hash = b'g', One, Stays, "hash";
    ReadHash = b'G', One, Stays, "hash";
    Expression = b'e', Many, Stays, "expression";
    Regex = b'x', Many, Ends, "regular expression";
    Pattern = b'T', Many, Stays, "pattern";
    Replacement = b'3', One, Ends, "regular expression with a replacement";
    Filter = b'f', Many, Stays, "filter";
    AnyFilter = b'F', Many, Stays, "filter";
    RemovableFilter = b'D', Many, Stays, "filter";
    FilterRecord = b'R', Many, Stays, "filter record";
    InputRecord = b'q', Many, Stays, "record of an input filter";
    Brigade = b'b', One, Stays, "brigade";
    Bucket = b'k', One, Stays, "bucket";
    Allocator = b'A', One, Ends, "allocator of buckets";
    File = b'i', Buffered, Stays, "file";
    Folder = b'd', One, Ends, "folder";
    Mapping = b'Z', Many, Ends, "mapped file";
    Stream = b'9', One, Stays, "stream of the C library";
    ConfigFile = b'C', One, Stays, "file of configuration";
    OwnLines = b'(', One, Stays, "file of configuration of the module's own";
    CoreLines = b'0', One, Stays, "file of configuration of the core's";
    Vector = b'v', Many, Stays, "vector of configurations";
    Lock = b'm', Many, Ends, "lock";
    GlobalLock = b'M', Many, Ends, "lock";
    Address = b'a', Many, Stays, "address";
    Network = b'n', Many, Stays, "network";
    Socket = b'S', Closed, Stays, "socket";
    Pollset = b'u', One, Ends, "set of descriptors";
    Translation = b'j', One, Ends, "translation of characters";
    Dbm = b'J', One, Ends, "file of keys and values";
    DbDriver = b'V', Many, Stays, "driver of databases";
    DbHandle = b'H', One, Ends, "connection to a database";
    Statement = b'Q', One, Ends, "prepared statement";
    Results = b'O', One, Ends, "result of a database";
    DbRow = b'W', One, Ends, "row of a database";
    List = b'L', Many, Ends, "list of resources";
    ProcessAttributes = b'N', One, Stays, "description of a process";
    Segment = b'h', Closed, Ends, "segment of shared memory";
    RedisClient = b'1', Many, Ends, "store";
    RedisServer = b'2', Many, Ends, "server of a store";
    MemcacheServer = b'4', Many, Ends, "server of a store";
    MemcacheClient = b'5', Many, Ends, "store";
    Cryptography = b'U', Many, Ends, "driver of ciphers";
    CryptoDriver = b'Y', Many, Stays, "driver of ciphers";
    Key = b'K', One, Ends, "key";
    Cipher = b'E', One, Ends, "cipher";
    Encoder = b'B', One, Ends, "encoder";
    Directory = b'I', Many, Stays, "connection to a directory";
    Element = b'8', Many, Stays, "element of pages";
    Tunnel = b'6', Many, Stays, "tunnel";
    Watchdog = b'7', Many, Stays, "watchdog";
    Score = b'z', Many, Stays, "place in the scoreboard";
    PipedLog = b'P', Many, Stays, "piped log";
    Thing = b'o', Many, Stays, "object of another module";
    Provided = b'y', Many, Ends, "thing of a provider";
    Backend = b'X', Many, Stays, "connection to a backend";
    Text = b'$', Many, Stays, "string";
    Stand, Many, Stays, "filter that stands for another";
    OfRequest, Many, Stays, "pool of a part of a request";
    Going, Many, Stays, "pool that ends";
    Unknown, One, Stays, "object of a kind";
}

#[cfg(test)]
mod tests {
    use super::{Kind, Life, Sharing};

    /// Words whose first letter says something else than a kind.
    fn is_other(word: &str) -> bool {
        let number =
            |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "*@'!\"".contains(c));
        [
            "cmd", "ctx", "flush", "name", "str", "text", "null", "stopped", "ob", "ow", "lock",
            "declined", "dav",
        ]
        .contains(&word.trim_end_matches('?'))
            || word.starts_with(['.', '$', '"', '&', '!', '^', '<', '-', '#', '@', '%'])
            || matches!(word, "w$" | "r!")
            || word.strip_prefix("copy").is_some_and(number)
            || word.strip_prefix('w').is_some_and(number)
            || word.strip_prefix('\'').is_some_and(is_read)
    }

    /// What is read where it lies: all that `interface.rs` knows of it.
    fn is_read(what: &str) -> bool {
        let what = what.trim_end_matches('?');
        let numbers = |text: &str| text.split('*').all(|number| number.parse::<u64>().is_ok());
        let behind = |sign: char| what.strip_prefix(sign).is_some_and(numbers);
        matches!(what, "" | "[" | "+") || "<-@iu*".chars().any(behind) || numbers(what)
    }

    #[test]
    fn each_letter_of_the_files_is_a_kind() {
        let files = [include_str!("httpd.txt"), include_str!("callbacks.txt")];
        let rows = files.into_iter().flat_map(str::lines);
        let rows = rows.filter(|line| !line.starts_with(['#', '[']));
        let mut letters = 0;
        for line in rows {
            let head = match line.rsplit_once('=') {
                // A callback's answer is a number.
                Some((head, answer)) if answer.trim().len() > 1 && line.contains('>') => head,
                _ => line,
            };
            let words = head.split_ascii_whitespace().skip(1);
            for word in words.filter(|word| *word != "=" && *word != "->" && !is_other(word)) {
                let word = word.trim_start_matches('>').trim_end_matches(['?', '-']);
                let word = word.split_once('+').map_or(word, |(word, _)| word);
                if word.is_empty() || word.parse::<u64>().is_ok_and(|n| n > 9 || n == 0) {
                    continue;
                }
                assert_eq!(word.len(), 1, "{line}");
                assert!(Kind::of(word.as_bytes()[0]).is_some(), "{word} in {line}");
                letters += 1;
            }
        }
        assert!(letters > 500, "{letters}");
    }

    /// Functions whose names say that they end something, and that end nothing that a module passes.
    const END_NOTHING: [&str; 6] = [
        // A brigade stays as long as its pool, and a connection is the core's.
        "apr_brigade_destroy",
        "ap_lingering_close",
        // They take one thing out of another.
        "apr_dbm_delete",
        "apr_redis_delete",
        "apr_memcache_delete",
        "clearerr",
    ];

    #[test]
    fn a_function_that_ends_an_object_says_so() {
        let rows = include_str!("httpd.txt").lines();
        let rows = rows.filter(|line| !line.starts_with(['#', '[']));
        let mut ends = 0;
        for line in rows {
            let mut words = line.split_ascii_whitespace();
            let Some(name) = words.next() else { continue };
            let says = ["close", "free", "delete", "destroy", "release", "_end"];
            let is_end = says.iter().any(|part| name.contains(part));
            let words: Vec<&str> = words.collect();
            if !is_end || name.contains("_hook_") || END_NOTHING.contains(&name) {
                continue;
            }
            // Mediators of their own, and functions of other modules, have tests of theirs.
            let is_own = ["!", "!v", "^"].contains(&words[0]);
            let is_said = words
                .iter()
                .any(|word| word.len() == 2 && word.ends_with('-'));
            let has_object = words.iter().any(|word| {
                word.len() == 1
                    && Kind::of(word.as_bytes()[0]).is_some_and(|kind| kind.life() == Life::Ends)
            });
            assert!(is_own || is_said || !has_object, "{line}");
            ends += u32::from(is_said);
        }
        assert!(ends >= 8, "{ends}");
    }

    #[test]
    fn what_apr_does_not_lock_is_for_one_thread() {
        for letter in *b"tgG" {
            assert_eq!(Kind::of(letter).map(Kind::sharing), Some(Sharing::One));
        }
        assert_eq!(Kind::of(b'i').map(Kind::sharing), Some(Sharing::Buffered));
    }
}
