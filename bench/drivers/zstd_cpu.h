/* In place of zstd's common/cpu.h, for every column: a processor that reports no
 * extension. `cpuid` is not an instruction that a domain may execute, and a choice
 * of instructions at run time would compare processors instead of walls. */
#ifndef ZSTD_COMMON_CPU_H
#define ZSTD_COMMON_CPU_H

typedef struct {
    int none;
} ZSTD_cpuid_t;

static inline ZSTD_cpuid_t ZSTD_cpuid(void) {
    return (ZSTD_cpuid_t){0};
}

static inline int ZSTD_cpuid_bmi1(ZSTD_cpuid_t cpu) {
    return cpu.none;
}

static inline int ZSTD_cpuid_bmi2(ZSTD_cpuid_t cpu) {
    return cpu.none;
}

#endif
