/* System calls with the heaviest arguments that a program can give them, again and again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mullion/ext.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 64 << 20, PIECES = 1024 };

static char *block;
static struct iovec pieces[PIECES];
static struct pollfd polls[PIECES];
static char path[4096], small[4096];
static int file, waiting, directory;
static struct timespec hour = { 3600, 0 };

#define L(value) ((long)(value))
#define AT ((long)path)
#define TO ((long)small)

/* The arguments of each call; what is not here has none. */
static const struct row { long number; } without[] = {
	{ SYS_sched_yield }, { SYS_getpid }, { SYS_getuid }, { SYS_getgid }, { SYS_geteuid }, { SYS_getegid }, { SYS_getppid },
	{ SYS_gettid }, { SYS_set_tid_address }, { SYS_umask }, { SYS_getpgrp },
};

/* What the calls need; not 0: it could not be had. */
MULLION_EXPORT(int, prepare, (void))
{
	block = mmap(0, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (block == MAP_FAILED)
		return 1;
	memset(block, 1, BLOCK);
	for (int i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){ block, BLOCK }, polls[i].fd = -1;
	/* As long as a path can be. */
	strcpy(path, "/d");
	while (strlen(path) < sizeof path - 10)
		strcat(path, "/./sub/..");
	directory = open("/d", O_RDONLY);
	file = open("/d/large", O_RDWR);
	waiting = open("/d/large", O_RDWR);
	/* The program's own other open file waits for this lock. */
	return directory < 0 || file < 0 || waiting < 0 || syscall(SYS_flock, file, 2) != 0;
}

static void grow(void)
{
	char *moved = mremap(block, BLOCK, BLOCK + 4096, MREMAP_MAYMOVE);
	if (moved != MAP_FAILED)
		block = mremap(moved, BLOCK + 4096, BLOCK, MREMAP_MAYMOVE);
}

/* 1: the call has no arguments here. */
MULLION_EXPORT(int, repeat, (int64_t number))
{
	for (size_t i = 0; i < sizeof without / sizeof *without; i++)
		if (without[i].number == number)
			for (;;)
				syscall(number);
	for (;;) {
		switch (number) {
#define CASE(name, ...) case SYS_##name: syscall(SYS_##name, __VA_ARGS__); break;
		CASE(read, file, block, BLOCK)
		CASE(write, 1, block, BLOCK)
		CASE(open, AT, O_RDONLY)
		CASE(close, -1)
		CASE(stat, AT, TO)
		CASE(fstat, file, TO)
		CASE(lstat, AT, TO)
		CASE(poll, polls, PIECES, -1)
		CASE(ppoll, polls, PIECES, &hour, 0, 8)
		CASE(lseek, file, 1L << 40, SEEK_SET)
		CASE(mmap, 0, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		CASE(mprotect, block, BLOCK, PROT_READ | PROT_WRITE)
		CASE(munmap, block, BLOCK)
		CASE(brk, block)
		CASE(rt_sigaction, 10, 0, TO, 8)
		CASE(rt_sigprocmask, 0, 0, TO, 8)
		CASE(ioctl, 1, 0x5413, TO)
		CASE(pread64, file, block, BLOCK, 0L)
		CASE(pwrite64, file, block, BLOCK, 0L)
		CASE(readv, file, pieces, PIECES)
		CASE(writev, file, pieces, PIECES)
		CASE(access, AT, R_OK)
		CASE(pipe, TO)
		CASE(pipe2, TO, 0)
		case SYS_mremap: grow(); break;
		CASE(madvise, block, BLOCK, MADV_DONTNEED)
		CASE(dup, file)
		CASE(dup2, file, 200)
		CASE(dup3, file, 200, 0)
		CASE(nanosleep, &hour, 0)
		CASE(clone, repeat, 0, TO)
		CASE(wait4, -1, TO, 0, 0)
		CASE(waitid, 0, 0, TO, 4, 0)
		CASE(kill, 1, 0)
		CASE(tkill, 1, 0)
		CASE(tgkill, 1, 1, 0)
		CASE(uname, TO)
		CASE(getrlimit, 7, TO)
		CASE(setrlimit, 7, TO)
		CASE(prlimit64, 0, 7, 0, TO)
		CASE(getrusage, 0, TO)
		CASE(sysinfo, TO)
		CASE(times, TO)
		CASE(getgroups, 0, 0)
		CASE(sched_getaffinity, 0, 128, TO)
		CASE(getpgid, 0)
		CASE(getsid, 0)
		CASE(fadvise64, file, 0, 0, 0)
		CASE(fcntl, file, F_GETFL)
		CASE(flock, waiting, 2)
		CASE(fsync, file)
		CASE(fdatasync, file)
		CASE(truncate, "/d/other", 1L << 40)
		case SYS_ftruncate: syscall(SYS_ftruncate, file, 1L << 40); syscall(SYS_ftruncate, file, 1L << 36); break;
		CASE(getcwd, TO, 4096)
		CASE(chdir, AT)
		CASE(fchdir, directory)
		CASE(rename, "/d/other", "/d/other")
		CASE(mkdir, AT, 0777)
		CASE(rmdir, AT)
		CASE(creat, "/d/other", 0666)
		CASE(unlink, AT)
		CASE(link, "/d/other", AT)
		CASE(symlink, AT, "/d/other")
		CASE(linkat, directory, "other", directory, AT, 0)
		CASE(symlinkat, AT, directory, "other")
		CASE(readlink, "/d/link", TO, 4096)
		CASE(chmod, AT, 0700)
		CASE(fchmod, file, 0700)
		CASE(chown, AT, -1, -1)
		CASE(fchown, file, 7, 7)
		CASE(lchown, AT, 7, 7)
		CASE(fchownat, directory, AT, -1, -1, 0)
		CASE(gettimeofday, TO, 0)
		CASE(time, TO)
		CASE(futex, TO, 0, 0, 0)
		CASE(clock_gettime, 0, TO)
		CASE(clock_getres, 0, TO)
		CASE(clock_nanosleep, 0, 0, &hour, 0)
		case SYS_getdents64: syscall(SYS_getdents64, directory, block, BLOCK); syscall(SYS_lseek, directory, 0, SEEK_SET); break;
		CASE(exit, 0)
		CASE(exit_group, 0)
		CASE(openat, directory, AT, O_RDONLY)
		CASE(mkdirat, directory, AT, 0777)
		CASE(newfstatat, directory, AT, TO, 0)
		CASE(unlinkat, directory, AT, 0)
		CASE(renameat, directory, "/d/other", directory, "/d/other")
		CASE(renameat2, directory, "/d/other", directory, "/d/other", 0)
		CASE(readlinkat, directory, "link", TO, 4096)
		CASE(fchmodat, directory, AT, 0700, 0)
		CASE(faccessat, directory, AT, R_OK)
		CASE(faccessat2, directory, AT, R_OK, 0)
		CASE(utimensat, directory, AT, 0, 0)
		CASE(getrandom, block, BLOCK, 0)
		default:
			return 1;
		}
	}
}

/* Rewrites what `repeat` passes pointers to, again and again: paths, structures, pieces, lengths. */
MULLION_EXPORT(void, rewrite, (void))
{
	static const char parts[] = "/d./sub\0link\xff";
	volatile char *bytes = path, *answers = small;
	volatile struct iovec *piece = pieces;
	volatile struct timespec *time = &hour;
	for (uint64_t seed = 1;;) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		const uint64_t number = seed >> 33, place = number % 64;
		bytes[place] = parts[number / 64 % (sizeof parts - 1)];
		bytes[sizeof path - 1 - place] = number & 1 ? 0 : 'x';
		answers[place] = (char)number;
		piece[place].iov_base = number & 2 ? block : (void *)(uintptr_t)(seed ^ number << 20);
		piece[place].iov_len = number & 4 ? 64 : number & 8 ? (size_t)seed : 0;
		time->tv_sec = number & 16 ? 0 : number & 32 ? -1 : (time_t)seed;
		time->tv_nsec = number & 64 ? 1 : (long)seed;
	}
}

/* A path of which one byte changes: "/o" is there, and ".o" is there from `directory`, but not from here. */
static char switched[] = "/o";
static volatile int found;

MULLION_EXPORT(void, switch_path, (void))
{
	while (!found) {
		*(volatile char *)switched = '/';
		*(volatile char *)switched = '.';
	}
}

/* How many calls of so many found neither. */
MULLION_EXPORT(int, find_switched, (int count))
{
	const int at = open("/there", O_RDONLY);
	int missed = at < 0 || chdir("/here");
	for (int i = 0; i < count; i++) {
		/* Not by the C library, which may look at the path itself. */
		const long file = syscall(SYS_openat, at, switched, O_RDONLY);
		missed += file < 0 || close((int)file) || syscall(SYS_newfstatat, at, switched, small, 0)
		          || syscall(SYS_faccessat, at, switched, R_OK, 0) || syscall(SYS_utimensat, at, switched, 0, 0)
		          || syscall(SYS_fchmodat, at, switched, 0600, 0);
	}
	found = 1;
	return missed;
}
