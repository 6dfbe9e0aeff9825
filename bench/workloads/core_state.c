/* A state machine in the manner of CoreMark's third kernel (own code): it tells
 * integers, decimals, exponents and junk apart in a text of items with commas
 * between them, and counts how often each state was entered. */
#include "bench.h"

#define LENGTH 4096

enum state { START, SIGN, INTEGER, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, SCIENTIFIC, JUNK, STATES };

static char text[LENGTH + 1];

static int digit(char c) {
    return c >= '0' && c <= '9';
}

static enum state step(enum state state, char c) {
    switch (state) {
    case START:
        return digit(c) ? INTEGER : c == '+' || c == '-' ? SIGN : c == '.' ? POINT : JUNK;
    case SIGN:
        return digit(c) ? INTEGER : c == '.' ? POINT : JUNK;
    case INTEGER:
        return digit(c) ? INTEGER : c == '.' ? FRACTION : c == 'e' || c == 'E' ? EXPONENT : JUNK;
    case POINT:
        return digit(c) ? FRACTION : JUNK;
    case FRACTION:
        return digit(c) ? FRACTION : c == 'e' || c == 'E' ? EXPONENT : JUNK;
    case EXPONENT:
        return digit(c) ? SCIENTIFIC : c == '+' || c == '-' ? EXPONENT_SIGN : JUNK;
    case EXPONENT_SIGN:
    case SCIENTIFIC:
        return digit(c) ? SCIENTIFIC : JUNK;
    default:
        return JUNK;
    }
}

/* Runs over one item; `*at` is left behind its comma, or on the final zero. */
static BENCH_CALL enum state item(const char **at, uint32_t *entered) {
    enum state state = START;
    const char *p = *at;
    for (; *p && *p != ','; p++) {
        enum state next = step(state, *p);
        if (next != state)
            entered[next]++;
        state = next;
    }
    *at = *p ? p + 1 : p;
    return state;
}

static void prepare(void) {
    static const char *const items[] = {"5012", "-874", "+122", "35.54400", ".1234500", "-110.700", "+0.64400", "5.500e+3",
                                        "-.123e-2", "-87e+832", "+0.6e-12", "T0.3e-1F", "-T.T++Tq", "1T3.4e4z", "34.0e-T^", "7e"};
    uint32_t seed = 29;
    size_t used = 0;
    for (;;) {
        const char *one = items[bench_random(&seed) % 16];
        size_t length = strlen(one);
        if (used + length + 1 > LENGTH)
            break;
        memcpy(text + used, one, length);
        text[used + length] = ',';
        used += length + 1;
    }
}

static BENCH_CALL uint64_t scan(uint64_t i) {
    uint32_t entered[STATES] = {0}, ended[STATES] = {0};
    char *change = &text[i * 97 % LENGTH], kept = *change;
    if (kept && kept != ',')
        *change = (char)('0' + i % 10);
    for (const char *at = text; *at;)
        ended[item(&at, entered)]++;
    *change = kept;
    uint64_t sum = 0;
    for (int s = 0; s < STATES; s++)
        sum = sum * 131 + entered[s] * 7 + ended[s];
    return sum;
}

BENCH_MAIN(prepare(), scan(i))
