//! State that a program has once, whatever was built on its own and loaded into it.
//!
//! ```text
//!   host (linked)                            separately built SIP (feature `separate`)
//!   OWN: a module's state  <--------------   HOST -> the host's, from `attach` on; before that its own
//! ```
//! A separately built SIP has a copy of this crate, with copies of its statics. Both copies run the same source with
//! the same layout, which is checked before the SIP is loaded. So a pointer to the host's state is all that they need
//! to agree on. Each module owns its state and says so by [`__state`].

/// `OWN`, the state of this copy of a module, and `state()`, the program's. With the feature `separate` of the crate that
/// uses it, `attach` brings the copy to the host's.
#[doc(hidden)]
#[macro_export]
macro_rules! __state {
    ($type:ty = $value:expr) => {
        /// This copy's.
        pub(crate) static OWN: $type = $value;

        /// The program's.
        #[cfg(not(feature = "separate"))]
        #[inline(always)]
        fn state() -> &'static $type {
            &OWN
        }

        #[cfg(feature = "separate")]
        static HOST: ::std::sync::atomic::AtomicPtr<$type> =
            ::std::sync::atomic::AtomicPtr::new((&raw const OWN).cast_mut());

        /// The program's: the host's once this copy of the crate is attached to one.
        #[cfg(feature = "separate")]
        #[inline(always)]
        fn state() -> &'static $type {
            // SAFETY: `HOST` is this copy's static, or what `attach` was given: a static of the host.
            unsafe { &*HOST.load(::std::sync::atomic::Ordering::Relaxed) }
        }

        /// From here on this copy of the module works with the host's state. Nothing of it has been used so far.
        #[cfg(feature = "separate")]
        pub(crate) fn attach(host: &'static $type) {
            HOST.store(
                ::std::ptr::from_ref(host).cast_mut(),
                ::std::sync::atomic::Ordering::Relaxed,
            );
        }
    };
}
