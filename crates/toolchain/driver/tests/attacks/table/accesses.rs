//! Accesses to what was not granted: of every width, at borders, at odd addresses, by odd instructions.

use super::{Attack, Ends, HOST, Harm, With, fault, row};
use mullion_word_abi::{CLOSED_END, CLOSED_FIRST};
use mullion_word_runtime::FaultKind;

pub(super) fn all() -> Vec<Attack> {
    [widths(), borders(), addresses(), places()]
        .into_iter()
        .flatten()
        .collect()
}

/// Accesses of every width to what was not granted.
fn widths() -> Vec<Attack> {
    use Harm::{Changes, Reads, Unseen};
    let at: With = |s| [s.victim(), 2, 0];
    let rows: [(&'static str, &'static str, Harm); 26] = [
        ("a byte is stored", "store_byte", Changes),
        ("two bytes are stored", "store_half", Changes),
        ("a word is stored", "store_word", Changes),
        ("eight bytes are stored", "store_long", Changes),
        ("a float is stored", "store_float", Changes),
        ("a double is stored", "store_double", Changes),
        ("ten bytes of the x87 are stored", "store_x87", Changes),
        ("sixteen bytes are stored", "store_vector", Changes),
        ("a structure is stored", "store_block", Changes),
        ("a byte is loaded", "load_byte", Unseen),
        ("a word is loaded", "load_word", Reads),
        ("eight bytes are loaded", "load_long", Reads),
        ("sixteen bytes are loaded", "load_vector", Reads),
        ("ten bytes of the x87 are loaded", "load_x87", Unseen),
        ("a sum is stored", "add", Changes),
        ("a sum is stored, locked", "locked_add", Changes),
        ("words are exchanged", "exchange", Changes),
        (
            "words are compared and exchanged",
            "compare_exchange",
            Unseen,
        ),
        (
            "sixteen bytes are compared and exchanged",
            "exchange16",
            Reads,
        ),
        ("a bit is set", "set_bit", Changes),
        ("a masked store stores nothing", "masked_store", Unseen),
        (
            "the x87's environment is stored",
            "stores_environment",
            Changes,
        ),
        (
            "the control word of vectors is stored",
            "stores_control",
            Changes,
        ),
        ("a condition is stored", "sets_byte", Changes),
        ("a byte of a vector is stored", "extracts", Changes),
        ("a word is stored past the cache", "lays_past", Changes),
    ];
    let access = |(name, function, harm)| {
        row(
            "memory",
            name,
            function,
            at,
            fault(FaultKind::Access, HOST),
            harm,
        )
    };
    rows.into_iter().map(access).collect()
}

/// What begins or ends in what was lent.
fn borders() -> Vec<Attack> {
    use Harm::{Changes, Reads, Unseen};
    let rows: Vec<(&'static str, &'static str, With, Harm)> = vec![
        (
            "a word that begins two bytes before",
            "store_word",
            |s| [s.lent() - 2, 0, 0],
            Changes,
        ),
        (
            "a word that begins three bytes before",
            "store_word",
            |s| [s.lent() - 3, 0, 0],
            Changes,
        ),
        (
            "a word that ends a byte behind",
            "store_word",
            |s| [s.lent() + 61, 0, 0],
            Changes,
        ),
        (
            "a word that ends two bytes behind",
            "store_word",
            |s| [s.lent() + 62, 0, 0],
            Changes,
        ),
        (
            "eight bytes of which the last four are behind",
            "store_long",
            |s| [s.lent() + 60, 0, 0],
            Changes,
        ),
        (
            "eight bytes of which the last is behind",
            "store_long",
            |s| [s.lent() + 57, 0, 0],
            Changes,
        ),
        (
            "eight bytes of which the first is before",
            "store_long",
            |s| [s.lent() - 1, 0, 0],
            Changes,
        ),
        (
            "sixteen bytes of which the last word is behind",
            "store_vector",
            |s| [s.lent() + 52, 1, 0],
            Changes,
        ),
        (
            "sixteen bytes of which the first is before",
            "store_vector",
            |s| [s.lent() - 1, 1, 0],
            Changes,
        ),
        (
            "ten bytes of which the last two are behind",
            "store_x87",
            |s| [s.lent() + 56, 3, 0],
            Changes,
        ),
        (
            "a structure of which the last word is behind",
            "store_block",
            |s| [s.lent() + 4, 0, 0],
            Changes,
        ),
        (
            "two bytes that straddle the end",
            "store_half",
            |s| [s.lent() + 63, 0, 0],
            Changes,
        ),
        (
            "the byte before",
            "store_byte",
            |s| [s.lent() - 1, 0, 0],
            Changes,
        ),
        (
            "the byte behind",
            "store_byte",
            |s| [s.lent() + 64, 0, 0],
            Changes,
        ),
        (
            "a load that straddles the end",
            "load_word",
            |s| [s.lent() + 62, 0, 0],
            Unseen,
        ),
        (
            "a load of eight bytes that straddles the begin",
            "load_long",
            |s| [s.lent() - 5, 0, 0],
            Reads,
        ),
        (
            "a locked sum that straddles the end",
            "locked_add",
            |s| [s.lent() + 62, 0, 0],
            Unseen,
        ),
        (
            "an exchange of sixteen bytes that begins before",
            "exchange16",
            |s| [s.lent() - 16, 0, 0],
            Reads,
        ),
        (
            "an array that overflows",
            "overflows",
            |s| [s.lent(), 17, 0],
            Changes,
        ),
        (
            "an array that underflows",
            "underflows",
            |s| [s.lent(), -2i64 as u64, 0],
            Changes,
        ),
        (
            "a word in the line of one that is allowed",
            "two_in_a_line",
            |s| [s.lent(), 64, 0],
            Changes,
        ),
        (
            "a word long before one that is allowed",
            "two_in_a_line",
            |s| [s.lent(), s.victim().wrapping_sub(s.lent()), 0],
            Changes,
        ),
        (
            "a string instruction that runs on",
            "string",
            |s| [s.lent() + 32, 33, 0],
            Changes,
        ),
        (
            "a string instruction that copies a secret",
            "string_copy",
            |s| [s.victim(), 8, 0],
            Reads,
        ),
        ("memset runs on", "clears", |s| [s.lent(), 65, 0], Changes),
        (
            "memcpy runs on",
            "copies",
            |s| [s.lent() + 8, s.lent(), 60],
            Changes,
        ),
        (
            "memcpy reads a secret",
            "copies",
            |s| [s.lent(), s.victim(), 16],
            Unseen,
        ),
        (
            "memmove begins before",
            "moves",
            |s| [s.lent() - 8, s.lent(), 32],
            Changes,
        ),
        (
            "memcmp tells a secret",
            "compares",
            |s| [s.lent(), s.victim(), 16],
            Unseen,
        ),
        (
            "strlen tells a secret",
            "length",
            |s| [s.victim(), 0, 0],
            Unseen,
        ),
    ];
    let access = |(name, function, with, harm)| {
        row(
            "memory",
            name,
            function,
            with,
            fault(FaultKind::Access, HOST),
            harm,
        )
    };
    rows.into_iter().map(access).collect()
}

/// Sums that wrap, and addresses that no memory has.
fn addresses() -> Vec<Attack> {
    use FaultKind::{Access, NoMapping};
    use Harm::{Changes, Dies, Reads, Unseen};
    let rows: Vec<(&'static str, &'static str, With, Ends, Harm)> = vec![
        (
            "an index below zero",
            "indexed",
            |s| [s.lent(), -1i64 as u64, 0],
            fault(Access, HOST),
            Changes,
        ),
        (
            "an index that leads far away",
            "indexed",
            |s| {
                [
                    s.lent(),
                    (s.victim().wrapping_sub(s.lent()) as i64 >> 2) as u64,
                    0,
                ]
            },
            fault(Access, HOST),
            Changes,
        ),
        (
            "an index whose product wraps",
            "indexed",
            |s| [s.victim() + 4, (1 << 62) - 1, 0],
            fault(Access, HOST),
            Changes,
        ),
        (
            "an index whose product wraps twice",
            "indexed_long",
            |s| [s.victim(), 1 << 61, 0],
            fault(Access, HOST),
            Changes,
        ),
        (
            "an index of 32 bits below zero",
            "indexed_short_index",
            |s| [s.lent(), 0xffff_fffe, 0],
            fault(Access, HOST),
            Changes,
        ),
        (
            "a load by an index that wraps",
            "indexed_load",
            |s| [s.victim(), 1 << 62, 0],
            fault(Access, HOST),
            Reads,
        ),
        (
            "a base that is no address, and an index that makes it one",
            "indexed",
            |s| [s.victim() | 1 << 63, 1 << 61, 0],
            fault(Access, HOST),
            Changes,
        ),
        (
            "a null pointer",
            "store_word",
            |_| [0, 0, 0],
            fault(Access, ""),
            Dies,
        ),
        (
            "a low address",
            "store_word",
            |_| [0x10, 0, 0],
            fault(Access, ""),
            Dies,
        ),
        (
            "the highest address of all",
            "store_byte",
            |_| [u64::MAX, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "a word that wraps to zero",
            "store_long",
            |_| [u64::MAX - 3, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "the kernel's memory",
            "load_word",
            |_| [0xffff_8000_0000_0000, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "the first address that is not canonical",
            "store_word",
            |_| [1 << 47, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "an address with its sign turned",
            "store_word",
            |s| [s.lent() | 1 << 63, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "64 bytes at an address with its sign turned",
            "store_block",
            |s| [s.lent() | 1 << 63, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "64 bytes at an address whose line wraps",
            "store_block",
            |s| [s.lent() | 1 << 62, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "64 bytes from the highest addresses on to the lowest",
            "store_block",
            |_| [u64::MAX - 31, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "an address whose word wraps in the shadow",
            "store_word",
            |s| [s.lent() | 1 << 62, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "an address with a bit above 47",
            "store_word",
            |s| [s.lent() | 1 << 48, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "the page of old system calls",
            "store_word",
            |_| [0xffff_ffff_ff60_0000, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "the addresses without a shadow",
            "store_word",
            |_| [7 << 30, 0, 0],
            Ends::Fault(Access, ""),
            Unseen,
        ),
        (
            "the addresses without a shadow are read",
            "load_word",
            |_| [7 << 30, 0, 0],
            Ends::Fault(Access, ""),
            Unseen,
        ),
        (
            "the first of them",
            "store_long",
            |_| [CLOSED_FIRST, 0, 0],
            Ends::Fault(Access, ""),
            Unseen,
        ),
        (
            "the last of them",
            "store_byte",
            |_| [CLOSED_END - 1, 0, 0],
            Ends::Fault(Access, ""),
            Unseen,
        ),
        (
            "64 bytes across their beginning",
            "store_block",
            |_| [CLOSED_FIRST - 32, 0, 0],
            Ends::Fault(Access, ""),
            Unseen,
        ),
        (
            "64 bytes across their end",
            "store_block",
            |_| [CLOSED_END - 32, 0, 0],
            Ends::Fault(Access, ""),
            Unseen,
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, function, with, ends, harm)| row("memory", name, function, with, ends, harm))
        .collect()
}

/// Memory of the wall, of the module's own that is constant, and of others.
fn places() -> Vec<Attack> {
    use FaultKind::Access;
    let own = "the module's own";
    let rows: Vec<(&'static str, &'static str, With, &'static str)> = vec![
        (
            "its own number into the shadow of a victim",
            "store_half",
            |s| [s.shadow(s.victim()), 0, 0],
            "",
        ),
        (
            "the shadow of what was lent",
            "store_half",
            |s| [s.shadow(s.lent()), 0, 0],
            "",
        ),
        (
            "its own number into the line of a victim",
            "store_half",
            |s| [s.line(s.victim()), 0, 0],
            "",
        ),
        (
            "the lines of what was lent, and of what is around it",
            "store_block",
            |s| [s.line(s.lent()) - 32, 0, 0],
            "",
        ),
        (
            "a right into its map",
            "store_byte",
            |s| [s.map(1), 0, 0],
            "",
        ),
        ("its map is read", "load_byte", |s| [s.map(1), 0, 0], ""),
        (
            "the shadow of the shadow",
            "store_half",
            |s| [s.shadow(s.shadow(s.victim())), 0, 0],
            "",
        ),
        (
            "the slot of its gates",
            "store_long",
            |s| [s.slot(), 0, 0],
            own,
        ),
        (
            "the code behind that slot",
            "store_long",
            |s| [s.thunk(), 0, 0],
            HOST,
        ),
        (
            "what gates know of it",
            "store_long",
            |s| [s.inner(), 0, 0],
            HOST,
        ),
        ("its own code", "store_word", |s| [s.text(), 0, 0], own),
        (
            "the control stack is written",
            "store_long",
            |s| [s.control(), 0, 0],
            HOST,
        ),
        (
            "the control stack is read",
            "load_long",
            |s| [s.control(), 0, 0],
            HOST,
        ),
        (
            "the host's stack",
            "store_long",
            |s| [std::ptr::from_ref(s) as u64 & !7, 0, 0],
            HOST,
        ),
        (
            "thread-locals of the host",
            "store_word",
            |_| {
                // SAFETY: it only tells an address.
                [unsafe { libc::__errno_location() } as u64, 0, 0]
            },
            HOST,
        ),
        (
            "data of the C library",
            "store_long",
            |_| [environment(), 0, 0],
            HOST,
        ),
        (
            "code of the host",
            "load_word",
            |_| [crate::scene::never_offered as *const () as u64, 0, 0],
            HOST,
        ),
        (
            "another module's data is written",
            "store_long",
            |s| [s.others_data(), 0, 0],
            "memory of control",
        ),
        (
            "another module's data is read",
            "load_long",
            |s| [s.others_data(), 0, 0],
            "memory of control",
        ),
        (
            "another module's stack",
            "store_long",
            |s| [s.others_stack(), 0, 0],
            HOST,
        ),
        (
            "another module's code",
            "load_word",
            |s| [s.others_body(), 0, 0],
            "memory of control",
        ),
        (
            "another module's gate",
            "store_word",
            |s| [s.others_gate(), 0, 0],
            "memory of control",
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, function, with, object)| {
        row(
            "memory",
            name,
            function,
            with,
            fault(Access, object),
            Harm::Unseen,
        )
    })
    .collect()
}

fn environment() -> u64 {
    unsafe extern "C" {
        static environ: *const u8;
    }
    &raw const environ as u64
}
