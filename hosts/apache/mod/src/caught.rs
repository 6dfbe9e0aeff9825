//! A fault of ours ends the call of the module that has met with it. It would end the process otherwise, as nothing of Rust's goes
//! through the functions of the server.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does what may fail by a fault of ours. The server's log has where that was.
pub(crate) fn caught<R>(act: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    // A change that was made half is behind a lock that goes on (`walled::lock`), or goes with the call.
    let done = catch_unwind(AssertUnwindSafe(act));
    done.unwrap_or_else(|_| Err("the wall has failed: this is its own fault".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::caught;

    #[test]
    fn a_fault_is_an_error_of_the_call() {
        assert_eq!(caught(|| Ok(7)), Ok(7));
        let list: [u8; 3] = [1, 2, 3];
        let far = std::hint::black_box(5);
        let failed = caught(|| Ok(list[far]));
        assert!(failed.is_err_and(|why| why.contains("its own fault")));
        assert_eq!(
            caught(|| Err::<u8, _>("no".to_owned())),
            Err("no".to_owned())
        );
    }
}
