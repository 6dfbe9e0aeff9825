/* Back traces from within: the addresses behind the calls that led here, and each as `program(+0x2f3a) [0x...]`, whose
 * offset addr2line finds in the image. */
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
