/* A program has one thread: reference counts need no locked instructions. In an
 * extension it is 0, as the host's threads may all call it. */
#ifndef MULLION_SYS_SINGLE_THREADED_H
#define MULLION_SYS_SINGLE_THREADED_H
#ifdef __cplusplus
extern "C" {
#endif
extern char __libc_single_threaded;
#ifdef __cplusplus
}
#endif
#endif
