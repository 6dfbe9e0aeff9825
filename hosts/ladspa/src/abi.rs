//! `ladspa.h`, as far as a bridge needs it.

use std::ffi::{c_char, c_int, c_ulong, c_void};

pub(crate) const INPUT: c_int = 1;
pub(crate) const OUTPUT: c_int = 2;
pub(crate) const CONTROL: c_int = 4;
pub(crate) const AUDIO: c_int = 8;

/// Bytes of `LADSPA_PortRangeHint`: a number and two floats.
pub(crate) const HINT: u64 = 12;

/// `LADSPA_Handle`, which the host does not look into.
pub(crate) type Handle = *mut c_void;

/// `LADSPA_Descriptor`.
#[repr(C)]
pub(crate) struct Descriptor {
    pub(crate) id: c_ulong,
    pub(crate) label: *const c_char,
    pub(crate) properties: c_int,
    pub(crate) name: *const c_char,
    pub(crate) maker: *const c_char,
    pub(crate) copyright: *const c_char,
    pub(crate) ports: c_ulong,
    pub(crate) port_descriptors: *const c_int,
    pub(crate) port_names: *const *const c_char,
    pub(crate) port_hints: *const c_void,
    pub(crate) data: *mut c_void,
    pub(crate) instantiate: Option<extern "C" fn(*const Descriptor, c_ulong) -> Handle>,
    pub(crate) connect_port: Option<extern "C" fn(Handle, c_ulong, *mut f32)>,
    pub(crate) activate: Option<extern "C" fn(Handle)>,
    pub(crate) run: Option<extern "C" fn(Handle, c_ulong)>,
    pub(crate) run_adding: Option<extern "C" fn(Handle, c_ulong)>,
    pub(crate) set_run_adding_gain: Option<extern "C" fn(Handle, f32)>,
    pub(crate) deactivate: Option<extern "C" fn(Handle)>,
    pub(crate) cleanup: Option<extern "C" fn(Handle)>,
}

/// The functions of a descriptor, in their order.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    Instantiate,
    ConnectPort,
    Activate,
    Run,
    RunAdding,
    SetRunAddingGain,
    Deactivate,
    Cleanup,
}

pub(crate) const METHODS: usize = 8;
/// Where they begin in the structure, in bytes.
pub(crate) const FIRST_METHOD: u64 = 88;

const _: () = assert!(std::mem::offset_of!(Descriptor, instantiate) == FIRST_METHOD as usize);
const _: () = assert!(size_of::<Descriptor>() == FIRST_METHOD as usize + 8 * METHODS);
