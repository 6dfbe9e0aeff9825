/* Functions as people write them: every register, tables between functions, macros, instructions as bytes. */
        .text
        .globl crowded
        .type crowded, @function
crowded:
        .cfi_startproc
        push %rbx
        push %rbp
        push %r12
        push %r13
        push %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        push %r15
        movq %rsi, %r14
        movl $7, %r15d
        movl $3, %ecx
        leaq (%rdi,%r15,2), %r11
        movq $3, %r8
        movq $4, %r9
        movq $5, %r10
        movq $6, %r12
        movq $8, %r13
        movq $9, %rbx
        movq $10, %rbp
        xorl %eax, %eax
1:      addb (%r14,%rax), %r15b
        adcq %r11, %r15
        rolq %cl, %r15
        movzbl %r15b, %edx
        xorw %dx, %r11w
        cmpq %r11, %r15
        cmovbl %r15d, %r11d
        imulq %r11, %r15
        movq %r15, %xmm0
        paddq %xmm0, %xmm1
        xchgq %r11, %r15
        incq %rax
        cmpq $16, %rax
        jne 1b
        movq %r15, 16(%r14)
        movb $255, 24(%r14,%r8)
        leaq (%r14,%r15,8), %r11
        addq %r11, %r8
        addq %r9, %r8
        addq %r10, %r8
        addq %r12, %r8
        addq %r13, %r8
        addq %rbx, %r8
        addq %rbp, %r8
        subq %r14, %r8
        leaq 1(%r8,%r11), %rax
        subq %r14, %rax
        pop %r15
        pop %r14
        pop %r13
        pop %r12
        pop %rbp
        pop %rbx
        ret
        .cfi_endproc
        .size crowded, .-crowded
        .text
        .globl second
        .type second, @function
second:
        leaq .Lmask(%rip), %rax
        movq 8(%rax,%rdi,8), %rax
        addq .Lother(%rip), %rax
        addl table(%rip), %eax
        jmp 2f
        .align 32
.Lmask: .quad 1, 2, 3
        .long 4
        .long 5
.Lother:
        .quad 100
        .asciz "written by hand"
        .align 16
        .type table, @object
table:  .byte 7, 0, 0, 0
        .size table, .-table
2:      movaps .Lalign(%rip), %xmm0
        movd %xmm0, %ecx
        addl %ecx, %eax
        ret
        .size second, .-second
        .p2align 4
.Lalign: .long 1000, 0, 0, 0

#define SIZE 8
        .macro  absorb from, into, times=1
        .rept   \times
        movq    (\from), %r11
        xorq    %r11, \into
        .if     \times > 1
        rolq    $\times * 7, \into
        .endif
        addq    $SIZE, \from
        .endr
        .endm

        .globl  absorbed
        .type   absorbed, @function
absorbed:
        xorl    %eax, %eax
        .irp    count, 1, 3
        absorb  %rdi, %rax, \count
        .endr
        .byte   0xf3, 0x90
        .byte   0x48
        .byte   0x0f, 0xc8      /* bswap %rax */
        .byte   0xf3, 0xc3
        .size   absorbed, .-absorbed
        .section .note.GNU-stack,"",@progbits
