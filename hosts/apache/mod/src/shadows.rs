//! Requests that a module has made in its own memory, as mod_proxy_http does for what a backend answers. The core would follow what
//! is in them. So it gets one of ours, with the fields of the module's that were looked at.
//!
//! ```text
//!   the module's request ──► a call of the host: its tables and numbers are looked at ──► ours, in the same pool
//!   mod_proxy's connection to a backend has the module's ──► the next call or return puts ours there
//! ```

use crate::apr;
use crate::call::{has, is_connection, is_request};
use crate::deeds;
use crate::frame::Frame;
use crate::layout::{self, read};
use crate::object::Kind;
use crate::walled::{Answer, Walled, lock};

const TABLES: [u64; 7] = [
    layout::R_HEADERS_IN,
    layout::R_HEADERS_OUT,
    layout::R_ERR_HEADERS_OUT,
    layout::R_SUBPROCESS_ENV,
    layout::R_NOTES,
    layout::R_TRAILERS_IN,
    layout::R_TRAILERS_OUT,
];

/// What a policy calls the right to give mod_proxy a request with a connection to a backend.
pub(crate) const OF_BACKEND: &str = "proxy_conn_rec.r";
/// Where such a connection has it.
const REQUEST: u64 = 8;

/// Sets a word of our request.
unsafe fn set(at: u64, value: u64) {
    // SAFETY: by the caller, it is a field of our own request.
    unsafe { (at as *mut u64).write(value) };
}

impl Walled {
    /// Our request for one in the module's memory, or for the core's own itself.
    pub(crate) fn shadow(&'static self, frame: &Frame, r: u64) -> Answer<Option<u64>> {
        if is_request(frame, r) {
            return Ok(Some(r));
        }
        if !self.makes_requests() || !self.writes(r, layout::REQUEST) {
            return Ok(None);
        }
        let known = lock(&self.shadows).get(&r).copied();
        let known = known.filter(|ours| self.knows(*ours, Kind::Request));
        let ours = match known {
            Some(ours) => ours,
            None => self.make_shadow(frame, r)?,
        };
        self.refresh(frame, r, ours)?;
        Ok(Some(ours))
    }

    fn makes_requests(&self) -> bool {
        self.backend_fields.contains(&OF_BACKEND)
    }

    fn make_shadow(&'static self, frame: &Frame, r: u64) -> Answer<u64> {
        // SAFETY: the module may write, and so read, its request. Each word is read once.
        let (pool, c, server) = unsafe {
            (
                read(r + layout::R_POOL),
                read(r + layout::R_CONNECTION),
                read(r + layout::R_SERVER),
            )
        };
        self.pool(frame, pool)?;
        if !is_connection(frame, c) || !frame.has_server(server) {
            return Err(format!(
                "{r:#x} is a request of no connection or server that the module was given"
            ));
        }
        let config =
            apr::symbol("ap_create_request_config").ok_or("the server does not have it")?;
        // SAFETY: the pool lives and gives that much; the connection is the core's.
        unsafe {
            let ours = apr::apr_palloc(pool, layout::REQUEST);
            (ours as *mut u8).write_bytes(0, layout::REQUEST as usize);
            let config: extern "C" fn(u64) -> u64 = std::mem::transmute(config);
            set(ours + layout::R_POOL, pool);
            set(ours + layout::R_CONNECTION, c);
            set(ours + layout::R_SERVER, server);
            set(ours + layout::R_LOG, read(c + layout::C_LOG));
            set(ours + layout::R_TIME, read(r + layout::R_TIME));
            set(ours + layout::R_REQUEST_CONFIG, config(pool));
            set(ours + layout::R_AGENT_ADDR, read(c + layout::C_CLIENT_ADDR));
            set(ours + layout::R_AGENT_IP, read(c + layout::C_CLIENT_IP));
            for at in [layout::R_INPUT_FILTERS, layout::R_PROTO_INPUT_FILTERS] {
                set(ours + at, read(c + layout::C_INPUT_FILTERS));
            }
            for at in [layout::R_OUTPUT_FILTERS, layout::R_PROTO_OUTPUT_FILTERS] {
                set(ours + at, read(c + layout::C_OUTPUT_FILTERS));
            }
            self.know(frame, Some(pool), ours, Kind::Request)?;
            lock(&self.shadows).insert(r, ours);
            Ok(ours)
        }
    }

    /// Takes over what the module has set since.
    fn refresh(&'static self, frame: &Frame, r: u64, ours: u64) -> Answer<()> {
        for at in TABLES {
            // SAFETY: the module may read its request.
            let table = unsafe { read(r + at) };
            if table != 0 && !has(frame, Kind::Table, table) {
                return Err(format!(
                    "{table:#x} in a request is no table that the module was given or has made"
                ));
            }
            // SAFETY: it is our request.
            unsafe { set(ours + at, table) };
        }
        for at in [layout::R_STATUS, layout::R_PROXYREQ] {
            // SAFETY: as before; both are 32 bits.
            unsafe { ((ours + at) as *mut u32).write(((r + at) as *const u32).read()) };
        }
        Ok(())
    }

    /// Before the core runs: connections to backends have our requests, and none of the module's; words that the core follows
    /// have what they may.
    #[inline(always)]
    pub(crate) fn exchange(&'static self, frame: &Frame) -> Answer<()> {
        match self.deeds.has(deeds::SWAPPED | deeds::BACKENDS) {
            true => self.exchange_all(frame),
            false => Ok(()),
        }
    }

    fn exchange_all(&'static self, frame: &Frame) -> Answer<()> {
        if self.deeds.has(deeds::SWAPPED) {
            self.look_at_words()?;
        }
        if self.deeds.has(deeds::BACKENDS) {
            self.take_backends(frame)?;
        }
        if !self.makes_requests() {
            return Ok(());
        }
        // The backend that is looked at is not kept: the core does not follow the word, and mod_proxy ends such a request with its connection.
        let kept = frame.kept();
        for backend in self.backends() {
            // SAFETY: mod_proxy keeps its connections as long as the process lives, or they lie in memory that is the module's for good.
            let r = unsafe { read(backend.at + REQUEST) };
            if r == 0 || self.knows(r, Kind::Request) {
                continue;
            }
            let ours = self.shadow(frame, r)?;
            // SAFETY: as before; what is not known is taken away.
            unsafe { set(backend.at + REQUEST, ours.unwrap_or(0)) };
            if ours.is_none() {
                return Err(format!("{r:#x} with a backend is no request of the module"));
            }
        }
        frame.let_go(kept);
        Ok(())
    }
}

/// The module's request has a place of the module's for configurations, which nobody else looks at.
pub(crate) extern "C" fn ap_create_request_config(pool: u64) -> u64 {
    const MODULES: u64 = 512;
    crate::call::mediate(|frame| {
        let at = frame.walled.take(frame, pool, 8 * MODULES)?;
        // SAFETY: it was just taken.
        unsafe { (at as *mut u8).write_bytes(0, 8 * MODULES as usize) };
        Ok(at)
    })
}

/// `APR_EGENERAL`, as httpd answers if there is no line.
const NO_LINE: u64 = 20014;

/// Whether httpd reads the body of a request by now. Then it has no line for a module: behind the end of the body it would look for
/// one for ever.
fn is_for_a_body(r: u64) -> bool {
    let Some(handle) = apr::symbol("ap_http_input_filter_handle") else {
        return false;
    };
    // SAFETY: the request is the core's or ours, filters are the core's, and the handle is its variable.
    let of = |at: u64| unsafe { read(at) };
    let record = of(handle as u64);
    let next = |f: &u64| Some(of(f + layout::F_NEXT)).filter(|next| *next != 0);
    let first = Some(of(r + layout::R_PROTO_INPUT_FILTERS)).filter(|first| *first != 0);
    let mut all = std::iter::successors(first, next).take(256);
    all.any(|f| of(f) == record)
}

/// A line of a request that the module was given.
pub(crate) extern "C" fn ap_getline(to: u64, bytes: u64, r: u64, flags: u64) -> u64 {
    const ERROR: u64 = u32::MAX as u64;
    crate::call::mediate(|frame| {
        let Some(r) = frame.walled.shadow(frame, r)? else {
            return Err(format!("ap_getline: {r:#x} is no request of the module"));
        };
        let bytes = u64::from(bytes as u32);
        if i32::try_from(bytes).map_or(true, |bytes| bytes < 1) {
            return Err("ap_getline: a line without a place for it".to_owned());
        }
        let mut written = crate::outs::Written::default();
        let line = written.take_over(frame, 0, to, bytes)?;
        if is_for_a_body(r) {
            return Ok(ERROR);
        }
        let real = apr::symbol("ap_getline").ok_or("the server does not have it")?;
        // SAFETY: it is httpd's function, with a request that the module may pass and room of ours for the line.
        let real: extern "C" fn(u64, u64, u64, u64) -> i32 = unsafe { std::mem::transmute(real) };
        let status = real(line, bytes, r, flags);
        written.give_back(frame, &mut [0; crate::slots::WIDE])?;
        Ok(status as u32 as u64)
    })
}

/// A line of what is read. If there is a length, the line goes to where the first word points.
pub(crate) extern "C" fn ap_rgetline_core(
    to: u64,
    bytes: u64,
    count: u64,
    r: u64,
    flags: u64,
    brigade: u64,
) -> u64 {
    crate::call::mediate(|frame| {
        let walled = frame.walled;
        walled.must_write(to, 8)?;
        walled.must_write(count, 8)?;
        // SAFETY: the module may write, and so read, there. The word that is looked at is the one that is passed on.
        let line = unsafe { read(to) };
        if bytes == 0 {
            return Err("ap_rgetline_core: a line without a place for it".to_owned());
        }
        // httpd looks for the end of what it has written. Another thread of the module could take that away.
        let mut written = crate::outs::Written::default();
        let mut line = written.take_over(frame, 0, line, bytes)?;
        let r = walled.shadow(frame, r)?;
        let r = r.ok_or("ap_rgetline_core: no request of the module")?;
        if is_for_a_body(r) {
            return Ok(NO_LINE);
        }
        let mut passing = crate::rings::Passing::new(frame);
        let brigade = match walled.brigade_of_backend(brigade) {
            Some(brigade) => brigade,
            None => passing.brigade(brigade)?,
        };
        let real = apr::symbol("ap_rgetline_core").ok_or("the server does not have it")?;
        let mut read = 0u64;
        // SAFETY: it is httpd's function, with words and room for the line of ours.
        let real: extern "C" fn(*mut u64, u64, *mut u64, u64, u64, u64) -> i32 =
            unsafe { std::mem::transmute(real) };
        let status = real(&mut line, bytes, &mut read, r, flags, brigade);
        passing.end()?;
        written.give_back(frame, &mut [0; crate::slots::WIDE])?;
        // SAFETY: `must_write` has seen that the module may write there.
        unsafe { (count as *mut u64).write(read) };
        Ok(status as u32 as u64)
    })
}
