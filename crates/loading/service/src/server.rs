//! The thread that waits for all connections.

use crate::address::ServiceListener;
use crate::connection::{Close, Connection};
use crate::settings::Settings;
use crate::workers::{Done, Job, Standing, Workers};
use mullion_modules::{
    Authoriser, ClientExchange, Gauge, Heard, ImportsFor, Modules, Observer, Room, Rules,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How often limits are looked at where nothing else happens.
const TICK: Duration = Duration::from_millis(100);

/// A code loader that is not yet running.
pub struct Server {
    listeners: Vec<ServiceListener>,
    settings: Settings,
    modules: Arc<Modules>,
    woken: UnixStream,
    stopper: Stopper,
    rules: Rules,
}

/// Stops a [`Server`], from any thread.
#[derive(Clone)]
pub struct Stopper {
    stop: Arc<AtomicBool>,
    wake: Arc<UnixStream>,
}

impl Stopper {
    /// No new connections; requests in progress are answered, as long as
    /// [`Settings::grace`] lasts; then [`Server::run`] returns.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        // A full pipe wakes as well.
        let _full = (&*self.wake).write(&[0]);
    }
}

impl Server {
    /// A loader for clients of `listeners`, who may load what `authoriser`
    /// allows, with `imports` offered.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new(
        listeners: Vec<ServiceListener>,
        authoriser: Authoriser,
        imports: ImportsFor,
        settings: Settings,
    ) -> io::Result<Self> {
        let rules = Rules::new(authoriser);
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let room = Room {
            modules: settings.modules,
            modules_of_one: settings.modules_of_one,
            memory: settings.memory,
            limits: settings.limits.clone(),
        };
        Ok(Server {
            listeners,
            modules: Arc::new(Modules::new(rules.clone(), imports, room)),
            settings,
            woken,
            stopper: Stopper {
                stop: Arc::default(),
                wake: Arc::new(wake),
            },
            rules,
        })
    }

    /// Has `observer` told what becomes of modules, from the modules' threads. The first one stays.
    #[must_use]
    pub fn observed_by(self, observer: Observer) -> Self {
        self.modules.observed_by(observer);
        self
    }

    /// What its modules have done.
    #[must_use]
    pub fn gauge(&self) -> Gauge {
        Gauge::of(self.modules.clone())
    }

    /// What stops it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// What it asks who may load.
    #[must_use]
    pub fn rules(&self) -> Rules {
        self.rules.clone()
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// If the system gives no threads, or waiting fails.
    pub fn run(self) -> io::Result<()> {
        let stopper = self.stopper.clone();
        let wake = Arc::new(move || stopper.wake());
        let (workers, done) = Workers::start(self.settings.workers, &self.modules, wake)?;
        let mut loop_ = Loop {
            server: self,
            workers,
            done,
            start: Instant::now(),
            connections: HashMap::new(),
            last: 0,
            held: (0, 0),
        };
        loop_.run()
    }
}

struct Loop {
    server: Server,
    workers: Workers,
    done: Receiver<Done>,
    /// What the protocol's clock counts from.
    start: Instant,
    connections: HashMap<u64, Connection>,
    last: u64,
    /// Bytes of large frames that are held, and those of strangers among them.
    held: (usize, usize),
}

/// What there is to do.
enum Ready {
    Listener(usize),
    Connection(u64),
}

impl Loop {
    fn run(&mut self) -> io::Result<()> {
        while !self.server.stopper.stop.load(Ordering::SeqCst) {
            self.turn()?;
        }
        // The sockets go first: who comes now finds nobody.
        self.server.listeners.clear();
        let end = Instant::now() + self.server.settings.grace;
        loop {
            let unfinished =
                |connection: &Connection| connection.is_busy() || connection.wants_to_send();
            self.connections
                .retain(|_, connection| unfinished(connection));
            if self.connections.is_empty() || Instant::now() >= end {
                return Ok(());
            }
            self.turn()?;
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        let ready = self.wait()?;
        let now = Instant::now();
        while let Ok(done) = self.done.try_recv() {
            self.finish(done, now);
        }
        self.held = (0, 0);
        for connection in self.connections.values() {
            self.held.0 += connection.held();
            self.held.1 += if connection.known {
                0
            } else {
                connection.held()
            };
        }
        for ready in ready {
            match ready {
                Ready::Listener(index) => self.accept(index, now),
                Ready::Connection(id) => self.serve(id, now),
            }
        }
        let settings = &self.server.settings;
        self.connections.retain(|_, connection| {
            connection
                .deadline(settings)
                .is_none_or(|deadline| now < deadline)
        });
        Ok(())
    }

    /// Waits until something can be done.
    fn wait(&self) -> io::Result<Vec<Ready>> {
        let server = &self.server;
        let mut fds = vec![PollFd::new(&server.woken, PollFlags::IN)];
        let mut names = Vec::with_capacity(self.connections.len() + 2);
        for (index, listener) in server.listeners.iter().enumerate() {
            fds.push(PollFd::new(listener, PollFlags::IN));
            names.push(Ready::Listener(index));
        }
        for (id, connection) in &self.connections {
            let flags = match (connection.wants_to_send(), connection.wants_to_receive()) {
                (true, _) => PollFlags::OUT,
                (_, true) => PollFlags::IN,
                _ => continue,
            };
            fds.push(PollFd::new(connection.stream(), flags));
            names.push(Ready::Connection(*id));
        }
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.as_nanos() as _,
        };
        match poll(&mut fds, Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut drain = [0; 64];
        while matches!((&server.woken).read(&mut drain), Ok(64)) {}
        let events = fds[1..].iter().map(|fd| !fd.revents().is_empty());
        Ok(names
            .into_iter()
            .zip(events)
            .filter(|(_, event)| *event)
            .map(|(name, _)| name)
            .collect())
    }

    fn accept(&mut self, index: usize, now: Instant) {
        for _ in 0..64 {
            let stream = match self.server.listeners[index].accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // No descriptors left, most likely: somebody must go.
                Err(_) => {
                    self.evict();
                    return;
                }
            };
            let lifetime = self.server.settings.lifetime;
            let Ok((line, exchange)) = ClientExchange::begin(stream, lifetime, now - self.start)
            else {
                return;
            };
            let mut connection = Connection::new(line, exchange, now);
            if self.connections.len() >= self.server.settings.connections && !self.evict() {
                connection.close(&Close::Busy("too many clients at once; try again"), now);
                connection.send(now);
                continue;
            }
            self.last += 1;
            self.connections.insert(self.last, connection);
        }
    }

    /// Closes the connection that has waited longest for its client, a stranger's if there is one;
    /// whether there was any.
    fn evict(&mut self) -> bool {
        let waiting = self
            .connections
            .iter()
            .filter(|(_, connection)| !connection.is_busy());
        let oldest = waiting.min_by_key(|(_, connection)| (connection.known, connection.since()));
        let oldest = oldest.map(|(id, _)| *id);
        oldest.is_some_and(|id| self.connections.remove(&id).is_some())
    }

    /// Sends and receives what can be.
    fn serve(&mut self, id: u64, now: Instant) {
        let buffered = self.server.settings.buffered;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        // Half of the room is for those with credentials.
        let room = match connection.known {
            true => buffered.saturating_sub(self.held.0),
            false => (buffered / 2).saturating_sub(self.held.1),
        };
        let before = connection.held();
        if connection.wants_to_send() && !connection.send(now) {
            self.connections.remove(&id);
            return;
        }
        if connection.wants_to_receive() {
            let received = connection.receive(&self.server.settings, room, now);
            let more = connection.held().saturating_sub(before);
            self.held.0 += more;
            self.held.1 += if connection.known { 0 } else { more };
            self.go_on(id, received, now);
        }
    }

    fn go_on(
        &mut self,
        id: u64,
        received: Result<Option<(ClientExchange, Vec<u8>)>, Close>,
        now: Instant,
    ) {
        let time = now - self.start;
        match received {
            Ok(None) => {}
            Ok(Some((exchange, frame))) if exchange.announced().is_none() => {
                self.greet(id, exchange, frame, now);
            }
            Ok(Some((exchange, frame))) => {
                let standing = self.standing(&exchange, &frame);
                let job = Job {
                    connection: id,
                    exchange,
                    frame,
                    time,
                };
                self.workers.give(standing, job);
            }
            Err(why) => self.leave(id, &why, now),
        }
    }

    /// In which queue a request goes. A key that is only announced may be another's, and to find
    /// out costs what it costs to hash the request: so a large one waits with the strangers until
    /// the key has been proven.
    fn standing(&self, exchange: &ClientExchange, frame: &[u8]) -> Standing {
        let small = frame.len() <= Settings::SMALL;
        let proven = exchange.proven().is_some() || small;
        let key = exchange.announced().filter(|_| proven);
        match key.is_some_and(|key| self.server.modules.knows(key)) {
            true => Standing::Known,
            false if small => Standing::Stranger,
            false => Standing::Heavy,
        }
    }

    /// Answers a hello, which costs nothing.
    fn greet(&mut self, id: u64, exchange: ClientExchange, frame: Vec<u8>, now: Instant) {
        match exchange.receive(frame, now - self.start, |_| {}) {
            Ok(Heard::Greeting(exchange, sealed)) => {
                let done = Done {
                    connection: id,
                    answered: Ok((exchange, sealed)),
                };
                self.finish(done, now);
            }
            // A client that has not said hello asks for nothing.
            Ok(Heard::Asked(_)) => self.leave(id, &Close::Gone, now),
            Err(error) => self.leave(id, &Close::Protocol(error), now),
        }
    }

    fn leave(&mut self, id: u64, why: &Close, now: Instant) {
        let goes_on = self.connections.get_mut(&id).is_some_and(|connection| {
            connection.close(why, now);
            connection.wants_to_send() && connection.send(now)
        });
        if !goes_on {
            self.connections.remove(&id);
        }
    }

    /// A worker has done its part.
    fn finish(&mut self, done: Done, now: Instant) {
        let id = done.connection;
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match done.answered {
            Err(error) => self.leave(id, &Close::Protocol(error), now),
            Ok((exchange, sealed)) => {
                let proven = exchange.proven();
                connection.known = proven.is_some_and(|key| self.server.modules.knows(key));
                let goes_on = connection.answer(exchange, sealed, now) && connection.send(now);
                if !goes_on {
                    self.connections.remove(&id);
                } else if connection.wants_to_receive() {
                    // The next request may have come already.
                    let next = connection.next(now);
                    self.go_on(id, next, now);
                }
            }
        }
    }
}
