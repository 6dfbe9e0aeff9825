//! Where the fields of httpd's structures are: fields.txt, which a test holds against the headers, and the few of them
//! that this crate follows itself.

use std::sync::OnceLock;

/// Name, distance and size of each field.
pub(crate) fn fields() -> &'static [(&'static str, u64, u64)] {
    static FIELDS: OnceLock<Vec<(&'static str, u64, u64)>> = OnceLock::new();
    FIELDS.get_or_init(|| {
        let rows = include_str!("fields.txt").lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let name = words.next()?;
            Some((
                name,
                words.next()?.parse().ok()?,
                words.next()?.parse().ok()?,
            ))
        });
        rows.collect()
    })
}

/// A field by its name.
pub(crate) fn field(name: &str) -> Option<(u64, u64)> {
    let mut fields = fields().iter();
    let (_, at, bytes) = fields.find(|(known, _, _)| *known == name)?;
    Some((*at, *bytes))
}

/// The field of a structure that a distance is in.
pub(crate) fn field_at(structure: &str, at: u64) -> Option<&'static str> {
    let inside = |(name, start, bytes): &&(&'static str, u64, u64)| {
        let is_it = name.strip_prefix(structure);
        is_it.is_some_and(|rest| rest.starts_with('.')) && (*start..start + bytes).contains(&at)
    };
    fields().iter().find(inside).map(|(name, _, _)| *name)
}

macro_rules! places {
    ($($name:ident = $field:literal, $at:literal;)*) => {
        $(pub(crate) const $name: u64 = $at;)*

        /// The first that is not where fields.txt has it.
        pub(crate) fn wrong() -> Option<&'static str> {
            let all = [$(($field, $at)),*];
            let wrong = all.iter().find(|(name, at)| field(name).is_none_or(|found| found.0 != *at));
            wrong.map(|(name, _)| *name)
        }
    };
}

places! {
    R_POOL = "request_rec.pool", 0;
    R_CONNECTION = "request_rec.connection", 8;
    R_NEXT = "request_rec.next", 24;
    R_PREV = "request_rec.prev", 32;
    R_MAIN = "request_rec.main", 40;
    R_HEADERS_IN = "request_rec.headers_in", 232;
    R_HEADERS_OUT = "request_rec.headers_out", 240;
    R_ERR_HEADERS_OUT = "request_rec.err_headers_out", 248;
    R_SUBPROCESS_ENV = "request_rec.subprocess_env", 256;
    R_NOTES = "request_rec.notes", 264;
    R_STATUS = "request_rec.status", 104;
    R_PROTO_OUTPUT_FILTERS = "request_rec.proto_output_filters", 440;
    R_HANDLER = "request_rec.handler", 280;
    R_USER = "request_rec.user", 312;
    R_AUTH_TYPE = "request_rec.ap_auth_type", 320;
    R_REQUEST_CONFIG = "request_rec.request_config", 392;
    R_OUTPUT_FILTERS = "request_rec.output_filters", 424;
    R_INPUT_FILTERS = "request_rec.input_filters", 432;
    R_TRAILERS_IN = "request_rec.trailers_in", 696;
    R_TRAILERS_OUT = "request_rec.trailers_out", 704;
    R_INVOKE_MTX = "request_rec.invoke_mtx", 464;
    R_SERVER = "request_rec.server", 16;
    R_PROXYREQ = "request_rec.proxyreq", 60;
    R_TIME = "request_rec.request_time", 88;
    R_PER_DIR_CONFIG = "request_rec.per_dir_config", 384;
    R_LOG = "request_rec.log", 400;
    R_PROTO_INPUT_FILTERS = "request_rec.proto_input_filters", 448;
    R_AGENT_ADDR = "request_rec.useragent_addr", 680;
    R_AGENT_IP = "request_rec.useragent_ip", 688;
    R_BNOTES = "request_rec.bnotes", 728;
    C_POOL = "conn_rec.pool", 0;
    C_SERVER = "conn_rec.base_server", 8;
    C_CONN_CONFIG = "conn_rec.conn_config", 88;
    C_BUCKET_ALLOC = "conn_rec.bucket_alloc", 128;
    C_CLIENT_ADDR = "conn_rec.client_addr", 32;
    C_CLIENT_IP = "conn_rec.client_ip", 40;
    C_LOG = "conn_rec.log", 168;
    C_NOTES = "conn_rec.notes", 96;
    C_INPUT_FILTERS = "conn_rec.input_filters", 104;
    C_OUTPUT_FILTERS = "conn_rec.output_filters", 112;
    C_SBH = "conn_rec.sbh", 120;
    C_CS = "conn_rec.cs", 136;
    C_ABORTED = "conn_rec.aborted", 156;
    C_KEEPALIVE = "conn_rec.keepalive", 160;
    S_PROCESS = "server_rec.process", 0;
    S_MODULE_CONFIG = "server_rec.module_config", 48;
    S_NEXT = "server_rec.next", 8;
    S_LOOKUP_DEFAULTS = "server_rec.lookup_defaults", 56;
    P_POOL = "process_rec.pool", 0;
    P_PCONF = "process_rec.pconf", 8;
    CMD_INFO = "cmd_parms.info", 0;
    CMD_POOL = "cmd_parms.pool", 64;
    CMD_TEMP = "cmd_parms.temp_pool", 72;
    CMD_DIRECTIVE = "cmd_parms.directive", 56;
    CMD_SERVER = "cmd_parms.server", 80;
    CMD_COMMAND = "cmd_parms.cmd", 96;
    CMD_CONTEXT = "cmd_parms.context", 104;
    D_FIRST_CHILD = "ap_directive_t.first_child", 24;
    F_FREC = "ap_filter_t.frec", 0;
    F_CTX = "ap_filter_t.ctx", 8;
    F_NEXT = "ap_filter_t.next", 16;
    F_R = "ap_filter_t.r", 24;
    F_C = "ap_filter_t.c", 32;
    M_INDEX = "module.module_index", 8;
    M_NEXT = "module.next", 32;
    M_MAGIC = "module.magic", 40;
    M_REWRITE = "module.rewrite_args", 48;
    M_CREATE_DIR = "module.create_dir_config", 56;
    M_MERGE_DIR = "module.merge_dir_config", 64;
    M_CREATE_SERVER = "module.create_server_config", 72;
    M_MERGE_SERVER = "module.merge_server_config", 80;
    M_CMDS = "module.cmds", 88;
    M_HOOKS = "module.register_hooks", 96;
    COMMAND_FUNC = "command_rec.func", 8;
    COMMAND_HOW = "command_rec.args_how", 28;
    L_NEXT = "ap_listen_rec.next", 0;
    L_ACCEPT = "ap_listen_rec.accept_func", 24;
    PS_PID = "process_score.pid", 0;
    PS_QUIESCING = "process_score.quiescing", 8;
    B_POOL = "apr_bucket_brigade.p", 0;
    B_ALLOCATOR = "apr_bucket_brigade.bucket_alloc", 24;
}

/// Bytes of structures.
pub(crate) const REQUEST: u64 = R_BNOTES + 8;
pub(crate) const CONNECTION: u64 = 208;
pub(crate) const STATE: u64 = 120;
pub(crate) const MODULE: usize = 112;
pub(crate) const COMMAND: u64 = 40;

/// Reads a word of the host's, or one that the module has.
///
/// # Safety
/// There is memory.
pub(crate) unsafe fn read(at: u64) -> u64 {
    // SAFETY: the caller says that there is memory; no alignment is needed.
    unsafe { (at as *const u64).read_unaligned() }
}
