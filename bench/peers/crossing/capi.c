/* A host in C: what calls cost through include/mullion.h.
 *
 *     capi EXTENSION.mx BUDGET_NANOSECONDS DOMAINS */
#include "answer.h"
#include <mullion.h>

struct loaded {
    mullion_domain domain;
    mullion_function nothing, eight, work, call_host;
    mullion_value buffer; /* the domain's own, 4096 bytes */
};

static struct loaded *all;
static uint64_t domains;
static unsigned char bytes[64];

static void must(mullion_status status) {
    if (status != MULLION_OK)
        stop(mullion_error_message());
}

static void call_one(uint64_t count) {
    while (count--)
        must(mullion_call(all[0].nothing, NULL, 0, NULL));
}

static void call_in_turn(uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        must(mullion_call(all[i % domains].nothing, NULL, 0, NULL));
}

static void call_eight(uint64_t count) {
    mullion_value sum = MULLION_INTEGER_RESULT, arguments[8];
    for (uint64_t i = 0; i < 8; i++)
        arguments[i] = mullion_integer(i);
    while (count--)
        must(mullion_call(all[0].eight, arguments, 8, &sum));
}

static void call_64(uint64_t count) {
    mullion_value arguments[] = {all[0].buffer, mullion_integer(64)};
    mullion_pointer place = mullion_as_pointer(all[0].buffer);
    while (count--) {
        must(mullion_write(all[0].domain, place, bytes, 64));
        must(mullion_call(all[0].work, arguments, 2, NULL));
        must(mullion_read(all[0].domain, place, bytes, 64));
    }
}

/* A thousand calls of the host for each call of the domain. */
static void call_host(uint64_t count) {
    mullion_value thousand = mullion_integer(1000);
    for (uint64_t i = 0; i < count; i += 1000)
        must(mullion_call(all[0].call_host, &thousand, 1, NULL));
}

static mullion_status nothing(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result) {
    (void)domain, (void)user, (void)arguments, (void)result;
    return MULLION_OK;
}

static void load(mullion_image image, mullion_imports imports, struct loaded *loaded) {
    mullion_function place;
    loaded->buffer = (mullion_value)MULLION_INTEGER_RESULT;
    must(mullion_domain_load(image, NULL, imports, NULL, &loaded->domain));
    must(mullion_function_find(loaded->domain, "nothing", &loaded->nothing));
    must(mullion_function_find(loaded->domain, "eight", &loaded->eight));
    must(mullion_function_find(loaded->domain, "work", &loaded->work));
    must(mullion_function_find(loaded->domain, "call_host", &loaded->call_host));
    must(mullion_function_find(loaded->domain, "place", &place));
    must(mullion_call(place, NULL, 0, &loaded->buffer));
    must(mullion_function_free(place));
}

int main(int argc, char **argv) {
    mullion_image image;
    mullion_imports imports;
    if (argc != 4)
        stop("usage: capi EXTENSION.mx BUDGET DOMAINS");
    domains = strtoull(argv[3], NULL, 10);
    all = calloc(domains, sizeof *all);
    if (domains == 0 || !all)
        stop("no memory");
    must(mullion_image_open(argv[1], &image));
    must(mullion_imports_new(&imports));
    must(mullion_imports_add(imports, "host_nothing", nothing, NULL));
    must(mullion_imports_add(imports, "next", nothing, NULL));
    for (uint64_t i = 0; i < domains; i++)
        load(image, imports, &all[i]);
    struct row rows[] = {
        {.name = "call", .run = call_one},
        {.name = "call in turn", .run = call_in_turn, .unit = domains},
        {.name = "eight", .run = call_eight},
        {.name = "copied-64", .run = call_64},
        {.name = "host", .run = call_host, .unit = 1000},
    };
    return answer(rows, sizeof rows / sizeof *rows, strtoull(argv[2], NULL, 10));
}
