//! Elastic languages: what code of a module type may say, as data of the type's file.
//!
//! The table `[elastic]` of a type's file takes constructs away from the mother language that `language` names, or
//! bounds them (the OKE paper, section III-B). `crates/elastic/judge` holds source against it; this crate only knows
//! what can be written down.
//!
//! The loader asks of this table only whether it is there. So this is no part of its decision.
#![forbid(unsafe_code)]

use mullion_decide::document::{self, Document, DocumentError};
use mullion_decide::limits::Limit;
use mullion_decide::module_type::{Language, Protection, Verification, WallKind, is_symbol};
use mullion_decide::{ModuleType, Sha256Digest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Which wall stands around code of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wall {
    /// The language alone: the code runs as the compiler made it, in the host's own memory. No type of C can have this,
    /// since C is no wall, and a type of Rust must have much that others need not.
    Language,
    /// The language, and behind it a window.
    #[default]
    LanguageAndWindow,
    /// The language, and behind it a process of its own.
    LanguageAndProcess,
}

impl Wall {
    /// What may put this wall up.
    #[must_use]
    pub fn mechanism(self) -> WallKind {
        match self {
            Wall::Language => WallKind::Language,
            Wall::LanguageAndWindow => WallKind::Window,
            Wall::LanguageAndProcess => WallKind::Process,
        }
    }
}

/// What is known of the memory that code reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Whatever lies within the wall.
    #[default]
    Wall,
    /// Only the objects that it names: indices are checked, and what makes pointers out of other things is refused.
    Checked,
}

/// The mother language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum BaseLanguage {
    /// ISO C11.
    #[default]
    C,
    /// Rust, edition 2024, without its standard library.
    Rust,
}

/// Which mother languages a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// C alone.
    C,
    /// Rust alone.
    Rust,
    /// Both.
    Both,
}

impl Of {
    /// Whether this language is among them.
    #[must_use]
    pub fn has(self, base: BaseLanguage) -> bool {
        match self {
            Of::C => base == BaseLanguage::C,
            Of::Rust => base == BaseLanguage::Rust,
            Of::Both => true,
        }
    }
}

/// Whether what rustc is known to accept against its own rules is kept from the author.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Authors {
    /// Nobody looks at what they write: the constructs of known holes are forbidden.
    #[default]
    Untrusted,
    /// They do not look for holes in rustc.
    Trusted,
}

macro_rules! rules {
    ($($rule:ident $name:literal $of:ident $optional:literal $what:literal $instead:literal;)*) => {
        /// A rule of elastic languages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Rule {
            $(#[doc = $what] #[serde(rename = $name)] $rule,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &'static [Rule] = &[$(Rule::$rule),*];

            /// Its name in files and refusals.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Rule::$rule => $name,)* }
            }

            /// The languages that have it.
            #[must_use]
            pub fn of(self) -> Of {
                match self { $(Rule::$rule => Of::$of,)* }
            }

            /// Whether a type decides about it. The others hold for every type.
            #[must_use]
            pub fn is_optional(self) -> bool {
                match self { $(Rule::$rule => $optional,)* }
            }

            /// The construct that it is about.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self { $(Rule::$rule => $what,)* }
            }

            /// What to write instead.
            #[must_use]
            pub fn instead(self) -> &'static str {
                match self { $(Rule::$rule => $instead,)* }
            }
        }
    };
}

rules! {
    Recursion "recursion" Both true "recursion" "write a loop, or keep what is pending in an array";
    Loops "loops" Both true "loops" "handle a fixed number of cases one by one, or ask for a type that bounds loops instead";
    UnboundedLoops "unbounded-loops" Both true "loops whose rounds are not counted" "count with constant numbers: `for (int i = 0; i < 10; i++)` where nothing else writes `i`, or `for i in 0..10`";
    LoopDepth "loop-depth" Both true "nested loops" "move the inner loop's work into one pass";
    Goto "goto" C true "goto" "use if, while, break, continue or return";
    BackwardGoto "backward-goto" C true "goto backwards" "use a loop, which the type can count";
    FloatingPoint "floating-point" Both true "floating point" "use integers, scaled if need be";
    IndirectCalls "indirect-calls" Both true "calls by pointers to functions" "call functions by name, chosen by a `switch` or a `match`";
    Statics "statics" Both true "variables that outlive a call" "keep state in what the environment offers; constants can be `static const` (in Rust `const`)";
    Unions "unions" Both true "unions" "use a structure, and shifts to take values apart";
    PointerArithmetic "pointer-arithmetic" C true "arithmetic on pointers" "index an array of known length";
    UncheckedIndex "unchecked-index" C true "an index whose array has no known length" "index an array of known length, alone or as a member of a structure";
    PointerCasts "pointer-casts" C true "pointers taken for another type" "use the pointer's own type";
    IntegerToPointer "integer-to-pointer" C true "pointers made of integers" "keep the pointer itself; 0 alone is the null pointer";
    PointerToInteger "pointer-to-integer" C true "integers made of pointers" "compare pointers with == and !=";
    AddressOfLocal "address-of-local" C true "the address of a local variable" "pass it in a call, and nowhere else";
    KeptPointers "kept-pointers" C true "pointers kept beyond the call" "keep an index or a copy of the data";
    VariadicCalls "variadic-calls" C true "calls with a variable number of arguments" "call a function with a fixed number of parameters";
    Allocation "allocation" Both true "dynamic memory" "use a variable of fixed size";
    Division "division" Both true "division by what is not a constant" "divide by a constant other than 0, or shift";
    BitFields "bit-fields" C true "bit-fields" "use shifts and masks";
    Volatile "volatile" C true "volatile" "leave it out";

    Panics "panics" Rust true "operations that may panic" "use what cannot: `get`, `checked_add`, `wrapping_add`, `if let`";
    OwnTraits "own-traits" Rust true "traits of the program's own" "write functions, or a `match` over an enum";
    AssociatedTypes "associated-types" Rust true "associated types" "name the type itself";
    Generics "generics" Rust true "parameters of types" "write it for the types that are needed";
    NamedLifetimes "named-lifetimes" Rust true "lifetimes with names" "leave the lifetime out, or return an index or a copy";
    HigherRanked "higher-ranked" Rust true "`for<...>`" "leave it out";
    TraitObjects "trait-objects" Rust true "trait objects" "use an enum";
    FunctionPointers "function-pointers" Rust true "pointers to functions" "call functions by name, chosen by a `match`";
    Guards "guards" Rust true "guards of `match`" "write an `if` in the arm";
    OperandJumps "operand-jumps" Rust true "jumps out of an operand" "give the value a name in a `let` of its own: `let x = y?;`";
    IndexStatements "index-statements" Rust true "statements in an index" "give the index a name in a `let` of its own";
    RawPointers "raw-pointers" Rust true "raw pointers" "use a reference or an index";
    Closures "closures" Rust true "closures" "write a function";
    OwnMacros "own-macros" Rust true "macros of the program's own" "write a function";
    Unsafe "unsafe" Rust false "unsafe code" "call a safe function of the environment";
    Async "async" Rust false "functions that can be suspended" "write an ordinary function";
    EscapingMacros "escaping-macros" Rust false "macros that read more than the program" "write the constant into the program";
    Crates "crates" Rust false "names of other crates" "use `core` and what the environment offers";

    InlineAssembly "inline-assembly" Both false "inline assembly" "call a function of the environment";
    ComputedGoto "computed-goto" C false "addresses of labels" "use a switch";
    StatementExpressions "statement-expressions" C false "statements within expressions" "write a static function";
    Attributes "attributes" Both false "attributes" "leave it out: the compiler decides";
    Pragmas "pragmas" C false "pragmas" "leave it out: the compiler's options are the type's";
    TypeOf "typeof" C false "typeof" "name the type";
    Builtins "compiler-builtins" C false "the compiler's own functions" "call a function of the environment";
    VariableArrays "variable-arrays" C false "memory of variable size on the stack" "give the array a constant length";
    Setjmp "setjmp" C false "jumps out of functions" "return a value that says what happened";
    NestedFunctions "nested-functions" C false "functions within functions" "move it out, in front of the function that calls it";
    OldStyle "old-style-functions" C false "functions without a prototype" "write the types of the parameters between the parentheses, or `(void)`";
    Variadic "variadic-functions" C false "functions with a variable number of parameters" "give it a fixed number of parameters";
    ExternalLinkage "external-linkage" Both false "names of other files" "use what the environment offers";
    UnknownName "unknown-name" C false "a name that is not declared" "declare it in front of its use, or look for it in the environment";
    HiddenName "hidden-name" Both false "a name that is private to the environment" "use what the environment offers";
    ReservedName "reserved-name" C false "a name that belongs to the compiler" "choose a name that neither begins with two underscores nor with one and a capital letter";
    Atomics "atomics" C false "atomic types" "leave it out: a call into a domain runs on one thread";
    ThreadLocal "thread-local" C false "thread-local variables" "leave it out, or use `static`";
    Generic "generic-selection" C false "_Generic" "call the function that is meant";
    Alignment "alignment" C false "alignment specifiers" "leave it out";
    Extension "extensions" C false "an extension of the compiler's" "write it in ISO C11";
    Locked "locked" Both false "a locked value" "copy it to where it may go; it cannot be looked at";
    ReadOnly "read-only" Both false "a read-only member" "copy it to a variable of your own";
    Entry "entry-point" Both false "an entry point" "define it with the parameters and the result that the environment declares";
    Stack "stack-bound" Both false "stack beyond the type's bound" "make arrays smaller, or calls less deep";
    Instructions "instruction-bound" Both false "instructions beyond the type's bound" "make loops shorter, or calls fewer";
    Includes "includes" Both false "a file outside the program" "include files from the directories of the program only";
    Bounds "compiler-bounds" Both false "source beyond the compiler's bounds" "make it smaller or less deep";
    Types "types" Both false "types that do not fit" "write what ISO C11, or rustc, allows";
    Syntax "syntax" Both false "what cannot be read" "write it in ISO C11, or in Rust's edition 2024";
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Rules that hold where memory is checked.
const CHECKED: [Rule; 12] = [
    Rule::PointerArithmetic,
    Rule::UncheckedIndex,
    Rule::PointerCasts,
    Rule::IntegerToPointer,
    Rule::PointerToInteger,
    Rule::AddressOfLocal,
    Rule::KeptPointers,
    Rule::Unions,
    Rule::Goto,
    Rule::IndirectCalls,
    Rule::VariadicCalls,
    Rule::Allocation,
];

/// What the known holes in rustc's own rules need, in one form or another: those of its types (rust-lang/rust#25860, #57893,
/// #84366, #100051 and their kin), those of its borrow checker (#160525, #160598, #160599, #161578), and one of LLVM's about
/// addresses (#107975).
const HOLES: [Rule; 10] = [
    Rule::OwnTraits,
    Rule::AssociatedTypes,
    Rule::NamedLifetimes,
    Rule::HigherRanked,
    Rule::TraitObjects,
    Rule::FunctionPointers,
    Rule::Guards,
    Rule::OperandJumps,
    Rule::IndexStatements,
    Rule::RawPointers,
];

/// Text in trusted source in front of a module, and which names of it the module sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Its file.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub digest: Sha256Digest,
    /// The names that the module sees: `function`, `struct tag`, `union tag`, `enum tag`, types, constants, variables.
    pub public: BTreeSet<String>,
}

/// What a type lets its code say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Elastic {
    /// The mother language.
    pub base: BaseLanguage,
    /// Who writes programs of the type; of Rust alone.
    pub authors: Authors,
    /// The wall that the type wants.
    pub wall: Wall,
    /// What is known of memory.
    pub memory: Memory,
    /// The optional rules that the type names.
    pub forbid: BTreeSet<Rule>,
    /// The most loops of a program.
    pub loops: Option<u32>,
    /// The deepest that loops may be nested, within a function and through the functions that it calls.
    pub loop_depth: Option<u32>,
    /// The most loops of a program that no other loop stands around, here or at a call.
    pub loop_nests: Option<u32>,
    /// The most bytes of stack that a call of an entry point takes.
    pub stack: Option<u64>,
    /// Bytes of stack of functions that are not compiled with the module.
    pub known_stack: BTreeMap<String, u64>,
    /// The most instructions that a call of an entry point runs.
    pub instructions: Option<u64>,
    /// Instructions of functions that are not compiled with the module.
    pub known_instructions: BTreeMap<String, u64>,
    /// The functions that the module defines for others to call, declared in the environment.
    pub entries: Vec<String>,
    /// The functions that the image exports; the entry points if nothing is said.
    pub exports: Vec<String>,
    /// The API that the module sees.
    pub environment: Option<Environment>,
    /// A function of the environment that runs before each entry point.
    pub before: Option<String>,
    /// A function of the environment that runs after each entry point.
    pub after: Option<String>,
    /// Members (`struct tag.member`) and types whose values can be copied and not looked at.
    pub locked: BTreeSet<String>,
    /// Members that cannot be written.
    pub read_only: BTreeSet<String>,
    /// Types that stand for something lent by the host beyond a call. They are locked too.
    pub handles: BTreeSet<String>,
}

impl Elastic {
    /// What a module type lets its code say; `None`: whatever the language lets it.
    ///
    /// # Errors
    /// What is wrong in the table, and where.
    pub fn of(module_type: &ModuleType) -> Result<Option<Self>, DocumentError> {
        let Some(table) = &module_type.elastic else {
            return Ok(None);
        };
        let document = Document {
            path: &table.path,
            text: &table.text,
        };
        let file: TypeFile = document::parse(&document)?;
        let span = file.elastic.span();
        let table = file.elastic.into_inner();
        let wall = table.wall.as_ref().map(Spanned::span);
        let elastic = read(&document, span, table, file.language, &file.mechanism)?;
        if elastic.wall == Wall::Language {
            let missing = elastic.missing(file.protection, file.verification);
            if !missing.is_empty() {
                let problem = format!(
                    "nothing stands behind the language alone, and the type lacks {}",
                    missing.join(", ")
                );
                let hint = "docs/elastic.md says why, under \"The language alone\"; or language-and-window";
                return Err(document.error(wall, problem, hint));
            }
        }
        Ok(Some(elastic))
    }

    /// What a type behind the language alone must have, and this one has not.
    fn missing(&self, protection: Protection, verification: Verification) -> Vec<String> {
        let rules = [
            Rule::Unsafe,
            Rule::Panics,
            Rule::Allocation,
            Rule::Recursion,
            Rule::UnboundedLoops,
        ];
        let rules = rules.into_iter().filter(|rule| !self.forbids(*rule));
        let mut missing: Vec<String> = rules.map(|rule| format!("`{rule}` in `forbid`")).collect();
        let others = [
            (
                self.authors == Authors::Untrusted,
                "authors = \"untrusted\"",
            ),
            (self.instructions.is_some(), "`instructions`"),
            (self.stack.is_some(), "`stack`"),
            (protection == Protection::None, "protection = \"none\""),
            (
                verification == Verification::Trusted,
                "verification = \"trusted\"",
            ),
        ];
        let others = others.iter().filter(|(is_there, _)| !is_there);
        missing.extend(others.map(|(_, what)| (*what).to_owned()));
        missing
    }

    /// Reads a module type from the text of its file, and what it lets its code say.
    ///
    /// # Errors
    /// What is wrong in it, and where.
    pub fn parse(text: &str, path: &Path) -> Result<(ModuleType, Option<Self>), DocumentError> {
        let module_type = ModuleType::parse(text, path)?;
        let elastic = Self::of(&module_type)?;
        Ok((module_type, elastic))
    }

    /// Whether code of this type may not break this rule.
    #[must_use]
    pub fn forbids(&self, rule: Rule) -> bool {
        if !rule.of().has(self.base) {
            return false;
        }
        !rule.is_optional()
            || self.forbid.contains(&rule)
            || (self.base == BaseLanguage::Rust && self.forbids_in_rust(rule))
            || (self.base == BaseLanguage::C
                && self.memory == Memory::Checked
                && CHECKED.contains(&rule))
            || (rule == Rule::IndirectCalls
                && (self.forbid.contains(&Rule::Recursion) || self.bounds_loops()))
            || (rule == Rule::IndirectCalls && self.stack.is_some())
            || (rule == Rule::BackwardGoto && self.bounds_loops())
            || (rule == Rule::UnboundedLoops && self.instructions.is_some())
            || (rule == Rule::Recursion && self.ends_by_itself())
    }

    /// What a type of Rust forbids without saying it.
    fn forbids_in_rust(&self, rule: Rule) -> bool {
        // Reading a union is unsafe.
        rule == Rule::Unions
            || (self.authors == Authors::Untrusted && HOLES.contains(&rule))
            || (rule == Rule::Recursion && self.bounds_loops())
            || (rule == Rule::IndirectCalls
                && [Rule::Panics, Rule::Allocation]
                    .iter()
                    .any(|wanted| self.forbid.contains(wanted)))
    }

    /// Whether loops are counted: then each way back in the text, and each call, must be seen.
    fn bounds_loops(&self) -> bool {
        self.forbid.contains(&Rule::Loops)
            || self.loops.is_some()
            || self.loop_depth.is_some()
            || self.loop_nests.is_some()
            || self.ends_by_itself()
    }

    /// Whether every call must end without a limit that stops it.
    fn ends_by_itself(&self) -> bool {
        self.forbid.contains(&Rule::UnboundedLoops) || self.instructions.is_some()
    }

    /// Every optional rule that holds, for records and people.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        let optional = Rule::ALL.iter().copied().filter(|rule| rule.is_optional());
        optional.filter(|rule| self.forbids(*rule))
    }
}

/// The compiler's statement of source that it has judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Judged {
    /// The wall that the type wants around the code.
    pub wall: Wall,
    /// What is known of the memory that the code reaches.
    pub memory: Memory,
    /// The optional rules that the source was held against.
    pub rules: Vec<Rule>,
    /// SHA-256 of the text that was compiled, which the judge has written.
    pub text: String,
    /// SHA-256 of the environment's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Bytes of stack that a call takes at most, where the type bounds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<u64>,
    /// Instructions that a call runs at most, where the type bounds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
}

/// What this crate reads of a type's file; `mullion-decide` has read it before.
#[derive(Deserialize)]
struct TypeFile {
    language: Language,
    protection: Protection,
    #[serde(default)]
    verification: Verification,
    mechanism: Spanned<Vec<WallKind>>,
    elastic: Spanned<ElasticTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ElasticTable {
    #[serde(default)]
    wall: Option<Spanned<Wall>>,
    memory: Option<Spanned<Memory>>,
    authors: Option<Spanned<Authors>>,
    #[serde(default)]
    forbid: Vec<Spanned<Rule>>,
    loops: Option<u32>,
    loop_depth: Option<u32>,
    loop_nests: Option<u32>,
    stack: Option<Spanned<String>>,
    #[serde(default)]
    known_stack: BTreeMap<String, u64>,
    instructions: Option<u64>,
    #[serde(default)]
    known_instructions: BTreeMap<String, u64>,
    #[serde(default)]
    entries: Vec<Spanned<String>>,
    #[serde(default)]
    exports: Vec<Spanned<String>>,
    environment: Option<EnvironmentTable>,
    #[serde(default)]
    wrap: WrapTable,
    #[serde(default)]
    locked: Vec<Spanned<String>>,
    #[serde(default)]
    read_only: Vec<Spanned<String>>,
    #[serde(default)]
    handles: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvironmentTable {
    file: Spanned<String>,
    sha256: Spanned<String>,
    #[serde(default)]
    public: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrapTable {
    before: Option<Spanned<String>>,
    after: Option<Spanned<String>>,
}

/// Reads the table `[elastic]` of a type of this language, which names these mechanisms.
fn read(
    document: &Document<'_>,
    span: std::ops::Range<usize>,
    table: ElasticTable,
    language: Language,
    mechanisms: &Spanned<Vec<WallKind>>,
) -> Result<Elastic, DocumentError> {
    let base = match language {
        Language::C => BaseLanguage::C,
        Language::Rust => BaseLanguage::Rust,
        _ => {
            let problem = format!("there is no elastic language for `{language}`");
            let hint = "language = \"c\" or \"rust\"; without the table [elastic] a type's language is not judged";
            return Err(document.error(Some(span), problem, hint));
        }
    };
    let wall = wall(document, base, table.wall, mechanisms)?;
    if let (BaseLanguage::C, Some(authors)) = (base, &table.authors) {
        let problem = "`authors` is about holes in rustc";
        return Err(document.error(Some(authors.span()), problem, "leave it out of a type of C"));
    }
    if let (BaseLanguage::Rust, Some(memory)) = (base, &table.memory) {
        let problem = "the memory of Rust is checked by its own rules";
        return Err(document.error(
            Some(memory.span()),
            problem,
            "leave `memory` out of a type of Rust",
        ));
    }
    let memory = match (base, table.memory) {
        (BaseLanguage::Rust, _) => Memory::Checked,
        (BaseLanguage::C, memory) => memory.map(Spanned::into_inner).unwrap_or_default(),
    };
    let mut forbid = BTreeSet::new();
    for rule in table.forbid {
        if !rule.get_ref().of().has(base) {
            let problem = format!("`{}` is no rule of elastic {language}", rule.get_ref());
            let hint = "docs/elastic.md lists the rules of each language";
            return Err(document.error(Some(rule.span()), problem, hint));
        }
        forbid.insert(rule.into_inner());
    }
    let entries = symbols(document, table.entries)?;
    let exports = match table.exports.is_empty() {
        true => entries.clone(),
        false => symbols(document, table.exports)?,
    };
    let stack = match table.stack {
        None => None,
        Some(text) => Some(Limit::Stack.parse(text.get_ref()).map_err(|error| {
            document.error(Some(text.span()), error.to_string(), "as in \"16K\"")
        })?),
    };
    let closed = [&table.locked, &table.read_only, &table.handles];
    let closed = closed.into_iter().find_map(|list| list.first());
    if let Some(closed) = closed
        && memory != Memory::Checked
    {
        let problem = "where memory is not checked, any pointer can look past `locked`, `read-only` and `handles`";
        let hint = "add memory = \"checked\" to [elastic]";
        return Err(document.error(Some(closed.span()), problem, hint));
    }
    let handles = names(document, table.handles)?;
    let mut locked = names(document, table.locked)?;
    locked.extend(handles.iter().cloned());
    Ok(Elastic {
        base,
        authors: table.authors.map(Spanned::into_inner).unwrap_or_default(),
        wall,
        memory,
        forbid,
        loops: table.loops,
        loop_depth: table.loop_depth,
        loop_nests: table.loop_nests,
        stack,
        known_stack: table.known_stack,
        instructions: table.instructions,
        known_instructions: table.known_instructions,
        entries,
        exports,
        environment: match table.environment {
            None => None,
            Some(found) => Some(environment(document, found)?),
        },
        before: symbol(document, table.wrap.before)?,
        after: symbol(document, table.wrap.after)?,
        locked,
        read_only: names(document, table.read_only)?,
        handles,
    })
}

fn wall(
    document: &Document<'_>,
    base: BaseLanguage,
    wall: Option<Spanned<Wall>>,
    mechanisms: &Spanned<Vec<WallKind>>,
) -> Result<Wall, DocumentError> {
    let at = wall.as_ref().map(Spanned::span);
    let wall = wall.map(Spanned::into_inner).unwrap_or_default();
    if wall == Wall::Language && base == BaseLanguage::C {
        let problem = "C is no wall: code in it can reach whatever its process can";
        let hint = "language-and-window, or language-and-process";
        return Err(document.error(at, problem, hint));
    }
    let wanted = wall.mechanism();
    if mechanisms.get_ref().iter().any(|named| *named != wanted) {
        let problem = format!("the table [elastic] wants the mechanism `{wanted}` and no other");
        let hint = format!("mechanism = [\"{wanted}\"], or another `wall` in [elastic]");
        return Err(document.error(Some(mechanisms.span()), problem, hint));
    }
    Ok(wall)
}

fn environment(
    document: &Document<'_>,
    table: EnvironmentTable,
) -> Result<Environment, DocumentError> {
    let directory = document.path.parent().unwrap_or(std::path::Path::new(""));
    let Some(digest) = Sha256Digest::from_hex(table.sha256.get_ref()) else {
        let hint = "`sha256sum FILE` prints it: 64 digits in lower case";
        let problem = "this is no SHA-256 digest";
        return Err(document.error(Some(table.sha256.span()), problem, hint));
    };
    Ok(Environment {
        path: directory.join(table.file.get_ref()),
        digest,
        public: names(document, table.public)?,
    })
}

fn symbols(
    document: &Document<'_>,
    list: Vec<Spanned<String>>,
) -> Result<Vec<String>, DocumentError> {
    let mut found = Vec::new();
    for name in list {
        found.extend(symbol(document, Some(name))?);
    }
    Ok(found)
}

fn symbol(
    document: &Document<'_>,
    name: Option<Spanned<String>>,
) -> Result<Option<String>, DocumentError> {
    let Some(name) = name else { return Ok(None) };
    let digit = |byte: u8| byte.is_ascii_digit();
    if !is_symbol(name.get_ref()) || name.get_ref().bytes().next().is_some_and(digit) {
        let problem = format!("`{}` is no name of a function", name.get_ref());
        let hint = "letters, digits and `_`, at most 63 bytes";
        return Err(document.error(Some(name.span()), problem, hint));
    }
    Ok(Some(name.into_inner()))
}

/// Names as C has them: `name`, `struct tag`, `struct tag.member`.
fn names(
    document: &Document<'_>,
    list: Vec<Spanned<String>>,
) -> Result<BTreeSet<String>, DocumentError> {
    let mut found = BTreeSet::new();
    for name in list {
        let text = name.get_ref();
        let kinds = ["struct ", "union ", "enum "];
        let rest = kinds.iter().find_map(|kind| text.strip_prefix(kind));
        if !rest.unwrap_or(text).split('.').all(is_symbol) {
            let problem = format!("`{text}` is no name");
            let hint = "as in `count`, `struct packet`, `struct packet.source`";
            return Err(document.error(Some(name.span()), problem, hint));
        }
        found.insert(name.into_inner());
    }
    Ok(found)
}
