/* What an ordinary program does with what every program has. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define CASE(name) if (!strcmp(which, name))

static volatile int rings;
static void rang(int signal) { rings += signal == SIGALRM; }
static volatile int broken;
static void broke(int signal) { broken += signal == SIGPIPE; }

int main(int count, char **words, char **environment)
{
    const char *which = count > 1 ? words[1] : "";
    CASE("status") return atoi(words[2]);
    CASE("words") { for (int i = 2; i < count; i++) printf("[%s]", words[i]); return 0; }
    CASE("environment") { for (char **e = environment; *e; e++) puts(*e); return 0; }
    CASE("streams") { fputs("to output", stdout); fputs("to error", stderr); return 0; }
    CASE("echo") { int c; while ((c = getchar()) != EOF) putchar(c); return 0; }
    CASE("read") { /* 4095 bytes and no more: what came must be had without waiting for more */
        static char block[4096]; size_t n = read(0, block, sizeof block); printf("%zu", n); return 0; }
    CASE("much") { for (int i = 0; i < 400000; i++) printf("line %7d\n", i); return ferror(stdout) != 0; }
    CASE("unread") { /* ended by the signal in `printf`, or behind the handler, the mask or `SIG_IGN` by what `ferror` says */
        static char block[4096]; sigset_t pipe; sigemptyset(&pipe); sigaddset(&pipe, SIGPIPE); char how = words[2][0];
        if (how == 'h') signal(SIGPIPE, broke);
        if (how == 'i') signal(SIGPIPE, SIG_IGN);
        if (how == 'm') sigprocmask(SIG_BLOCK, &pipe, 0);
        while (!ferror(stdout)) printf("%s", memset(block, 'x', sizeof block - 1));
        if (errno != EPIPE) return 1;
        if (how == 'h') return broken ? 3 : 2;
        sigset_t now; sigpending(&now);
        if (sigismember(&now, SIGPIPE) != (how == 'm')) return 4;
        if (how == 'm') sigprocmask(SIG_UNBLOCK, &pipe, 0); /* ends it */
        return 5;
    }
    CASE("broken") { int ends[2]; if (pipe(ends) || close(ends[0])) return 1; write(ends[1], "x", 1); return 2; }
    CASE("write") { ssize_t n = 0; static char block[4096]; while (n >= 0) n = write(1, block, sizeof block); return errno; }
    CASE("longest") { /* past what the host may give a file: an error each time, and no signal */
        static char block[4096]; ssize_t n; struct iovec two[2] = { { block, 1 }, { block, sizeof block } };
        int f = open("/d/file", O_RDWR | O_CREAT | O_TRUNC, 0666);
        if (f < 0) return 1;
        if (!ftruncate(f, 1 << 30) || errno != EFBIG) return 2;
        if (!truncate("/d/file", 1 << 30) || errno != EFBIG) return 3;
        if (pwrite(f, block, 1, 1 << 30) >= 0 || errno != EFBIG) return 4;
        while ((n = write(f, block, sizeof block - 1)) > 0) {}
        if (errno != EFBIG) return 5;
        if (writev(f, two, 2) >= 0 || errno != EFBIG) return 6;
        while ((n = write(1, block, sizeof block - 1)) > 0) {}
        return errno;
    }
    CASE("memory") { size_t n = 0; while (n < 4096 && malloc(1 << 20)) n++; printf("%zu", n); return errno == ENOMEM ? 9 : 1; }
    CASE("clock") { struct timespec t; int r = clock_gettime(CLOCK_REALTIME, &t); printf("%d %d", r, errno); return 0; }
    CASE("alarm") { /* as configure's test of nanosleep: a long sleep ends with the signal, and what is left is told */
        struct timespec t = { 0, 1 }, left = { 0 }; struct sigaction a = { .sa_handler = rang }; sigaction(SIGALRM, &a, 0);
        alarm(1); if (nanosleep(&t, 0)) return 1;
        t.tv_sec = (1l << 62); t.tv_nsec = 999999999; alarm(1);
        if (nanosleep(&t, &left) != -1 || errno != EINTR || t.tv_sec - 10 >= left.tv_sec || left.tv_sec >= t.tv_sec) return 2;
        struct itimerval soon = { { 0 }, { 0, 20000 } }; setitimer(ITIMER_REAL, &soon, 0);
        if (pause() != -1 || errno != EINTR || rings != 2) return 3;
        alarm(100); if (alarm(0) != 100) return 4;
        signal(SIGALRM, SIG_DFL); alarm(1); sleep(60); return 5; }
    CASE("sleep") { struct timespec t = { 3600, 0 }; return nanosleep(&t, 0) ? errno : 0; }
    CASE("mappings") { /* hostile ranges answer with errors, and nothing of the image goes */
        char *heap = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (heap == MAP_FAILED) return 1;
        uintptr_t base = (uintptr_t)heap & ~0xffffffffull, image = (uintptr_t)main & ~0xfffull;
        uintptr_t places[] = { 0, base, base + 0x10000, base + 0x11000, image, base + 0xff7ff000, base + 0xfffff000, base - 4096, ~0xfffull, (uintptr_t)&base & ~0xfffull };
        size_t lengths[] = { 0, 1, 4096, 1ull << 31, 1ull << 32, ~0ull, ~0ull << 12, 1ull << 63 };
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
                void *at = (void *)places[i]; size_t n = lengths[j];
                if (!munmap(at, n)) return 2;
                if (mmap(at, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) return 3;
                if (mremap(at, n, 1 << 20, MREMAP_MAYMOVE) != MAP_FAILED) return 4;
                if (n && !syscall(SYS_mprotect, at, n, PROT_READ | PROT_WRITE)) return 5; /* as it is: the library rounds */
                if (read(0, at, n) > 0) return 6;
                if (places[i] && write(1, (char *)(places[i] - 1), n) > 0 && places[i] < base) return 7;
            }
        if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return 8;
        if (!mprotect(heap, 4096, PROT_READ | PROT_EXEC)) return 9;
        if (mmap(0, ~0ull << 12, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return 10;
        /* the image does not move, and the attempts cost nothing */
        for (int i = 0; i < 2000; i++) if (mremap((void *)image, 4096, 1 << 20, MREMAP_MAYMOVE) != MAP_FAILED) return 13;
        strcpy(heap + 4096, "kept");
        char *more = mremap(heap, 1 << 16, 1 << 20, MREMAP_MAYMOVE);
        if (more == MAP_FAILED || strcmp(more + 4096, "kept")) return 11;
        if (munmap(more + 8192, 4096) || mprotect(more + 4096, 12288, PROT_READ) == 0) return 12;
        return 42;
    }
    CASE("positions") { /* the host's files behind the streams stay as they are, but for what is added */
        char b[8];
        if (pwrite(1, "X", 1, 0) >= 0 || pwrite(2, "X", 1, 0) >= 0 || pwrite(0, "X", 1, 0) >= 0 || write(0, "X", 1) >= 0) return 1;
        if (lseek(1, 0, SEEK_SET) >= 0 || lseek(2, 0, SEEK_END) >= 0 || lseek(dup(1), 0, SEEK_SET) >= 0) return 2;
        if (read(1, b, 1) >= 0 || pread(1, b, 1, 0) >= 0 || read(2, b, 1) >= 0 || pread(2, b, 1, 0) >= 0) return 3;
        if (pread(0, b, 2, 1) != 2 || memcmp(b, "np", 2) || lseek(0, 2, SEEK_SET) != 2 || read(0, b, 1) != 1 || *b != 'p') return 4;
        return write(1, "added", 5) != 5;
    }
    CASE("descriptors") { int n = 0; while (dup(1) >= 0) n++; if (errno != EMFILE || dup2(1, 100000) >= 0 || dup2(1, -1) >= 0) return 1; printf("%d", n); return close(-1) == 0 || close(1 << 30) == 0; }
    return 1;
}
