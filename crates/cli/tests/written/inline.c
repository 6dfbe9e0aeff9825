/* Inline assembler that names the registers of the rewriter, as multiplications of big numbers do. */
#include <stdint.h>
#include <stdio.h>

/* 128 bits times 64 bits, with everything that a callee keeps in use around it. */
static void product(uint64_t out[3], const uint64_t a[2], uint64_t b)
{
    __asm__ volatile("movq (%1), %%rax\n\t"
                     "mulq %2\n\t"
                     "movq %%rax, %%r14\n\t"
                     "movq %%rdx, %%r15\n\t"
                     "movq 8(%1), %%rax\n\t"
                     "mulq %2\n\t"
                     "xorl %%r11d, %%r11d\n\t"
                     "addq %%rax, %%r15\n\t"
                     "adcq %%rdx, %%r11\n\t"
                     "movq %%r14, (%0)\n\t"
                     "movq %%r15, 8(%0)\n\t"
                     "movq %%r11, 16(%0)"
                     :
                     : "r"(out), "r"(a), "r"(b)
                     : "rax", "rdx", "r11", "r14", "r15", "memory", "cc");
}

/* A loop within one block: addresses, parts of registers, flags from one turn to the next. */
static uint64_t sum(const uint8_t *bytes, uint64_t count)
{
    uint64_t out;
    __asm__ volatile("xorl %%r11d, %%r11d\n\t"
                     "movq %1, %%r14\n\t"
                     "leaq (%1,%2), %%r15\n"
                     "1:\tcmpq %%r15, %%r14\n\t"
                     "jae 2f\n\t"
                     "addb (%%r14), %%r11b\n\t"
                     "adcw $3, %%r11w\n\t"
                     "rolq $5, %%r11\n\t"
                     "incq %%r14\n\t"
                     "jmp 1b\n"
                     "2:\tmovq %%r11, %0"
                     : "=&r"(out)
                     : "r"(bytes), "r"(count)
                     : "r11", "r14", "r15", "memory", "cc");
    return out;
}

/* A function that is one block. */
uint64_t whole(uint64_t a, uint64_t b);
__asm__(".text\n"
        ".type whole, @function\n"
        "whole:\n\t"
        "push %r15\n\t"
        "leaq 1(%rdi,%rsi,2), %r15\n\t"
        "movl %r15d, %r11d\n\t"
        "shldq $7, %r11, %r15\n\t"
        "movq %r15, %rax\n\t"
        "pop %r15\n\t"
        "ret\n\t"
        ".size whole, .-whole\n");

int main(void)
{
    uint64_t a[2] = {0x123456789abcdef1u, 0xfedcba9876543210u};
    uint8_t bytes[64];
    for (int at = 0; at < 64; at++)
        bytes[at] = (uint8_t)(at * 37 + 11);
    uint64_t b = 3;
    for (int turn = 0; turn < 12; turn++) {
        uint64_t out[3];
        product(out, a, b);
        register uint64_t other __asm__("r11") = out[1];
        __asm__ volatile("notq %0" : "+r"(other));
        printf("%016lx %016lx %016lx %016lx\n", out[2], out[1], out[0], other);
        printf("%016lx %016lx\n", sum(bytes, (uint64_t)turn * 5), whole(out[0], out[1]));
        b = b * 0x9e3779b97f4a7c15u + out[1];
    }
    return 0;
}
