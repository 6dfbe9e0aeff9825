//! Why a rule is taken, its price, and a type's worst in one sentence.

use mullion_elastic::{BaseLanguage, Elastic, Memory, Rule, Wall};
use mullion_trust::ModuleType;
use mullion_trust::module_type::{Protection, Verification};

/// Which heading a rule stands under, why somebody takes it, and what it costs. `None`: it holds for every type.
pub(super) fn of(rule: Rule) -> Option<(&'static str, &'static str, &'static str)> {
    const LONG: &str = "Ways to run for long";
    const COMPUTE: &str = "Computing";
    const CALLS: &str = "Calls and memory";
    const DATA: &str = "Data";
    const POINTERS: &str = "Pointers";
    const LONG_TEXT: &str = "Text that is not what it seems";
    const HOLES: &str = "Holes in rustc";
    const FREE: &str = "nothing when it runs";
    const LOOPLESS: &str = "nothing when it runs; calls by pointers go as well";
    Some(match rule {
        Rule::Recursion => (
            LONG,
            "its depth, and so its stack, depends on data",
            LOOPLESS,
        ),
        Rule::Loops => (
            LONG,
            "without loops a call ends after as many steps as its text is long",
            "nothing when it runs; recursion, ways back by goto and calls by pointers go as well",
        ),
        Rule::LoopDepth => return None,
        Rule::UnboundedLoops => (
            LONG,
            "each loop then says how often it runs, so each call ends by itself",
            "nothing when it runs; recursion, ways back by goto and calls by pointers go as well",
        ),
        Rule::Goto => (LONG, "it is hard to review", FREE),
        Rule::BackwardGoto => (LONG, "it is a loop that no bound on loops counts", FREE),
        Rule::FloatingPoint => (
            COMPUTE,
            "a host without it need not save its registers, and results do not depend on rounding",
            FREE,
        ),
        Rule::Division => (
            COMPUTE,
            "a division by 0 is a fault that data can cause",
            "nothing when it runs; constant divisors stay",
        ),
        Rule::IndirectCalls => (
            CALLS,
            "which function is called shows only when it runs",
            FREE,
        ),
        Rule::VariadicCalls => (CALLS, "the types of such arguments are not checked", FREE),
        Rule::Allocation => (CALLS, "memory that depends on data can run out", FREE),
        Rule::Statics => (
            CALLS,
            "then no call leaves anything to the next one, and none learns of another's data",
            "nothing when it runs; state is kept by the environment alone",
        ),
        Rule::Unions => (DATA, "one type's bytes can be read as another's", FREE),
        Rule::BitFields => (DATA, "their layout is the compiler's choice", FREE),
        Rule::Volatile => (DATA, "it has no use where no device is", FREE),
        Rule::PointerArithmetic => (POINTERS, "it can leave the object", FREE),
        Rule::UncheckedIndex => (
            POINTERS,
            "it can leave the array",
            "a compare for each index that is not constant",
        ),
        Rule::PointerCasts => (POINTERS, "one type's bytes can be read as another's", FREE),
        Rule::IntegerToPointer => (POINTERS, "any address can be guessed", FREE),
        Rule::PointerToInteger => (POINTERS, "it shows where things lie", FREE),
        Rule::AddressOfLocal => (POINTERS, "it can outlive the variable", FREE),
        Rule::KeptPointers => (
            POINTERS,
            "what the host lent for a call could be used after it",
            FREE,
        ),
        Rule::Panics => (
            COMPUTE,
            "a panic is a fault that data can cause",
            "nothing when it runs; indexes, sums and divisions need other words, and formatting goes",
        ),
        Rule::Closures => (CALLS, "what is called where is harder to review", FREE),
        Rule::OwnMacros => (
            LONG_TEXT,
            "the text that is read is not the one that runs",
            FREE,
        ),
        Rule::Generics => (LONG_TEXT, "one text becomes many functions", FREE),
        Rule::OwnTraits
        | Rule::AssociatedTypes
        | Rule::NamedLifetimes
        | Rule::HigherRanked
        | Rule::TraitObjects
        | Rule::FunctionPointers
        | Rule::Guards
        | Rule::OperandJumps
        | Rule::IndexStatements
        | Rule::RawPointers => (
            HOLES,
            "a known hole in rustc needs it",
            "nothing when it runs; types for untrusted authors bring it",
        ),
        _ => return None,
    })
}

/// What a holder of this type can do at worst, in one sentence.
pub(super) fn worst(found: &ModuleType, elastic: Option<&Elastic>) -> String {
    let limits = &found.limits;
    let time = match limits.time {
        Some(time) => format!(
            "keeps one processor busy for {} in each call",
            milliseconds(time)
        ),
        None => "keeps one processor busy for ever".to_owned(),
    };
    let memory = match (limits.heap, limits.stack) {
        (Some(heap), Some(stack)) => {
            format!(
                "fills {} of heap and {} of stack",
                bytes(heap),
                bytes(stack)
            )
        }
        (Some(heap), None) => format!(
            "fills {} of heap, and stack as the host lets it",
            bytes(heap)
        ),
        (None, _) => "fills as much memory as the host lets it".to_owned(),
    };
    let calls = limits.calls.map_or_else(String::new, |calls| {
        format!(", at most {calls} times in a call")
    });
    let imports = match found.imports.as_slice() {
        [] => "calls nothing of the host".to_owned(),
        imports => format!(
            "calls {}{calls}",
            list(imports.iter().map(|name| format!("`{name}`")))
        ),
    };
    let wall = elastic.map_or(Wall::default(), |elastic| elastic.wall);
    let language = elastic.map(language).unwrap_or_default();
    if wall == Wall::Language {
        let stack = elastic.and_then(|elastic| elastic.stack);
        let stack = stack.map_or_else(|| "much".to_owned(), bytes);
        return format!(
            "At worst, code of the type `{}` answers wrongly, takes {stack} of its host's stack, and {imports}; nothing \
             stands behind its language, so that a hole in rustc is a hole in its host, nobody verifies its machine \
             code, and nothing stops a call{language}.",
            found.id
        );
    }
    let reach = match (wall, found.protection) {
        (Wall::LanguageAndProcess, _) => "it stays in a process of its own",
        (_, Protection::WriteCall) => {
            "it reads all memory of its host's process, writes only within its window"
        }
        (_, _) => "it stays within its window",
    };
    let believed = match found.verification {
        Verification::Required => "",
        Verification::Trusted => " if its compiler is honest, for nobody verifies its machine code",
    };
    format!(
        "At worst, code of the type `{}` answers wrongly, {time}, {memory}, and {imports}; {reach}{believed}{language}.",
        found.id
    )
}

/// What the language takes away, as the end of a sentence.
fn language(elastic: &Elastic) -> String {
    let mut without: Vec<String> = elastic
        .rules()
        .filter(|rule| elastic.memory != Memory::Checked || !of_memory(*rule))
        .map(|rule| rule.what().to_owned())
        .collect();
    if let Some(loops) = elastic.loops {
        without.push(format!("more than {loops} loops"));
    }
    if let Some(depth) = elastic.loop_depth {
        without.push(format!("loops nested deeper than {depth}"));
    }
    if let Some(nests) = elastic.loop_nests {
        without.push(format!("more than {nests} nests of loops"));
    }
    let mut said = String::new();
    if elastic.memory == Memory::Checked {
        said.push_str(match elastic.base {
            BaseLanguage::C => ", where it touches only objects that it names",
            BaseLanguage::Rust => ", where it touches only what safe Rust reaches",
        });
    }
    if let Some(most) = elastic.instructions {
        said.push_str(&format!(", runs at most {most} instructions in a call"));
    }
    if !elastic.handles.is_empty() {
        let handles = elastic.handles.iter().map(|name| format!("`{name}`"));
        said.push_str(&format!(
            ", keeps {} until the host revokes it",
            list(handles).replace(" and ", " or ")
        ));
    }
    if !without.is_empty() {
        said.push_str(", and has no ");
        said.push_str(&list(without).replace(" and ", " or "));
    }
    if !elastic.locked.is_empty() {
        let locked = elastic.locked.iter().map(|name| format!("`{name}`"));
        said.push_str(&format!(
            ", and cannot look at {}",
            list(locked).replace(" and ", " or ")
        ));
    }
    if !elastic.read_only.is_empty() {
        let read = elastic.read_only.iter().map(|name| format!("`{name}`"));
        said.push_str(&format!(
            ", and cannot write {}",
            list(read).replace(" and ", " or ")
        ));
    }
    said
}

/// Rules that `memory = "checked"` says in one go.
fn of_memory(rule: Rule) -> bool {
    of(rule).is_some_and(|(heading, _, _)| heading == "Pointers")
}

fn list(words: impl IntoIterator<Item = String>) -> String {
    let words: Vec<String> = words.into_iter().collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    }
}

fn milliseconds(time: u64) -> String {
    match time {
        time if time % 1000 == 0 => format!("{} s", time / 1000),
        time => format!("{time} ms"),
    }
}

fn bytes(amount: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units
        .into_iter()
        .find(|(shift, _)| amount != 0 && amount.is_multiple_of(1 << shift));
    match unit {
        Some((shift, unit)) => format!("{} {unit}", amount >> shift),
        None => format!("{amount} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Each rule that a type decides about can be chosen on the page. The depth of loops is a number of its own.
    #[test]
    fn every_optional_rule_has_its_words() {
        for rule in Rule::ALL {
            let wanted = rule.is_optional() && *rule != Rule::LoopDepth;
            assert_eq!(of(*rule).is_some(), wanted, "{rule}");
        }
    }

    #[test]
    fn the_worst_of_the_examples() {
        let types = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/elastic/types");
        let worst = |name: &str| {
            let path = Path::new(types).join(name);
            let text = std::fs::read_to_string(&path).expect("text");
            let (found, elastic) = Elastic::parse(&text, &path).expect("a type");
            worst(&found, elastic.as_ref())
        };
        assert_eq!(
            worst("student.toml"),
            "At worst, code of the type `student` answers wrongly, keeps one processor busy for 10 ms in each call, \
             fills 1 MiB of heap and 64 KiB of stack, and calls `__mullion_system`; it stays within its window, where it \
             touches only objects that it names, and has no recursion, loops, goto, goto backwards, floating point, \
             calls by pointers to functions, variables that outlive a call, unions, calls with a variable number of \
             arguments, dynamic memory or division by what is not a constant."
        );
        let staff = worst("system-programmer.toml");
        assert!(
            staff.contains("busy for ever") && staff.contains("as much memory as the host"),
            "{staff}"
        );
        let monitor = worst("monitor.toml");
        assert!(monitor.contains("cannot look at `address_t`"), "{monitor}");
        let rust = worst("monitor-rust.toml");
        assert!(rust.contains("only what safe Rust reaches"), "{rust}");
        let keeper = worst("keeper.toml");
        assert!(
            keeper.contains("runs at most 500 instructions in a call, keeps `flow_ref` until the host revokes it"),
            "{keeper}"
        );
    }

    #[test]
    fn the_language_alone_says_what_a_hole_in_rustc_is() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../hosts/packets/types/monitor-alone.toml"
        );
        let text = std::fs::read_to_string(path).expect("text");
        let (found, elastic) = Elastic::parse(&text, Path::new(path)).expect("a type");
        let worst = worst(&found, elastic.as_ref());
        assert!(
            worst.starts_with(
                "At worst, code of the type `packets-monitor-alone` answers wrongly, takes 1 KiB of its host's stack, and \
                 calls `packets_report`; nothing stands behind its language, so that a hole in rustc is a hole in its host, \
                 nobody verifies its machine code, and nothing stops a call, where it touches only what safe Rust reaches, \
                 runs at most 10000 instructions in a call, and has no "
            ),
            "{worst}"
        );
    }

    #[test]
    fn a_window_that_confines_writes_alone_is_said_to_read_all() {
        let text = "version = 1\nid = \"a\"\nlanguage = \"c\"\nprotection = \"write-call\"\nmechanism = [\"window\"]\n\
                    verification = \"trusted\"\n[elastic]\n";
        let (found, elastic) = Elastic::parse(text, Path::new("a.toml")).expect("a type");
        let worst = worst(&found, elastic.as_ref());
        assert!(
            worst.contains("reads all memory of its host's process"),
            "{worst}"
        );
        assert!(worst.contains("nobody verifies"), "{worst}");
    }
}
