/* An extension whose constructor calls its host, and which keeps a file open. */
#include <errno.h>
#include <fcntl.h>
#include <mullion/ext.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

MULLION_IMPORT(int, host_ready, (void));

static int ready;
static int calls;
static int *kept;
__attribute__((constructor)) static void begin(void) { ready = host_ready(); }

MULLION_EXPORT(int, is_ready, (void)) { return ready; }
MULLION_EXPORT(int, count, (void)) { return ++calls; }
MULLION_EXPORT(int *, keep, (int value))
{
	kept = malloc(sizeof *kept);
	*kept = value;
	return kept;
}
MULLION_EXPORT(int, open_writable, (const char *path)) { return open(path, O_RDWR); }
/* 0, or the error's number. */
MULLION_EXPORT(int, lock_file, (int file, int wait))
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	return fcntl(file, wait ? F_SETLKW : F_SETLK, &all) ? errno : 0;
}
MULLION_EXPORT(int, flock_file, (int file)) { return flock(file, LOCK_EX | LOCK_NB) ? errno : 0; }
MULLION_EXPORT(int, open_file, (const char *path)) { return open(path, O_RDONLY); }
MULLION_EXPORT(int, read_file, (int file))
{
	char byte;
	return (int)read(file, &byte, 1);
}
MULLION_EXPORT(void, crash, (void)) { *(volatile int *)8 = 1; }
typedef int function(void);
MULLION_EXPORT(function *, counter, (void)) { return count; }
