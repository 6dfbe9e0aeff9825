# What the tests' modules begin with: the forms of docs/word-form.md, by hand.

# A function whose address leaves the module. Its body begins behind this.
.macro gate name
    .globl  \name
    .type   \name, @function
    .p2align 4
\name:
    endbr64
    lea     __mullion_call.\name(%rip), %r11
    jmp     *mullion_slots+8(%rip)
    .p2align 4, 0xcc
    .size   \name, . - \name
__mullion_call.\name:
.endm

# The next import: a record, and a slot under the name slot.NAME.
.set mullion_imports, 0
.macro import name
    .pushsection .imports, "a", @progbits
1:  .ascii  "\name"
    .zero   64 - (. - 1b)
    .popsection
    .set    slot.\name, mullion_slots + 8 * (16 + mullion_imports)
    .set    mullion_imports, mullion_imports + 1
.endm

.macro call_import name
    call    *slot.\name(%rip)
.endm

# A checked access of at most four bytes: RIGHT is 1 or 2, then the operand in two parts, its displacement and the
# rest, then the instruction. Two words are compared, because the address need not be a multiple of four.
.macro checked right, displacement, operand, access:vararg
    lea     \displacement\operand, %r11
    shr     $2, %r11
    cmp     %r14d, %gs:(%r11,%r11)
81: jne     82f
83: \access
84:
    .pushsection .text.cold, "ax", @progbits
82: lea     \displacement\operand, %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $\right, %gs:(%r14d,%r11d)
    je      85f
    lea     \displacement+3\operand, %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $\right, %gs:(%r14d,%r11d)
    je      85f
    jmp     83b
85: ud1     %ecx, %eax
    .popsection
    .pushsection .mullion.checked, "", @progbits
    .quad   81b, 84b, 82b, 85b
    .popsection
.endm

# A call by address in a register.
.macro call_by register
    mov     \register, %r11
    shr     $2, %r11
    movzwl  %gs:(%r11,%r11), %r11d
    testb   $8, %gs:(%r14d,%r11d)
    je      92f
    call    *\register
    jmp     94f
92: mov     \register, %r11
    call    *mullion_slots+16(%rip)
94:
.endm

    .section .slots, "aw", @progbits
    .p2align 3
mullion_slots:
    .text
