/* A host in C whose run becomes a trace for the hardware model.
 *
 *     mullion cc --wall=word -g -O1 module.c -o module.so
 *     cc trace.c -o trace $(pkg-config --cflags --libs mullion_word)
 *     ./trace module.so run.mmt && mullion model run run.mmt
 */
#include <mullion_word.h>

#include "list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The module may call it. */
long say(const char *text)
{
    return (long)strlen(text);
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

int main(int count, char **arguments)
{
    long (*total)(const struct item *, size_t, struct summary *);
    long (*told)(long);
    long (*function)(const char *) = say;
    mullion_word_module module;
    mullion_word_policy policy;
    mullion_word_domain domain;
    struct item items[] = { { 3, 4 }, { 5, 6 } };
    struct summary summary = { 0, 0 };
    void *address = NULL;
    mullion_word_effect totals[] = {
        mullion_word_in(0, mullion_word_bytes(sizeof items)),
        mullion_word_out(2, mullion_word_bytes(sizeof summary)),
    };
    mullion_word_effect texts[] = { mullion_word_in(0, mullion_word_text()) };
    mullion_word_row row = { totals, 2, 0, -1, 0, NULL };
    mullion_word_row text = { texts, 1, 0, 0, 0, NULL };

    if (count != 3) {
        fprintf(stderr, "usage: trace MODULE FILE\n");
        return 2;
    }
    EXPECT(mullion_word_trace_end(arguments[2], "nothing") == MULLION_WORD_NOTHING);
    DO(mullion_word_trace_begin(1));
    EXPECT(mullion_word_trace_begin(1) == MULLION_WORD_REFUSED);

    DO(mullion_word_module_open(arguments[1], &module));
    DO(mullion_word_policy_new(&policy));
    DO(mullion_word_policy_allocators(policy));
    memcpy(&address, &function, sizeof address);
    DO(mullion_word_policy_offer(policy, "say", address, &text));
    DO(mullion_word_policy_export(policy, "total", &row));
    DO(mullion_word_load(module, policy, &domain));
    DO(mullion_word_function(domain, "total", &address));
    memcpy(&total, &address, sizeof total);
    EXPECT(total(items, 2, &summary) == 42 && summary.total == 42);
    DO(mullion_word_function(domain, "told", &address));
    memcpy(&told, &address, sizeof told);
    EXPECT(told(7) == 1);

    DO(mullion_word_trace_end(arguments[2], "a host in C"));
    EXPECT(mullion_word_trace_end(arguments[2], "again") == MULLION_WORD_NOTHING);
    EXPECT(mullion_word_trace_begin(0) == MULLION_WORD_REFUSED);
    /* The domain goes on without. */
    EXPECT(told(8) == 1);
    DO(mullion_word_unload(domain));
    printf("items %" PRIuPTR ", summary %" PRIuPTR "\n", (uintptr_t)items, (uintptr_t)&summary);
    printf("content\n");
    return 0;
}
