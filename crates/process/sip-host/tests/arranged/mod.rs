//! Configurations of the examples' libraries, and what does not depend on the arrangement.

use mullion_sip::process::Cause;
use mullion_sip_host::Configuration;

use super::built::library;

/// A configuration in which libraries are the examples', by their names.
pub(crate) fn configuration(text: &str) -> Configuration {
    let mut configuration = Configuration::parse(text).expect("well formed");
    for process in configuration.processes.values_mut() {
        process.library = library(&process.library.to_string_lossy());
    }
    configuration
}

/// Every end of a process, by how one ends that is told to end in this way.
#[allow(dead_code, reason = "of those who use this file, some end nothing")]
pub(crate) fn every_end_is_told(odd: impl Fn(&str) -> (Cause, String)) {
    assert_eq!(odd("return"), (Cause::Returned, String::new()));
    assert_eq!(odd("fail"), (Cause::Exited(1), "as it was told".into()));
    assert_eq!(odd("exit"), (Cause::Exited(7), String::new()));
    let (cause, message) = odd("panic");
    assert_eq!(cause, Cause::Panic);
    assert!(
        message.ends_with("on purpose, with 1 arguments"),
        "{message}"
    );
    assert_eq!(odd("hook").0, Cause::Panic);
    assert_eq!(odd("memory").0, Cause::Memory);
    assert_eq!(odd("stack").0, Cause::Stack);
    assert_eq!(odd("loop").0, Cause::Slice);
    assert_eq!(odd("abort").0, Cause::Abort);
    assert_eq!(odd("names"), (Cause::Returned, String::new()));
    for flood in ["flood", "ends", "blocks"] {
        assert_eq!(odd(flood), (Cause::Returned, String::new()), "{flood}");
    }
}
