/* Whether several threads may be in this domain: in an extension, and in a program that has begun one. */
char __mullion_threads;
/* See mullion_signal.h. */
struct mullion_signals *(*__mullion_signals_of_thread)(void);
/* What libstdc++ asks. */
char __libc_single_threaded = 1;
