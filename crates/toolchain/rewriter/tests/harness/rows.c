/* Runs each form of an instruction on the processor with random registers,
 * flags, vector registers and memory, changes one bit of what it finds at a
 * time, and tells what changed and what that depended on. The forms are in
 * forms.s, made by src/processor_tests.rs, which reads what is printed here:
 *
 *   NUMBER RUNS ILLEGAL  then for each of 16 registers and the flags
 *   CHANGED READ KEPT    and for memory and the vector registers CHANGED READ
 *
 * CHANGED: bits that were seen to change. READ: bits of which something else than
 * themselves depends, or whether the instruction faults. KEPT: bits that stay as
 * they were found, whatever they are.
 *
 *   rows SEED STATES */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

typedef struct {
    uint64_t gpr[16], flags;
    uint8_t vectors[16][32];
} State;
enum { FLAGS = 0x8d5, OPERAND = 2048, SPAN = 128 };
/* Where the operand in memory, both pointers of string instructions and the stack lie in the page. */
static const int places[] = {OPERAND, 1024, 1536, 3072};
enum { PLACES = sizeof places / sizeof *places };

State in, out;
uint64_t host_stack, form, faulted;
/* Guards on both sides. */
uint8_t pages[3][4096] __attribute__((aligned(4096)));
void run(void), returned(void), fault(void);

#ifdef WIDE
#define VECTOR(n) "vmovdqu in+136+32*" #n "(%rip), %ymm" #n "\n"
#define VECTOR_OUT(n) "vmovdqu %ymm" #n ", out+136+32*" #n "(%rip)\n"
#else
#define VECTOR(n) "movdqu in+136+32*" #n "(%rip), %xmm" #n "\n"
#define VECTOR_OUT(n) "movdqu %xmm" #n ", out+136+32*" #n "(%rip)\n"
#endif
#define ALL(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define LOAD(n, r) "movq in+8*" #n "(%rip), %" #r "\n"
#define STORE(n, r) "movq %" #r ", out+8*" #n "(%rip)\n"
#define GENERAL(f) \
    f(0, rax) f(1, rcx) f(2, rdx) f(3, rbx) f(5, rbp) f(6, rsi) f(7, rdi) f(8, r8) f(9, r9) f(10, r10) f(11, r11) \
        f(12, r12) f(13, r13) f(14, r14) f(15, r15)
__asm__(".text\nrun:\n"
        "pushq %rbx\npushq %rbp\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, host_stack(%rip)\n"
        "fninit\nfld1\nfldpi\nfldl2e\n" ALL(VECTOR)
        "pushq in+128(%rip)\npopfq\n" GENERAL(LOAD) LOAD(4, rsp)
        "jmp *form(%rip)\n"
        ".globl returned\nreturned:\n" STORE(4, rsp) "movq host_stack(%rip), %rsp\n"
        GENERAL(STORE)
        "pushfq\npopq out+128(%rip)\n" ALL(VECTOR_OUT)
        "1: pushq $0x1f80\nldmxcsr (%rsp)\npopq %rax\nfninit\ncld\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbp\npopq %rbx\nret\n"
        "fault: movq host_stack(%rip), %rsp\nmovq $1, faulted(%rip)\njmp 1b\n");

static int last_signal;
static void on_signal(int number, siginfo_t *info, void *context) {
    (void)info;
    last_signal = number;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (uint64_t)fault;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x400ll;
}

typedef struct {
    void *code;
    /* Registers whose every bit is changed; addresses in the page, which are not driven elsewhere
     * than beyond all memory; a count, whose lowest three bits alone are. */
    uint32_t looked_at, addresses, count;
} Form;
extern const Form forms[];
extern const uint64_t form_count;

static uint64_t seed;
static uint64_t next(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed * 0x2545f4914f6cdd1dull;
}
static uint64_t value(void) {
    switch (next() % 8) {
    case 0: return 0;
    case 1: return next() % 256;
    case 2: return ~0ull;
    case 3: return 1ull << next() % 64;
    case 4: return (uint32_t)next();
    default: return next();
    }
}

/* Which bits changed and on which something depends, by place. */
typedef struct {
    uint64_t changed[17], read[17], kept[17];
    uint64_t memory_changed, memory_read, vectors_changed, vectors_read;
} Seen;

typedef struct {
    State state;
    uint8_t memory[PLACES][SPAN];
    int faulted;
} Result;

static void once(const State *state, uint8_t memory[PLACES][SPAN], Result *result) {
    in = *state;
    for (int i = 0; i < PLACES; i++)
        memcpy(&pages[1][places[i]], memory[i], SPAN);
    faulted = 0;
    memset(&out, 0, sizeof out);
    run();
    result->state = out;
    result->state.flags &= FLAGS;
    result->faulted = faulted;
    for (int i = 0; i < PLACES; i++)
        memcpy(result->memory[i], &pages[1][places[i]], SPAN);
}

/* Until two results in a row are the same. Some processors forget the address of the last x87 instruction when
 * another thread takes its turn, and fstenv stores it. */
static void steady(const State *state, uint8_t memory[PLACES][SPAN], Result *result) {
    static Result again;
    memset(&again, 0, sizeof again);
    for (once(state, memory, result);; *result = again) {
        once(state, memory, &again);
        if (!memcmp(&again, result, sizeof again))
            return;
    }
}

static uint64_t *word(State *state, int n) { return n == 16 ? &state->flags : &state->gpr[n]; }

/* Whether the two differ; `only` if in this one bit of this word alone. */
static int differ(Result *a, Result *b, int n, uint64_t bit, int *only) {
    *only = 0;
    if (a->faulted || b->faulted)
        return a->faulted != b->faulted;
    if (!memcmp(&a->state, &b->state, sizeof a->state) && !memcmp(a->memory, b->memory, sizeof a->memory))
        return 0;
    if (n >= 0) {
        *word(&b->state, n) ^= bit;
        *only = !memcmp(&a->state, &b->state, sizeof a->state) && !memcmp(a->memory, b->memory, sizeof a->memory);
        *word(&b->state, n) ^= bit;
    }
    return 1;
}

/* The result of a changed state: a difference counts if it is there again. */
static void changed(const State *state, uint8_t memory[PLACES][SPAN], const Result *first, Result *second) {
    once(state, memory, second);
    if (memcmp(first, second, sizeof *first))
        steady(state, memory, second);
}

static void look(const Form *f, State *state, uint8_t memory[PLACES][SPAN], Result *first, Seen *seen) {
    static Result second;
    int only;
    for (int n = 0; n < 17; n++) {
        uint64_t bits = n == 16 ? FLAGS : n == 4 ? 0 : ~0ull;
        if (n < 16 && f->addresses >> n & 1)
            bits &= 0xffff800000000007ull;
        if (n < 16 && f->count >> n & 1)
            bits &= 7;
        if (n < 16 && !(f->looked_at >> n & 1))
            bits &= 1ull << next() % 64 | 1ull << next() % 32;
        for (; bits; bits &= bits - 1) {
            uint64_t bit = bits & -bits;
            *word(state, n) ^= bit;
            changed(state, memory, first, &second);
            uint64_t found = *word(state, n);
            *word(state, n) ^= bit;
            if (!differ(first, &second, n, bit, &only))
                continue;
            int stays = only && ((*word(&second.state, n) ^ found) & bit) == 0;
            (stays ? seen->kept : seen->read)[n] |= bit;
        }
    }
    for (int i = 0; i < PLACES; i++)
        for (int at = 0; at < SPAN; at += 1 + next() % 2) {
            uint8_t bit = 1 << next() % 8;
            memory[i][at] ^= bit;
            changed(state, memory, first, &second);
            memory[i][at] ^= bit;
            second.memory[i][at] ^= bit;
            if (differ(first, &second, -1, 0, &only)) {
                /* Overwritten: the same whatever was there. */
                second.memory[i][at] ^= bit;
                if (differ(first, &second, -1, 0, &only))
                    seen->memory_read |= 1ull << i;
            }
        }
#ifdef WIDE
    int width = 32;
#else
    int width = 16;
#endif
    for (int n = 0; n < 16; n++)
        for (int at = 0; at < width; at += 1 + next() % 4) {
            uint8_t bit = 1 << next() % 8;
            state->vectors[n][at] ^= bit;
            changed(state, memory, first, &second);
            state->vectors[n][at] ^= bit;
            second.state.vectors[n][at] ^= bit;
            if (differ(first, &second, -1, 0, &only)) {
                second.state.vectors[n][at] ^= bit;
                if (differ(first, &second, -1, 0, &only))
                    seen->vectors_read |= 1ull << n;
            }
        }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 1;
    int states = atoi(argv[2]);
    cpu_set_t one;
    sched_getaffinity(0, sizeof one, &one);
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &one) && found++)
            CPU_CLR(i, &one);
    sched_setaffinity(0, sizeof one, &one); /* cpuid tells on which it runs */
    static char alternate[1 << 16];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, 0}; *s; s++)
        sigaction(*s, &action, NULL);
    mprotect(pages[0], 4096, PROT_NONE);
    mprotect(pages[2], 4096, PROT_NONE);
    for (uint64_t number = 0; number < form_count; number++) {
        const Form *f = &forms[number];
        static Seen seen;
        memset(&seen, 0, sizeof seen);
        seed = (strtoull(argv[1], NULL, 0) + 1) * 0x9e3779b97f4a7c15ull ^ number << 20;
        for (int i = 0; i < 8; i++)
            next();
        form = (uint64_t)f->code;
        int runs = 0, illegal = 0;
        for (int try = 0; try < 8 * states && runs < states && !illegal; try++) {
            static State state;
            static uint8_t memory[PLACES][SPAN];
            static Result first;
            memset(&state, 0, sizeof state);
            for (int n = 0; n < 16; n++)
                state.gpr[n] = value();
            /* A dividend that is not too large. */
            if (try % 3 == 1)
                state.gpr[2] = 0, state.gpr[0] &= 0xff;
            /* Sources of 0, and a comparison that holds. */
            if (try % 3 == 2)
                for (int n = 0; n < 16; n++)
                    if (next() % 2)
                        state.gpr[n] = state.gpr[n] & ~0xffffffffull;
            state.gpr[4] = (uint64_t)&pages[1][places[3] + 64];
            state.gpr[6] = f->addresses >> 6 & 1 ? (uint64_t)&pages[1][places[1] + 32] : state.gpr[6];
            state.gpr[7] = f->addresses >> 7 & 1 ? (uint64_t)&pages[1][places[2] + 32] : state.gpr[7];
            state.gpr[5] = f->addresses >> 5 & 1 ? (uint64_t)&pages[1][places[3] + 32] : state.gpr[5];
            state.gpr[1] &= f->count >> 1 & 1 ? 7 : ~0ull;
            state.flags = 0x202 | (next() & FLAGS);
            for (int n = 0; n < 16; n++)
                for (int at = 0; at < 32; at++)
                    state.vectors[n][at] = next() % 4 ? next() : 0;
#ifndef WIDE
            for (int n = 0; n < 16; n++)
                memset(state.vectors[n] + 16, 0, 16);
#endif
            for (int i = 0; i < PLACES; i++)
                for (int at = 0; at < SPAN; at++)
                    memory[i][at] = next() % 4 ? next() : 0;
            uint64_t control = try % 4 == 3 ? 0x037f : 0x1f80; /* of the x87 unit or of SSE */
            if (try % 2)
                memcpy(memory[0], &control, 8);
            steady(&state, memory, &first);
            if (first.faulted) {
                illegal = last_signal == SIGILL;
                continue;
            }
            runs++;
            for (int n = 0; n < 17; n++)
                seen.changed[n] |= n == 16 ? (first.state.flags ^ state.flags) & FLAGS : first.state.gpr[n] ^ state.gpr[n];
            for (int i = 0; i < PLACES; i++)
                if (memcmp(memory[i], first.memory[i], SPAN))
                    seen.memory_changed |= 1ull << i;
            for (int n = 0; n < 16; n++)
                if (memcmp(state.vectors[n], first.state.vectors[n], 32))
                    seen.vectors_changed |= 1ull << n;
            look(f, &state, memory, &first, &seen);
        }
        printf("%llu %d %d", (unsigned long long)number, runs, illegal);
        for (int n = 0; n < 17; n++)
            printf(" %llx %llx %llx", (unsigned long long)seen.changed[n], (unsigned long long)seen.read[n],
                   (unsigned long long)seen.kept[n]);
        printf(" %llx %llx %llx %llx\n", (unsigned long long)seen.memory_changed, (unsigned long long)seen.memory_read,
               (unsigned long long)seen.vectors_changed, (unsigned long long)seen.vectors_read);
    }
    return 0;
}
