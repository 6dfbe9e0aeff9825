/* Back traces from within. Return addresses lie where a domain cannot read them, so there are none: backtrace() finds 0.
 * The report of a fault has the back trace, with names and lines. */
#ifndef MULLION_EXECINFO_H
#define MULLION_EXECINFO_H
#ifdef __cplusplus
extern "C" {
#endif

int backtrace(void **, int);
char **backtrace_symbols(void *const *, int);
void backtrace_symbols_fd(void *const *, int, int);

#ifdef __cplusplus
}
#endif
#endif
