/* See fts.h. Entries of a directory are read as a whole when it is entered, and freed when it is left. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The path is behind the name. */
static FTSENT *make(FTSENT *parent, const char *name)
{
	size_t length = strlen(name), before = parent ? parent->fts_pathlen : 0;
	int slash = parent && !(before && parent->fts_path[before - 1] == '/');
	size_t path = before + slash + length;
	if (path > USHRT_MAX) {
		errno = ENAMETOOLONG;
		return 0;
	}
	FTSENT *entry = calloc(1, sizeof *entry + length + path + 1);
	if (!entry)
		return 0;
	memcpy(entry->fts_name, name, length + 1);
	entry->fts_namelen = length;
	entry->fts_path = entry->fts_name + length + 1;
	if (parent)
		memcpy(entry->fts_path, parent->fts_path, before);
	if (slash)
		entry->fts_path[before] = '/';
	memcpy(entry->fts_path + before + slash, name, length + 1);
	entry->fts_pathlen = path;
	entry->fts_accpath = entry->fts_path;
	entry->fts_parent = parent;
	entry->fts_level = parent ? parent->fts_level + 1 : FTS_ROOTLEVEL;
	entry->fts_statp = &entry->fts_stat_;
	entry->fts_instr = FTS_NOINSTR;
	return entry;
}

static void look(FTS *walk, FTSENT *entry, int follow)
{
	struct stat *found = entry->fts_statp;
	if (walk->fts_options & FTS_LOGICAL)
		follow = 1;
	if (follow ? stat(entry->fts_path, found) : lstat(entry->fts_path, found)) {
		entry->fts_errno = errno;
		entry->fts_info = follow && !lstat(entry->fts_path, found) ? FTS_SLNONE : FTS_NS;
		if (entry->fts_info == FTS_SLNONE)
			entry->fts_errno = 0;
		else
			memset(found, 0, sizeof *found);
		return;
	}
	entry->fts_dev = found->st_dev;
	entry->fts_ino = found->st_ino;
	entry->fts_nlink = found->st_nlink;
	entry->fts_errno = 0;
	entry->fts_info = S_ISREG(found->st_mode) ? FTS_F : S_ISLNK(found->st_mode) ? FTS_SL : FTS_DEFAULT;
	if (!S_ISDIR(found->st_mode))
		return;
	entry->fts_info = strcmp(entry->fts_name, ".") && strcmp(entry->fts_name, "..") ? FTS_D : FTS_DOT;
	if (entry->fts_level == FTS_ROOTLEVEL)
		entry->fts_info = FTS_D;
	for (FTSENT *above = entry->fts_parent; above; above = above->fts_parent)
		if (above->fts_ino == entry->fts_ino && above->fts_dev == entry->fts_dev) {
			entry->fts_cycle = above;
			entry->fts_info = FTS_DC;
			return;
		}
}

static void drop(FTSENT *list)
{
	while (list) {
		FTSENT *next = list->fts_link;
		drop(list->fts_children_);
		free(list);
		list = next;
	}
}

static FTSENT *sorted(FTS *walk, FTSENT *list)
{
	size_t count = 0;
	for (FTSENT *entry = list; entry; entry = entry->fts_link)
		count++;
	if (!walk->fts_compar || count < 2)
		return list;
	FTSENT **all = malloc(count * sizeof *all);
	/* Then in the order of the directory. */
	if (!all)
		return list;
	for (size_t i = 0; list; list = list->fts_link)
		all[i++] = list;
	qsort(all, count, sizeof *all, (int (*)(const void *, const void *))walk->fts_compar);
	for (size_t i = 0; i < count; i++)
		all[i]->fts_link = i + 1 < count ? all[i + 1] : 0;
	list = all[0];
	free(all);
	return list;
}

/* Reads the entries of a directory; -1 if that cannot be done. */
static int list(FTS *walk, FTSENT *directory)
{
	FTSENT *first = 0, **last = &first;
	DIR *stream = opendir(directory->fts_path);
	if (!stream) {
		directory->fts_errno = errno;
		return -1;
	}
	for (struct dirent *found; (errno = 0, found = readdir(stream));) {
		int dot = !strcmp(found->d_name, ".") || !strcmp(found->d_name, "..");
		if (dot && !(walk->fts_options & FTS_SEEDOT))
			continue;
		FTSENT *entry = make(directory, found->d_name);
		if (!entry)
			break;
		look(walk, entry, 0);
		*last = entry;
		last = &entry->fts_link;
	}
	directory->fts_errno = errno;
	closedir(stream);
	directory->fts_children_ = sorted(walk, first);
	directory->fts_listed_ = 1;
	return directory->fts_errno ? -1 : 0;
}

FTS *fts_open(char *const *paths, int options, int (*compare)(const FTSENT **, const FTSENT **))
{
	if (!(options & (FTS_LOGICAL | FTS_PHYSICAL)) || (options & FTS_LOGICAL && options & FTS_PHYSICAL) || !*paths) {
		errno = EINVAL;
		return 0;
	}
	FTS *walk = calloc(1, sizeof *walk);
	if (!walk)
		return 0;
	walk->fts_options = options;
	walk->fts_compar = compare;
	FTSENT **last = &walk->fts_roots_;
	for (; *paths; paths++) {
		FTSENT *entry = **paths ? make(0, *paths) : 0;
		if (!entry) {
			if (!**paths)
				errno = ENOENT;
			fts_close(walk);
			return 0;
		}
		look(walk, entry, options & FTS_COMFOLLOW);
		*last = entry;
		last = &entry->fts_link;
	}
	walk->fts_roots_ = sorted(walk, walk->fts_roots_);
	return walk;
}

/* The entry behind this one and all that is in it; the directory again if it was the last one. */
static FTSENT *behind(FTS *walk, FTSENT *entry)
{
	FTSENT *next = entry->fts_link, *parent = entry->fts_parent;
	if (next || !parent)
		return next;
	parent->fts_info = parent->fts_errno ? FTS_ERR : FTS_DP;
	return parent;
}

FTSENT *fts_read(FTS *walk)
{
	FTSENT *entry = walk->fts_cur;
	errno = 0;
	if (!entry) {
		entry = walk->fts_roots_;
		if (!entry)
			return 0;
	} else {
		int wish = entry->fts_instr;
		entry->fts_instr = FTS_NOINSTR;
		int link = entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE;
		if (wish == FTS_AGAIN || (wish == FTS_FOLLOW && link)) {
			look(walk, entry, wish == FTS_FOLLOW);
			return entry;
		}
		int enter = entry->fts_info == FTS_D && wish != FTS_SKIP &&
			!(walk->fts_options & FTS_XDEV && entry->fts_dev != walk->fts_dev);
		if (enter && !entry->fts_listed_ && list(walk, entry) && !entry->fts_children_) {
			entry->fts_info = FTS_DNR;
			return entry;
		}
		if (enter && entry->fts_children_) {
			entry = entry->fts_children_;
		} else if (entry->fts_info == FTS_D) {
			entry->fts_info = FTS_DP;
			return entry;
		} else {
			/* What was in it is done with. */
			drop(entry->fts_children_);
			entry->fts_children_ = 0;
			entry->fts_listed_ = 0;
			entry = behind(walk, entry);
		}
	}
	/* fts_set() may have been told of an entry that fts_children() gave. */
	while (entry && entry->fts_instr == FTS_SKIP && entry->fts_info != FTS_DP) {
		entry->fts_instr = FTS_NOINSTR;
		entry = behind(walk, entry);
	}
	if (!entry) {
		walk->fts_roots_ = (drop(walk->fts_roots_), (FTSENT *)0);
		walk->fts_cur = 0;
		return 0;
	}
	if (entry->fts_instr == FTS_FOLLOW) {
		entry->fts_instr = FTS_NOINSTR;
		look(walk, entry, 1);
	}
	if (entry->fts_level == FTS_ROOTLEVEL && entry->fts_info == FTS_D)
		walk->fts_dev = entry->fts_dev;
	walk->fts_cur = entry;
	return entry;
}

FTSENT *fts_children(FTS *walk, int options)
{
	FTSENT *entry = walk->fts_cur;
	if (options && options != FTS_NAMEONLY) {
		errno = EINVAL;
		return 0;
	}
	errno = 0;
	if (!entry)
		return walk->fts_roots_;
	if (entry->fts_info != FTS_D)
		return 0;
	if (!entry->fts_listed_ && list(walk, entry))
		errno = entry->fts_errno;
	return entry->fts_children_;
}

int fts_set(FTS *walk, FTSENT *entry, int wish)
{
	(void)walk;
	if (wish && wish != FTS_AGAIN && wish != FTS_FOLLOW && wish != FTS_NOINSTR && wish != FTS_SKIP) {
		errno = EINVAL;
		return -1;
	}
	entry->fts_instr = wish;
	return 0;
}

int fts_close(FTS *walk)
{
	drop(walk->fts_roots_);
	free(walk);
	return 0;
}
