//! The interface as policies speak of it.

use super::{Way, table};
use crate::slots;
use mullion_word_policy::{Call, File, Interface};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What the interface's file says of fields that only the core may write: it follows these pointers, or calls what it finds
/// there.
const NEVER: [&str; 14] = [
    "pool",
    "connection",
    "server",
    "next",
    "prev",
    "main",
    "per_dir_config",
    "log",
    "htaccess",
    "output_filters",
    "input_filters",
    "proto_output_filters",
    "proto_input_filters",
    "invoke_mtx",
];

/// What a policy calls the right to take filters of others out of a request.
pub(crate) const REMOVAL: &str = "request_rec.output_filters.removal";

/// Modules whose memory others may be allowed to write: they keep what they have in common in it.
const PARTNERS: [&str; 34] = [
    "session",
    "session_cookie",
    "session_dbd",
    "session_crypto",
    "auth_form",
    "auth_digest",
    "authn_socache",
    "cache",
    "cache_disk",
    "cache_socache",
    "socache_shmcb",
    "socache_dbm",
    "socache_memcache",
    "socache_redis",
    "slotmem_shm",
    "slotmem_plain",
    "dbd",
    "proxy",
    "proxy_http",
    "proxy_fcgi",
    "proxy_ajp",
    "proxy_scgi",
    "proxy_uwsgi",
    "proxy_balancer",
    "proxy_hcheck",
    "proxy_wstunnel",
    "proxy_connect",
    "proxy_express",
    "dav",
    "dav_fs",
    "dav_lock",
    "watchdog",
    "heartmonitor",
    "lua",
];

/// The interface as policies speak of it: functions, groups of them, and fields of structures as `request_rec.user`.
pub(crate) fn interface() -> &'static Interface {
    static INTERFACE: OnceLock<Interface> = OnceLock::new();
    INTERFACE.get_or_init(|| {
        let mut file = File::default();
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for row in &table().rows {
            let stacked = match &row.way {
                Way::Mediated(params, _) if params.len() > 6 => slots::STACKED,
                Way::Own { variadic: true } => 16,
                Way::Cross => slots::STACKED,
                _ => 0,
            };
            let call = Call {
                stacked,
                ..Call::default()
            };
            file.calls.insert(row.name.to_owned(), call);
            let members = groups.entry(row.group.to_owned()).or_default();
            members.push(row.name.to_owned());
        }
        for (name, _, _) in crate::layout::fields() {
            let (structure, field) = name.split_once('.').unwrap_or((name, ""));
            let offered = match structure {
                "request_rec" | "conn_rec" => !NEVER.contains(&field),
                "server_rec" => field == "module_config",
                "cmd_parms" => matches!(field, "info" | "override" | "limited" | "path"),
                _ => false,
            };
            if matches!(
                *name,
                "request_rec.filename" | "request_rec.uri" | "request_rec.args"
            ) {
                file.calls
                    .insert(format!("{name}.characters"), Call::default());
            }
            if offered {
                file.calls.insert((*name).to_owned(), Call::default());
            }
        }
        for name in crate::backends::BACKEND_FIELDS {
            file.calls.insert(name.0.to_owned(), Call::default());
        }
        use crate::swaps::{MERGED, SOCKET, SOURCE, TUNNEL};
        for name in [REMOVAL, crate::score::LINE, SOCKET, SOURCE, TUNNEL, MERGED] {
            file.calls.insert(name.to_owned(), Call::default());
        }
        // Memory that another module has of pools.
        for name in PARTNERS {
            let name = format!("{name}_module.memory");
            file.calls.insert(name, Call::default());
        }
        let default = crate::load::DEFAULT;
        if let Ok(default) = File::parse(default) {
            groups.insert("default".to_owned(), default.allow);
        }
        file.groups = groups;
        Interface::new(&[file])
    })
}
