    .set LABEL, 0x4e6c754d
    .macro label
    .byte 0x0f, 0x1f, 0x80
    .long LABEL
    .endm
    # The check of an operand: `own` says how many words.
    .macro hot operand, own, cold, d=0
    lea \operand, %r11
    shr $2, %r11
    cmp %\own, %gs:\d(%r11,%r11)
    jne \cold
    .endm
    # The same by lines.
    .macro line operand, own, cold, d=0
    lea \operand, %r11
    not %r11
    sar $6, %r11
    cmp %\own, %gs:\d(%r11,%r11)
    jne \cold
    .endm
    .macro look operand, right
    lea \operand, %r11
    shr $2, %r11
    movzwl %gs:(%r11,%r11), %r11d
    testb $\right, %gs:(%r14d,%r11d)
    .endm
    .macro point operand, right, refuse
    look "\operand", \right
    je \refuse
    .endm
    .macro refuse
    ud1 %ecx, %eax
    .endm
    # The points of an operand with one, and with two displacements.
    .macro cold1 operand, right, back
    look "\operand", \right
    jne \back
    refuse
    .endm
    .macro cold2 first, second, right, back
    point "\first", \right, 88f
    look "\second", \right
    jne \back
88: refuse
    .endm
    .macro cold3 first, second, third, right, back
    point "\first", \right, 88f
    point "\second", \right, 88f
    look "\third", \right
    jne \back
88: refuse
    .endm
    # The check of a branch's target.
    .macro enter register, away
    mov %\register, %r11
    shr $2, %r11
    movzwl %gs:(%r11,%r11), %r11d
    testb $8, %gs:(%r14d,%r11d)
    je \away
    .endm
    .macro near register, far
    mov %\register, %r11
    shr $2, %r11
    movzwl %gs:(%r11,%r11), %r11d
    movzbl %gs:(%r14d,%r11d), %r11d
    and $12, %r11d
    xor $12, %r11d
    jne \far
    mov %\register, %r11
    and $-16, %r11
    add $32, %r11
    .endm
    .macro own register, trap
    mov %\register, %r11
    shr $2, %r11
    movzwl %gs:(%r11,%r11), %r11d
    testb $4, %gs:(%r14d,%r11d)
    je \trap
    mov $-LABEL, %r11d
    add -4(%\register), %r11d
    jne \trap
    .endm
    # The same by the distance from the beginning of the code.
    .macro within register, trap
    lea _start+4(%rip), %r11
    sub %\register, %r11
    cmp $_start+4-text_end, %r11
    jbe \trap
    mov $-LABEL, %r11d
    add -4(%\register), %r11d
    jne \trap
    .endm
    .macro gate body
    endbr64
    lea \body(%rip), %r11
    jmp *ENTER(%rip)
    .endm
    .set ENTER, __slots_start + 8
    .set LEAVE, __slots_start + 16
    .set IMPORT, __slots_start + 128
    .section .mullion.slots, "aw", @progbits
    .quad 0
    .section .mullion.imports, "a", @progbits
    .asciz "import"
    .skip 64 - 7
    .data
variable: .quad 1, 2, 3, 4
    .globl exported
exported: .quad import_data, variable
    .section .data.rel.ro, "aw", @progbits
constant: .quad variable
    .section .rodata, "a", @progbits
text:  .asciz "text"
    .bss
zeros: .skip 64
    .section .init_array, "aw"
    .quad _start
    .text
    .balign 16
    .globl _start
    .type _start, @function
_start: gate 77f
    .balign 16, 0xcc
77:
