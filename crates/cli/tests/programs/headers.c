/* Headers of glibc's and BSD's that musl does not have. */
#define _GNU_SOURCE
#include <stdio.h>
/* Any of glibc's headers has it. */
__BEGIN_DECLS
#include <errno.h>
__END_DECLS
#include <error.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/limits.h>
#include <linux/types.h>
#include <obstack.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/cdefs.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

__BEGIN_DECLS
static int declared(void) __attribute_used__;
__END_DECLS

static int declared(void) { return __GNUC_PREREQ(4, 0); }

struct item {
	int number;
	TAILQ_ENTRY(item) tail;
	LIST_ENTRY(item) list;
	SLIST_ENTRY(item) single;
	STAILQ_ENTRY(item) queue;
};

static void queues(void)
{
	struct item items[5], *at;
	TAILQ_HEAD(tails, item) tails = TAILQ_HEAD_INITIALIZER(tails);
	LIST_HEAD(, item) lists = LIST_HEAD_INITIALIZER(lists);
	SLIST_HEAD(, item) singles;
	STAILQ_HEAD(, item) queue;
	SLIST_INIT(&singles);
	STAILQ_INIT(&queue);
	for (int i = 0; i < 5; i++) {
		items[i].number = i;
		if (i % 2)
			TAILQ_INSERT_HEAD(&tails, &items[i], tail);
		else
			TAILQ_INSERT_TAIL(&tails, &items[i], tail);
		LIST_INSERT_HEAD(&lists, &items[i], list);
		SLIST_INSERT_HEAD(&singles, &items[i], single);
		STAILQ_INSERT_TAIL(&queue, &items[i], queue);
	}
	TAILQ_REMOVE(&tails, &items[0], tail);
	TAILQ_INSERT_BEFORE(&items[1], &items[0], tail);
	LIST_REMOVE(&items[4], list);
	LIST_INSERT_AFTER(&items[0], &items[4], list);
	SLIST_REMOVE(&singles, &items[2], item, single);
	STAILQ_REMOVE(&queue, &items[4], item, queue);
	STAILQ_INSERT_TAIL(&queue, &items[4], queue);
	STAILQ_REMOVE_HEAD(&queue, queue);
	TAILQ_FOREACH(at, &tails, tail)
		printf("%d ", at->number);
	TAILQ_FOREACH_REVERSE(at, &tails, tails, tail)
		printf("%d ", at->number);
	LIST_FOREACH(at, &lists, list)
		printf("%d ", at->number);
	SLIST_FOREACH(at, &singles, single)
		printf("%d ", at->number);
	STAILQ_FOREACH(at, &queue, queue)
		printf("%d ", at->number);
	printf("%d\n", TAILQ_LAST(&tails, tails)->number);
}

static void stacks(void)
{
	struct obstack stack;
	obstack_init(&stack);
	char *first = obstack_copy0(&stack, "first", 5);
	for (int i = 0; i < 20000; i++)
		obstack_int_grow(&stack, i);
	obstack_1grow(&stack, 'x');
	size_t size = obstack_object_size(&stack);
	int *numbers = obstack_finish(&stack);
	int aligned = (unsigned long)obstack_alloc(&stack, 1) % sizeof(void *) == 0;
	obstack_printf(&stack, "%s-%d", "text", 5);
	obstack_1grow(&stack, 0);
	char *text = obstack_finish(&stack);
	printf("%s %zu %d %d %s\n", first, size, numbers[19999], aligned, text);
	obstack_free(&stack, numbers);
	char *again = obstack_alloc(&stack, 3);
	printf("%d %d\n", again == (char *)numbers, obstack_memory_used(&stack) > 0);
	obstack_free(&stack, NULL);
}

static int by_name(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

static void trees(char *root)
{
	char path[4096];
	static const char *const directories[] = { "b", "a", "a/deep", "skipped" };
	static const char *const files[] = { "b/2", "b/1", "a/deep/er", "skipped/none", "z" };
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s/%s", root, directories[i]);
		mkdir(path, 0777);
	}
	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof path, "%s/%s", root, files[i]);
		fclose(fopen(path, "w"));
	}
	char *roots[] = { root, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	for (FTSENT *entry; (entry = fts_read(walk));) {
		printf("%d %d %s %s\n", entry->fts_level, entry->fts_info, entry->fts_level ? entry->fts_name : "",
			entry->fts_path + strlen(root));
		if (!strcmp(entry->fts_name, "skipped"))
			fts_set(walk, entry, FTS_SKIP);
		if (!strcmp(entry->fts_name, "b") && entry->fts_info == FTS_D)
			for (FTSENT *child = fts_children(walk, 0); child; child = child->fts_link)
				printf("child %s\n", child->fts_name);
	}
	printf("%d\n", fts_close(walk));
}

static void room(char *root)
{
	char path[4096], text[8] = "";
	snprintf(path, sizeof path, "%s/room", root);
	int file = open(path, O_RDWR | O_CREAT, 0666), reads = open(path, O_RDONLY), pipes[2];
	write(file, "content", 7);
	printf("%d ", posix_fallocate(file, 2, 100000));
	struct stat status;
	fstat(file, &status);
	pread(file, text, 7, 0);
	printf("%ld %s ", (long)status.st_size, text);
	printf("%d ", posix_fallocate(file, 0, 10));
	fstat(file, &status);
	pipe(pipes);
	printf("%ld %d %d %d %d %d\n", (long)status.st_size, posix_fallocate(file, -1, 1), posix_fallocate(file, 0, 0),
		posix_fallocate(reads, 0, 1), posix_fallocate(pipes[1], 0, 1), posix_fallocate(99, 0, 1));
}

static void clocks(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += 2000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	printf("%d ", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &at));
	printf("%d ", pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &at) == ETIMEDOUT);
	printf("%d\n", pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &at) == ETIMEDOUT);
}

/* How many calls backtrace() finds below so many of this function. */
static __attribute__((noinline)) int found_below(int calls, void **places)
{
	int found = calls ? found_below(calls - 1, places) : backtrace(places, 64);
	__asm__ volatile("");
	return found;
}

static void calls(void)
{
	void *places[64], *few[2];
	int one = found_below(1, places), four = found_below(4, places);
	printf("%d %d %d\n", four - one, places[1] == places[2], backtrace(few, 2));
	char *place = (char *)(void *)found_below;
	char *inside = places[0];
	printf("%d\n", inside > place && inside < place + 4096);
	char **names = backtrace_symbols(places, four);
	printf("%d\n", strstr(names[0], "(+0x") != NULL && strstr(names[0], ") [0x") != NULL);
	free(names);
}

int main(int count, char **arguments)
{
	__u32 four = sizeof(__u32);
	printf("%u %zu %d %d\n", four, sizeof(__u64), PATH_MAX, declared());
	queues();
	stacks();
	if (count > 1) {
		trees(arguments[1]);
		room(arguments[1]);
	}
	clocks();
	calls();
	program_invocation_name = "program";
	error_print_progname = NULL;
	dup2(1, 2);
	error(0, ENOENT, "no %s", "file");
	error_at_line(0, 0, "source", 12, "wrong");
	printf("%u\n", error_message_count);
	fflush(stdout);
	error(3, 0, "the end");
}
