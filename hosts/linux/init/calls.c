/*
 * Calls of a file system that a seed chooses. Each call follows from the seed and its number alone, so any of them can be left out:
 * that is how a short list is found which does the same. Names, sizes and files are few, so that calls meet each other.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { FILES = 5, BYTES = 70000 };

static int files[FILES];
static uint8_t bytes[BYTES];
static uint64_t dice;

static uint32_t roll(uint32_t below)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (uint32_t)(dice >> 20) % below;
}

/* A name of a few, in the root or in one of three folders. */
static const char *name(char *to, const char *place)
{
    uint32_t folder = roll(5), which = roll(7);

    if (folder < 3)
        snprintf(to, 256, "%s/d%u/n%u", place, folder, which);
    else if (roll(12) == 0)
        snprintf(to, 256, "%s/n%u-%0*u", place, which, (int)roll(250), 1);
    else
        snprintf(to, 256, "%s/%c%u", place, roll(3) ? 'n' : 'd', which % 4);
    return to;
}

/* Places at which file systems do something else. */
static off_t offset(void)
{
    static const off_t edges[] = { 0, 1, 511, 512, 1023, 1024, 4095, 4096, 12287, 12288, 65536, 274432, 1 << 20, 67383296,
                                   (1ll << 31) - 1, 1ll << 32, (1ll << 40) + 5 };
    off_t edge = edges[roll(roll(4) ? 12 : sizeof edges / sizeof edges[0])];

    return roll(3) ? edge : edge + roll(5000);
}

static size_t length(void)
{
    static const size_t edges[] = { 0, 1, 7, 512, 1024, 4095, 4096, 4097, 16384, 60000 };

    return edges[roll(sizeof edges / sizeof edges[0])];
}

static int file(void)
{
    return files[roll(FILES)];
}

static int map(int file)
{
    size_t length = 4096 * (1 + roll(4));
    off_t at = 4096 * (off_t)roll(4);
    struct stat status;
    uint8_t *map;

    if (file < 0 || fstat(file, &status) != 0)
        return -1;
    map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, at);
    if (map == MAP_FAILED)
        return -1;
    /* Only what the file has: beyond it there would be a signal. */
    for (size_t byte = 0; byte < length && at + (off_t)byte < status.st_size; byte += 997)
        map[byte]++;
    return msync(map, length, MS_SYNC) | munmap(map, length);
}

static int list(const char *path)
{
    DIR *folder = opendir(path);
    unsigned names = 0;
    long at = 0;

    if (!folder)
        return -1;
    while (names < 10000 && readdir(folder)) {
        if (++names == 3)
            at = telldir(folder);
        if (names == 6 && roll(2))
            seekdir(folder, at);
    }
    return closedir(folder);
}

static int open_one(const char *path)
{
    static const int flags[] = { O_RDONLY, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_TRUNC, O_RDWR | O_CREAT | O_APPEND,
                                 O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_SYNC, O_RDWR | O_CREAT | O_DIRECT, O_PATH,
                                 O_DIRECTORY, O_NOFOLLOW, O_TMPFILE | O_RDWR };
    int *file = &files[roll(FILES)];

    if (*file >= 0)
        close(*file);
    /* Nobody would come to the other end of a pipe. */
    *file = open(path, flags[roll(sizeof flags / sizeof flags[0])] | O_NONBLOCK, 0600 + roll(0200));
    return *file < 0 ? -1 : 0;
}

/* What is done, and 0 or -1. */
static const char *call(const char *place, char *first, char *second, long *result)
{
    struct timespec times[2] = { { roll(1u << 31), roll(1000000000) }, { roll(2) ? -5 : 1ll << 33, 0 } };
    struct iovec parts[2] = { { bytes, length() }, { bytes + 9, length() } };
    struct statfs system;
    struct stat status;
    unsigned flags = 0;
    int one, out;

    name(first, place);
    name(second, place);
    switch (roll(34)) {
    case 0 ... 4: *result = open_one(first); return "open";
    case 5: *result = mkdir(first, 0700 + roll(0100)); return "mkdir";
    case 6: *result = rmdir(first); return "rmdir";
    case 7 ... 8: *result = unlink(first); return "unlink";
    case 9 ... 10: *result = renameat2(AT_FDCWD, first, AT_FDCWD, second, roll(4) ? 0 : roll(8)); return "rename";
    case 11: *result = link(first, second); return "link";
    case 12: *result = symlink(second, first); return "symlink";
    case 13: *result = mknod(first, (roll(2) ? S_IFIFO : S_IFSOCK) | 0600, 0); return "mknod";
    case 14 ... 16: *result = pwrite(file(), bytes, length(), offset()); return "pwrite";
    case 17: *result = pread(file(), bytes, length(), offset()); return "pread";
    case 18: *result = pwritev(file(), parts, 2, offset()); return "pwritev";
    case 19: *result = ftruncate(file(), offset()); return "ftruncate";
    case 20: *result = truncate(first, offset()); return "truncate";
    case 21: *result = fallocate(file(), roll(4), offset(), 1 + length()); return "fallocate";
    case 22: *result = map(file()); return "mmap";
    case 23: *result = roll(2) ? fsync(file()) : fdatasync(file()); return "fsync";
    case 24: *result = list(first); return "readdir";
    case 25: *result = chmod(first, roll(010000)); return "chmod";
    case 26: *result = chown(first, roll(70000), roll(70000)); return "chown";
    case 27: *result = utimensat(AT_FDCWD, first, times, 0); return "utimensat";
    case 28: *result = statfs(first, &system) | stat(first, &status); return "statfs";
    case 29:
        one = file();
        *result = ioctl(one, FS_IOC_GETFLAGS, &flags);
        flags ^= 1u << roll(24);
        if (roll(2))
            *result = ioctl(one, FS_IOC_SETFLAGS, &flags);
        return "flags";
    case 30: *result = lseek(file(), offset(), roll(5)); return "lseek";
    case 31:
        *result = roll(2) ? setxattr(first, "user.a", bytes, length(), roll(3)) : listxattr(first, (char *)bytes, 4096);
        return "xattr";
    case 32:
        one = file();
        out = file();
        *result = copy_file_range(one, NULL, out, NULL, length(), 0);
        return "copy_file_range";
    default:
        one = open(place, O_RDONLY);
        *result = one < 0 ? -1 : syncfs(one);
        if (one >= 0)
            close(one);
        return "syncfs";
    }
}

/* The calls of a list such as 0-49,63,70-72. */
void calls(const char *place, uint32_t seed, const char *numbers, int tells)
{
    char first[512], second[512];
    unsigned made = 0, done = 0;

    for (unsigned at = 0; at < FILES; at++)
        files[at] = -1;
    for (size_t at = 0; at < BYTES; at++)
        bytes[at] = (uint8_t)(at * 31 + seed);
    while (*numbers) {
        char *rest;
        unsigned from = strtoul(numbers, &rest, 10), to = from;

        if (*rest == '-')
            to = strtoul(rest + 1, &rest, 10);
        for (unsigned at = from; at <= to; at++) {
            long result = 0;
            const char *what;

            dice = ((uint64_t)seed << 32 | at) * 0x9e3779b97f4a7c15ull ^ 0x2545f4914f6cdd1dull;
            for (unsigned turns = 0; turns < 8; turns++)
                roll(2);
            errno = 0;
            what = call(place, first, second, &result);
            made++;
            done += result >= 0;
            if (tells)
                printf("init: call %u: %s %s %s: %s\n", at, what, first, second, result < 0 ? strerror(errno) : "done");
        }
        if (*rest != ',')
            break;
        numbers = rest + 1;
    }
    for (unsigned at = 0; at < FILES; at++)
        if (files[at] >= 0)
            close(files[at]);
    printf("init: calls %s: %u made, %u done\n", place, made, done);
}
