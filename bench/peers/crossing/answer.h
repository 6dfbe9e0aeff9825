/* The answering side of the table "crossings": each peer is a process that waits on its
 * standard input for the name of a row, measures that row once, and answers with a line,
 * "NANOSECONDS" of one operation or "none REASON". The benchmark asks all peers in turn, so
 * that no row has a better part of the machine's day than another. */
#ifndef CROSSING_ANSWER_H
#define CROSSING_ANSWER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Does `count` operations. */
typedef void operations(uint64_t count);

struct row {
    const char *name;
    operations *run;
    const char *(*begin)(void); /* before a measurement, not timed; why there is none, or NULL */
    void (*end)(void);          /* behind it */
    uint64_t unit;              /* operations come in multiples of this; 0 counts as 1 */
    uint64_t count;             /* operations of one measurement; found by the first */
};

static inline uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t timed(const struct row *row, uint64_t count) {
    uint64_t start = now();
    row->run(count);
    return now() - start;
}

/* So many operations that they take about `budget` nanoseconds. */
static void calibrate(struct row *row, uint64_t budget) {
    uint64_t unit = row->unit ? row->unit : 1, count = unit, time = timed(row, count);
    while (time < budget / 8 && count < UINT64_C(1) << 40) {
        count *= 4;
        time = timed(row, count);
    }
    count = (uint64_t)((double)count * (double)budget / (double)(time ? time : 1));
    row->count = (count + unit - 1) / unit * unit;
    if (row->count == 0)
        row->count = unit;
}

/* An eighth as a warm-up, then the measurement: nanoseconds for one operation. */
static double measure(struct row *row, uint64_t budget) {
    uint64_t unit = row->unit ? row->unit : 1;
    if (row->count == 0)
        calibrate(row, budget);
    row->run((row->count / 8 + unit) / unit * unit);
    return (double)timed(row, row->count) / (double)row->count;
}

static void answer_one(struct row *row, uint64_t budget) {
    const char *missing = row->begin ? row->begin() : NULL;
    if (missing) {
        printf("none %s\n", missing);
        return;
    }
    double nanoseconds = measure(row, budget);
    if (row->end)
        row->end();
    printf("%.3f\n", nanoseconds);
}

/* Answers until nobody asks any more. */
static int answer(struct row *rows, size_t count, uint64_t budget) {
    char line[256];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        struct row *row = rows, *end = rows + count;
        line[strcspn(line, "\n")] = 0;
        while (row < end && strcmp(row->name, line))
            row++;
        if (row == end)
            printf("none there is no row `%s` here\n", line);
        else
            answer_one(row, budget);
        fflush(stdout);
    }
    return 0;
}

/* Nothing here can be measured: the first line of a peer that does not answer. */
static inline void stop(const char *why) {
    printf("none %s\n", why);
    fflush(stdout);
    exit(1);
}

#endif
