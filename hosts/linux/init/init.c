/* The first program of a kernel under test: runs /script, a command a line, says what came of each, and ends the machine. */

#include "parts.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/if_alg.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void done(const char *what, const char *with, int failed)
{
    printf("init: %s %s: %s\n", what, with, failed ? strerror(errno) : "done");
}

static int insert(const char *name)
{
    char path[256];
    int file, failed;

    snprintf(path, sizeof path, "/%s.ko", name);
    file = open(path, O_RDONLY);
    if (file < 0)
        return -1;
    failed = syscall(SYS_finit_module, file, "", 0) != 0;
    close(file);
    return failed ? -1 : 0;
}

static int set(const char *path, const char *value)
{
    int file = open(path, O_WRONLY);
    ssize_t written;

    if (file < 0)
        return -1;
    written = write(file, value, strlen(value));
    close(file);
    return written < 0 ? -1 : 0;
}

static void show(const char *path)
{
    static char text[65536];
    int file = open(path, O_RDONLY);
    ssize_t bytes = file < 0 ? -1 : 0, some;

    while (bytes >= 0 && (some = read(file, text + bytes, sizeof text - 1 - bytes)) != 0)
        bytes = some < 0 ? -1 : bytes + some;
    if (file >= 0)
        close(file);
    if (bytes < 0) {
        done("show", path, 1);
        return;
    }
    text[bytes] = 0;
    while (bytes > 0 && text[bytes - 1] == '\n')
        text[--bytes] = 0;
    printf("init: show %s: %s\n", path, text);
}

/* How many names a folder has. */
static void list(const char *path)
{
    DIR *folder = opendir(path);
    unsigned names = 0;

    if (folder)
        errno = 0;
    /* A file system that is wrong may have no end. */
    while (folder && names < 10000 && readdir(folder))
        names++;
    printf("init: list %s: %u names, %s\n", path, names, !folder || errno ? strerror(errno) : "done");
    if (folder)
        closedir(folder);
}

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* Words that compress to about half: text-like, and the same for the same seed. */
void pattern(uint8_t *page, size_t bytes, uint32_t seed)
{
    static const char words[] = "of the wall that is in a pane and no other word to be had ";

    for (size_t at = 0; at < bytes; at += 8) {
        seed = seed * 1664525u + 1013904223u;
        memcpy(page + at, words + (seed >> 16) % (sizeof words - 9), 8);
    }
}

/* Writes KIB of the pattern to a device, possibly with a mark in each page, or compares what is there with it. */
static void transfer(const char *command, const char *device, unsigned kib, uint32_t seed)
{
    uint8_t page[4096], want[4096];
    unsigned wrong = 0, failed = 0;
    int file = open(device, O_RDWR);
    int marks = !strcmp(command, "mark"), fills = marks || !strcmp(command, "fill");
    uint64_t begun, took;

    if (file < 0) {
        done(command, device, 1);
        return;
    }
    if (!fills)
        ioctl(file, BLKFLSBUF, 0);
    begun = now();
    for (unsigned at = 0; at < kib / 4; at++) {
        pattern(want, sizeof want, seed + at);
        if (marks)
            want[0] = '!';
        if (fills)
            failed += write(file, want, sizeof want) != sizeof want;
        else if (read(file, page, sizeof page) != sizeof page)
            failed++;
        else
            wrong += memcmp(page, want, sizeof page) != 0;
    }
    if (fills)
        failed += fsync(file) != 0;
    took = now() - begun;
    close(file);
    printf("init: %s %s: %u KiB, %u failed, %u wrong, %llu us\n", command, device, kib, failed, wrong,
           (unsigned long long)took / 1000);
}

/* A file of the tree: its length and content follow from its number. */
static size_t content(uint8_t *bytes, unsigned number)
{
    size_t length = 37 + number * 2711 % 61000;

    pattern(bytes, 61440, number + 1);
    return length;
}

/* Whether a file cannot be read, or has something else than so many bytes. Then it differs. Closes it. */
static unsigned compare(int file, uint8_t *found, const uint8_t *want, size_t length, unsigned *differ)
{
    ssize_t bytes = file < 0 ? -1 : read(file, found, 65536);
    unsigned wrong = bytes != (ssize_t)length || memcmp(found, want, length) != 0;

    *differ += wrong && bytes >= 0;
    if (file >= 0)
        close(file);
    return wrong;
}

/* Folders with files, links, names that change, and files that go again: all that a file system does. Or a look at them. */
static void tree(const char *command, const char *place, unsigned folders)
{
    static uint8_t want[65536], found[65536];
    unsigned failed = 0, wrong = 0, differ = 0, files = 0, makes = !strcmp(command, "tree");
    char path[256], other[256];
    uint64_t begun = now(), took;

    for (unsigned folder = 0; folder < folders; folder++) {
        snprintf(path, sizeof path, "%s/folder%u", place, folder);
        if (makes)
            failed += mkdir(path, 0755) != 0;
        for (unsigned number = folder * 5; number < folder * 5 + 5; number++) {
            size_t length = content(want, number);
            int file;

            snprintf(path, sizeof path, "%s/folder%u/file%u", place, folder, number);
            snprintf(other, sizeof other, "%s/folder%u/a-longer-name-%u", place, folder, number);
            if (makes) {
                file = open(path, O_RDWR | O_CREAT, 0644);
                failed += file < 0 || write(file, want, length) != (ssize_t)length;
                if (number % 5 == 1)
                    failed += ftruncate(file, length / 2) != 0;
                if (file >= 0)
                    close(file);
                if (number % 5 == 2)
                    failed += rename(path, other) != 0;
                if (number % 5 == 3)
                    failed += unlink(path) != 0;
                if (number % 5 == 4)
                    failed += link(path, other) != 0 || symlink(path, strcat(other, "s")) != 0;
            }
            if (number % 5 == 3)
                continue;
            file = open(number % 5 == 2 ? other : path, O_RDONLY);
            length = number % 5 == 1 ? length / 2 : length;
            wrong += compare(file, found, want, length, &differ);
            files++;
        }
    }
    took = now() - begun;
    printf("init: %s %s: %u files, %u failed, %u wrong, %u differ, %llu us\n", command, place, files, failed, wrong, differ,
           (unsigned long long)took / 1000);
}

static unsigned failed_at;

static unsigned tell(int failed, int line)
{
    if (failed && !failed_at)
        failed_at = line;
    return failed;
}

#define TRY(what) failed += tell((what) != 0, __LINE__)

/* What file systems do besides: long files with holes, attributes, synchronisation, maps, folders that go. */
static void more(const char *place)
{
    static uint8_t want[8192], found[8192];
    char deep[320];
    char path[320], other[256];
    struct stat status;
    struct statfs system;
    struct timespec times[2] = { { 1000000000, 0 }, { 1100000000, 0 } };
    unsigned failed = 0, flags = 0;
    uint64_t begun = now();
    uint8_t *map;
    DIR *names;
    int file;

    failed_at = 0;
    snprintf(path, sizeof path, "%s/long", place);
    snprintf(other, sizeof other, "%s/deep", place);
    pattern(want, sizeof want, 77);
    file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    TRY(file < 0);
    /* Direct blocks, then indirect and doubly indirect ones, with holes between. */
    for (unsigned at = 0; at < 900; at += 30) {
        off_t place = at * 1024 + (at > 400 ? 4000000 : 0);

        TRY(pwrite(file, want, sizeof want, place) != sizeof want);
        TRY(pread(file, found, sizeof found, place) != sizeof found || memcmp(found, want, sizeof want));
    }
    TRY(fsync(file));
    TRY(pread(file, found, 512, 2000000) != 512 || found[0] || found[511]);
    TRY(ftruncate(file, 600 * 1024));
    TRY(ftruncate(file, 20 * 1024 + 7));
    map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) {
        TRY(1);
    } else {
        TRY(memcmp(map, want, 8192));
        map[4097] = '!';
        TRY(msync(map, 8192, MS_SYNC) || munmap(map, 8192));
        TRY(pread(file, found, 1, 4097) != 1 || found[0] != '!');
    }
    TRY(fchmod(file, 0640) || fchown(file, 5, 6) || futimens(file, times));
    TRY(fstat(file, &status) || status.st_uid != 5 || status.st_mtime != 1100000000 || (status.st_mode & 0777) != 0640);
    TRY(ioctl(file, FS_IOC_GETFLAGS, &flags));
    flags |= FS_NOATIME_FL;
    TRY(ioctl(file, FS_IOC_SETFLAGS, &flags));
    TRY(lseek(file, 0, SEEK_END) != 20 * 1024 + 7);
    TRY(file >= 0 && close(file));
    TRY(statfs(place, &system) || system.f_bfree == 0);
    TRY(mkdir(other, 0700));
    for (unsigned number = 0; number < 120; number++) {
        snprintf(path, sizeof path, "%s/a-name-of-middling-length-%u", other, number);
        TRY(mknod(path, number % 7 ? S_IFREG | 0644 : S_IFIFO | 0600, 0));
    }
    names = opendir(other);
    for (flags = 0; names && flags < 10000 && readdir(names); flags++)
        ;
    TRY(!names || closedir(names) || flags != 122);
    TRY(rmdir(other) == 0);
    for (unsigned number = 0; number < 120; number += 2) {
        snprintf(path, sizeof path, "%s/a-name-of-middling-length-%u", other, number);
        TRY(unlink(path));
    }
    snprintf(path, sizeof path, "%s/long", place);
    snprintf(deep, sizeof deep, "%s/a-name-of-middling-length-1", other);
    TRY(rename(path, deep));
    snprintf(path, sizeof path, "%s/moved", place);
    TRY(rename(other, path));
    snprintf(other, sizeof other, "%s/moved/a-name-of-middling-length-1", place);
    file = open(other, O_RDONLY);
    TRY(file < 0 || read(file, found, 4096) != 4096 || memcmp(found, want, 4096));
    TRY(unlink(other));
    TRY(file >= 0 && (pread(file, found, 4096, 8192) != 4096 || close(file)));
    for (unsigned number = 3; number < 120; number += 2) {
        snprintf(other, sizeof other, "%s/moved/a-name-of-middling-length-%u", place, number);
        TRY(unlink(other));
    }
    TRY(rmdir(path));
    sync();
    printf("init: more %s: %u failed, first in line %u, %llu us\n", place, failed, failed_at,
           (unsigned long long)(now() - begun) / 1000);
}

/* A line of the host's shell, with the host's programs, which cannot write there; its folder is /mnt. */
static void shell(const char *line)
{
    uint64_t begun = now();
    int status = -1, process = fork();

    if (process == 0) {
        setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
        setenv("TMPDIR", "/mnt", 1);
        if (chroot("/host") == 0 && chdir("/mnt") == 0)
            execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(126);
    }
    waitpid(process, &status, 0);
    printf("init: shell: status %d, %llu us\n", status, (unsigned long long)(now() - begun) / 1000);
}

/* Digests by the kernel's sockets, with a key of so many bytes. In the middle some data begins with the mark, and later data does not. */
static void hash(const char *name, unsigned count, unsigned key)
{
    struct sockaddr_alg of = { .salg_family = AF_ALG, .salg_type = "hash" };
    uint8_t data[512], digest[64], first[64];
    unsigned good = 0, failed = 0, wrong = 0, last = 0;

    snprintf((char *)of.salg_name, sizeof of.salg_name, "%s", name);
    for (unsigned at = 0; at < count; at++) {
        int in = socket(AF_ALG, SOCK_SEQPACKET, 0), out = -1;
        ssize_t bytes = -1;

        pattern(data, sizeof data, 5);
        if (at == count / 2)
            data[0] = '!';
        if (in >= 0 && bind(in, (struct sockaddr *)&of, sizeof of) == 0 &&
            (key == 0 || setsockopt(in, SOL_ALG, ALG_SET_KEY, "a key of some bytes", key) == 0))
            out = accept(in, NULL, 0);
        if (out >= 0 && write(out, data, sizeof data) == sizeof data)
            bytes = read(out, digest, sizeof digest);
        if (at == 0)
            memcpy(first, digest, sizeof digest);
        last = bytes > 0;
        good += last;
        failed += !last;
        wrong += last && at != count / 2 && memcmp(first, digest, bytes) != 0;
        if (!last)
            usleep(2000);
        if (out >= 0)
            close(out);
        if (in >= 0)
            close(in);
    }
    printf("init: hash %s: %u digests, %u failed, %u wrong, the last %s\n", name, good, failed, wrong,
           last ? "done" : "failed");
}

/* Gives a network device its address, and takes it into use. */
static int set_up(int socket, const char *name)
{
    struct ifreq of = { 0 };
    struct sockaddr_in *address = (struct sockaddr_in *)&of.ifr_addr;

    snprintf(of.ifr_name, sizeof of.ifr_name, "%s", name);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(0x0a070001);
    if (ioctl(socket, SIOCSIFADDR, &of) != 0)
        return -1;
    address->sin_addr.s_addr = htonl(0xffffff00);
    if (ioctl(socket, SIOCSIFNETMASK, &of) != 0 || ioctl(socket, SIOCGIFFLAGS, &of) != 0)
        return -1;
    of.ifr_flags |= IFF_UP;
    return ioctl(socket, SIOCSIFFLAGS, &of);
}

/* How many packets a network device has sent. */
static unsigned long long packets(const char *name)
{
    char path[128], text[64] = "";
    unsigned long long count = 0;
    int file;

    snprintf(path, sizeof path, "/sys/class/net/%s/statistics/tx_packets", name);
    file = open(path, O_RDONLY);
    if (file >= 0 && read(file, text, sizeof text - 1) > 0)
        count = strtoull(text, NULL, 10);
    if (file >= 0)
        close(file);
    return count;
}

/* Datagrams by a network device. In the middle one begins with the mark. If it fails, the device is set up again. */
static void net(const char *name, unsigned count)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
    unsigned sent = 0, failed = 0, again = 0, wrong = 0, last = 0, has_failed = 0;
    int out = socket(AF_INET, SOCK_DGRAM, 0);
    uint8_t data[512];

    if (set_up(out, name) != 0) {
        done("net", name, 1);
        close(out);
        return;
    }
    to.sin_addr.s_addr = htonl(0x0a070002);
    for (unsigned at = 0; at < count; at++) {
        unsigned long long before = packets(name), now;

        pattern(data, sizeof data, at);
        if (at == count / 2)
            data[0] = '!';
        last = sendto(out, data, sizeof data, 0, (struct sockaddr *)&to, sizeof to) == sizeof data;
        now = packets(name);
        /* A device that does not count has not sent. */
        last = last && now > before;
        wrong += last && now != before + 1;
        sent += last;
        failed += !last;
        again += last && has_failed;
        has_failed = !last;
        if (!last) {
            usleep(5000);
            set_up(out, name);
        }
    }
    close(out);
    printf("init: net %s: %u sent, %u failed, %u times set up again, %u wrong, the last %s\n", name, sent, failed, again,
           wrong, last ? "done" : "failed");
}

/* Files in one folder with short names: for file systems that have no others. Or a look at them. */
static void flat(const char *command, const char *place, unsigned count)
{
    static uint8_t want[65536], found[65536];
    unsigned failed = 0, wrong = 0, differ = 0, files = 0, makes = !strcmp(command, "flat");
    char path[256], other[256];

    for (unsigned number = 0; number < count; number++) {
        size_t length = content(want, number);
        int file;

        snprintf(path, sizeof path, "%s/f%u", place, number);
        snprintf(other, sizeof other, "%s/g%u", place, number);
        if (makes) {
            file = open(path, O_RDWR | O_CREAT, 0644);
            failed += file < 0 || write(file, want, length) != (ssize_t)length;
            if (file >= 0)
                close(file);
            if (number % 4 == 1)
                sync();
            if (number % 4 == 2)
                failed += rename(path, other) != 0;
            if (number % 4 == 3)
                failed += link(path, other) != 0 || unlink(path) != 0;
            if (number % 8 == 7)
                failed += unlink(other) != 0;
        }
        if (number % 8 == 7)
            continue;
        file = open(number % 4 < 2 ? path : other, O_RDONLY);
        wrong += compare(file, found, want, length, &differ);
        files++;
    }
    printf("init: %s %s: %u files, %u failed, %u wrong, %u differ\n", command, place, files, failed, wrong, differ);
}

/* Whether nothing can be written to such a file system. */
static int reads_alone(const char *type)
{
    return !strcmp(type, "hostfs") || !strcmp(type, "iso9660") || !strcmp(type, "ufs");
}

static void run(char *line)
{
    char *command, *first, *second, *third, *fourth;

    if (!strncmp(line, "shell ", 6)) {
        shell(line + 6);
        return;
    }
    /* A name, and the rest is a line. */
    if (!strncmp(line, "serve ", 6)) {
        first = line + 6 + strcspn(line + 6, " ");
        if (*first)
            *first++ = 0;
        serve(line + 6, first);
        return;
    }
    command = strtok(line, " ");
    first = strtok(NULL, " ");
    second = strtok(NULL, " ");
    third = strtok(NULL, " ");
    fourth = strtok(NULL, " ");

    if (!command || !first)
        return;
    if (!strcmp(command, "insmod"))
        done(command, first, insert(first));
    else if (!strcmp(command, "rmmod"))
        done(command, first, syscall(SYS_delete_module, first, O_NONBLOCK) != 0);
    else if (!strcmp(command, "set") && second)
        done(command, first, set(first, second));
    else if (!strcmp(command, "rest"))
        usleep(200000);
    else if (!strcmp(command, "more"))
        more(first);
    else if (!strcmp(command, "hash") && second)
        hash(first, atoi(second), third ? atoi(third) : 0);
    else if (!strcmp(command, "cipher") && third)
        cipher(first, atoi(second), atoi(third));
    else if ((!strcmp(command, "calls") || !strcmp(command, "tells")) && third)
        calls(first, atoi(second), third, !strcmp(command, "tells"));
    else if (!strcmp(command, "net") && second)
        net(first, atoi(second));
    else if (!strcmp(command, "pair") && third)
        pairs(first, atoi(second), atoi(third), fourth ? atoi(fourth) : 0);
    else if (!strcmp(command, "get") && second)
        get(first, atoi(second));
    else if (!strcmp(command, "bulk"))
        bulk(atoi(first));
    else if (!strcmp(command, "unserve"))
        unserve();
    else if (!strcmp(command, "poll"))
        polls(first);
    else if (!strcmp(command, "list"))
        list(first);
    else if (!strcmp(command, "show"))
        show(first);
    else if (!strcmp(command, "mount") && third)
        done(command, first, mount(second, third, first, reads_alone(first) ? MS_RDONLY : 0, fourth ? fourth : "") != 0);
    else if (!strcmp(command, "umount"))
        done(command, first, umount(first) != 0);
    else if ((!strcmp(command, "tree") || !strcmp(command, "look")) && second)
        tree(command, first, atoi(second));
    else if ((!strcmp(command, "flat") || !strcmp(command, "again")) && second)
        flat(command, first, atoi(second));
    else if (second && third)
        transfer(command, first, atoi(second), atoi(third));
}

/* The state of a process, and its processor time in ticks. */
static char state(int process, unsigned long long *ticks)
{
    char path[64], text[1024], *rest;
    unsigned long own = 0, kernel = 0;
    char state = '?';
    int file;
    ssize_t bytes;

    snprintf(path, sizeof path, "/proc/%d/stat", process);
    file = open(path, O_RDONLY);
    bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[bytes > 0 ? bytes : 0] = 0;
    rest = strrchr(text, ')');
    if (rest)
        sscanf(rest, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &state, &own, &kernel);
    *ticks = own + kernel;
    return state;
}

/* Waits for the process that works. One that waits in the kernel for six seconds, and does nothing else, waits for ever. */
static void watch(int process)
{
    unsigned long long before = 0, ticks;
    unsigned still = 0;

    while (waitpid(process, NULL, WNOHANG) == 0) {
        usleep(still ? 250000 : 5000);
        if (state(process, &ticks) != 'D' || ticks != before)
            still = 0;
        else if (++still == 24)
            break;
        before = ticks;
    }
    if (still == 24) {
        char path[64];

        printf("init: hangs\n");
        snprintf(path, sizeof path, "/proc/%d/wchan", process);
        show(path);
        snprintf(path, sizeof path, "/proc/%d/stack", process);
        show(path);
    }
}

int main(void)
{
    static char script[16384];
    int file, process;
    ssize_t bytes;
    char *line = script, *next;

    setvbuf(stdout, NULL, _IOLBF, 0);
    mount("none", "/proc", "proc", 0, "");
    mount("none", "/sys", "sysfs", 0, "");
    mount("none", "/dev", "devtmpfs", 0, "");
    process = fork();
    if (process > 0) {
        watch(process);
        fflush(stdout);
        reboot(RB_POWER_OFF);
    }
    file = open("/script", O_RDONLY);
    bytes = file < 0 ? 0 : read(file, script, sizeof script - 1);
    script[bytes > 0 ? bytes : 0] = 0;
    printf("init: begins\n");
    for (; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = 0;
        run(line);
    }
    printf("init: ends\n");
    fflush(stdout);
    return 0;
}
