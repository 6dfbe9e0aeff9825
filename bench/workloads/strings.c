/* String handling: splitting a text into words, folding case, comparing, searching
 * and joining them, byte by byte in own code as embedded programs do it. */
#include "bench.h"

#define LENGTH 6000
#define WORDS 1024

static char text[LENGTH + 1], folded[LENGTH + 1], joined[LENGTH + WORDS];
static const char *words[WORDS];

static BENCH_CALL int split(char *p) {
    int count = 0;
    while (*p && count < WORDS) {
        while (*p == ' ')
            p++;
        if (!*p)
            break;
        words[count++] = p;
        while (*p && *p != ' ')
            p++;
        if (*p)
            *p++ = 0;
    }
    return count;
}

static BENCH_CALL void fold(char *to, const char *from) {
    for (; *from; from++, to++)
        *to = *from >= 'A' && *from <= 'Z' ? (char)(*from - 'A' + 'a') : *from;
    *to = 0;
}

static BENCH_CALL int compare(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return (uint8_t)*a - (uint8_t)*b;
}

static BENCH_CALL const char *search(const char *in, const char *what) {
    for (; *in; in++) {
        const char *a = in, *b = what;
        while (*b && *a == *b)
            a++, b++;
        if (!*b)
            return in;
    }
    return NULL;
}

static BENCH_CALL char *append(char *to, const char *from) {
    while ((*to = *from++))
        to++;
    return to;
}

static void prepare(void) {
    uint32_t seed = 59;
    for (int i = 0; i < LENGTH; i++) {
        uint32_t draw = bench_random(&seed) >> 4;
        text[i] = (char)(draw % 6 == 0 ? ' ' : draw % 3 ? 'a' + draw / 18 % 11 : 'A' + draw / 18 % 13);
    }
}

static uint64_t once(uint64_t i) {
    static const char *const needles[4] = {"bad", "cafe", "deed", "zz"};
    text[i % LENGTH] = (char)('a' + i % 16);
    fold(folded, text);
    const char *found = search(folded, needles[i % 4]);
    uint64_t sum = found ? (uint64_t)(found - folded) : LENGTH;
    int count = split(folded);
    char *end = joined;
    for (int w = 1; w < count; w++) {
        int order = compare(words[w - 1], words[w]);
        sum = sum * 3 + (uint64_t)(order > 0) - (uint64_t)(order < 0);
        end = append(end, words[order > 0 ? w : w - 1]);
        *end++ = '-';
    }
    *end = 0;
    return sum * 31 + (uint64_t)(end - joined);
}

BENCH_MAIN(prepare(), once(i))
