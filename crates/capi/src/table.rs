//! Handles: what C holds of an object is a number that is looked up at each use.
//!
//! ```text
//! 63        32 31        0
//! | generation | place + 1 |     0: none
//! ```
//! Each place counts how often it was given out, so that a freed handle finds
//! another generation and not another object. After 2^32 times a place is not
//! used again.

use crate::domain::{Domain, Function};
use crate::status::Failure;
use mullion_host::{Image, Imports, Shared};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A handle as C has it: of whichever type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Handle {
    pub(crate) number: u64,
}

impl Handle {
    pub(crate) fn is_none(self) -> bool {
        self.number == 0
    }

    fn new(place: usize, generation: u32) -> Self {
        Self {
            number: u64::from(generation) << 32 | (place as u64 + 1),
        }
    }

    fn place(self) -> Option<usize> {
        (self.number as u32 as usize).checked_sub(1)
    }

    fn generation(self) -> u32 {
        (self.number >> 32) as u32
    }
}

/// What a handle may stand for. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Object {
    Image(Image),
    Imports(Arc<Mutex<Imports>>),
    Domain(Arc<Domain>),
    Function(Arc<Function>),
    Shared(Shared),
}

impl Object {
    pub(crate) fn image(&self) -> Option<&Image> {
        match self {
            Self::Image(image) => Some(image),
            _ => None,
        }
    }

    pub(crate) fn imports(&self) -> Option<&Arc<Mutex<Imports>>> {
        match self {
            Self::Imports(imports) => Some(imports),
            _ => None,
        }
    }

    pub(crate) fn shared(&self) -> Option<&Shared> {
        match self {
            Self::Shared(shared) => Some(shared),
            _ => None,
        }
    }

    pub(crate) fn domain(&self) -> Option<&Arc<Domain>> {
        match self {
            Self::Domain(domain) => Some(domain),
            _ => None,
        }
    }

    pub(crate) fn function(&self) -> Option<&Arc<Function>> {
        match self {
            Self::Function(function) => Some(function),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Table {
    places: Vec<Place>,
    free: Vec<usize>,
}

struct Place {
    generation: u32,
    object: Option<Object>,
}

static TABLE: RwLock<Table> = RwLock::new(Table {
    places: Vec::new(),
    free: Vec::new(),
});

/// Gives an object a handle.
pub(crate) fn add(object: Object) -> Result<Handle, Failure> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = table.free.pop() {
        table.places[place].object = Some(object);
        return Ok(Handle::new(place, table.places[place].generation));
    }
    let place = table.places.len();
    if place >= u32::MAX as usize {
        return Err(Failure::argument("there are too many handles"));
    }
    table.places.push(Place {
        generation: 1,
        object: Some(object),
    });
    Ok(Handle::new(place, 1))
}

/// What a handle stands for, if it is of the kind that `kind` picks.
#[inline]
pub(crate) fn find<T: Clone>(
    handle: Handle,
    kind: impl Fn(&Object) -> Option<&T>,
) -> Result<T, Failure> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let found = handle.place().and_then(|place| table.places.get(place));
    found
        .filter(|place| place.generation == handle.generation())
        .and_then(|place| kind(place.object.as_ref()?))
        .cloned()
        .ok_or_else(Failure::handle)
}

/// As [`find`]; the handle is void from now on.
pub(crate) fn take<T: Clone>(
    handle: Handle,
    kind: impl Fn(&Object) -> Option<&T>,
) -> Result<Object, Failure> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let table = &mut *table;
    let index = handle.place().ok_or_else(Failure::handle)?;
    let place = table.places.get_mut(index).ok_or_else(Failure::handle)?;
    let is_it = |object: &&mut Object| kind(object).is_some();
    if place.generation != handle.generation() || place.object.as_mut().filter(is_it).is_none() {
        return Err(Failure::handle());
    }
    let object = place.object.take().ok_or_else(Failure::handle)?;
    if let Some(next) = place.generation.checked_add(1) {
        place.generation = next;
        table.free.push(index);
    }
    // Dropped by the caller, when the table is free again.
    Ok(object)
}
