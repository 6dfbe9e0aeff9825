//! What each attack is given, and how it ends.

use crate::scene::{Scene, hurried, policy};
use mullion_word_runtime::{FaultKind, Policy};

/// How a call ends behind the wall.
pub enum Ends {
    /// By a fault of this kind, about this object.
    Fault(FaultKind, &'static str),
    /// With this value, and no harm.
    Answers(u64),
}

/// What it does without a wall.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// Memory of the host is changed.
    Changes,
    /// The answer has a secret in it.
    Reads,
    /// It succeeds in what it must not do.
    Does,
    /// The process dies.
    Dies,
    /// It cannot be shown cheaply, or needs the wall to be an attack.
    Unseen,
}

pub struct Attack {
    pub name: &'static str,
    pub file: &'static str,
    pub function: &'static str,
    pub with: fn(&Scene<'_>) -> [u64; 3],
    pub policy: fn() -> Policy,
    pub ends: Ends,
    pub harm: Harm,
}

type With = fn(&Scene<'_>) -> [u64; 3];

const HOST: &str = "memory of the host";

const fn row(
    file: &'static str,
    name: &'static str,
    function: &'static str,
    with: With,
    ends: Ends,
    harm: Harm,
) -> Attack {
    Attack {
        name,
        file,
        function,
        with,
        policy,
        ends,
        harm,
    }
}

const fn fault(kind: FaultKind, object: &'static str) -> Ends {
    Ends::Fault(kind, object)
}

pub fn attacks() -> Vec<Attack> {
    let mut all = Vec::new();
    all.extend(widths());
    all.extend(borders());
    all.extend(addresses());
    all.extend(places());
    all.extend(targets());
    all.extend(ends_of_calls());
    all.extend(deputies());
    all.extend(blocks());
    all
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
            own,
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

/// Pointers that are no functions, or nobody's business.
fn targets() -> Vec<Attack> {
    use FaultKind::{Call, Label, NoMapping};
    use Harm::{Dies, Does, Unseen};
    let secret: fn() -> u64 = || crate::scene::never_offered as *const () as u64;
    let _ = secret;
    let rows: Vec<(&'static str, &'static str, With, Ends, Harm)> = vec![
        (
            "a function of the host that is not offered",
            "calls",
            |_| [crate::scene::never_offered as *const () as u64, 0, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "the same as the last thing",
            "jumps",
            |_| [crate::scene::never_offered as *const () as u64, 0, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "a function of the C library",
            "calls",
            |_| [libc::getpid as *const () as u64, 0, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "the middle of a function that is offered",
            "calls",
            |_| [crate::scene::fill as *const () as u64 + 1, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "a null pointer is called",
            "calls",
            |_| [0, 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "a low address is called",
            "calls",
            |_| [16, 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "an address that is not canonical is called",
            "calls",
            |_| [1 << 62, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "the kernel is called",
            "calls",
            |_| [0xffff_8000_0000_0000, 0, 0],
            fault(NoMapping, ""),
            Dies,
        ),
        (
            "data of the host is called",
            "calls",
            |s| [s.victim(), 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "its own data is called",
            "calls_data",
            |s| [0, s.victim(), 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "a forged gate",
            "forges_a_gate",
            |_| [0, 0, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "behind its own gate's first byte",
            "calls_own_middle",
            |_| [4, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "its own body without the gate",
            "calls_own_middle",
            |_| [32, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the code behind a slot is called",
            "calls",
            |s| [s.thunk(), 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "another module's gate",
            "calls",
            |s| [s.others_gate(), 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the body behind another module's gate",
            "calls",
            |s| [s.others_body(), 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the second byte of another module's gate",
            "calls",
            |s| [s.others_gate() + 1, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "the jump of another module's gate",
            "calls",
            |s| [s.others_gate() + 11, 0, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "a jump to its own code without a label",
            "goes_to",
            |s| [s.text() + 64, 3, 0],
            fault(Label, ""),
            Unseen,
        ),
        (
            "a jump to another module's code",
            "goes_to",
            |s| [s.others_body(), 3, 0],
            fault(Call, ""),
            Unseen,
        ),
        (
            "a jump to the host",
            "goes_to",
            |_| [crate::scene::never_offered as *const () as u64, 3, 0],
            fault(Call, ""),
            Does,
        ),
        (
            "a jump to null",
            "goes_to",
            |_| [0, 3, 0],
            fault(Call, ""),
            Dies,
        ),
        (
            "a return address that was overwritten",
            "smashes",
            |s| [5, s.victim(), 0],
            Ends::Answers(1),
            Dies,
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, function, with, ends, harm)| {
        let name = if name == "another module's gate" {
            "another module's gate is called"
        } else {
            name
        };
        row("control", name, function, with, ends, harm)
    })
    .collect()
}

/// Traps, stacks and time.
fn ends_of_calls() -> Vec<Attack> {
    use FaultKind::{Abort, Arithmetic, DataStack, Time, Trap};
    use Harm::{Dies, Unseen};
    let none: With = |_| [0, 0, 0];
    let rows: Vec<(&'static str, &'static str, With, Ends, Harm)> = vec![
        (
            "a division by zero",
            "divides",
            |_| [1, 0, 0],
            fault(Arithmetic, ""),
            Dies,
        ),
        (
            "a division that overflows",
            "divides",
            |_| [1 << 63, u64::MAX, 0],
            fault(Arithmetic, ""),
            Dies,
        ),
        ("an abort", "aborts", none, fault(Abort, ""), Dies),
        (
            "a trap for a debugger",
            "traps",
            none,
            fault(Trap, ""),
            Dies,
        ),
        (
            "a recursion through its own gate",
            "recurses_in_circles",
            none,
            fault(DataStack, ""),
            Dies,
        ),
        (
            "a local array of 7 MiB",
            "takes_room",
            |_| [7 << 20, 0, 0],
            fault(FaultKind::Access, HOST),
            Unseen,
        ),
        (
            "a local array of 1 GiB",
            "takes_room",
            |_| [1 << 30, 0, 0],
            Ends::Answers(1),
            Dies,
        ),
    ];
    let mut all: Vec<Attack> = rows
        .into_iter()
        .map(|(name, function, with, ends, harm)| row("control", name, function, with, ends, harm))
        .collect();
    let endless = row(
        "control",
        "a loop without an end",
        "loops",
        none,
        fault(Time, ""),
        Unseen,
    );
    all.push(Attack {
        policy: hurried,
        ..endless
    });
    all
}

/// What the host is asked to do.
fn deputies() -> Vec<Attack> {
    use FaultKind::Policy;
    use Harm::{Changes, Dies, Does, Reads, Unseen};
    let rows: Vec<(&'static str, &'static str, With, &'static str, Harm)> = vec![
        (
            "the host fills its own memory",
            "fills",
            |s| [s.victim(), 8, 0],
            "fill: argument 0",
            Changes,
        ),
        (
            "the host fills more than was lent",
            "fills",
            |s| [s.lent(), 65, 0],
            "fill: argument 0",
            Changes,
        ),
        (
            "the host fills from before what was lent",
            "fills",
            |s| [s.lent() - 1, 8, 0],
            "fill: argument 0",
            Changes,
        ),
        (
            "the host fills a number of bytes that wraps",
            "fills",
            |s| [s.lent(), u64::MAX, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills up to the end of all addresses",
            "fills",
            |s| [s.lent(), u64::MAX - s.lent() + 1, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills more than the module's data",
            "fills_own",
            |_| [1 << 20, 0, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills what is above the module's stack",
            "fills_stack",
            |_| [0, 16 << 20, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "the host fills the module's code",
            "fills",
            |s| [s.text(), 16, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills the slots",
            "fills",
            |s| [s.slot(), 8, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills the shadow",
            "fills",
            |s| [s.shadow(s.victim()), 2, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills a map",
            "fills",
            |s| [s.map(1), 1, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills the control stack",
            "fills",
            |s| [s.control(), 8, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills another module's data",
            "fills",
            |s| [s.others_data(), 8, 0],
            "fill: argument 0",
            Unseen,
        ),
        (
            "the host fills at null",
            "fills",
            |_| [8, 8, 0],
            "fill: argument 0",
            Dies,
        ),
        (
            "a table whose size overflows",
            "fills_table",
            |s| [s.lent(), 1 << 33, 1 << 33],
            "fill_table: argument 0",
            Unseen,
        ),
        (
            "a table with a row too many",
            "fills_table",
            |s| [s.lent(), 5, 16],
            "fill_table: argument 0",
            Changes,
        ),
        (
            "the host reads a secret",
            "sums",
            |s| [s.victim(), 1, 0],
            "sum: argument 0",
            Unseen,
        ),
        (
            "the host tells how long a secret is",
            "measures",
            |s| [s.victim(), 0, 0],
            "length_of: argument 0",
            Unseen,
        ),
        (
            "the host copies a secret to the module",
            "copies_by_host",
            |s| [s.lent(), s.victim(), 16],
            "copy: argument 1",
            Reads,
        ),
        (
            "the host copies from the module over its own",
            "copies_by_host",
            |s| [s.victim(), s.lent(), 16],
            "copy: argument 0",
            Changes,
        ),
        (
            "the host calls its own function for the module",
            "calls_back",
            |_| [crate::scene::never_offered as *const () as u64, 0, 0],
            "call_back: argument 0",
            Does,
        ),
        (
            "the host calls data for the module",
            "calls_back",
            |s| [s.lent(), 0, 0],
            "call_back: argument 0",
            Dies,
        ),
        (
            "the host calls another module for the module",
            "calls_back",
            |s| [s.others_gate(), 0, 0],
            "call_back: argument 0",
            Unseen,
        ),
        (
            "the host calls behind the module's own gate",
            "calls_back",
            |s| [s.text() + 1, 0, 0],
            "call_back: argument 0",
            Unseen,
        ),
        (
            "the host calls at the fourth byte of a gate",
            "calls_back",
            |s| [s.text() + 4, 0, 0],
            "call_back: argument 0",
            Unseen,
        ),
        (
            "a function that was never offered",
            "not_offered",
            |_| [0, 0, 0],
            "never_offered",
            Does,
        ),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, function, with, object, harm)| {
        row(
            "deputies",
            name,
            function,
            with,
            fault(Policy, object),
            harm,
        )
    })
    .collect()
}

/// Blocks of allocators.
fn blocks() -> Vec<Attack> {
    use FaultKind::{Access, Policy};
    use Harm::{Changes, Dies, Does, Unseen};
    let none: With = |_| [0, 0, 0];
    let rows: Vec<(&'static str, &'static str, With, Ends, Harm)> = vec![
        (
            "memory of the host is freed",
            "frees",
            |s| [s.victim(), 0, 0],
            fault(Policy, "free"),
            Dies,
        ),
        (
            "what was lent is freed",
            "frees",
            |s| [s.lent(), 0, 0],
            fault(Policy, "free"),
            Dies,
        ),
        (
            "the middle of a block is freed",
            "frees_middle",
            |_| [16, 0, 0],
            fault(Policy, "free"),
            Dies,
        ),
        (
            "a block is freed twice",
            "frees_twice",
            none,
            fault(Policy, "free"),
            Dies,
        ),
        (
            "the module's data is freed",
            "frees_own",
            none,
            fault(Policy, "free"),
            Dies,
        ),
        (
            "the module's stack is freed",
            "frees_stack",
            none,
            fault(Policy, "free"),
            Dies,
        ),
        (
            "another allocator's block is freed",
            "frees_foreign",
            none,
            fault(Policy, "another allocator"),
            Dies,
        ),
        (
            "a block is given to another allocator",
            "drops_foreign",
            none,
            fault(Policy, "another allocator"),
            Does,
        ),
        (
            "a block goes back to its pool twice",
            "drops_twice",
            none,
            fault(Policy, "pool_drop"),
            Does,
        ),
        (
            "memory of the host is resized",
            "resizes_foreign",
            |s| [s.victim(), 0, 0],
            fault(Policy, "realloc"),
            Dies,
        ),
        (
            "a block that was moved is freed",
            "resizes_twice",
            none,
            fault(Policy, "free"),
            Unseen,
        ),
        (
            "a freed block is written",
            "writes_freed",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "a freed block is read",
            "reads_freed",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "a block that was moved is written",
            "writes_moved",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "a byte behind a block",
            "writes_beyond_a_block",
            |_| [64, 0, 0],
            fault(Access, HOST),
            Does,
        ),
        (
            "the allocator's words in front of a block",
            "writes_below_a_block",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "an array whose size overflows",
            "wants_too_many",
            none,
            Ends::Answers(0),
            Unseen,
        ),
        (
            "more memory than its limit",
            "wants_too_much",
            |_| [2 << 20, 0, 0],
            Ends::Answers(0),
            Does,
        ),
        (
            "all memory there is",
            "wants_too_much",
            |_| [u64::MAX, 0, 0],
            Ends::Answers(0),
            Unseen,
        ),
        (
            "memory of the host is handed over",
            "hands_over",
            |s| [s.victim(), 16, 0],
            fault(Policy, "keep"),
            Does,
        ),
        (
            "the module's data is handed over",
            "hands_over_own",
            none,
            fault(Policy, "own memory"),
            Does,
        ),
        (
            "a part of a block is handed over",
            "hands_over_a_part",
            none,
            fault(Policy, "one whole block"),
            Does,
        ),
        (
            "more than a block is handed over",
            "hands_over_too_much",
            none,
            fault(Policy, "keep"),
            Does,
        ),
        (
            "what was handed over is written",
            "writes_handed_over",
            none,
            fault(Access, HOST),
            Does,
        ),
        (
            "what was handed over in part is freed",
            "frees_handed_over",
            none,
            fault(Policy, "free"),
            Does,
        ),
    ];
    let _ = Changes;
    let rows = rows.into_iter();
    rows.map(|(name, function, with, ends, harm)| row("deputies", name, function, with, ends, harm))
        .collect()
}
