/* Walking through a tree of files, as BSD and glibc have it. A path is never changed into: FTS_NOCHDIR is always so. */
#ifndef MULLION_FTS_H
#define MULLION_FTS_H

#include <sys/stat.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _ftsent {
	struct _ftsent *fts_cycle, *fts_parent, *fts_link;
	long fts_number;
	void *fts_pointer;
	char *fts_accpath, *fts_path;
	int fts_errno;
	unsigned short fts_pathlen, fts_namelen;
	ino_t fts_ino;
	dev_t fts_dev;
	nlink_t fts_nlink;
	short fts_level;
	unsigned short fts_info, fts_instr;
	struct stat *fts_statp;
	/* What fts_read() knows of it. */
	struct _ftsent *fts_children_;
	unsigned char fts_listed_;
	struct stat fts_stat_;
	char fts_name[1];
} FTSENT;

typedef struct {
	struct _ftsent *fts_cur, *fts_roots_;
	dev_t fts_dev;
	int (*fts_compar)(const FTSENT **, const FTSENT **);
	int fts_options;
} FTS;

#define FTS_COMFOLLOW 0x0001
#define FTS_LOGICAL 0x0002
#define FTS_NOCHDIR 0x0004
#define FTS_NOSTAT 0x0008
#define FTS_PHYSICAL 0x0010
#define FTS_SEEDOT 0x0020
#define FTS_XDEV 0x0040
#define FTS_NAMEONLY 0x0100

#define FTS_ROOTPARENTLEVEL (-1)
#define FTS_ROOTLEVEL 0

enum {
	FTS_D = 1, FTS_DC, FTS_DEFAULT, FTS_DNR, FTS_DOT, FTS_DP, FTS_ERR, FTS_F, FTS_INIT, FTS_NS, FTS_NSOK, FTS_SL,
	FTS_SLNONE
};

enum { FTS_AGAIN = 1, FTS_FOLLOW, FTS_NOINSTR, FTS_SKIP };

FTS *fts_open(char *const *, int, int (*)(const FTSENT **, const FTSENT **));
FTSENT *fts_read(FTS *);
FTSENT *fts_children(FTS *, int);
int fts_set(FTS *, FTSENT *, int);
int fts_close(FTS *);

#ifdef __cplusplus
}
#endif
#endif
