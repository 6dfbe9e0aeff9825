//! Who may load, call and share: the host's functions, and policies of credentials.

use crate::domain;
use crate::pointers::{place, string, text};
use crate::status::{CREDENTIALS, Failure, OK, Status, guarded};
use crate::table::{self, Handle, Object};
use crate::value::{self, User};
use mullion_host::trust::challenge::Proven;
use mullion_host::trust::keyring::Keyring;
use mullion_host::{Asked, Authoriser, BoxedError, Candidate, Host, Policy, Wish};
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What images are opened by: changed by the functions that configure it.
static HOST: Mutex<Option<Configured>> = Mutex::new(None);

#[derive(Default)]
struct Configured {
    settings: Settings,
    /// How often they were changed.
    changes: u64,
    /// Made of the settings, when it is needed.
    host: Option<Host>,
}

#[derive(Clone, Default)]
struct Settings {
    policy: CPolicy,
    /// A policy of credentials.
    file: Option<PathBuf>,
    perf_map: bool,
}

fn configured<R>(look: impl FnOnce(&mut Configured) -> R) -> R {
    let mut configured = HOST.lock().unwrap_or_else(PoisonError::into_inner);
    look(configured.get_or_insert_default())
}

fn configure(change: impl FnOnce(&mut Settings)) {
    configured(|configured| {
        change(&mut configured.settings);
        configured.changes += 1;
        configured.host = None;
    });
}

/// The host that images are opened by now. It is made without the lock, since that logs, and the host's
/// function for the log may come here.
pub(crate) fn host() -> Result<Host, Failure> {
    let (settings, changes) = match configured(|configured| match &configured.host {
        Some(host) => Ok(host.clone()),
        None => Err((configured.settings.clone(), configured.changes)),
    }) {
        Ok(host) => return Ok(host),
        Err(settings) => settings,
    };
    let made = settings.host()?;
    Ok(configured(|configured| {
        match configured.changes == changes {
            true => configured.host.get_or_insert(made).clone(),
            false => made,
        }
    }))
}

impl Settings {
    fn host(&self) -> Result<Host, Failure> {
        let mut builder = Host::builder().perf_map(self.perf_map);
        if let Some(path) = &self.file {
            builder = builder.authoriser(authoriser(path)?);
        }
        if self.policy.is_set() {
            builder = builder.policy(self.policy);
        }
        Ok(builder.build())
    }
}

fn authoriser(path: &Path) -> Result<Authoriser, Failure> {
    let left_out = |left_out| tracing::warn!(target: "mullion::host", "{left_out}");
    Authoriser::read(path, left_out).map_err(|error| Failure::with(CREDENTIALS, &error.to_string()))
}

// ---- The functions of the header

/// # Safety
/// As the header has it: `policy` may be called with `user` from every thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_set_policy(
    function: Option<PolicyFunction>,
    user: *mut c_void,
) -> Status {
    guarded(|| {
        configure(|settings| {
            settings.policy.load = function.map(|function| (function, User(user)));
        });
        Ok(())
    })
}

/// # Safety
/// As the header has it: `policy` may be called with `user` from every thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_set_access_policy(
    function: Option<AccessFunction>,
    user: *mut c_void,
) -> Status {
    guarded(|| {
        configure(|settings| {
            settings.policy.access = function.map(|function| (function, User(user)));
        });
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_set_policy_file(path: *const c_char) -> Status {
    guarded(|| {
        let file = match path.is_null() {
            true => None,
            // SAFETY: `path` is null or a string that stays as it is for the call, by mullion.h.
            false => Some(file_of(unsafe { string(path) }?)),
        };
        // Looked at now, so that what is wrong with it is said here.
        file.as_deref().map(authoriser).transpose()?;
        configure(|settings| {
            settings.file = file;
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn mullion_enable_perf_map() -> Status {
    guarded(|| {
        configure(|settings| {
            settings.perf_map = true;
        });
        Ok(())
    })
}

/// # Safety
/// As the header has it.
#[unsafe(no_mangle)]
unsafe extern "C" fn mullion_image_open_as(
    path: *const c_char,
    request: *const Request,
    image: *mut Handle,
) -> Status {
    guarded(|| {
        // SAFETY: null, or what mullion.h says, for the call: `path` a string, `image` a place for the result.
        let (path, place) = unsafe { (string(path)?, place(image)?) };
        // SAFETY: null, or what mullion.h says, for the call: `request` a structure that says its size, of strings
        // and their lists.
        let brought = unsafe { Brought::read(request) }?;
        let asked = Asked {
            requesters: &brought.requesters,
            record: brought.record.as_deref(),
            credentials: &brought.credentials,
            ..Asked::default()
        };
        let opened = host()?.open_asked(file_of(path), &asked)?;
        place.write(table::add(Object::Image(opened))?);
        Ok(())
    })
}

pub(crate) fn file_of(path: &CStr) -> PathBuf {
    OsStr::from_bytes(path.to_bytes()).into()
}

// ---- Credentials

/// `mullion_request`.
#[repr(C)]
pub(crate) struct Request {
    pub(crate) size: usize,
    pub(crate) keyring: *const c_char,
    pub(crate) keys: *const *const c_char,
    pub(crate) key_count: usize,
    pub(crate) passphrase: *const c_char,
    pub(crate) record: *const c_char,
    pub(crate) credentials: *const *const c_char,
    pub(crate) credential_count: usize,
}

/// What comes with an image.
struct Brought {
    requesters: Vec<Proven>,
    record: Option<String>,
    credentials: Vec<String>,
}

impl Brought {
    /// # Safety
    /// The pointer is null or points to a structure whose `size` is set, and whose
    /// pointers are as the header says.
    unsafe fn read(request: *const Request) -> Result<Self, Failure> {
        // SAFETY: the first member is there in every version of the structure.
        let size = unsafe { request.cast::<usize>().as_ref() }.ok_or_else(Failure::null)?;
        if *size != size_of::<Request>() {
            return Err(Failure::argument("`size` is not sizeof(mullion_request)"));
        }
        // SAFETY: null or a structure of the size that it says: this function's condition.
        let request = unsafe { request.read() };
        // SAFETY: the structure was copied whole, and says what its lists, strings and lengths are by mullion.h.
        let (keys, credentials, record, passphrase) = unsafe {
            (
                list(request.keys, request.key_count)?,
                list(request.credentials, request.credential_count)?,
                optional(request.record)?,
                optional(request.passphrase)?,
            )
        };
        let mut requesters = Vec::new();
        if !keys.is_empty() {
            // SAFETY: null, or what mullion.h says, for the call: `request.keyring` a string.
            let keyring = Keyring::new(file_of(unsafe { string(request.keyring) }?));
            for name in &keys {
                let key = keyring.secret(name, passphrase.as_deref().map(str::as_bytes));
                let key =
                    key.map_err(|error| Failure::with(CREDENTIALS, &format!("{name}: {error}")))?;
                let proven = key.proven();
                let proven = proven
                    .map_err(|error| Failure::with(CREDENTIALS, &format!("{name}: {error}")))?;
                requesters.push(proven);
            }
        }
        Ok(Self {
            requesters,
            record,
            credentials,
        })
    }
}

/// # Safety
/// The pointer is null or points to a string.
unsafe fn optional(pointer: *const c_char) -> Result<Option<String>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: `pointer` is null or a string that stays as it is for the call, by mullion.h.
    Ok(Some(unsafe { text(pointer) }?.to_owned()))
}

/// # Safety
/// If `count` is not 0, the pointer is null or points to so many pointers to strings.
unsafe fn list(pointers: *const *const c_char, count: usize) -> Result<Vec<String>, Failure> {
    if pointers.is_null() && count > 0 {
        return Err(Failure::null());
    }
    (0..count)
        // SAFETY: `index` is below the list's length, and each element is null or a string: this function's
        // condition.
        .map(|index| Ok(unsafe { text(pointers.add(index).read()) }?.to_owned()))
        .collect()
}

// ---- The host's functions

/// `mullion_policy_function`.
type PolicyFunction = unsafe extern "C" fn(*mut c_void, *const value::Candidate) -> Status;
/// `mullion_access_function`.
type AccessFunction = unsafe extern "C" fn(*mut c_void, *const Question) -> Status;

/// `mullion_question`.
#[repr(C)]
pub(crate) struct Question {
    pub(crate) size: usize,
    pub(crate) kind: u32,
    pub(crate) permission: u32,
    pub(crate) asker: Handle,
    pub(crate) domain: Handle,
    pub(crate) callee: Handle,
    pub(crate) name: *const c_char,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

pub(crate) const QUESTION_LINK: u32 = 0;
pub(crate) const QUESTION_PAGES: u32 = 1;

#[derive(Clone, Copy, Default)]
struct CPolicy {
    load: Option<(PolicyFunction, User)>,
    access: Option<(AccessFunction, User)>,
}

impl CPolicy {
    fn is_set(&self) -> bool {
        self.load.is_some() || self.access.is_some()
    }
}

fn answer(status: Status) -> Result<(), BoxedError> {
    match status {
        OK => Ok(()),
        other => Err(format!("the policy answered {other}").into()),
    }
}

impl Policy for CPolicy {
    fn admit(&self, candidate: &Candidate<'_>) -> Result<(), BoxedError> {
        let Some((function, user)) = self.load else {
            return Ok(());
        };
        let name = CString::new(candidate.name.replace('\0', ""))?;
        let path = candidate
            .path
            .map(|path| path.as_os_str().as_encoded_bytes());
        let path = CString::new(path.unwrap_or_default())?;
        let bytes = candidate.file.bytes();
        let candidate = value::Candidate {
            size: size_of::<value::Candidate>(),
            name: name.as_ptr(),
            path: path.as_ptr(),
            bytes: bytes.as_ptr().cast(),
            length: bytes.len(),
        };
        // SAFETY: the host's promise when it set the policy; what the structure
        // points to lives until the call returns.
        answer(unsafe { function(user.0, &candidate) })
    }

    fn allow(&self, question: &mullion_host::Question<'_>) -> Result<(), BoxedError> {
        let Some((function, user)) = self.access else {
            return question.host_alone();
        };
        let handle = domain::handle_of;
        let (kind, permission, callee, name, bytes) = match &question.wish {
            Wish::Call { callee, export } => (QUESTION_LINK, 0, handle(callee), *export, 0..0),
            Wish::Pages {
                shared,
                bytes,
                permission,
            } => {
                let permission = value::permission_number(*permission);
                (
                    QUESTION_PAGES,
                    permission,
                    NOBODY,
                    shared.name(),
                    bytes.clone(),
                )
            }
        };
        let name = CString::new(name.replace('\0', ""))?;
        let question = Question {
            size: size_of::<Question>(),
            kind,
            permission,
            asker: question.asker.map_or(NOBODY, handle),
            domain: handle(question.domain),
            callee,
            name: name.as_ptr(),
            offset: bytes.start,
            length: bytes.end.saturating_sub(bytes.start),
        };
        // SAFETY: the host's promise when it set the policy; what the structure
        // points to lives until the call returns.
        answer(unsafe { function(user.0, &question) })
    }
}

const NOBODY: Handle = Handle { number: 0 };
