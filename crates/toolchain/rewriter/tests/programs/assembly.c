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

/* Each wants more registers than are free. */
static APART uint64_t scarce(void) {
    unsigned char bytes[8] = {0};
    unsigned char *p = bytes;
    /* A high byte at an address of the same register, and one whose other half is wanted behind it. */
    __asm__ volatile("movb %h0, 3(%0)\n\tmovb 3(%0), %h0\n\tincb 4(%0)" : "+Q"(p) : : "memory", "cc");
    uint64_t sum = p == bytes ? bytes[4] : 99;
    uint64_t words[8] = {0};
    /* The stack pointer's value while its steps are taken together, and what is popped into memory. */
    __asm__ volatile("subq $128, %%rsp\n\tpushq %1\n\tmovq %%rsp, (%0)\n\tpushq $5\n\tmovq %%rsp, 8(%0)\n\t"
                     "cmpq %%rsp, 8(%0)\n\tsete 16(%0)\n\tpopq 24(%0)\n\tpopq 32(%0,%2,8)\n\taddq $128, %%rsp"
                     : : "r"(words), "r"(77ul), "r"(1ul) : "memory", "cc");
    sum = mix(sum, words[0] - words[1]);
    sum = mix(sum, words[2] * 100 + words[3] * 10 + words[5]);
    /* The bytes of the label. */
    uint8_t below, equal;
    words[6] = 0x4e6c754d;
    __asm__ volatile("cmpl $0x4e6c754d, 48(%2)\n\tsete %0\n\tcmpl $0x4e6c754d, 52(%2)\n\tsetb %1\n\t"
                     "movl $0x4e6c754d, 56(%2)"
                     : "=&q"(equal), "=&q"(below) : "r"(words) : "memory", "cc");
    return mix(sum, equal * 2 + below + words[7]);
}

/* An indirect jump behind which every register that might serve is read. */
uint64_t all_registers(uint64_t which, uint64_t x);
__asm__(".text\n\t.type all_registers, @function\nall_registers:\n\tpushq %rbx\n\t"
        "leaq .Lall(%rip), %rbx\n\tmovslq (%rbx,%rdi,4), %rax\n\taddq %rax, %rbx\n\t"
        "leaq 1(%rsi), %rax\n\tleaq 2(%rsi), %rcx\n\tleaq 3(%rsi), %rdx\n\tleaq 4(%rsi), %rdi\n\t"
        "leaq 5(%rsi), %r8\n\tleaq 6(%rsi), %r9\n\tleaq 7(%rsi), %r10\n\tcmpq $7, %rsi\n\tjmp *%rbx\n\t"
        ".section .rodata\n\t.balign 4\n.Lall:\n\t.long .Lone-.Lall, .Ltwo-.Lall\n\t"
        ".text\n.Lone:\n\tjae .Ltwo\n\taddq %rcx, %rax\n"
        ".Ltwo:\n\timulq %rcx, %rax\n\timulq %rdx, %rax\n\timulq %rsi, %rax\n\timulq %rdi, %rax\n\t"
        "imulq %r8, %rax\n\timulq %r9, %rax\n\timulq %r10, %rax\n\tpopq %rbx\n\tret\n\t"
        ".size all_registers, .-all_registers");

/* Behind a jump, a return and a trap, with no label that anything goes to, a register is as unknown as in a new function. */
uint64_t behind_jumps(uint64_t x);
__asm__(".text\n\t.type behind_jumps, @function\nbehind_jumps:\n\t"
        "leal 1(%rdi), %eax\n\tjmp 1f\n\tmovl %ecx, (%rax)\n\taddl (%rax), %ecx\n"
        "1:\n\tleal 2(%rax), %ecx\n\tcmpl $99, %ecx\n\tje 2f\n\tleal 3(%rcx), %eax\n\tret\n\t"
        "movl %edx, (%rax)\n\taddl 8(%rcx), %edx\n\tret\n"
        "2:\n\tmovl %edi, %esi\n\tud2\n\tmovl %edx, (%rsi)\n\taddl (%rsi), %edx\n\tret\n\t"
        ".size behind_jumps, .-behind_jumps");

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
    sum = mix(sum, scarce());
    for (uint64_t which = 0; which < 2; which++)
        sum = mix(mix(sum, all_registers(which, 3)), all_registers(which, 9));
    sum = mix(sum, behind_jumps(41));
    return mix(sum, loops(17));
}
