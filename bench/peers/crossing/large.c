/* An extension of about 1 MB of machine code: a few thousand functions of ordinary kinds. */
#include <mullion/ext.h>
#include <stdint.h>

struct record { uint32_t key, count; uint64_t sum; struct record *next; char name[16]; };

static struct record *heads[256];

#define FUNCTIONS(n)                                                                             \
    MULLION_NOINLINE uint64_t mix_##n(const uint8_t *text, uint64_t length) {                    \
        uint64_t hash = n * 2654435761u + 1;                                                     \
        for (uint64_t i = 0; i < length; i++)                                                    \
            hash = (hash ^ text[i]) * 1099511628211u + (hash >> (n % 13 + 1));                   \
        return hash;                                                                             \
    }                                                                                            \
    MULLION_NOINLINE struct record *find_##n(uint32_t key, struct record *spare) {               \
        struct record **place = &heads[(key * (2 * n + 1u)) % 256];                              \
        for (; *place; place = &(*place)->next)                                                  \
            if ((*place)->key == key)                                                            \
                return *place;                                                                   \
        spare->key = key, spare->count = n, spare->sum = 0, spare->next = 0;                     \
        return *place = spare;                                                                   \
    }                                                                                            \
    MULLION_NOINLINE int64_t state_##n(const char *word, int64_t value) {                        \
        switch (word[n % 4]) {                                                                   \
        case 'a': return value + n;                                                              \
        case 'b': return value * (n + 3);                                                        \
        case 'c': return value / (n + 1);                                                        \
        case 'd': return (int64_t)mix_##n((const uint8_t *)word, 4) ^ value;                     \
        case 'e': return value > n ? state_##n(word + 1, value - n - 1) : -value;                \
        case 'f': return heads[(uint8_t)word[1]] ? (int64_t)heads[(uint8_t)word[1]]->sum : n;    \
        default: return word[0] ? value << (n % 7) : value >> (n % 5);                           \
        }                                                                                        \
    }

#define MULLION_NOINLINE __attribute__((used, noinline)) static

#define TEN(n) FUNCTIONS(n##0) FUNCTIONS(n##1) FUNCTIONS(n##2) FUNCTIONS(n##3) FUNCTIONS(n##4) \
    FUNCTIONS(n##5) FUNCTIONS(n##6) FUNCTIONS(n##7) FUNCTIONS(n##8) FUNCTIONS(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)

HUNDRED(1) HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5) HUNDRED(6) HUNDRED(7) HUNDRED(8) HUNDRED(9)
HUNDRED(10) HUNDRED(11) HUNDRED(12) HUNDRED(13) HUNDRED(14) HUNDRED(15) HUNDRED(16) HUNDRED(17)

MULLION_EXPORT(uint64_t, nothing, (void)) { return mix_100((const uint8_t *)"", 0); }
