/* Whether several threads may be in this domain: in an extension, and in a program that has begun one. */
char __mullion_threads;
/* What libstdc++ asks. */
char __libc_single_threaded = 1;
