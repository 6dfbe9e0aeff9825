/* A host in C with a module behind the word wall, which works on the host's own structures.
 *
 *     mullion cc --wall=word -g -O1 module.c -o module.so
 *     cc host.c -o host $(pkg-config --cflags --libs mullion_word)
 *     ./host module.so
 */
#include <mullion_word.h>

#include "list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long (*total_function)(const struct item *, size_t, struct summary *);
typedef long (*discount_function)(struct item *, size_t);
typedef long (*number_function)(long);
typedef long (*item_function)(const struct item *);
typedef long (*plain_function)(void);
typedef long (*spoil_function)(long (*)(void));
typedef double (*mean_function)(double, double);

/* The module may call it, with what it may read itself. */
long say(const char *text)
{
    printf("the module says %s\n", text);
    return (long)strlen(text);
}

/* A pool with one item. What it gives is the calling module's until the pool is cleared. */
static struct item pool;
static mullion_word_lease lease;
static mullion_word_domain asked_by;

struct item *pool_item(void)
{
    mullion_word_caller(&asked_by);
    return mullion_word_lease_grant_caller(lease, &pool, sizeof pool, 1) ? NULL : &pool;
}

#define DO(call)                                                                                   \
    do {                                                                                           \
        mullion_word_status status_ = (call);                                                      \
        if (status_) {                                                                             \
            fprintf(stderr, "%s: %d, %s\n", #call, (int)status_, mullion_word_error_message());    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void *find(mullion_word_domain domain, const char *name)
{
    void *address = NULL;
    DO(mullion_word_function(domain, name, &address));
    return address;
}

/* A function's address in a variable of its type, which ISO C has no cast for. */
#define FIND(domain, function)                                                                     \
    do {                                                                                           \
        void *found_ = find(domain, #function);                                                    \
        memcpy(&function, &found_, sizeof found_);                                                 \
    } while (0)

static long host_function(void)
{
    return 0;
}

static void on_fault(void *user, const mullion_word_report *report)
{
    printf("%s\n", report->text);
    *(int *)user += 1;
}

static mullion_word_policy make_policy(void)
{
    mullion_word_policy policy;
    mullion_word_effect totals[] = {
        mullion_word_in(0, mullion_word_bytes(2 * sizeof(struct item))),
        mullion_word_out(2, mullion_word_bytes(sizeof(struct summary))),
    };
    mullion_word_effect items[] = { mullion_word_in(0, mullion_word_bytes(2 * sizeof(struct item))) };
    mullion_word_effect texts[] = { mullion_word_in(0, mullion_word_text()) };
    mullion_word_row total = { totals, 2, 0, -1, 0, NULL };
    mullion_word_row item = { items, 1, 0, -1, 0, NULL };
    mullion_word_row text = { texts, 1, 0, 0, 0, NULL };
    mullion_word_limits limits = { 0, 1 << 20, 0, 0 };
    long (*function)(const char *) = say;
    void *address;
    memcpy(&address, &function, sizeof address);

    DO(mullion_word_policy_new(&policy));
    DO(mullion_word_policy_allocators(policy));
    DO(mullion_word_policy_offer(policy, "say", address, &text));
    struct item *(*of_pool)(void) = pool_item;
    memcpy(&address, &of_pool, sizeof address);
    DO(mullion_word_policy_offer(policy, "pool_item", address, NULL));
    DO(mullion_word_policy_stays_mapped(policy));
    DO(mullion_word_policy_export(policy, "total", &total));
    DO(mullion_word_policy_export(policy, "discount", &item));
    DO(mullion_word_policy_export(policy, "remember", &item));
    DO(mullion_word_policy_error(policy, -1, -1.0));
    DO(mullion_word_policy_limits(policy, &limits));
    return policy;
}

static void note(void *user, const mullion_word_note *note)
{
    if (note->kind == MULLION_WORD_WANTS_ACCESS && strcmp(note->exported, "recall") == 0
        && strstr(note->line, "module.c:"))
        *(int *)user += 1;
}

int main(int count, char **arguments)
{
    mullion_word_module module;
    mullion_word_policy policy;
    mullion_word_domain domain, second;
    mullion_word_report report;
    mullion_word_granted granted;
    mullion_word_prepared prepared;
    struct item items[] = { { 3, 4 }, { 5, 6 } };
    struct summary summary = { 0, 0 };
    struct record *record;
    void *data = NULL;
    int faults = 0, notes = 0;
    spoil_function spoil;
    total_function total;
    discount_function discount;
    number_function told;
    item_function remember;
    plain_function recall;
    mean_function mean;

    if (count != 2) {
        fprintf(stderr, "usage: host MODULE\n");
        return 2;
    }
    DO(mullion_word_module_open(arguments[1], &module));
    policy = make_policy();
    DO(mullion_word_load(module, policy, &domain));
    DO(mullion_word_on_fault(on_fault, &faults));
    FIND(domain, total);
    FIND(domain, discount);
    FIND(domain, told);
    FIND(domain, remember);
    FIND(domain, recall);
    FIND(domain, mean);

    EXPECT(total(items, 2, &summary) == 42 && summary.total == 42 && summary.calls == 1);
    EXPECT(told(7) == 1);
    EXPECT(mean(1, 2) == 1.5);

    /* A right for a call ends with it. */
    EXPECT(remember(items) == 3);
    EXPECT(recall() == -1 && faults == 1 && mullion_word_is_ended(domain));
    DO(mullion_word_take_report(domain, &report));
    EXPECT(report.kind == MULLION_WORD_ACCESS && report.address == (uint64_t)(uintptr_t)items);
    EXPECT(strstr(report.line, "module.c:") && strcmp(report.exported, "recall") == 0);
    EXPECT(mullion_word_take_report(domain, &report) == MULLION_WORD_NOTHING);
    EXPECT(total(items, 2, &summary) == -1);
    DO(mullion_word_restart(domain));
    EXPECT(total(items, 2, &summary) == 42 && summary.calls == 1);

    /* A right for good, for a while, and again and again. */
    DO(mullion_word_grant(domain, items, sizeof items, 0));
    EXPECT(remember(items) == 3 && recall() == 3);
    DO(mullion_word_revoke(items, sizeof items));
    DO(mullion_word_grant_for(domain, items, sizeof items, 0, &granted));
    EXPECT(recall() == 3);
    DO(mullion_word_grant_end(granted));
    EXPECT(mullion_word_grant_end(granted) == MULLION_WORD_BAD_HANDLE);
    DO(mullion_word_prepare(domain, items, sizeof items, 1, &prepared));
    for (int round = 0; round < 3; round++) {
        DO(mullion_word_prepared_grant(prepared));
        EXPECT(recall() == 3);
        EXPECT(discount(items, 0) == 0);
        DO(mullion_word_prepared_revoke(prepared));
    }
    DO(mullion_word_prepared_free(prepared));

    /* It may read, and not write. */
    EXPECT(discount(items, 2) == -1 && items[0].price == 3 && faults == 2);
    DO(mullion_word_take_report(domain, &report));
    EXPECT(strstr(report.allow, "export.discount.effects = [\"inout("));

    /* What a pool has given goes with the pool. A structure of the module is read in place. */
    DO(mullion_word_restart(domain));
    DO(mullion_word_lease_new(&lease));
    DO(mullion_word_symbol(domain, "record", &data));
    record = (struct record *)data;
    EXPECT(mullion_word_has_data(domain, record, sizeof *record) && !mullion_word_has_data(domain, &pool, 4));
    memcpy(&data, &record->pooled, sizeof data);
    EXPECT(mullion_word_has_function(domain, data));
    EXPECT(record->pooled() == 1 && record->pooled() == 2 && pool.number == 2);
    EXPECT(asked_by.number == domain.number && mullion_word_caller(&asked_by) == MULLION_WORD_NOTHING);
    DO(mullion_word_lease_clear(lease));
    EXPECT(record->pooled() == -1 && pool.number == 2 && faults == 3);
    DO(mullion_word_restart(domain));
    EXPECT(record->pooled() == 3);
    DO(mullion_word_lease_end(lease));
    EXPECT(mullion_word_lease_end(lease) == MULLION_WORD_BAD_HANDLE);
    FIND(domain, spoil);
    EXPECT(spoil(host_function) == 1);
    memcpy(&data, &record->pooled, sizeof data);
    EXPECT(!mullion_word_has_function(domain, data));

    /* A domain that learns is not confined, and tells. */
    DO(mullion_word_learn(module, policy, note, &notes, &second));
    FIND(second, remember);
    FIND(second, recall);
    EXPECT(remember(items) == 3 && recall() == 3 && notes == 1 && faults == 3);
    DO(mullion_word_unload(second));
    EXPECT(recall() == -1);

    EXPECT(mullion_word_module_open("/nowhere", &module) == MULLION_WORD_CANNOT_OPEN);
    EXPECT(mullion_word_function(domain, "nothing", (void **)&total) == MULLION_WORD_NO_EXPORT);
    EXPECT(mullion_word_unload(second) == MULLION_WORD_BAD_HANDLE);
    EXPECT(mullion_word_load(module, policy, NULL) == MULLION_WORD_BAD_ARGUMENT);
    DO(mullion_word_unload(domain));
    EXPECT(strcmp(record->name, "example") == 0); /* it stays mapped */
    DO(mullion_word_policy_free(policy));
    DO(mullion_word_module_free(module));
    printf("content\n");
    return 0;
}
