//! Images from hand-written confined assembly: assembled, linked, laid out.
//!
//! Nothing verifies them: they are the tests' own, written to the rules of
//! docs/window.md but for what a test breaks on purpose.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod churn;

use mullion_runtime::{
    Access, CallArguments, CallError, FloatingPoint, HostFunction, ImageLayout, Limits, RawFault,
    Relocation, Returned, Segment, WindowDomain,
};
use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Macros that every program begins with.
const PRELUDE: &str = "
    .macro export f
    .section .mullion.exports,\"a\"
    .long \\f - .
    .asciz \"\\f\"
    .balign 64
    .text
    .balign 16
    .nops 9, 9
    nopl 0x4e6c754d(%rax)
\\f:
    .endm
    .macro import f
    .section .mullion.gates,\"aw\",@nobits
\\f: .skip 32
    .text
    .endm
    .macro label
    nopl 0x4e6c754d(%rax)
    .endm
    .set setjmp, 0x10000 + 1 * 32
    .set longjmp, 0x10000 + 2 * 32
    .set control_read, 0x10000 + 3 * 32
    .set control_unwind, 0x10000 + 4 * 32
    .text
";

/// An image and where its exports are.
pub struct Program {
    pub image: Arc<ImageLayout>,
    exports: HashMap<String, u64>,
}

/// A domain of a program.
pub struct Loaded {
    pub domain: WindowDomain,
    exports: HashMap<String, u64>,
}

impl Program {
    /// As [`Program::new`], of a source without instructions on floating-point control.
    pub fn lean(source: &str) -> Self {
        let mut program = Self::new(source);
        let image = Arc::into_inner(program.image).unwrap();
        let none = FloatingPoint {
            x87: false,
            mxcsr: false,
        };
        // SAFETY: the tests' promise, as with everything here.
        program.image = Arc::new(unsafe { image.with_floating_point(none) });
        program
    }

    /// As [`Program::lean`], of a source that accesses nothing through `%gs` either.
    pub fn leanest(source: &str) -> Self {
        assert!(!source.contains("%gs:"));
        let mut program = Self::lean(source);
        let image = Arc::into_inner(program.image).unwrap();
        // SAFETY: as just seen.
        program.image = Arc::new(unsafe { image.without_gs() });
        program
    }

    /// As [`Program::new`], with the code of each domain in memory of its own.
    pub fn anonymous(source: &str) -> Self {
        let mut program = Self::new(source);
        let image = Arc::into_inner(program.image).unwrap();
        program.image = Arc::new(image.in_anonymous_memory());
        program
    }

    /// Assembles and links.
    pub fn new(source: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a.s"), format!("{PRELUDE}{source}\n")).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/image.ld");
        run(Command::new("as")
            .arg("-o")
            .args([path("a.o"), path("a.s")]));
        run(Command::new("ld")
            .args([
                "-pie",
                "--no-dynamic-linker",
                "-z",
                "noexecstack",
                "--hash-style=sysv",
                "-T",
                script,
                "-o",
            ])
            .args([path("a.mx"), path("a.o")]));
        Self::from_elf(&std::fs::read(path("a.mx")).unwrap())
    }

    fn from_elf(file: &[u8]) -> Self {
        let (mut segments, mut relocations, mut exports) = (Vec::new(), Vec::new(), HashMap::new());
        let headers = number(file, 0x20) as usize;
        let count = usize::from(u16::from_le_bytes([file[0x38], file[0x39]]));
        let headers = (0..count).map(|index| &file[headers + 56 * index..][..56]);
        for header in headers {
            let kind = number(header, 0) as u32;
            let [position, address, _, in_file, in_memory] =
                [8, 16, 24, 32, 40].map(|at| number(header, at));
            if kind == 2 {
                relocations = relocations_of(file, position, in_file);
            } else if kind == 1 && in_memory > 0 {
                segments.push(Segment {
                    offset: address as u32,
                    length: in_memory as u32,
                    access: match number(header, 0) >> 32 {
                        5 => Access::ReadExecute,
                        4 => Access::Read,
                        6 => Access::ReadWrite,
                        other => panic!("segment flags {other}"),
                    },
                    content: &file[position as usize..(position + in_file) as usize],
                });
            }
        }
        let constants = segments
            .iter()
            .find(|segment| segment.access == Access::Read)
            .unwrap();
        for (index, record) in constants.content.chunks_exact(64).enumerate() {
            let name = record[4..].split(|byte| *byte == 0).next().unwrap();
            let distance = i32::from_le_bytes(record[..4].try_into().unwrap());
            let target = i64::from(constants.offset) + 64 * index as i64 + i64::from(distance);
            if name.is_empty() || !name.is_ascii() {
                break;
            }
            exports.insert(String::from_utf8(name.to_vec()).unwrap(), target as u64);
        }
        // SAFETY: hand-written for these tests, which stand for the verifier.
        let image = unsafe { ImageLayout::new(&segments, relocations) }.unwrap();
        Self {
            image: Arc::new(image),
            exports,
        }
    }

    /// A domain with these host functions and limits.
    pub fn load_with(&self, imports: Vec<HostFunction>, limits: Limits) -> Loaded {
        self.try_load_with(imports, limits).unwrap()
    }

    /// As [`Program::load_with`], where that may be refused.
    pub fn try_load_with(
        &self,
        imports: Vec<HostFunction>,
        limits: Limits,
    ) -> Result<Loaded, mullion_runtime::Error> {
        let domain = WindowDomain::new(self.image.clone(), imports, limits)?;
        domain.open();
        Ok(Loaded {
            domain,
            exports: self.exports.clone(),
        })
    }

    /// A domain that can call nobody.
    pub fn load(&self) -> Loaded {
        self.load_with(Vec::new(), Limits::default())
    }
}

impl Loaded {
    /// The address of an export.
    pub fn address(&self, name: &str) -> u64 {
        self.domain.memory().base() + self.exports[name]
    }

    pub fn call(&self, name: &str, integers: &[u64]) -> Result<Returned, CallError> {
        self.call_with(name, &CallArguments::new(integers))
    }

    pub fn call_with(&self, name: &str, arguments: &CallArguments) -> Result<Returned, CallError> {
        let entry = self
            .domain
            .entry(mullion_runtime::Claimed(self.address(name)))?;
        self.domain.call(entry, arguments).map_err(|error| *error)
    }

    /// The fault that the call must end with.
    pub fn fault(&self, name: &str, integers: &[u64]) -> RawFault {
        match self.call(name, integers) {
            Err(CallError::Fault(fault)) => *fault,
            other => panic!("{name} should fault: {other:?}"),
        }
    }
}

/// An import from a closure.
pub fn host(
    function: impl Fn(&mut mullion_runtime::GateCall<'_>) -> Result<u64, mullion_runtime::CallEnd>
    + Send
    + Sync
    + 'static,
) -> HostFunction {
    Arc::new(function)
}

fn relocations_of(file: &[u8], dynamic: u64, length: u64) -> Vec<Relocation> {
    let entries = (0..length / 16).map(|index| (dynamic + 16 * index) as usize);
    let tags: HashMap<u64, u64> = entries
        .map(|at| (number(file, at), number(file, at + 8)))
        .collect();
    let Some(table) = tags.get(&7) else {
        return Vec::new();
    };
    // The script places constants at the same position as in memory, less the text's start.
    let table = *table - 0x20000 + position_of_text(file);
    let records = (0..tags[&8] / 24).map(|index| (table + 24 * index) as usize);
    let relocation = |at: usize| {
        assert_eq!(number(file, at + 8), 8, "R_X86_64_RELATIVE only");
        Relocation {
            place: number(file, at) as u32,
            addend: number(file, at + 16) as u32,
        }
    };
    records.map(relocation).collect()
}

fn position_of_text(file: &[u8]) -> u64 {
    let headers = number(file, 0x20) as usize;
    number(file, headers + 8)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Programs that do not end, or count up to their argument.
pub(crate) const LOOP: &str = "
    import wait
    export forever
        jmp forever
    export wait_forever
        call wait
        jmp wait_forever
    export count
        movl $0, %eax
    1:  addl $1, %eax
        cmpl %edi, %eax
        jne 1b
        ret
";

/// Each invocation has so many milliseconds of the clock on the wall.
pub(crate) fn limited(milliseconds: u64) -> Limits {
    Limits {
        time: Some(Duration::from_millis(milliseconds)),
        ..Limits::default()
    }
}
