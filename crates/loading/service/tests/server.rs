//! The loader's bounds, with little patience and little room.

use mullion_loader::{Authoriser, Imports};
use mullion_service::wire::{self, List, Operation, Status};
use mullion_service::{Address, Client, ClientError, Server, ServiceListener, Settings, Stopper};
use mullion_trust::SecretKey;
use mullion_trust::challenge::{Challenge, ChallengeMessage, VERSION, sign_request};
use proptest::prelude::*;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

struct Loader {
    directory: tempfile::TempDir,
    stopper: Stopper,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Loader {
    fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let address = Address::Unix(directory.path().join("s"));
        let mut settings = Settings::default();
        change(&mut settings);
        let listener = ServiceListener::bind(&address).expect("bound");
        let authoriser = Authoriser::trusting_everyone();
        let imports = Box::new(|_| Imports::new());
        let server = Server::new(vec![listener], authoriser, imports, settings).expect("a server");
        Loader {
            directory,
            stopper: server.stopper(),
            thread: Some(std::thread::spawn(move || server.run())),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).expect("connected");
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).expect("set");
        stream
    }

    fn client(&self) -> Client {
        let address = Address::Unix(self.path());
        Client::connect(&address, key(), Duration::from_secs(60)).expect("connected")
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(Ok(())))), "{ended:?}");
    }
}

fn key() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

fn hello() -> Vec<u8> {
    let hello = ChallengeMessage::Hello {
        version: VERSION,
        key: *key().public().as_bytes(),
    };
    hello.encode()
}

fn list(client: &mut Client) -> Result<Status, ClientError> {
    let answer = client.ask(Operation::List, &List {}, &[], &mut |_, _| {})?;
    Ok(answer.status)
}

/// What comes until the loader closes.
fn rest(mut stream: UnixStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _reset = stream.read_to_end(&mut all);
    all
}

fn challenge(stream: &mut UnixStream) -> Challenge {
    let mut bytes = [0; 41];
    stream.read_exact(&mut bytes).expect("a challenge");
    match ChallengeMessage::decode(&bytes) {
        Ok(Some((ChallengeMessage::Challenge(challenge), 41))) => challenge,
        other => panic!("{other:?}"),
    }
}

/// The reason in a farewell.
fn farewell(bytes: &[u8]) -> (u8, String) {
    match ChallengeMessage::decode(bytes) {
        Ok(Some((
            ChallengeMessage::Answer {
                counter: 0,
                status,
                body,
            },
            _,
        ))) => {
            let (object, _): (serde_json::Value, _) = wire::decode(&body).expect("an object");
            (status, object["error"].as_str().expect("a text").to_owned())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_says_nothing_or_half_is_left_while_others_are_served() {
    let loader = Loader::new(|settings| {
        settings.hello = Duration::from_millis(300);
        settings.transfer = Duration::from_millis(300);
        settings.idle = Duration::from_millis(600);
    });
    let silent = loader.connect();
    let mut half = loader.connect();
    half.write_all(&hello()[..20]).expect("sent");
    let mut idle = loader.connect();
    idle.write_all(&hello()).expect("sent");
    let mut stuck = loader.connect();
    stuck.write_all(&hello()).expect("sent");
    challenge(&mut stuck);
    stuck.write_all(&[3, 0, 0, 1, 0, 9]).expect("sent");
    assert_eq!(list(&mut loader.client()).expect("served"), Status::Done);
    assert_eq!(rest(silent), b"");
    assert_eq!(rest(half), b"");
    assert_eq!(rest(stuck), b"");
    assert_eq!(rest(idle).len(), 41, "its challenge and no more");
}

#[test]
fn a_challenge_does_not_last() {
    let loader = Loader::new(|settings| settings.lifetime = Duration::from_millis(200));
    let mut client = loader.client();
    assert_eq!(list(&mut client).expect("in time"), Status::Done);
    std::thread::sleep(Duration::from_millis(300));
    match list(&mut client) {
        Err(ClientError::Ended(why)) => assert!(why.contains("expired"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_connection_too_many_closes_the_one_that_waited_longest() {
    let loader = Loader::new(|settings| settings.connections = 3);
    let first = loader.connect();
    let mut others: Vec<_> = (0..2).map(|_| loader.client()).collect();
    let mut last = loader.client();
    assert_eq!(rest(first), b"", "the silent one went");
    for client in others.iter_mut().chain([&mut last]) {
        assert_eq!(list(client).expect("still served"), Status::Done);
    }
}

#[test]
fn large_frames_share_what_there_is_and_small_ones_always_go() {
    // Half of it is for those who have proven a key that is known.
    let loader = Loader::new(|settings| settings.buffered = 2 << 20);
    let large = |length: u32| {
        let mut stream = loader.connect();
        stream.write_all(&hello()).expect("sent");
        challenge(&mut stream);
        let head = [&[3][..], &(2u32 << 20).to_be_bytes()].concat();
        stream.write_all(&head).expect("sent");
        // Fails where the loader has closed already.
        let _closed = stream.write_all(&vec![0; length as usize]);
        stream
    };
    let _holds = large(900 << 10);
    std::thread::sleep(Duration::from_millis(200));
    let (status, why) = farewell(&rest(large(400 << 10)));
    assert_eq!(status, Status::Busy as u8);
    assert!(why.contains("large requests"), "{why}");
    assert_eq!(list(&mut loader.client()).expect("served"), Status::Done);
}

#[test]
fn a_frame_over_the_bound_ends_before_it_is_sent() {
    let loader = Loader::new(|settings| settings.frame = 1000);
    let mut stream = loader.connect();
    stream.write_all(&hello()).expect("sent");
    challenge(&mut stream);
    stream.write_all(&[3, 0, 0, 4, 0]).expect("sent");
    assert!(farewell(&rest(stream)).1.contains("longer than"));
}

#[test]
fn a_request_is_good_on_its_own_connection_only() {
    let loader = Loader::new(|_| {});
    let [mut one, mut two] = [loader.connect(), loader.connect()];
    for stream in [&mut one, &mut two] {
        stream.write_all(&hello()).expect("sent");
    }
    let [first, second] = [challenge(&mut one), challenge(&mut two)];
    assert_ne!(first.nonce, second.nonce);
    let body = wire::encode(&List {}, &[]);
    let request = sign_request(&first, 1, Operation::List as u8, body, &key());
    let request = ChallengeMessage::Request(request).encode();
    two.write_all(&request).expect("sent");
    assert!(farewell(&rest(two)).1.contains("signature"));
    one.write_all(&request).expect("sent");
    let mut head = [0; 5 + 9];
    one.read_exact(&mut head).expect("an answer");
    assert_eq!((head[0], head[12], head[13]), (4, 1, Status::Done as u8));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever comes, the loader goes on. One loader for all cases.
    #[test]
    fn bytes_of_any_kind_do_no_harm(greet: bool, bytes in prop::collection::vec(any::<u8>(), 0..300), cut: bool) {
        use std::sync::LazyLock;
        static LOADER: LazyLock<Loader> = LazyLock::new(|| Loader::new(|settings| {
            settings.transfer = Duration::from_millis(50);
            settings.hello = Duration::from_millis(50);
        }));
        let mut stream = LOADER.connect();
        if greet {
            stream.write_all(&hello()).expect("sent");
        }
        let _closed = stream.write_all(&bytes);
        if cut {
            let _closed = stream.shutdown(std::net::Shutdown::Write);
            rest(stream);
        }
        prop_assert_eq!(list(&mut LOADER.client()).expect("served"), Status::Done);
    }
}
