/* WASI's C library has no setjmp. A program that includes this jumps nowhere: its
 * errors end it. Only for the WebAssembly builds, where no workload raises one. */
#ifndef BENCH_WASI_SETJMP_H
#define BENCH_WASI_SETJMP_H

typedef int jmp_buf[1];

#define setjmp(buffer) ((buffer)[0] = 0)
#define longjmp(buffer, value) __builtin_trap()

#endif
