/* Locks of a file, by random numbers: what each attempt came to, and what is locked in the end. It is built for the
   host as well, whose kernel is the judge. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { BYTES = 64, FILES = 4 };

static uint64_t seed;
static unsigned any(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static const char *path;
static int files[FILES];

static int attempt(int file, int command, short kind, short from, long start, long length)
{
    struct flock lock = { .l_type = kind, .l_whence = from, .l_start = start, .l_len = length };
    return fcntl(file, command, &lock) ? errno : 0;
}

/* A piece by one of the ways that there are to say it; some are none. */
static int piece(int file, short kind)
{
    const long start = any(BYTES), length = any(BYTES - (unsigned)start);
    switch (any(8)) {
    case 0: lseek(file, start, SEEK_SET); return attempt(file, F_SETLK, kind, SEEK_CUR, 0, length);
    case 1: return attempt(file, F_SETLK, kind, SEEK_END, start - BYTES, length);
    case 2: return attempt(file, F_SETLK, kind, SEEK_SET, start + length, -length);
    case 3: return attempt(file, F_SETLK, kind, SEEK_SET, start - 40, length);
    case 4: return attempt(file, F_SETLK, kind, (short)any(5), start, length);
    case 5: return attempt(file, F_SETLK, kind, SEEK_SET, INT64_MAX - start, length - 20);
    default: return attempt(file, F_SETLK, kind, SEEK_SET, start, length);
    }
}

int main(int count, char **words)
{
    const char *which = words[1];
    path = words[2];
    seed = count > 3 ? strtoul(words[3], 0, 10) : 1;
    if (!strcmp(which, "map")) { /* what a program without locks finds locked, byte by byte */
        const int file = open(path, O_RDWR);
        for (int at = 0; at < BYTES; at++) {
            struct flock lock = { .l_type = F_WRLCK, .l_start = at, .l_len = 1 };
            fcntl(file, F_GETLK, &lock);
            putchar(lock.l_type == F_UNLCK ? '.' : lock.l_type == F_WRLCK ? 'w' : 'r');
        }
        return putchar('\n') < 0;
    }
    if (!strcmp(which, "hold")) {
        const int file = open(path, O_RDWR);
        for (int times = 0; times < 6; times++)
            piece(file, any(2) ? F_WRLCK : F_RDLCK);
        puts("done"), fflush(stdout), getchar();
        return 0;
    }
    if (!strcmp(which, "wait")) { /* a lock that somebody else has, until it is free */
        const int file = open(path, O_RDWR), other = open(path, O_RDWR);
        printf("%d %d\n", attempt(file, F_SETLK, F_WRLCK, SEEK_SET, 0, 0), flock(other, LOCK_EX | LOCK_NB) ? errno : 0);
        struct flock lock = { .l_type = F_WRLCK };
        fcntl(file, F_GETLK, &lock);
        printf("%d %d %ld %ld\n", lock.l_type, lock.l_whence, (long)lock.l_start, (long)lock.l_len), fflush(stdout);
        printf("%d %d\n", attempt(file, F_SETLKW, F_WRLCK, SEEK_SET, 0, 0), flock(other, LOCK_EX) ? errno : 0);
        return 0;
    }
    if (!strcmp(which, "keep")) { /* all of it, by both kinds */
        const int file = open(path, O_RDWR);
        printf("%d %d\n", attempt(file, F_SETLK, F_WRLCK, SEEK_SET, 0, 0), flock(file, LOCK_EX | LOCK_NB) ? errno : 0);
        puts("done"), fflush(stdout), getchar();
        return 0;
    }
    if (!strcmp(which, "many")) { /* until it is too much */
        const int file = open(path, O_RDWR);
        int locked = 0, error = 0;
        while (locked < 5000 && !(error = attempt(file, F_SETLK, F_WRLCK, SEEK_SET, 2 * locked, 1)))
            locked++;
        printf("%d %d", locked, error);
        printf(" %d\n", attempt(file, F_SETLK, F_UNLCK, SEEK_SET, 0, 0) || attempt(file, F_SETLK, F_WRLCK, SEEK_SET, 0, 1));
        return 0;
    }
    if (!strcmp(which, "refused")) { /* a file for reading only; what is no file */
        const int file = open(path, O_RDONLY);
        printf("%d %d %d %d %d\n", attempt(file, F_SETLK, F_RDLCK, SEEK_SET, 0, 0), attempt(file, F_SETLK, F_WRLCK, SEEK_SET, 0, 0),
               flock(file, LOCK_SH) ? errno : 0, flock(0, LOCK_SH) ? errno : 0, attempt(-1, F_SETLK, F_RDLCK, SEEK_SET, 0, 0));
        return 0;
    }
    /* "random": several descriptors, of which some are one open file; some for reading, some for writing only */
    for (int i = 0; i < FILES; i++)
        files[i] = open(path, O_RDWR);
    for (int times = 0; times < 400; times++) {
        const int which = (int)any(FILES);
        switch (any(12)) {
        case 0: close(files[which]), files[which] = open(path, O_RDWR), printf("o"); break;
        case 1: dup2(files[any(FILES)], files[which]), printf("d"); break;
        case 2: close(open(path, O_RDONLY)), printf("c"); break;
        case 3: printf("%d ", piece(files[which], (short)any(4))); break;
        case 4: {
            const int reader = open(path, any(2) ? O_RDONLY : O_WRONLY);
            printf("%d ", piece(reader, any(2) ? F_RDLCK : F_WRLCK) == EBADF);
            close(reader);
            break;
        }
        default: printf("%d ", piece(files[which], any(3) ? any(2) ? F_WRLCK : F_RDLCK : F_UNLCK));
        }
    }
    puts("\ndone"), fflush(stdout), getchar();
    return 0;
}
