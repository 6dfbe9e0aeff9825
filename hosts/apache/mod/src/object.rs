//! Kinds of objects of the host's that a module passes, by their letters in `httpd.txt` and `callbacks.txt`.

/// Who may have APR or a library work with an object at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One thread: APR does not lock it.
    One,
    /// One thread if it has a buffer that APR does not lock, and else any.
    Buffered,
    /// Several threads: it has a lock, the kernel locks it, or it is only read once it is made.
    Many,
}

/// Each row is a kind: its letter, who may work with it, and what messages call it. A kind without one of these is no Rust.
/// Rows without a letter are the wall's own: no file can name them.
macro_rules! kinds {
    ($($kind:ident $(= $letter:literal)?, $sharing:ident, $name:literal;)*) => {
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
    Pool = b'p', Many, "pool";
    Request = b'r', Many, "request";
    Connection = b'c', Many, "connection";
    Server = b's', Many, "server";
    Table = b't', One, "table";
    Hash = b'g', One, "hash";
    ReadHash = b'G', One, "hash";
    Expression = b'e', Many, "expression";
    Regex = b'x', Many, "regular expression";
    Pattern = b'T', Many, "pattern";
    Replacement = b'3', Many, "regular expression with a replacement";
    Filter = b'f', Many, "filter";
    AnyFilter = b'F', Many, "filter";
    RemovableFilter = b'D', Many, "filter";
    FilterRecord = b'R', Many, "filter record";
    InputRecord = b'q', Many, "record of an input filter";
    Brigade = b'b', One, "brigade";
    Bucket = b'k', One, "bucket";
    Allocator = b'A', One, "allocator of buckets";
    File = b'i', Buffered, "file";
    Folder = b'd', One, "folder";
    Mapping = b'Z', Many, "mapped file";
    Stream = b'9', Many, "stream of the C library";
    ConfigFile = b'C', One, "file of configuration";
    OwnLines = b'(', One, "file of configuration of the module's own";
    CoreLines = b'0', One, "file of configuration of the core's";
    Vector = b'v', Many, "vector of configurations";
    Lock = b'm', Many, "lock";
    GlobalLock = b'M', Many, "lock";
    Address = b'a', Many, "address";
    Network = b'n', Many, "network";
    Socket = b'S', Many, "socket";
    Pollset = b'u', Many, "set of descriptors";
    Translation = b'j', One, "translation of characters";
    Dbm = b'J', One, "file of keys and values";
    DbDriver = b'V', Many, "driver of databases";
    DbHandle = b'H', One, "connection to a database";
    Statement = b'Q', One, "prepared statement";
    Results = b'O', One, "result of a database";
    DbRow = b'W', One, "row of a database";
    List = b'L', Many, "list of resources";
    ProcessAttributes = b'N', One, "description of a process";
    Segment = b'h', Many, "segment of shared memory";
    RedisClient = b'1', Many, "store";
    RedisServer = b'2', Many, "server of a store";
    MemcacheServer = b'4', Many, "server of a store";
    MemcacheClient = b'5', Many, "store";
    Cryptography = b'U', Many, "driver of ciphers";
    CryptoDriver = b'Y', Many, "driver of ciphers";
    Key = b'K', One, "key";
    Cipher = b'E', One, "cipher";
    Encoder = b'B', One, "encoder";
    Directory = b'I', Many, "connection to a directory";
    Element = b'8', Many, "element of pages";
    Tunnel = b'6', Many, "tunnel";
    Watchdog = b'7', Many, "watchdog";
    Score = b'z', Many, "place in the scoreboard";
    PipedLog = b'P', Many, "piped log";
    Thing = b'o', Many, "object of another module";
    Backend = b'X', Many, "connection to a backend";
    Stand, Many, "filter that stands for another";
    OfRequest, Many, "pool of a part of a request";
    Going, Many, "pool that ends";
    Unknown, One, "object of a kind";
}

#[cfg(test)]
mod tests {
    use super::{Kind, Sharing};

    /// Words whose first letter says something else than a kind.
    fn is_other(word: &str) -> bool {
        let number =
            |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "*@'!".contains(c));
        [
            "cmd", "ctx", "flush", "name", "str", "text", "null", "stopped", "ob",
        ]
        .contains(&word)
            || word.starts_with(['.', '$', '"', '&', '!', '^', '<', '-', '#', '@'])
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
                let word = word.trim_start_matches('>').trim_end_matches('?');
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

    #[test]
    fn what_apr_does_not_lock_is_for_one_thread() {
        for letter in *b"tgG" {
            assert_eq!(Kind::of(letter).map(Kind::sharing), Some(Sharing::One));
        }
        assert_eq!(Kind::of(b'i').map(Kind::sharing), Some(Sharing::Buffered));
    }
}
