# The trampolines: the only way into a window, out of it, and back.
#
# Nothing here follows the System V convention on the domain's side, and all of
# it does on the host's. Every copy of a name ending in _sse or _avx is the same
# code with another way of clearing the vector registers; the run time picks one
# when it starts.
#
# REGISTERS
#
#   mullion_enter(%rdi = thread control block, %rdx = domain, %rcx = target,
#                 %r8 = data stack, %r9 = six integer arguments, %r10 = further
#                 arguments or 0)
#     from the host, by `Tcb::enter`, which is told what is changed: everything but
#     %rbx, %rbp, %rsp. Returns the domain's %rax, %rdx and %xmm0, and in %ecx how
#     the invocation ended (`ended`).
#   into the domain
#     %rdi %rsi %rdx %rcx %r8 %r9  arguments     %xmm0-7  arguments, else 0
#     %r14                         the window    %r15     the data stack
#     %gs base                     the window, if the image accesses memory through
#                                  it (USES_GS); else whatever it was
#     %rsp                         the control stack, return address on top
#     %rax                         number of vector arguments
#     %r11                         the target itself
#     all others and the vectors: 0
#   if the image has x87 instructions (USES_X87): x87 registers 0, and all else as
#   at the start of a process; the host's control word is kept on its stack.
#   if the image has instructions on MXCSR (USES_MXCSR): as at the start of a
#   process; the host's is kept likewise. (Reading MXCSR takes as long as the rest
#   of a call.) Without such instructions a domain can neither see nor change
#   either, and computes in the host's modes as any function of the host does.
#   What no instruction of an image can name is left alone: no row of the
#   verifier's table has EVEX, so that is zmm16-31, the upper half of zmm0-15
#   and the mask registers.
#   out of a gate slot (docs/window.md)
#     %r11d the slot's number, %r10 the thread control block; the rest as the
#     domain left it.
#   back into the domain after a gate
#     %rax, %rdx, %xmm0 the result; %rbx %rbp %r12-%r15 as they were; every
#     other register 0; MXCSR and x87 control word, if the image uses them, as
#     the domain had them.
#
#   Arguments beyond the six in registers are copied from EXTRA_STACKED to the data
#   stack, at (%r15), in mullion_stacked: a fault there is the domain's.
#
# STACKS
#
#   the host's, in an invocation           the control stack
#
#   |  caller's frame         |            |  an outer invocation's,   |
#   |  return address         |            |  up to its last gate call | <- CONTROL
#   |  rbp rbx                |  +24       |  FRAME                    |
#   |  mxcsr, x87 words       |  +16       |  DOMAIN                   |
#   |  domain's words at exit |  +8        |  HOST                     | <- BASE
#   |  unused                 |  +0        |  the return gate          |
#   +-------------------------+ <- HOST    |  return addresses, pushed |
#   |  gate frame             |            |  by the domain's calls    | <- %rsp
#   |  what the host function |            |                           |
#   |  uses                   |            |  (grows down)             |
#
#   CONTROL, in the thread control block, is %rsp as it was at the gate call that
#   the thread is in, or the stack's top: below it the next, nested invocation
#   begins, at BASE = CONTROL - 24. Gates set and restore it; an invocation leaves
#   it. (A limit on the control stack moves it down for an invocation, with FRAME
#   copied and DOMAIN 0: `Tcb::lower`.) FRAME is the address of that gate's frame, or 0 at the top; DOMAIN is the
#   domain that runs, or 0 if the host does.
#   The `call` in mullion_enter pushes the return gate right below BASE, so the
#   domain's last `ret` finds HOST at (%rsp). Nothing here can be reached from a
#   window, and what is kept here needs not be kept twice: a call takes as long
#   as its stores do.
#
#   A gate frame, 256 bytes from %rsp: rax rdi rsi rdx rcx r8 r9 r15, xmm0-7
#   from +64, mxcsr +192, x87 control word +196, dispatch's own +200, CONTROL
#   +208; the result's second half +216 and vector +224, by dispatch if it returns
#   RETURNED_MORE; outer CONTROL +240.
#
# SIGNALS
#
#   A signal may arrive at every instruction. Who reads the thread control block
#   then (the fault handler and the handler of the time limit, both on the
#   alternate stack) decides by the interrupted instruction pointer alone:
#
#   in the window of the domain at     DOMAIN and HOST are those of the running
#       CONTROL - 16                   invocation: it may be ended by going to
#                                      mullion_abort with %rsp = HOST.
#   in [mullion_builtin_begin,         the same: %rsp is the control stack, and
#       mullion_builtin_end), or in    nothing of the host's is to be lost. (In
#       a range of mullion_inside      mullion_stacked, %rsp is 8 below HOST.) A
#                                      gate's first instruction faults on a full stack.
#   anywhere else in this file         the invocation is never ended. A time
#                                      limit is seen when `dispatch` returns; if the
#                                      signal came behind that check, the watchdog
#                                      sends another one.
#
#   A host's own handler without an alternate stack may be delivered on the
#   control stack (in the window, or where %rsp is already or still the control
#   stack): that is memory no domain can reach, and below %rsp it holds nothing.
#   If there is too little of it, see `reserve.rs`. Handlers must not enter domains.
#
#   GS is written after the %gs base itself, so a handler that interrupts in
#   between sees the older value; nobody but this file acts on it.

    .text

    .set LABEL_NOP_LENGTH, 7
    .set USES_X87, 1
    .set USES_MXCSR, 2
    .set USES_FLOAT, 3
    .set USES_GS, 4

# Clears what the host left in registers that carry no argument or result.
# (`vzeroupper` and sixteen `pxor` take half the time of `vzeroall`.)
.macro scrub_vectors_sse
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    pxor    %xmm\n, %xmm\n
    .endr
.endm
.macro scrub_vectors_avx
    vzeroupper
    scrub_vectors_sse
.endm
.macro clean_upper_sse
.endm
.macro clean_upper_avx
    vzeroupper
.endm
# The x87 registers can be read as MMX registers whatever their tags say, and
# `fnstenv` tells where the last x87 instruction was and its operand: addresses of the
# host's. `fninit` clears these, the tags and the status, and takes four times as long as the
# rest of a call. So it runs only if the status is not as at the start of a process: a flag
# that is set, a condition, a stack that is not empty. (To look at the status takes as long as a
# call.) Then X87_LAST runs an x87 instruction at an address that says nothing (`x87.rs`), which is
# the last one from then on: MMX instructions and those on the control word do not change that.
# \place: 2 bytes of memory, or %ax. The control word is the caller's to set.
.macro scrub_x87 place
    fnstsw  \place
    cmpw    $0, \place
    je      10f
    fninit
10: .irp n, 0,1,2,3,4,5,6,7
    pxor    %mm\n, %mm\n
    .endr
    emms
    call    *{x87_last}(%rip)
.endm
# Gives the host its floating-point control state back, from the frame at HOST,
# which is \host above %rsp, and keeps the domain's words at \own(%rsp) and
# \own + 4; \uses is the domain's USES. With the initial x87 word on both sides
# nothing can be pending and nothing is to load. Otherwise an exception that the
# domain left pending must be cleared before the first instruction that would
# report it to the host.
.macro restore_host_control host, own, uses
    testl   $USES_MXCSR, \uses
    jz      7f
    stmxcsr \own(%rsp)
    ldmxcsr (16 + \host)(%rsp)
7:  testl   $USES_X87, \uses
    jz      9f
    fnstcw  (\own + 4)(%rsp)
    cmpw    ${default_x87}, (\own + 4)(%rsp)
    jne     8f
    cmpw    ${default_x87}, (20 + \host)(%rsp)
    jne     8f
    emms
    jmp     9f
8:  fnclex
    emms
    fldcw   (20 + \host)(%rsp)
9:
.endm

.macro trampolines kind
    .balign 64
    .globl  mullion_enter_\kind
    .type   mullion_enter_\kind, @function
mullion_enter_\kind:
    .cfi_startproc
    # Stacks change here, in either direction: as in a signal frame, debuggers
    # must take the return gate's address exactly and not compare addresses.
    .cfi_signal_frame
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    pushq   %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbx, 0
    .cfi_undefined %r12
    .cfi_undefined %r13
    .cfi_undefined %r14
    .cfi_undefined %r15
    subq    $24, %rsp
    .cfi_adjust_cfa_offset 24
    movq    {CONTROL}(%rdi), %rbp
    movq    %rdx, -16(%rbp)
    movq    %rsp, -24(%rbp)
    subq    $24, %rbp
    movq    {DOMAIN_WINDOW}(%rdx), %r14
    movl    {USES}(%rdx), %ebx
    movq    %rcx, %r11
    movq    %r8, %r15
    testl   $USES_GS, %ebx
    jz      1f
    cmpq    {GS}(%rdi), %r14
    je      1f
    wrgsbase %r14
    movq    %r14, {GS}(%rdi)
1:  scrub_vectors_\kind
    testl   $USES_FLOAT, %ebx
    jnz     5f
6:  xorl    %eax, %eax
    testq   %r10, %r10
    jnz     3f
2:  movq    %rbp, %rsp
.Lentering_\kind:
    movq    0(%r9), %rdi
    movq    8(%r9), %rsi
    movq    16(%r9), %rdx
    movq    24(%r9), %rcx
    movq    32(%r9), %r8
    movq    40(%r9), %r9
    xorl    %ebx, %ebx
    xorl    %ebp, %ebp
    xorl    %r10d, %r10d
    xorl    %r12d, %r12d
    xorl    %r13d, %r13d
    call    *%r11
    # The return gate. From here to the load of %rsp the canonical frame is found
    # through the word at BASE: DW_CFA_def_cfa_expression of *%rsp + 48.
    .cfi_escape 0x0f, 5, 0x77, 0x00, 0x06, 0x23, 0x30
    movq    %rsp, %r10
    andq    $-{CONTROL_REGION}, %r10
    movq    (%rsp), %rsp
.Lleft_\kind:
    .cfi_def_cfa %rsp, 48
    xorl    %ecx, %ecx
mullion_leave_\kind:
    # %rsp = HOST, %r10 = thread control block, %ecx = how it ended; %rax, %rdx,
    # %xmm0: the result.
    movq    {CONTROL}(%r10), %r8
    movq    -16(%r8), %rdi
    clean_upper_\kind
    movl    {USES}(%rdi), %edi
    testl   $USES_FLOAT, %edi
    jz      4f
    restore_host_control 0, 8, %edi
4:  movq    $0, -16(%r8)
    addq    $24, %rsp
    .cfi_adjust_cfa_offset -24
    popq    %rbx
    .cfi_adjust_cfa_offset -8
    popq    %rbp
    .cfi_adjust_cfa_offset -8
    ret
    # On the way in, what not every call needs: floating-point control, further
    # arguments.
    .cfi_def_cfa %rsp, 48
    .cfi_rel_offset %rbp, 32
    .cfi_rel_offset %rbx, 24
5:  testl   $USES_MXCSR, %ebx
    jz      7f
    stmxcsr 16(%rsp)
    ldmxcsr {initial_mxcsr}(%rip)
7:  testl   $USES_X87, %ebx
    jz      6b
    fnstcw  20(%rsp)
    scrub_x87 %ax
    fldcw   {initial_x87}(%rip)
    jmp     6b
    # Behind all that: a fault in mullion_stacked restores what has been saved.
3:  movl    {EXTRA_COUNT}(%r10), %ebx
    testl   %ebx, %ebx
    jz      7f
    movq    {EXTRA_STACKED}(%r10), %r12
    call    mullion_stacked
    xorl    %eax, %eax
7:  movq    {EXTRA_VECTORS}(%r10), %r10
    testq   %r10, %r10
    jz      2b
    movups  0(%r10), %xmm0
    movups  16(%r10), %xmm1
    movups  32(%r10), %xmm2
    movups  48(%r10), %xmm3
    movups  64(%r10), %xmm4
    movups  80(%r10), %xmm5
    movups  96(%r10), %xmm6
    movups  112(%r10), %xmm7
    movl    $8, %eax
    jmp     2b
    .cfi_endproc
    .size   mullion_enter_\kind, . - mullion_enter_\kind

    # Where a signal handler sends an invocation that it ends: %rsp = HOST,
    # %r10 = thread control block, %ecx = how it ended.
    .balign 16
    .globl  mullion_abort_\kind
    .type   mullion_abort_\kind, @function
mullion_abort_\kind:
    xorl    %eax, %eax
    xorl    %edx, %edx
    jmp     mullion_leave_\kind
    .size   mullion_abort_\kind, . - mullion_abort_\kind

    # From a gate slot: %r11d = its number, %r10 = thread control block.
    .balign 64
    .globl  mullion_gate_\kind
    .type   mullion_gate_\kind, @function
mullion_gate_\kind:
    .cfi_startproc
    .cfi_signal_frame
    movq    $0, -16(%rsp)
    cmpl    ${GATE_FIRST_IMPORT}, %r11d
    jb      mullion_builtin
    # The window's base is the domain's too: %r14 serves meanwhile. (%rsp never
    # points to CONTROL: a signal would be delivered on the domain's frames.)
    movq    %rsp, %r14
    movq    {CONTROL}(%r10), %r10
    movq    -24(%r10), %rsp
.Lcalling_\kind:
    subq    $256, %rsp
    movq    %r14, 208(%rsp)
    movq    %r10, 240(%rsp)
    # The canonical frame is the domain's: *(%rsp + 208) + 8, its return address
    # right below it. (DW_CFA_def_cfa_expression)
    .cfi_escape 0x0f, 6, 0x77, 0xd0, 0x01, 0x06, 0x23, 0x08
    movq    %rsp, -8(%r14)
    movq    %rax, 0(%rsp)
    movq    %rdi, 8(%rsp)
    movq    %rsi, 16(%rsp)
    movq    %rdx, 24(%rsp)
    movq    %rcx, 32(%rsp)
    movq    %r8, 40(%rsp)
    movq    %r9, 48(%rsp)
    movq    %r15, 56(%rsp)
    movaps  %xmm0, 64(%rsp)
    movaps  %xmm1, 80(%rsp)
    movaps  %xmm2, 96(%rsp)
    movaps  %xmm3, 112(%rsp)
    movaps  %xmm4, 128(%rsp)
    movaps  %xmm5, 144(%rsp)
    movaps  %xmm6, 160(%rsp)
    movaps  %xmm7, 176(%rsp)
    movq    %r14, %rcx
    andq    $-{CONTROL_REGION}, %rcx
    movq    %r14, {CONTROL}(%rcx)
    # The outer CONTROL stays in a register: the next gate call waits for it.
    movq    %r10, %r14
    movq    -16(%r14), %rsi
    clean_upper_\kind
    movl    {USES}(%rsi), %eax
    testl   $USES_FLOAT, %eax
    jz      5f
    restore_host_control 256, 192, %eax
5:  movq    %rsp, %rdi
    movl    %r11d, %edx
    call    {dispatch}
    # `nesting` looks for this address below a gate frame.
    .globl  mullion_dispatched_\kind
mullion_dispatched_\kind:
    movq    208(%rsp), %r10
    andq    $-{CONTROL_REGION}, %r10
    movq    %r14, {CONTROL}(%r10)
    cmpl    ${RETURNED_MORE}, %edx
    ja      3f
    movq    -16(%r14), %rsi
    movq    {DOMAIN_WINDOW}(%rsi), %r14
    movl    {USES}(%rsi), %ecx
    testl   $USES_GS, %ecx
    jz      4f
    # A nested invocation may have left another domain's base.
    cmpq    {GS}(%r10), %r14
    je      4f
    wrgsbase %r14
    movq    %r14, {GS}(%r10)
4:  scrub_vectors_\kind
    testl   $USES_FLOAT, %ecx
    jz      6f
    testl   $USES_MXCSR, %ecx
    jz      5f
    ldmxcsr 192(%rsp)
5:  testl   $USES_X87, %ecx
    jz      6f
    scrub_x87 198(%rsp)
    fldcw   196(%rsp)
6:  testl   %edx, %edx
    jnz     2f
7:  movq    208(%rsp), %rsp
.Lreturning_\kind:
    .cfi_remember_state
    .cfi_def_cfa %rsp, 8
    xorl    %ecx, %ecx
    xorl    %esi, %esi
    xorl    %edi, %edi
    xorl    %r8d, %r8d
    xorl    %r9d, %r9d
    xorl    %r10d, %r10d
    xorl    %r11d, %r11d
    ret
.Lreturned_\kind:
    .cfi_restore_state
    # A result in more than %rax.
2:  movq    216(%rsp), %rdx
    movaps  224(%rsp), %xmm0
    jmp     7b
    # The invocation ends here.
3:  movq    -24(%r14), %rsp
    movl    %edx, %ecx
    xorl    %eax, %eax
    xorl    %edx, %edx
    jmp     mullion_leave_\kind
    .cfi_endproc
    .size   mullion_gate_\kind, . - mullion_gate_\kind

    # Where %rsp is the control stack, from each first address up to the next.
    .pushsection .data.rel.ro, "aw"
    .balign 8
    .globl  mullion_inside_\kind
mullion_inside_\kind:
    .quad   .Lentering_\kind, .Lleft_\kind
    .quad   mullion_gate_\kind, .Lcalling_\kind
    .quad   .Lreturning_\kind, .Lreturned_\kind
    .popsection
.endm

    trampolines sse
    trampolines avx

# X87_LAST where nothing cheaper is to be had.
    .balign 16
    .globl  mullion_x87_init
    .type   mullion_x87_init, @function
mullion_x87_init:
    .cfi_startproc
    fninit
    ret
    .cfi_endproc
    .size   mullion_x87_init, . - mullion_x87_init

# X87_LAST elsewhere, as it stands at the beginning of a page (`x87.rs`): an instruction that reads
# memory, so that no address of the host's is left as the operand's. 0 is more than -1: that leaves
# the conditions 0. Nothing is left on the x87 stack, and no flag is set.
    .pushsection .rodata.mullion_x87, "a"
    .balign 16
    .globl  mullion_x87_begin
mullion_x87_begin:
    flds    12f(%rip)
    fcomps  11f(%rip)
    ret
    .balign 4
11: .float  -1.0
12: .float  0.0
    .globl  mullion_x87_end
mullion_x87_end:
    .popsection

# The built-in gates run on the control stack with the domain's registers. They
# reach its memory through %r14 and a register that is 32 bits wide only, so they
# cannot leave the window and its guards; what they fault on, the domain faulted
# on. Whatever they read from it, they read once: another thread of the domain may
# be writing it.
    .balign 64
    .globl  mullion_builtin_begin
mullion_builtin_begin:
mullion_builtin:
    .cfi_startproc
    .cfi_def_cfa %rsp, 8
    cmpl    ${GATE_SETJMP}, %r11d
    je      10f
    cmpl    ${GATE_LONGJMP}, %r11d
    je      20f
    cmpl    ${GATE_CONTROL_READ}, %r11d
    je      30f
    cmpl    ${GATE_CONTROL_UNWIND}, %r11d
    je      40f
    .globl  mullion_trap_gate
mullion_trap_gate:
    ud2

# int __mullion_setjmp(uint64_t buf[8])
#   buf: rbx rbp r12 r13 r15, distance of %rsp after return from the region's
#   end, address of what stands behind the label behind the call.
#   Come to by a jump of the invocation's outermost function, it would return by the
#   return gate, whose address is the host's: the domain does not get to see it.
10: movq    {CONTROL}(%r10), %rcx
    subq    $32, %rcx
    cmpq    %rcx, %rsp
    jae     mullion_trap_control
    movl    %edi, %edi
    movq    %rbx, (%r14,%rdi)
    movq    %rbp, 8(%r14,%rdi)
    movq    %r12, 16(%r14,%rdi)
    movq    %r13, 24(%r14,%rdi)
    movq    %r15, 32(%r14,%rdi)
    leaq    ({CONTROL_REGION} - 8)(%r10), %rcx
    subq    %rsp, %rcx
    movq    %rcx, 40(%r14,%rdi)
    movq    (%rsp), %rcx
    addq    $LABEL_NOP_LENGTH, %rcx
    movq    %rcx, 48(%r14,%rdi)
    xorl    %eax, %eax
    xorl    %ecx, %ecx
    xorl    %r10d, %r10d
    xorl    %r11d, %r11d
    ret

# void __mullion_longjmp(uint64_t buf[8], int value)
#   The new %rsp lies between the present one and the return gate, both
#   included: there every slot holds a return address that a call of this
#   invocation pushed. The target carries the label.
20: movl    %edi, %edi
    movl    48(%r14,%rdi), %ecx
    leaq    {CONTROL_REGION}(%r10), %r11
    subq    40(%r14,%rdi), %r11
    movq    {CONTROL}(%r10), %rax
    subq    $32, %rax
    testb   $7, %r11b
    jnz     mullion_trap_control
    cmpq    %rsp, %r11
    jb      mullion_trap_control
    cmpq    %rax, %r11
    ja      mullion_trap_control
    cmpl    ${LABEL}, -4(%r14,%rcx)
    jne     mullion_trap_target
    movq    (%r14,%rdi), %rbx
    movq    8(%r14,%rdi), %rbp
    movq    16(%r14,%rdi), %r12
    movq    24(%r14,%rdi), %r13
    movl    32(%r14,%rdi), %r15d
    addq    %r14, %r15
    addq    %r14, %rcx
    movl    %esi, %eax
    testl   %eax, %eax
    jnz     21f
    movl    $1, %eax
21: movq    %r11, %rsp
    xorl    %r10d, %r10d
    xorl    %r11d, %r11d
    jmp     *%rcx

# uint64_t __mullion_control_read(uint64_t depth)
#   depth 0 is the address behind this call itself; 0 from the return gate on.
30: xorl    %eax, %eax
    cmpq    ${CONTROL_DEPTH}, %rdi
    jae     31f
    leaq    (%rsp,%rdi,8), %rcx
    movq    {CONTROL}(%r10), %r11
    subq    $32, %r11
    cmpq    %r11, %rcx
    jae     31f
    movq    (%rcx), %rax
31: xorl    %ecx, %ecx
    xorl    %r10d, %r10d
    xorl    %r11d, %r11d
    ret

# void __mullion_control_unwind(uint64_t depth, void *target, void *stack, uint64_t regs[6])
#   drops `depth` return addresses, this call's own being the first; regs: rbx
#   rbp r12 r13 rax rdx.
40: cmpq    ${CONTROL_DEPTH}, %rdi
    jae     mullion_trap_control
    leaq    (%rsp,%rdi,8), %r11
    movq    {CONTROL}(%r10), %rax
    subq    $32, %rax
    cmpq    %rax, %r11
    ja      mullion_trap_control
    movl    %esi, %esi
    cmpl    ${LABEL}, -4(%r14,%rsi)
    jne     mullion_trap_target
    movl    %edx, %r15d
    addq    %r14, %r15
    movl    %ecx, %ecx
    movq    (%r14,%rcx), %rbx
    movq    8(%r14,%rcx), %rbp
    movq    16(%r14,%rcx), %r12
    movq    24(%r14,%rcx), %r13
    movq    32(%r14,%rcx), %rax
    movq    40(%r14,%rcx), %rdx
    addq    %r14, %rsi
    movq    %r11, %rsp
    xorl    %ecx, %ecx
    xorl    %r10d, %r10d
    xorl    %r11d, %r11d
    jmp     *%rsi

# From mullion_enter, by a call on the host's stack: copies %ebx words from %r12
# to the domain's stack at %r15. Changes %rax and %rbx.
mullion_stacked:
    movq    -8(%r12,%rbx,8), %rax
    movq    %rax, -8(%r15,%rbx,8)
    subl    $1, %ebx
    jnz     mullion_stacked
    ret

    .globl  mullion_trap_control
mullion_trap_control:
    ud2
    .globl  mullion_trap_target
mullion_trap_target:
    ud2
    .cfi_endproc
    .globl  mullion_builtin_end
mullion_builtin_end:

# size_t mullion_copy(void *to, const void *from, size_t length): 0, or something else
# if not all could be copied. A fault from mullion_copy_begin to mullion_copy_end, by an
# access, resumes at mullion_copy_end: one side is a domain's memory, which may go away
# at any time. (`rep movsb` takes longer to begin than a few moves.)
    .balign 16
    .globl  mullion_copy
    .type   mullion_copy, @function
mullion_copy:
    .cfi_startproc
    movq    %rdx, %rcx
    .globl  mullion_copy_begin
mullion_copy_begin:
    cmpq    ${COPY_BY_MOVES}, %rcx
    ja      4f
    subq    $16, %rcx
    jb      2f
1:  movups  (%rsi), %xmm0
    movups  %xmm0, (%rdi)
    addq    $16, %rsi
    addq    $16, %rdi
    subq    $16, %rcx
    jae     1b
    # The lowest four bits say what is left.
2:
    .irp    step, 8,4,2,1
    testb   $\step, %cl
    jz      3f
    .if     \step == 8
    movq    (%rsi), %rax
    movq    %rax, (%rdi)
    .elseif \step == 4
    movl    (%rsi), %eax
    movl    %eax, (%rdi)
    .elseif \step == 2
    movzwl  (%rsi), %eax
    movw    %ax, (%rdi)
    .else
    movzbl  (%rsi), %eax
    movb    %al, (%rdi)
    .endif
    addq    $\step, %rsi
    addq    $\step, %rdi
3:
    .endr
    xorl    %eax, %eax
    ret
4:  rep movsb
    xorl    %eax, %eax
    ret
    .globl  mullion_copy_end
mullion_copy_end:
    movl    $1, %eax
    ret
    .cfi_endproc
    .size   mullion_copy, . - mullion_copy
