//! The system interface that a program extension may be granted: an allow-list, every pointer checked.
#![forbid(unsafe_code)]
