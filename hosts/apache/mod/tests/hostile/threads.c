/* Several threads of the module. */
#include "hostile.h"
#include "ap_regex.h"

/* Two threads change what belongs to no request, without a lock of their own. */
#define MANY 40000

static apr_pool_t *volatile shared_pool;
static apr_table_t *volatile shared_table;
static apr_hash_t *volatile shared_hash;
static volatile int has_begun[2];
static volatile int is_over[2];
static volatile int run;
static int keys[2 * MANY];

static apr_status_t count_run(void *data)
{
    run++;
    return APR_SUCCESS;
}

int raced(request_rec *r, int me)
{
    int n;
    apr_pool_t *below, *p = NULL;

    if (me == 0) {
        apr_pool_create(&p, NULL);
        shared_table = apr_table_make(p, 2);
        shared_hash = apr_hash_make(p);
        shared_pool = p;
    }
    has_begun[me] = 1;
    while (!has_begun[!me] || !shared_pool)
        apr_sleep(1000);
    for (n = me; n < 2 * MANY; n += 2) {
        keys[n] = n;
        apr_table_addn(shared_table, "one", "more");
        apr_hash_set(shared_hash, &keys[n], sizeof(keys[n]), &keys[n]);
        apr_pool_cleanup_register(shared_pool, &keys[n], count_run, apr_pool_cleanup_null);
        if (n % 1000 == me)
            apr_pool_create(&below, shared_pool);
    }
    is_over[me] = 1;
    ap_set_content_type(r, "text/plain");
    if (me == 0) {
        int entries, found;

        while (!is_over[1])
            apr_sleep(1000);
        entries = apr_table_elts(shared_table)->nelts;
        for (found = n = 0; n < 2 * MANY; n++)
            found += apr_hash_get(shared_hash, &keys[n], sizeof(keys[n])) == &keys[n];
        run = 0;
        apr_pool_destroy(p);
        ap_rprintf(r, "%d %d %d", entries, found, run);
    }
    return OK;
}

/* One thread has APR make files, and another one writes where APR puts their addresses, which it follows itself. */
static apr_file_t *volatile put_here;
static volatile int races;

int put(request_rec *r, const char *what)
{
    int n, opened = 0;

    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "put-forged")) {
        for (n = 0; !races && n < 5000; n++)
            apr_sleep(1000);
        while (races == 1)
            put_here = (apr_file_t *)0x4141414141414141;
        ap_rputs("done", r);
        return OK;
    }
    races = 1;
    for (n = 0; n < 50000; n++) {
        apr_pool_t *below;

        apr_pool_create(&below, r->pool);
        opened += apr_file_open((apr_file_t **)&put_here, "/dev/null", APR_READ, APR_OS_DEFAULT, below) == APR_SUCCESS;
        apr_pool_destroy(below);
    }
    races = 2;
    ap_rprintf(r, "%d", opened);
    return OK;
}

/* One thread has APR read a file into memory of the server's, and another one writes where APR puts the count, which it reads by. */
static const char *volatile filled;
static volatile apr_size_t filled_bytes;
static volatile int fills;

int fill(request_rec *r, const char *what)
{
    int n, read = 0;
    apr_file_t *file;

    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "fill-forged")) {
        for (n = 0; !fills && n < 5000; n++)
            apr_sleep(1000);
        while (fills == 1)
            filled_bytes = 1 << 20;
        ap_rputs("done", r);
        return OK;
    }
    /* It is read, as it cannot be mapped. */
    if (apr_file_open(&file, "/dev/urandom", APR_READ, APR_OS_DEFAULT, r->pool) != APR_SUCCESS)
        return HTTP_NOT_FOUND;
    fills = 1;
    for (n = 0; n < 20000; n++) {
        apr_bucket *bucket = apr_bucket_file_create(file, 0, 64, r->pool, r->connection->bucket_alloc);

        read += apr_bucket_read(bucket, (const char **)&filled, (apr_size_t *)&filled_bytes, APR_BLOCK_READ) == APR_SUCCESS;
        apr_bucket_destroy(bucket);
    }
    fills = 2;
    ap_rprintf(r, "%d", read);
    return OK;
}

/* One thread has APR write to a piece of the heap, and another one gives the piece back meanwhile. */
enum { PIECE = 36 << 20, READ = PIECE / 4 * 3 - 3, ROUNDS = 5 };

static char *volatile piece;
static volatile int pieces;

int heap(request_rec *r, const char *what)
{
    int n, meanwhile = 0;

    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "heap-given")) {
        for (n = 0; pieces < ROUNDS && n < 100000; n++) {
            char *now = piece;

            apr_sleep(100);
            if (now && *(volatile char *)now) {
                piece = NULL;
                free(now);
            }
        }
        ap_rputs("done", r);
        return OK;
    }
    for (n = 0; n < ROUNDS; n++) {
        char *now = piece = malloc(PIECE);

        if (!now)
            break;
        /* Text from the end of the piece, from its beginning on. */
        apr_base64_encode_binary(now, (unsigned char *)now + PIECE - READ, READ);
        meanwhile += !piece;
        while (piece)
            apr_sleep(100);
        pieces = n + 1;
    }
    ap_rprintf(r, meanwhile ? "%d" : "%d, and none was given back", n);
    return OK;
}

/* What a request has that waits, for those of other threads. */
static apr_table_t *volatile kept_table;
apr_pool_t *volatile kept_pool;
static volatile int goes_on;

static int wait_in(void *data, const char *key, const char *value)
{
    /* A thread that is stopped ends where it writes. */
    for (; !goes_on; depth++)
        apr_sleep(1000);
    return 1;
}

static void *wait_merging(apr_pool_t *p, const void *key, apr_ssize_t length, const void *one, const void *other, const void *data)
{
    wait_in(NULL, NULL, NULL);
    return NULL;
}

int waits(request_rec *r, const char *what)
{
    apr_pool_t *p = r->pool;

    if (!strcmp(what, "is-kept")) {
        ap_set_content_type(r, "text/plain");
        ap_rputs(kept_pool ? "yes" : "no", r);
        return OK;
    }
    goes_on = !strcmp(what, "go-on");
    if (!strcmp(what, "keep-lasting"))
        apr_pool_create(&p, NULL);
    if (!strcmp(what, "keep-lasting") || !strcmp(what, "keep-own")) {
        kept_table = apr_table_make(p, 4);
        apr_table_set(kept_table, "one", "1");
        kept_pool = p;
        apr_table_do(wait_in, NULL, kept_table, NULL);
        kept_pool = NULL;
    }
    if (!strcmp(what, "keep-merging")) {
        apr_hash_t *hash;

        apr_pool_create(&p, NULL);
        hash = apr_hash_make(p);
        apr_hash_set(hash, "one", APR_HASH_KEY_STRING, "1");
        kept_pool = p;
        apr_hash_merge(p, hash, hash, wait_merging, NULL);
        kept_pool = NULL;
    }
    if (!strcmp(what, "end-kept"))
        apr_pool_destroy(kept_pool);
    if (!strcmp(what, "change-kept"))
        apr_table_set(kept_table, "two", "2");
    if (!strcmp(what, "use-kept"))
        apr_table_make(kept_pool, 4);
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

/* Locks that a stopped call has, and a call that does not return. */
int locked(request_rec *r, const char *what)
{
    if (!strcmp(what, "lock-kept")) {
        apr_thread_mutex_lock(lock_of_threads);
        apr_global_mutex_lock(lock_of_processes);
        *(volatile int *)16 = 1;
    }
    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "lock-taken")) {
        int first = apr_thread_mutex_trylock(lock_of_threads), second = apr_global_mutex_trylock(lock_of_processes);

        if (!first)
            apr_thread_mutex_unlock(lock_of_threads);
        if (!second)
            apr_global_mutex_unlock(lock_of_processes);
        ap_rprintf(r, "%d %d", first, second);
    }
    /* It waits for itself. */
    if (!strcmp(what, "wait-for-good")) {
        apr_thread_mutex_lock(lock_of_threads);
        kept_pool = r->pool;
        apr_thread_mutex_lock(lock_of_threads);
    }
    return OK;
}

/* One thread passes a text, and another one changes it meanwhile. No state of it has what lies behind. */
enum { WORDS_END = 400, ALL = 1000, TEXTS = 20000, LENGTHS = 20000, CHANGES = 200, SEGMENTS = 400, SEGMENT = 1 << 20 };

static volatile char text_of_two[ALL + 1];
/* As long as this, or ten characters. */
static volatile char text_of_lengths[1 << 20];
static volatile int passes;
static apr_shm_t *volatile segment_of_two;

static void change_words(int to)
{
    int n;

    for (n = 1; n < WORDS_END; n += 2)
        text_of_two[n] = to ? 'a' : ' ';
}

static void end_segments(void)
{
    int n;

    while (passes == 2) {
        apr_shm_t *now = segment_of_two;

        if (!now)
            continue;
        for (n = 0; n < 20000 * (depth++ % 8); n++)
            keys[0] = n;
        apr_shm_destroy(now);
        segment_of_two = NULL;
    }
}

/* How many texts were not as they have been at any time. */
static int wrong_words(request_rec *r)
{
    int n, wrong = 0;
    char **words;

    for (n = 0; n < TEXTS; n++) {
        apr_pool_t *below;

        apr_pool_create(&below, r->pool);
        if (apr_tokenize_to_argv((const char *)text_of_two, &words, below) == APR_SUCCESS)
            for (; *words; words++)
                wrong += strchr(*words, 'x') != NULL;
        apr_pool_destroy(below);
    }
    return wrong;
}

/* What APR or httpd measures first, and copies then. */
static void copy_lengths(apr_pool_t *p, const char *what)
{
    const char *text = (const char *)text_of_lengths;
    char *made;

    if (!strcmp(what, "two-tables")) {
        apr_table_t *table = apr_table_make(p, 2);

        apr_table_addn(table, "one", text);
        apr_table_addn(table, "one", text);
        apr_table_compress(table, APR_OVERLAP_TABLES_MERGE);
    }
    if (!strcmp(what, "two-paths"))
        apr_filepath_merge(&made, "/one", text, 0, p);
    if (!strcmp(what, "two-matches"))
        ap_rxplus_exec(p, ap_rxplus_compile(p, "s/b/c/"), text, &made);
}

static int joined_segments(request_rec *r)
{
    int n;

    for (n = 0; n < SEGMENTS; n++) {
        apr_pool_t *below, *p;
        apr_shm_t *segment;
        char *text;

        apr_pool_create(&below, r->pool);
        apr_pool_create(&p, NULL);
        if (apr_shm_create(&segment, SEGMENT, NULL, p) != APR_SUCCESS)
            return n;
        text = apr_shm_baseaddr_get(segment);
        memset(text, 'a', SEGMENT - 1);
        segment_of_two = segment;
        apr_pstrcat(below, text, NULL);
        while (segment_of_two)
            apr_sleep(100);
        apr_pool_destroy(below);
        apr_pool_destroy(p);
    }
    return n;
}

int of_two(request_rec *r, const char *what)
{
    int n, changes = 0, wrong = 0;

    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "two-change")) {
        for (n = 0; !passes && n < 5000; n++)
            apr_sleep(1000);
        for (n = 0; passes == 1; n++)
            change_words(n & 1);
        end_segments();
        /* It stays so for a moment, or nobody would see one of the two. */
        for (n = 0; passes == 3; n++)
            if (n % 4096 == 0)
                text_of_lengths[10] = text_of_lengths[10] ? 0 : 'a';
        ap_rputs("done", r);
        return OK;
    }
    if (!strcmp(what, "two-words")) {
        memset((char *)text_of_two, 'a', WORDS_END);
        memset((char *)text_of_two + WORDS_END, 'x', ALL - WORDS_END);
        for (n = WORDS_END + 1; n < ALL; n += 4)
            text_of_two[n] = ' ';
        text_of_two[WORDS_END] = 0;
        passes = 1;
        wrong = wrong_words(r);
    }
    if (!strcmp(what, "two-tables") || !strcmp(what, "two-paths") || !strcmp(what, "two-matches")) {
        memset((char *)text_of_lengths, 'a', sizeof(text_of_lengths) - 1);
        text_of_lengths[0] = 'b';
        passes = 3;
        /* The other thread may have no processor for a while. */
        for (n = 0; n < LENGTHS && changes < CHANGES; n++) {
            apr_pool_t *below;
            const char now = text_of_lengths[10];

            apr_pool_create(&below, r->pool);
            copy_lengths(below, what);
            changes += now != text_of_lengths[10];
            apr_pool_destroy(below);
        }
    }
    if (!strcmp(what, "two-segments")) {
        passes = 2;
        wrong = SEGMENTS - joined_segments(r);
    }
    passes = 0;
    ap_rprintf(r, "%d", wrong);
    return OK;
}
