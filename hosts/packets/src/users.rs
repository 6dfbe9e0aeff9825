//! What users ask who are no operators: they prove a key, bring credentials, and get what their role may have.
//!
//! The frames are those of the loader's protocol (`docs/loader-protocol.md`); the objects in them are of this file.
//!
//! ```text
//!   user ── proven key, image, record, credentials ──► the policy: which type, which limits?
//!                                                        │
//!           what the module wishes to see ─────────────► the role of that type: of each the stricter
//! ```

use crate::config::{Config, ConfigError, Description, Role, Wall};
use crate::control::{ModuleStatus, module_status};
use crate::forward::{ChangeError, Forwarder, is_theirs};
use crate::module::{LoadError, Module};
use crate::share::{self, Reader};
use mullion::trust::challenge::{
    ChallengeMessage, Event, ProtocolError, Proven, Session, SignedRequest, body_length, fresh,
};
use mullion::trust::keynote::Work;
use mullion::trust::module_type::WallKind;
use mullion::trust::record::VerifiedRecord;
use mullion::trust::{Decision, DocumentError, PublicKey, Reason};
use mullion::{Asked, Authoriser, Limits};
use mullion_loader::{Admitted, NotAdmitted};
use mullion_service::wire::{self, Operation, Status, WireError};
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Connections at a time, of all and of one user of the system; more are closed. So nobody who has no key keeps others out.
const CONNECTIONS: usize = 16;
const CONNECTIONS_OF_ONE: usize = 4;
/// Bytes of a frame's body at most: an image, its record and credentials.
const FRAME: usize = 16 << 20;
/// How long one read or write may take, and a whole connection.
const PATIENCE: Duration = Duration::from_secs(5);
const LIFETIME: Duration = Duration::from_secs(60);

/// What a connection begins with that fetches memory: then comes the token of 64 digits that its user was told.
const FETCH: &str = "mullion memory ";
const TOKEN: usize = 64;
/// Memory that waits to be fetched, of all keys and of one. A module has one at most.
const UNFETCHED: usize = 64;
const UNFETCHED_OF_ONE: usize = 8;

/// What users may load.
pub struct Users {
    authoriser: Authoriser,
    roles: Vec<Role>,
    unfetched: Mutex<Vec<Unfetched>>,
}

/// Memory of reports, for whoever knows the token: only its module's owner was told.
struct Unfetched {
    owner: PublicKey,
    module: String,
    token: String,
    since: Instant,
    memory: OwnedFd,
}

/// The object of [`Operation::Load`]; the image is behind it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What it wishes for. Its image is a name, and no file.
    pub module: Description,
    /// In the place of one of its name that is the user's.
    #[serde(default)]
    pub replace: bool,
    /// The compilation record.
    #[serde(default)]
    pub record: Option<String>,
    /// Credentials beside the policy's.
    #[serde(default)]
    pub credentials: Vec<String>,
}

/// The object of [`Operation::Unload`], and of [`Operation::Call`]: that takes a module's reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Which.
    pub name: String,
    /// Its reports are to come by memory from now on: the answer has a `token`, for [`fetch_memory`].
    #[serde(default)]
    pub memory: bool,
}

/// The object of [`Operation::List`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {}

/// Why something is not done for a user.
#[derive(Debug, Error)]
enum Refused {
    #[error("{0}")]
    NotAdmitted(#[from] NotAdmitted),
    #[error("there is no role for modules of the type `{0}` here")]
    NoRole(String),
    #[error("the operator has not agreed to modules of the type `{0}` behind the language alone")]
    NoConsent(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("there is no module `{0}` of yours")]
    Unknown(String),
    #[error("users are not asked for that: load, unload, list, reports")]
    Operation,
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("memory for reports: {0}")]
    Memory(#[from] io::Error),
}

impl Users {
    /// What a file lets users have; nothing, if it names no policy.
    ///
    /// # Errors
    /// The policy cannot be read.
    pub fn read(config: &Config) -> Result<Option<Users>, DocumentError> {
        let Some(policy) = &config.policy else {
            return Ok(None);
        };
        let warn = |left_out| tracing::warn!("{left_out}");
        Ok(Some(Users {
            authoriser: Authoriser::read(policy, warn)?,
            roles: config.roles.clone(),
            unfetched: Mutex::default(),
        }))
    }

    fn load(
        &self,
        forwarder: &Forwarder,
        key: Proven,
        load: &Load,
        image: &[u8],
    ) -> Result<String, Refused> {
        let mut work = Work::of(match self.authoriser.knows(&key.key()) {
            true => Work::KNOWN,
            false => Work::STRANGER,
        });
        // What the record claims chooses what the policy is asked, and the policy reads it again.
        let record = load.record.as_deref();
        let claim = record.map(|text| VerifiedRecord::open(text, &mut work));
        let claim = claim.and_then(|opened| opened.ok()?.ok());
        let claim = claim.as_ref().map(VerifiedRecord::compilation);
        let role = claim.and_then(|claim| self.role(&claim.module_type.id));
        let role_has = |wall| role.is_some_and(|role| role.wall == wall);
        let who = key.key();
        let asked = Asked {
            requesters: &[key],
            record,
            credentials: &load.credentials,
            alone: load.module.wall == Wall::Process || role_has(Wall::Process),
            ..Asked::default()
        };
        let (mut module, id) = match (load.module.wall, role, claim) {
            (Wall::Language, Some(role), Some(_)) if role.wall != Wall::Language => {
                return Err(Refused::NoConsent(role.id.clone()));
            }
            (Wall::Language, Some(role), Some(claim)) => {
                let native = self.authoriser.admit_native(image, &asked, &mut work)?;
                let description = role.bound(&load.module)?;
                let stack = claim
                    .elastic
                    .as_ref()
                    .and_then(|said| said.get("stack")?.as_u64());
                (
                    Module::alone(&description, &native, stack)?,
                    role.id.clone(),
                )
            }
            _ => self.load_within(forwarder, load, &asked, &mut work, image)?,
        };
        module.owner = Some(who);
        let name = module.description().name.clone();
        forwarder.put(module, load.replace)?;
        tracing::info!(module = name, key = %who, id, "a user's module was loaded");
        Ok(id)
    }

    /// Loads an image into a window, here or in a process; with it the type's identifier.
    fn load_within(
        &self,
        forwarder: &Forwarder,
        load: &Load,
        asked: &Asked<'_>,
        work: &mut Work,
        image: &[u8],
    ) -> Result<(Module, String), Refused> {
        let bytes: Arc<[u8]> = image.into();
        let admitted = self.authoriser.admit_within(bytes.clone(), asked, work)?;
        let id = |decision: &Decision| decision.module_type.clone();
        let id = admitted.decision().map(id).unwrap_or_default();
        let role = self.role(&id).ok_or_else(|| Refused::NoRole(id.clone()))?;
        let mut description = role.bound(&load.module)?;
        if admitted.decision().map(|decision| decision.mechanism) == Some(WallKind::Process) {
            description.wall = Wall::Process;
        }
        // These very bytes were admitted; the host verifies them once more, and asks nobody.
        let limits = granted(&admitted);
        let module = match description.wall {
            Wall::Process => Module::apart(&description, &bytes, &limits)?,
            // What was admitted for a window is behind one, whatever its user wishes for.
            Wall::Window | Wall::Language => {
                description.wall = Wall::Window;
                let image = forwarder.host().image(&description.name, bytes);
                let image = image.map_err(LoadError::from)?;
                Module::of(forwarder.host(), &description, &image, limits)?
            }
        };
        Ok((module, id))
    }

    /// What modules of a type get.
    fn role(&self, id: &str) -> Option<&Role> {
        self.roles.iter().find(|role| role.id == id)
    }

    /// Keeps memory until it is fetched, for a while: the token for it. A module's new memory takes the place of its older
    /// one, in which nothing comes any more.
    fn keep(&self, owner: PublicKey, module: &str, memory: OwnedFd) -> io::Result<String> {
        let mut bytes = [0u8; TOKEN / 2];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let since = Instant::now();
        let mut unfetched = lock(&self.unfetched);
        unfetched.retain(|other| {
            let same = other.owner == owner && other.module == module;
            !same && other.since.elapsed() < LIFETIME
        });
        let own = unfetched.iter().filter(|other| other.owner == owner);
        if unfetched.len() >= UNFETCHED || own.count() >= UNFETCHED_OF_ONE {
            return Err(io::Error::other("too much waits to be fetched"));
        }
        unfetched.push(Unfetched {
            owner,
            module: module.to_owned(),
            token: token.clone(),
            since,
            memory,
        });
        Ok(token)
    }

    /// Gives memory to who knows its token, once.
    fn hand_over(&self, to: &UnixStream, token: &str) -> io::Result<()> {
        let mut unfetched = lock(&self.unfetched);
        let place = unfetched.iter().position(|other| other.token == token);
        let found = place.map(|place| unfetched.swap_remove(place));
        drop(unfetched);
        match found.filter(|found| found.since.elapsed() < LIFETIME) {
            Some(found) => share::hand_over(to, b"done\n", found.memory.as_fd()),
            None => Write::write_all(&mut &*to, b"there is no memory of this token\n"),
        }
    }

    fn answer(
        &self,
        forwarder: &Forwarder,
        key: Proven,
        request: &SignedRequest,
    ) -> Result<Value, Refused> {
        let who = key.key();
        match Operation::from_number(request.operation) {
            Some(Operation::Load) => {
                let (load, image): (Load, _) = wire::decode(&request.body)?;
                let id = self.load(forwarder, key, &load, image)?;
                Ok(json!({ "type": id }))
            }
            Some(Operation::Unload) => {
                let (named, _): (Named, _) = wire::decode(&request.body)?;
                forwarder.unload_as(Some(&who), &named.name)?;
                Ok(json!({}))
            }
            Some(Operation::List) => {
                let (List {}, _) = wire::decode(&request.body)?;
                Ok(json!({ "modules": theirs(forwarder, &who) }))
            }
            Some(Operation::Call) => {
                let (named, _): (Named, _) = wire::decode(&request.body)?;
                let module = forwarder.named(&named.name);
                let module = module.filter(|module| is_theirs(module, Some(&who)));
                let module = module.ok_or_else(|| Refused::Unknown(named.name.clone()))?;
                if named.memory {
                    let token = self.keep(who, &named.name, module.share_reports()?)?;
                    return Ok(json!({ "token": token }));
                }
                let reports = module.take_reports();
                let texts = reports
                    .iter()
                    .map(|text| String::from_utf8_lossy(text).into_owned());
                Ok(json!({ "reports": texts.collect::<Vec<_>>() }))
            }
            _ => Err(Refused::Operation),
        }
    }
}

/// A user's modules, and no others: to others they do not exist.
fn theirs(forwarder: &Forwarder, who: &PublicKey) -> Vec<ModuleStatus> {
    let modules = forwarder.modules();
    let theirs = modules.iter().filter(|module| is_theirs(module, Some(who)));
    theirs.map(|module| module_status(module)).collect()
}

/// What a decision grants, as limits: memory is the image's own and the heap.
fn granted(admitted: &Admitted) -> Limits {
    let usual = Limits::default();
    let Some(decision) = admitted.decision() else {
        return usual;
    };
    let limits = &decision.limits;
    let heap = limits
        .heap
        .map(|heap| heap.saturating_add(admitted.occupied()));
    Limits {
        memory: heap.unwrap_or(usual.memory).min(usual.memory),
        stack: limits.stack.unwrap_or(usual.stack).min(usual.stack),
        time: limits.time.map(Duration::from_millis),
        gate_calls: limits.calls,
        ..usual
    }
}

fn refusal(refused: &Refused) -> Value {
    let mut object = json!({ "error": refused.to_string() });
    if let Refused::NotAdmitted(NotAdmitted::Refused(refusal)) = refused {
        object["way_out"] = match refusal.reason {
            // It names the mechanism that there is.
            Reason::Mechanism(WallKind::Window | WallKind::Process) => {
                let wall = match refusal.way_out.ends_with("language") {
                    true => "language",
                    false => "process",
                };
                json!(format!("{}: write wall = \"{wall}\"", refusal.way_out))
            }
            _ => json!(refusal.way_out),
        };
        object["obstacles"] = json!(refusal.told);
    }
    if let Refused::NoConsent(_) = refused {
        object["way_out"] = json!(
            "an operator who trusts rustc and its judge writes wall = \"language\" into the role"
        );
    }
    object
}

/// The users of the system who have connections: a number for each connection.
#[derive(Default)]
struct Connected(Mutex<Vec<u32>>);

/// One connection. Its place is free when this is gone, however that comes.
struct Place<'c> {
    connected: &'c Connected,
    user: u32,
}

impl Connected {
    /// A place for one more of this user, if there is one.
    fn enter(&self, user: u32) -> Option<Place<'_>> {
        let mut users = lock(&self.0);
        let own = users.iter().filter(|other| **other == user).count();
        if users.len() >= CONNECTIONS || own >= CONNECTIONS_OF_ONE {
            return None;
        }
        users.push(user);
        Some(Place {
            connected: self,
            user,
        })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut users = lock(&self.connected.0);
        if let Some(place) = users.iter().position(|other| *other == self.user) {
            users.swap_remove(place);
        }
    }
}

/// Answers users until it is told to stop.
pub fn serve(listener: &UnixListener, users: &Users, forwarder: &Forwarder, stop: &AtomicBool) {
    let connected = Connected::default();
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            };
            // Who connects is known to Linux, whatever keys it has.
            let user = socket_peercred(&stream).map(|peer| peer.uid.as_raw());
            let Some(place) = user.ok().and_then(|user| connected.enter(user)) else {
                continue;
            };
            scope.spawn(move || {
                let _place = place;
                let ended = serve_one(stream, users, forwarder, stop);
                if let Err(error) = ended {
                    tracing::debug!(%error, "a user's connection ended");
                }
            });
        }
    });
}

fn serve_one(
    mut stream: UnixStream,
    users: &Users,
    forwarder: &Forwarder,
    stop: &AtomicBool,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let begun = Instant::now();
    let challenge = fresh(LIFETIME).map_err(|error| io::Error::other(error.to_string()))?;
    let mut session = Session::new(challenge, Duration::ZERO);
    let mut input = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let event = match next(&mut stream, &mut input, begun)? {
            None => match token(&input) {
                Some(token) => return users.hand_over(&stream, token),
                None => return Ok(()),
            },
            Some(Ok(frame)) => session.receive(frame, begun.elapsed()),
            Some(Err(error)) => Err(error),
        };
        let answer = match event {
            Ok(Event::Send(frame)) => frame,
            Ok(Event::Asked { key, request }) => {
                let (status, object) = match users.answer(forwarder, key, &request) {
                    Ok(object) => (Status::Done, object),
                    Err(refused @ Refused::Wire(_)) => (Status::NotUnderstood, refusal(&refused)),
                    Err(refused) => (Status::Refused, refusal(&refused)),
                };
                ChallengeMessage::Answer {
                    counter: request.counter,
                    status: status as u8,
                    body: wire::encode(&object, &[]),
                }
            }
            Err(error) => {
                let farewell = ChallengeMessage::Answer {
                    counter: 0,
                    status: Status::NotUnderstood as u8,
                    body: wire::encode(&json!({ "error": error.to_string() }), &[]),
                };
                stream.write_all(&farewell.encode())?;
                return Ok(());
            }
        };
        stream.write_all(&answer.encode())?;
    }
    Ok(())
}

/// The token, if all that came is a question for memory.
fn token(input: &[u8]) -> Option<&str> {
    // Nothing longer is looked at: this is asked again for each piece of a long frame.
    if input.len() != FETCH.len() + TOKEN + 1 {
        return None;
    }
    let line = std::str::from_utf8(input).ok()?.strip_suffix('\n')?;
    line.strip_prefix(FETCH)
        .filter(|token| token.len() == TOKEN)
}

/// Fetches memory of reports from the forwarder whose users' socket is at `path`, with the token that it told.
///
/// # Errors
/// The system's; nobody listens; it has no such memory.
pub fn fetch_memory(path: &Path, token: &str) -> io::Result<Reader> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{FETCH}{token}\n").as_bytes())?;
    match share::take_over(&stream)? {
        (_, Some(file)) => Reader::of(&file),
        (said, None) => Err(io::Error::other(said.trim().to_owned())),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next frame; `None` at the end of the connection, or if a question for memory came.
fn next(
    stream: &mut UnixStream,
    input: &mut Vec<u8>,
    begun: Instant,
) -> io::Result<Option<Result<ChallengeMessage, ProtocolError>>> {
    let mut piece = [0; 16 << 10];
    loop {
        // No frame begins like this: its first byte is the number of its kind.
        if token(input).is_some() {
            return Ok(None);
        }
        if let Some(bytes) = body_length(input).filter(|bytes| *bytes > FRAME) {
            let error = ProtocolError::TooLong { bytes, most: FRAME };
            return Ok(Some(Err(error)));
        }
        match ChallengeMessage::decode(input) {
            Ok(Some((frame, length))) => {
                input.drain(..length);
                return Ok(Some(Ok(frame)));
            }
            Ok(None) => {}
            Err(error) => return Ok(Some(Err(error))),
        }
        if begun.elapsed() > LIFETIME {
            return Ok(Some(Err(ProtocolError::Expired)));
        }
        match stream.read(&mut piece) {
            Ok(0) if input.is_empty() => return Ok(None),
            Ok(0) => return Ok(Some(Err(ProtocolError::Truncated))),
            Ok(count) => input.extend(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mullion::trust::SecretKey;

    #[test]
    fn connections_of_one_user_leave_room_for_others() {
        let connected = Connected::default();
        let mut places = Vec::new();
        for user in [1000, 1000, 1000, 1000] {
            places.push(connected.enter(user).expect("room"));
        }
        assert!(connected.enter(1000).is_none());
        for user in 1001..1004 {
            for _ in 0..CONNECTIONS_OF_ONE {
                places.push(connected.enter(user).expect("room"));
            }
        }
        assert!(connected.enter(1004).is_none(), "all together");
        // A thread that panics gives its place back.
        let place = places.remove(0);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _place = place;
            panic!("on purpose");
        }));
        assert!(ended.is_err());
        assert!(connected.enter(1004).is_some());
        drop(places);
        assert!(lock(&connected.0).is_empty());
    }

    #[test]
    fn tokens_of_one_key_leave_room_for_others() {
        let place = tempfile::tempdir().expect("a directory");
        let policy = place.path().join("policy.toml");
        std::fs::write(&policy, "version = 1\n").expect("room");
        let users = Users {
            authoriser: Authoriser::read(&policy, |_| {}).expect("a policy"),
            roles: Vec::new(),
            unfetched: Mutex::default(),
        };
        let key = |seed: u8| SecretKey::from_seed(&[seed; 32]).public();
        let memory = || OwnedFd::from(File::open("/dev/null").expect("it is there"));
        let first = users.keep(key(1), "m", memory()).expect("room");
        let second = users.keep(key(1), "m", memory()).expect("room");
        let waits = |token: &str| {
            let unfetched = lock(&users.unfetched);
            unfetched.iter().any(|other| other.token == token)
        };
        assert!(!waits(&first) && waits(&second), "one for a module");
        for at in 0..2 * UNFETCHED {
            let _full = users.keep(key(1), &at.to_string(), memory());
        }
        assert_eq!(lock(&users.unfetched).len(), UNFETCHED_OF_ONE);
        let of_another = users.keep(key(2), "m", memory()).expect("room");
        assert!(waits(&of_another));
    }
}
