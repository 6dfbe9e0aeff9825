//! Image and credentials in, a protection domain ready to be called out.
