//! Reports and notes, as C lays them out.

use crate::runtime::{FaultKind, Note, ReachedField, Report, Want};
use std::ffi::{CString, c_char, c_void};

/// `mullion_word_report`.
#[repr(C)]
pub(crate) struct CReport {
    kind: i32,
    has_address: i32,
    instruction: u64,
    address: u64,
    module: *const c_char,
    export: *const c_char,
    function: *const c_char,
    line: *const c_char,
    object: *const c_char,
    allow: *const c_char,
    text: *const c_char,
    field: *const c_char,
}

/// `mullion_word_note`.
#[repr(C)]
pub(crate) struct CNote {
    kind: i32,
    write: i32,
    argument: i32,
    has_arguments: i32,
    instruction: u64,
    address: u64,
    bytes: u64,
    arguments: [u64; 6],
    export: *const c_char,
    function: *const c_char,
    line: *const c_char,
    object: *const c_char,
    field: *const c_char,
}

/// A function of the host with its `user` pointer, which any thread may call.
#[derive(Clone, Copy)]
pub(crate) struct Hook<F: Copy> {
    pub(crate) function: F,
    pub(crate) user: *mut c_void,
}

// SAFETY: the header says that such functions are called on any thread, with this pointer.
unsafe impl<F: Copy> Send for Hook<F> {}
// SAFETY: the header says that such functions are called on any thread, at the same time too.
unsafe impl<F: Copy> Sync for Hook<F> {}

impl<F: Copy> Hook<F> {
    /// The whole, so that closures capture it and not its parts.
    pub(crate) fn parts(&self) -> (F, *mut c_void) {
        (self.function, self.user)
    }
}

/// Texts that a structure of C points to.
#[derive(Default)]
pub(crate) struct Texts(Vec<CString>);

impl Texts {
    fn add(&mut self, text: &str) -> *const c_char {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let at = text.as_ptr();
        // The string's memory stays where it is when the list grows.
        self.0.push(text);
        at
    }
}

fn number(kind: FaultKind) -> i32 {
    match kind {
        FaultKind::Access => 1,
        FaultKind::NoMapping => 2,
        FaultKind::Label => 3,
        FaultKind::Call => 4,
        FaultKind::Policy => 5,
        FaultKind::Abort => 6,
        FaultKind::Illegal => 7,
        FaultKind::Arithmetic => 8,
        FaultKind::Trap => 9,
        FaultKind::DataStack => 10,
        FaultKind::ControlStack => 11,
        FaultKind::Time => 12,
        FaultKind::NoMemory => 13,
        FaultKind::Unwind => 14,
        FaultKind::Uncaught => 15,
    }
}

fn told(field: Option<&ReachedField>) -> String {
    field.map_or_else(String::new, ReachedField::to_string)
}

impl CReport {
    /// Its texts are in `texts`.
    pub(crate) fn new(report: &Report, texts: &mut Texts) -> CReport {
        CReport {
            kind: number(report.kind),
            has_address: report.address.is_some().into(),
            instruction: report.instruction,
            address: report.address.unwrap_or(0),
            module: texts.add(&report.module),
            export: texts.add(&report.export),
            function: texts.add(&report.function),
            line: texts.add(report.line.as_deref().unwrap_or_default()),
            object: texts.add(&report.object),
            allow: texts.add(report.allow.as_deref().unwrap_or_default()),
            text: texts.add(&report.to_string()),
            field: texts.add(&told(report.field.as_ref())),
        }
    }
}

impl CNote {
    /// Its texts are in `texts`.
    pub(crate) fn new(note: &Note<'_>, texts: &mut Texts) -> CNote {
        let (kind, function, argument, address, bytes, write) = match note.want {
            Want::Access {
                address,
                bytes,
                write,
            } => (1, "", 0, address, bytes, write),
            Want::Call {
                function, address, ..
            } => (2, function, 0, address, 0, false),
            Want::Argument {
                function,
                argument,
                address,
                bytes,
                write,
            } => (3, function, argument, address, bytes, write),
            Want::Free { function, address } => (4, function, 0, address, 0, false),
            Want::Callback {
                function,
                argument,
                address,
            } => (5, function, argument, address, 0, false),
        };
        let object = note.object();
        CNote {
            kind,
            write: write.into(),
            argument: argument.into(),
            has_arguments: note.arguments.is_some().into(),
            instruction: note.instruction,
            address,
            bytes,
            arguments: note.arguments.unwrap_or_default(),
            export: texts.add(note.export),
            function: texts.add(function),
            line: texts.add(&note.line().unwrap_or_default()),
            field: texts.add(&told(note.field(&object).as_ref())),
            object: texts.add(&object.to_string()),
        }
    }
}
