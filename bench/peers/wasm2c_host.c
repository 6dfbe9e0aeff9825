/* The host of a program that wasm2c (wabt 1.0.32) made from a WebAssembly module
 * named "bench": the part of WASI that the workloads call, the standard streams
 * only. Compiled with BENCH_MODULE naming the generated header. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include BENCH_MODULE

enum { SUCCESS = 0, BAD_DESCRIPTOR = 8, FAULT = 21, INVALID = 28, IO = 29, NOT_SEEKABLE = 70 };

struct Z_wasi_snapshot_preview1_instance_t {
    Z_bench_instance_t program;
    int argc;
    char **argv;
};

typedef struct Z_wasi_snapshot_preview1_instance_t host;

/* `length` bytes of the program's memory at `at`, or null if they are not all there. */
static void *memory(host *h, u32 at, u32 length) {
    wasm_rt_memory_t *m = Z_benchZ_memory(&h->program);
    return (u64)at + length <= m->size ? m->data + at : NULL;
}

static u32 put32(host *h, u32 at, u32 value) {
    void *to = memory(h, at, 4);
    if (!to)
        return FAULT;
    memcpy(to, &value, 4);
    return SUCCESS;
}

u32 Z_wasi_snapshot_preview1Z_args_sizes_get(host *h, u32 count, u32 size) {
    u32 bytes = 0;
    for (int i = 0; i < h->argc; i++)
        bytes += (u32)strlen(h->argv[i]) + 1;
    return put32(h, count, (u32)h->argc) ? FAULT : put32(h, size, bytes);
}

u32 Z_wasi_snapshot_preview1Z_args_get(host *h, u32 pointers, u32 text) {
    for (int i = 0; i < h->argc; i++) {
        u32 length = (u32)strlen(h->argv[i]) + 1;
        void *to = memory(h, text, length);
        if (!to || put32(h, pointers + 4 * (u32)i, text))
            return FAULT;
        memcpy(to, h->argv[i], length);
        text += length;
    }
    return SUCCESS;
}

u32 Z_wasi_snapshot_preview1Z_environ_sizes_get(host *h, u32 count, u32 size) {
    return put32(h, count, 0) ? FAULT : put32(h, size, 0);
}

u32 Z_wasi_snapshot_preview1Z_environ_get(host *h, u32 pointers, u32 text) {
    (void)h, (void)pointers, (void)text;
    return SUCCESS;
}

u32 Z_wasi_snapshot_preview1Z_clock_time_get(host *h, u32 clock, u64 precision, u32 result) {
    struct timespec now;
    void *to = memory(h, result, 8);
    (void)precision;
    if (clock > 1 || clock_gettime(clock ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now))
        return INVALID;
    u64 nanoseconds = (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
    if (!to)
        return FAULT;
    memcpy(to, &nanoseconds, 8);
    return SUCCESS;
}

/* One of the standard streams, each vector in turn, until one is cut short. */
static u32 transfer(host *h, u32 fd, u32 vectors, u32 count, u32 result, int writing) {
    u32 done = 0;
    if (fd > 2)
        return BAD_DESCRIPTOR;
    for (u32 i = 0; i < count; i++) {
        u32 part[2];
        void *from = memory(h, vectors + 8 * i, 8), *data;
        if (!from)
            return FAULT;
        memcpy(part, from, 8);
        if (!(data = memory(h, part[0], part[1])))
            return FAULT;
        ssize_t n = writing ? write((int)fd, data, part[1]) : read((int)fd, data, part[1]);
        if (n < 0)
            return IO;
        done += (u32)n;
        if ((u32)n < part[1])
            break;
    }
    return put32(h, result, done);
}

u32 Z_wasi_snapshot_preview1Z_fd_write(host *h, u32 fd, u32 vectors, u32 count, u32 result) {
    return transfer(h, fd, vectors, count, result, 1);
}

u32 Z_wasi_snapshot_preview1Z_fd_read(host *h, u32 fd, u32 vectors, u32 count, u32 result) {
    return transfer(h, fd, vectors, count, result, 0);
}

u32 Z_wasi_snapshot_preview1Z_fd_seek(host *h, u32 fd, u64 offset, u32 whence, u32 result) {
    (void)h, (void)offset, (void)whence, (void)result;
    return fd > 2 ? BAD_DESCRIPTOR : NOT_SEEKABLE;
}

u32 Z_wasi_snapshot_preview1Z_fd_close(host *h, u32 fd) {
    (void)h;
    return fd > 2 ? BAD_DESCRIPTOR : SUCCESS;
}

/* A character device without rights beyond reading and writing. */
u32 Z_wasi_snapshot_preview1Z_fd_fdstat_get(host *h, u32 fd, u32 result) {
    u8 *to = memory(h, result, 24);
    if (fd > 2)
        return BAD_DESCRIPTOR;
    if (!to)
        return FAULT;
    memset(to, 0, 24);
    to[0] = 2;
    to[8] = 0x42;
    return SUCCESS;
}

u32 Z_wasi_snapshot_preview1Z_fd_fdstat_set_flags(host *h, u32 fd, u32 flags) {
    (void)h, (void)flags;
    return fd > 2 ? BAD_DESCRIPTOR : SUCCESS;
}

u32 Z_wasi_snapshot_preview1Z_fd_renumber(host *h, u32 from, u32 to) {
    (void)h, (void)from, (void)to;
    return BAD_DESCRIPTOR;
}

/* No directory is granted: whoever asks for the first is told that there is none. */
u32 Z_wasi_snapshot_preview1Z_fd_prestat_get(host *h, u32 fd, u32 result) {
    (void)h, (void)fd, (void)result;
    return BAD_DESCRIPTOR;
}

u32 Z_wasi_snapshot_preview1Z_fd_prestat_dir_name(host *h, u32 fd, u32 path, u32 length) {
    (void)h, (void)fd, (void)path, (void)length;
    return BAD_DESCRIPTOR;
}

u32 Z_wasi_snapshot_preview1Z_path_open(host *h, u32 fd, u32 look, u32 path, u32 length, u32 open, u64 rights, u64 inherit, u32 flags,
                                        u32 result) {
    (void)h, (void)fd, (void)look, (void)path, (void)length, (void)open, (void)rights, (void)inherit, (void)flags, (void)result;
    return BAD_DESCRIPTOR;
}

void Z_wasi_snapshot_preview1Z_proc_exit(host *h, u32 code) {
    (void)h;
    exit((int)code);
}

int main(int argc, char **argv) {
    static host h;
    h.argc = argc;
    h.argv = argv;
    wasm_rt_init();
    Z_bench_init_module();
    Z_bench_instantiate(&h.program, &h);
    Z_benchZ__start(&h.program);
    return 0;
}
