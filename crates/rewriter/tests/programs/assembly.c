/* Inline assembler of the kinds that real programs hold. */
#include "program.h"

static __thread int local = 3;

static APART uint64_t pushes(uint64_t x) {
    uint64_t r;
    __asm__ volatile("subq $128, %%rsp\n\t" /* clear of the red zone */
                     "pushq %1\n\tpushq $7\n\tpushq %2\n\tpopq %0\n\taddq $8, %%rsp\n\taddq (%%rsp), %0\n\tpopq %1\n\t"
                     "addq $128, %%rsp"
                     : "=&r"(r), "+r"(x)
                     : "m"(x)
                     : "memory", "cc");
    return r + x;
}

static APART uint64_t strings(const char *from, char *to, uint64_t n) {
    uint64_t count = n;
    void *d = to;
    const void *s = from;
    __asm__ volatile("rep; movsb" : "+D"(d), "+S"(s), "+c"(count) : : "memory");
    uint64_t moved = (uint64_t)((char *)d - to) + (uint64_t)((const char *)s - from) + count;
    d = to;
    count = n;
    __asm__ volatile("repne scasb" : "+D"(d), "+c"(count) : "a"('q') : "memory", "cc");
    moved = mix(moved, (uint64_t)((char *)d - to) + count);
    d = to;
    s = from;
    count = n;
    uint8_t equal;
    __asm__ volatile("repe cmpsb\n\tsete %0" : "=q"(equal), "+D"(d), "+S"(s), "+c"(count) : : "memory", "cc");
    moved = mix(moved, equal + count);
    d = to;
    count = n / 8;
    __asm__ volatile("cld; rep stosq" : "+D"(d), "+c"(count) : "a"(0x0102030405060708) : "memory");
    return mix(moved, (uint64_t)to[3] + (uint64_t)to[n - 1]);
}

static APART uint64_t flags(uint64_t a, uint64_t b, uint64_t *p) {
    uint64_t low, high = b;
    /* Carry and overflow live across memory accesses, and across a thread-local one. */
    __asm__ volatile("movq %2, %0\n\taddq %3, %0\n\tmovq %0, %4\n\tadcq %4, %1\n\tadcq $0, %1"
                     : "=&r"(low), "+r"(high)
                     : "r"(a), "r"(b), "m"(*p)
                     : "memory", "cc");
    uint8_t overflow, carry;
    int value;
    __asm__ volatile("addl %4, %5\n\tmovl %3, %2\n\tseto %0\n\tsetc %1"
                     : "=&q"(overflow), "=&q"(carry), "=&r"(value)
                     : "m"(local), "r"((int)a), "r"(0x7fffff00)
                     : "cc");
    return mix(low ^ high, overflow * 4 + carry * 2 + value);
}

static APART uint64_t high_bytes(uint32_t x, unsigned char *p) {
    uint32_t r = x;
    __asm__ volatile("movb %h0, (%1)\n\taddb 1(%1), %h0\n\tmovb (%1), %b0" : "+Q"(r) : "r"(p) : "memory", "cc");
    unsigned char onstack[4] = {1, 2, 3, 4};
    __asm__ volatile("movb %h0, %1\n\txorb %2, %h0" : "+Q"(r), "=m"(onstack[1]) : "m"(onstack[2]) : "cc");
    return mix(r, onstack[1] + p[0]);
}

static APART uint64_t wide_swap(uint64_t *p) {
    uint64_t low = p[0], high = p[1];
    uint8_t ok;
    __asm__ volatile("lock; cmpxchg16b %1\n\tsetz %0"
                     : "=q"(ok), "+m"(*(struct { uint64_t w[2]; } *)p), "+a"(low), "+d"(high)
                     : "b"(11ul), "c"(12ul)
                     : "memory", "cc");
    __asm__ volatile("lock\n\tincq %0" : "+m"(p[1]) : : "cc");
    return mix(ok, p[0] * 3 + p[1]);
}

static APART uint64_t loops(uint64_t n) {
    uint64_t sum = 0;
    __asm__ volatile("1: addq %1, %0\n\tdecq %1\n\tjnz 1b\n\tjmp 2f\n\tnop\n2:" : "+r"(sum), "+r"(n) : : "cc");
    return sum;
}

/* Flags live across the jump of a switch: gcc moves a comparison with which all cases begin in front of it. */
uint64_t across_a_jump(uint64_t which, uint64_t a, uint64_t b);
__asm__(".text\n\t.type across_a_jump, @function\nacross_a_jump:\n\t"
        "leaq .Lcases(%rip), %rcx\n\tmovslq (%rcx,%rdi,4), %rax\n\taddq %rcx, %rax\n\t"
        "cmpq %rdx, %rsi\n\tjmp *%rax\n\t"
        ".section .rodata\n\t.balign 4\n.Lcases:\n\t.long .Lbelow-.Lcases, .Lless-.Lcases, .Lequal-.Lcases\n\t"
        ".text\n.Lbelow:\n\tjb .Lyes\n.Lno:\n\tmovl $5, %eax\n\tret\n"
        ".Lless:\n\tjl .Lyes\n\tjmp .Lno\n"
        ".Lequal:\n\tjne .Lno\n.Lyes:\n\tmovl $9, %eax\n\tret\n\t"
        ".size across_a_jump, .-across_a_jump");

uint64_t entry(void) {
    char from[64], to[64] = {0};
    for (int i = 0; i < 64; i++)
        from[i] = (char)('A' + i);
    uint64_t sum = pushes(1234);
    sum = mix(sum, strings(from, to, 64));
    uint64_t word = 5;
    sum = mix(sum, flags(~0ul, 3, &word));
    sum = mix(sum, flags(0x7fffffff, 0x80000000, &word));
    unsigned char bytes[2] = {7, 9};
    sum = mix(sum, high_bytes(0x12345678, bytes));
    _Alignas(16) uint64_t pair[2] = {1, 2};
    sum = mix(sum, wide_swap(pair));
    for (uint64_t which = 0; which < 3; which++)
        for (uint64_t a = 0; a < 4; a++)
            for (uint64_t b = 0; b < 4; b++)
                sum = mix(sum, across_a_jump(which, a << 62, b << 62));
    return mix(sum, loops(17));
}
