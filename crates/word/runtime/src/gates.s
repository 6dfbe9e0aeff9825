# The gates of the word wall: the only way into a domain, out of it, and back.
#
# REGISTERS
#
#   mullion_word_enter       from a module's switch gate, by its slot ENTER:
#     %r10 the domain (`Inner`), %r11 the function's body, (%rsp) the caller's return address. All else as
#     the System V convention has it, or as a module has it whose call came straight from there.
#   mullion_word_leave       from the slot of an import:
#     %r10 the import (`Import`), (%rsp) the module's return address, %r15 its data stack.
#   mullion_word_leave_any   from the slot LEAVE: %r10 the domain, %r11 the function's address.
#   mullion_word_mark        from the slot MARK: (%rsp) the module's return address. %rax is where the control stack is
#                            behind the return, as a distance; %r10 and %r11 are lost, and nothing else.
#   mullion_word_unwind      from the slot UNWIND: (%rsp) the module's return address, %rax such a distance. Goes back
#                            there with the control stack as %rax says; %rcx, %r10 and %r11 are lost.
#   mullion_word_read        from the slot READ: (%rsp) the module's return address, %rax such a distance. %rax is what lies
#                            there, or 0 for the return gate; %r10 and %r11 are lost.
#   in a domain              as in docs/word-form.md: %r14 own number, %r15 data stack, %rsp control stack.
#
#   Registers are not cleared on the way: the word wall is about memory, and its modules share their host's addresses.
#
# THREADS
#
#   `mullion_word_here` is the thread's `Here`, found by the thread pointer. DOMAIN is the domain that runs, or 0 for
#   the host. FRAME is the newest frame. While the host runs, CONTROL is where the control stack goes on.
#
# STACKS
#
#   the caller's (the host's, or the control stack)        the control stack
#
#   |  return address             |                        |  ...                      |
#   |  rbx rbp r12 r13 r14 r15    | <- CALLER              |  a frame, 64 bytes        | <- FRAME
#   |                             |                        |  the return gate          |
#   |  host functions run here    | <- HOST                |  the module's own calls   | <- %rsp
#
#   A frame: +0 the seat (`Seat`), +8 the frame before it, +16 the body, +24 CALLER, +32 HOST, +40 the domain that
#   called or 0, +48 the seat's data stack at entry, +56 unused.
#   One domain calls another on the same control stack, and the frames are the cross-domain call stack.
#   No word of the control stack is ever granted, and no instruction of a module names %rsp. So at the return
#   gate %rsp is FRAME again.
#
# REPEATED CALLS
#
#   A call of the host that is the one before it again finds its rights granted still (`keep.rs`), and takes the way of a
#   function without a policy, with a return gate of its own. No other way leads to that return gate.
#
# FAULTS
#
#   A fault with DOMAIN not 0 is that domain's, here too: the control stack may end at any push. `fault.rs` takes down the
#   newest frame and goes on at mullion_word_faulted. The labels that end in _trap are its own traps.

    .text
    .irp label, fetch, fetch_eight, fetch_bytes, fetch_byte, fetch_end, text, text_gone, gates, enter, leave, leave_any, mark, unwind, read, refused_trap, unwind_trap, ended_trap, pending_trap, go_on, faulted, invoke, call_host, find_here, gates_end
    .globl  mullion_word_\label
    .hidden mullion_word_\label
    .endr
    # Collects in %r12 where an argument differs from that of the call before.
    .macro  differs register, at
    mov     {SEAT_ARGUMENTS}+\at(%rbp), %rbx
    xor     \register, %rbx
    and     {SEAT_MASKS}+\at(%rbp), %rbx
    or      %rbx, %r12
    .endm

    # Counts a call that is the seat's only one, for limits on time (`watchdog.rs`). Before its depth is written.
    .macro  outermost
    cmpq    $1, {SEAT_DEPTH}(%rbp)
    adcq    $0, {SEAT_ENTRIES}(%rbp)
    .endm

    # The registers that a function keeps.
    .macro  push_kept
    push    %rbx
    push    %rbp
    push    %r12
    push    %r13
    push    %r14
    push    %r15
    .endm
    .macro  pop_kept
    pop     %r15
    pop     %r14
    pop     %r13
    pop     %r12
    pop     %rbp
    pop     %rbx
    .endm
    # The arguments of a call, to `Registers` at %rsp, and from one. The word at 56 is where its stack arguments are.
    .macro  save_integers
    mov     %rdi, 0(%rsp)
    mov     %rsi, 8(%rsp)
    mov     %rdx, 16(%rsp)
    mov     %rcx, 24(%rsp)
    mov     %r8, 32(%rsp)
    mov     %r9, 40(%rsp)
    mov     %rax, 48(%rsp)
    .endm
    .macro  save_vectors
    movups  %xmm0, 64(%rsp)
    movups  %xmm1, 80(%rsp)
    movups  %xmm2, 96(%rsp)
    movups  %xmm3, 112(%rsp)
    movups  %xmm4, 128(%rsp)
    movups  %xmm5, 144(%rsp)
    movups  %xmm6, 160(%rsp)
    movups  %xmm7, 176(%rsp)
    .endm
    .macro  load_arguments from
    mov     0(\from), %rdi
    mov     8(\from), %rsi
    mov     16(\from), %rdx
    mov     24(\from), %rcx
    mov     32(\from), %r8
    mov     40(\from), %r9
    mov     48(\from), %rax
    movups  64(\from), %xmm0
    movups  80(\from), %xmm1
    movups  96(\from), %xmm2
    movups  112(\from), %xmm3
    movups  128(\from), %xmm4
    movups  144(\from), %xmm5
    movups  160(\from), %xmm6
    movups  176(\from), %xmm7
    .endm

    .p2align 6
mullion_word_gates:

mullion_word_enter:
    push    %rax
    mov     mullion_word_here@gottpoff(%rip), %rax
    cmp     %r10, %fs:{DOMAIN}(%rax)
    jne     1f
    pop     %rax
    jmp     *%r11
1:  pop     %rax
    push_kept
    mov     mullion_word_here@gottpoff(%rip), %rbx
    mov     %fs:{SEATS}(%rbx), %rbp
    test    %rbp, %rbp
    jz      mullion_word_slow
    mov     {INDEX}(%r10), %r12d
    mov     (%rbp,%r12,8), %rbp
    test    %rbp, %rbp
    jz      mullion_word_slow
    cmp     %r10, {SEAT_INNER}(%rbp)
    jne     mullion_word_slow
    mov     %fs:{DOMAIN}(%rbx), %r12
    mov     %rsp, %r13
    test    %r12, %r12
    jnz     3f
    # From the host, with enough left of its stack.
    mov     %rsp, %r14
    sub     %fs:{HOST_LOW}(%rbx), %r14
    cmp     ${HOST_RESERVE}, %r14
    jb      mullion_word_slow
    lea     -8(%rsp), %r14
    and     $-16, %r14
    mov     %fs:{CONTROL}(%rbx), %r15
    cmp     %fs:{LIMIT}(%rbx), %r15
    jb      mullion_word_slow
    # The depth is written before the state is read: whoever sets the state makes a barrier, and reads the depth.
    outermost
    incq    {SEAT_DEPTH}(%rbp)
    cmpl    $0, {STATE}(%r10)
    jne     mullion_word_repeated
    mov     %r15, %rsp
mullion_word_go:
    sub     $64, %rsp
    mov     %fs:{FRAME}(%rbx), %r15
    mov     %rbp, (%rsp)
    mov     %r15, 8(%rsp)
    mov     %r11, 16(%rsp)
    mov     %r13, 24(%rsp)
    mov     %r14, 32(%rsp)
    mov     %r12, 40(%rsp)
    mov     {SEAT_STACK}(%rbp), %r15
    mov     {SEAT_COUNTER}(%rbp), %r12
    mov     %r15, 48(%rsp)
    mov     %rsp, %fs:{FRAME}(%rbx)
    mov     %r10, %fs:{DOMAIN}(%rbx)
    incq    (%r12)
    mov     {SEAT_OWN}(%rbp), %r14
    call    *%r11

    # The return gate. %rax, %rdx, %xmm0 and %xmm1 are the result; nothing else is believed.
mullion_word_return:
    mov     mullion_word_here@gottpoff(%rip), %rcx
    mov     (%rsp), %rsi
    mov     {SEAT_COUNTER}(%rsi), %rdi
    mov     48(%rsp), %r8
    incq    (%rdi)
    mov     %r8, {SEAT_STACK}(%rsi)
    decq    {SEAT_DEPTH}(%rsi)
    mov     8(%rsp), %rdi
    mov     40(%rsp), %r9
    lea     64(%rsp), %r10
    mov     24(%rsp), %r8
    mov     %rdi, %fs:{FRAME}(%rcx)
    mov     %r9, %fs:{DOMAIN}(%rcx)
    test    %r9, %r9
    jnz     5f
    mov     %r10, %fs:{CONTROL}(%rcx)
    mov     %r8, %rsp
    pop_kept
    ret

    # The host calls a function that has a policy: the call may be the one before it again, for which all is granted
    # still (`keep.rs`). The thread has the bias, has no other call in the domain, and the arguments that the policy
    # looks at are the same.
mullion_word_repeated:
    cmpl    ${POLICY}, {STATE}(%r10)
    jne     4f
    cmpq    $1, {SEAT_DEPTH}(%rbp)
    jne     4f
    cmp     %rbp, {BIAS}(%r10)
    jne     4f
    cmp     %r11, {SEAT_REPEATED}(%rbp)
    jne     4f
    mov     {EDITION}(%r10), %r12
    cmp     %r12, {SEAT_EDITION}(%rbp)
    jne     4f
    xor     %r12d, %r12d
    differs %rdi, 0
    differs %rsi, 8
    differs %rdx, 16
    differs %rcx, 24
    differs %r8, 32
    differs %r9, 40
    test    %r12, %r12
    mov     mullion_word_here@gottpoff(%rip), %rbx
    jnz     10f
    # What is kept is what this call is granted.
11: movq    $1, {SEAT_SETTLED}(%rbp)
    mov     %r15, %rsp
    sub     $64, %rsp
    mov     %fs:{FRAME}(%rbx), %r15
    mov     %rbp, (%rsp)
    mov     %r15, 8(%rsp)
    mov     %r11, 16(%rsp)
    mov     %r13, 24(%rsp)
    mov     %r14, 32(%rsp)
    movq    $0, 40(%rsp)
    mov     {SEAT_STACK}(%rbp), %r15
    mov     {SEAT_COUNTER}(%rbp), %r12
    mov     %r15, 48(%rsp)
    mov     %rsp, %fs:{FRAME}(%rbx)
    mov     %r10, %fs:{DOMAIN}(%rbx)
    incq    (%r12)
    mov     {SEAT_OWN}(%rbp), %r14
    call    *%r11

    # Its return gate: as the other one to the host. If the bias has gone meanwhile, what was granted is taken back.
    mov     mullion_word_here@gottpoff(%rip), %rcx
    mov     (%rsp), %rsi
    mov     {SEAT_COUNTER}(%rsi), %rdi
    mov     48(%rsp), %r8
    incq    (%rdi)
    mov     %r8, {SEAT_STACK}(%rsi)
    mov     8(%rsp), %rdi
    lea     64(%rsp), %r10
    mov     24(%rsp), %r8
    mov     %rdi, %fs:{FRAME}(%rcx)
    movq    $0, %fs:{DOMAIN}(%rcx)
    mov     %r10, %fs:{CONTROL}(%rcx)
    mov     {SEAT_INNER}(%rsi), %rdi
    mov     %r8, %rsp
    movq    $0, {SEAT_SETTLED}(%rsi)
    # The depth is written before the bias is read.
    decq    {SEAT_DEPTH}(%rsi)
    cmp     %rsi, {BIAS}(%rdi)
    jne     9f
    pop_kept
    ret
9:  mov     %rsp, %rbp
    and     $-16, %rsp
    sub     $48, %rsp
    mov     %rax, (%rsp)
    mov     %rdx, 8(%rsp)
    movups  %xmm0, 16(%rsp)
    movups  %xmm1, 32(%rsp)
    call    mullion_word_take_back
    mov     (%rsp), %rax
    mov     8(%rsp), %rdx
    movups  16(%rsp), %xmm0
    movups  32(%rsp), %xmm1
    mov     %rbp, %rsp
    pop_kept
    ret

    # Other arguments: what is kept is moved to what these are granted. All registers are as they were behind it.
10: mov     %rsp, %r13
    and     $-16, %rsp
    sub     ${REGS_SIZE}, %rsp
    save_integers
    save_vectors
    mov     %r11, %r12
    mov     %rbp, %rdi
    mov     %rsp, %rsi
    call    mullion_word_shift
    mov     %eax, %r11d
    load_arguments %rsp
    mov     %r13, %rsp
    mov     {SEAT_INNER}(%rbp), %r10
    test    %r11b, %r11b
    mov     %r12, %r11
    jnz     11b
    jmp     4f

    # From another domain, whose frame is the newest: on its control stack, which is the thread's. One that may have
    # changed the control words of floating point goes the slow way, which gives the callee the host's.
    # The callee finds as much of the control stack as it does when the host calls. Otherwise the slow way refuses the call.
3:  testl   ${CONTROL_WORDS}, {STATE}(%r12)
    jnz     mullion_word_slow
    cmp     %fs:{LIMIT}(%rbx), %rsp
    jb      mullion_word_slow
    outermost
    incq    {SEAT_DEPTH}(%rbp)
    cmpl    $0, {STATE}(%r10)
    jne     4f
    mov     %fs:{FRAME}(%rbx), %r14
    mov     (%r14), %r13
    mov     %r15, {SEAT_STACK}(%r13)
    mov     {SEAT_COUNTER}(%r13), %r15
    incq    (%r15)
    mov     %rsp, %r13
    mov     32(%r14), %r14
    jmp     mullion_word_go
4:  decq    {SEAT_DEPTH}(%rbp)
    jmp     mullion_word_slow

    # Back into a domain.
5:  mov     (%rdi), %rsi
    mov     {SEAT_COUNTER}(%rsi), %rsi
    incq    (%rsi)
    mov     %r8, %rsp
    testl   $1, {STATE}(%r9)
    jnz     mullion_word_ended_trap
    pop_kept
    ret

    # What has a policy, or is a thread's first call, or is refused. The six registers are saved; all arguments are
    # as they came, %r10 and %r11 too.
mullion_word_slow:
    mov     %fs:{DOMAIN}(%rbx), %r12
    mov     %r15, %r14
    test    %r12, %r12
    jz      6f
    mov     %fs:{FRAME}(%rbx), %r13
    mov     (%rsp), %r15
    mov     (%r13), %r14
    mov     %r15, {SEAT_STACK}(%r14)
    mov     {SEAT_COUNTER}(%r14), %r14
    incq    (%r14)
    mov     %r15, %r14
    mov     %rsp, %fs:{CONTROL}(%rbx)
    movq    $0, %fs:{DOMAIN}(%rbx)
    mov     %rsp, %r15
    mov     32(%r13), %rsp
    jmp     7f
6:  mov     %rsp, %r15
    and     $-16, %rsp
    # %r15: the caller's stack with the six registers; %r14: the data stack of a domain that calls; %r12: that domain.
7:  sub     ${REGS_SIZE}, %rsp
    save_integers
    # Where the stack arguments are.
    lea     56(%r15), %rdi
    test    %r12, %r12
    cmovnz  %r14, %rdi
    mov     %rdi, 56(%rsp)
    save_vectors
    mov     %r10, %rdi
    mov     %r11, %rsi
    mov     %rsp, %rdx
    mov     %r12, %rcx
    call    mullion_word_enter_slowly
    mov     0(%rsp), %rax
    mov     8(%rsp), %rdx
    movups  64(%rsp), %xmm0
    movups  80(%rsp), %xmm1
    mov     %r15, %rsp
    test    %r12, %r12
    jz      8f
    mov     (%r13), %rcx
    mov     {SEAT_COUNTER}(%rcx), %rcx
    mov     %r12, %fs:{DOMAIN}(%rbx)
    incq    (%rcx)
    testl   $1, {STATE}(%r12)
    jnz     mullion_word_ended_trap
8:  pop_kept
    ret

    # Out of a domain, to a function of the host.
    .p2align 4
mullion_word_leave:
    push    %rbx
    push    %rbp
    mov     mullion_word_here@gottpoff(%rip), %rbx
    mov     %fs:{FRAME}(%rbx), %rbp
    mov     (%rbp), %r11
    mov     %r15, {SEAT_STACK}(%r11)
    mov     {SEAT_COUNTER}(%r11), %r11
    incq    (%r11)
    mov     %rsp, %fs:{CONTROL}(%rbx)
    movq    $0, %fs:{DOMAIN}(%rbx)
    mov     32(%rbp), %rsp
    cmpl    $0, {IMPORT_SLOW}(%r10)
    jne     1f
    call    *(%r10)
2:  mov     (%rbp), %r11
    mov     {SEAT_COUNTER}(%r11), %r10
    mov     {SEAT_INNER}(%r11), %r11
    mov     %fs:{CONTROL}(%rbx), %rsp
    mov     %r11, %fs:{DOMAIN}(%rbx)
    incq    (%r10)
    testl   $1, {STATE}(%r11)
    jnz     mullion_word_ended_trap
    cmpq    $0, %fs:{PENDING}(%rbx)
    jne     mullion_word_pending_trap
mullion_word_go_on:
    pop     %rbp
    pop     %rbx
    ret
1:  sub     ${REGS_SIZE}, %rsp
    save_integers
    mov     %r15, 56(%rsp)
    save_vectors
    mov     %r10, %rdi
    mov     %rsp, %rsi
    call    mullion_word_leave_slowly
    mov     0(%rsp), %rax
    mov     8(%rsp), %rdx
    movups  64(%rsp), %xmm0
    movups  80(%rsp), %xmm1
    jmp     2b

    # By address: an open table of pairs, the address and its import.
    .p2align 4
mullion_word_leave_any:
    push    %rbx
    push    %rbp
    mov     {ALLOWED}(%r10), %r10
    mov     %r11, %rbp
    shr     $4, %rbp
1:  and     (%r10), %rbp
    lea     1(%rbp,%rbp), %rbx
    # First, whether the place is empty: a null pointer must not be found there.
    cmpq    $0, (%r10,%rbx,8)
    je      mullion_word_refused_trap
    cmp     (%r10,%rbx,8), %r11
    je      2f
    inc     %rbp
    jmp     1b
2:  mov     8(%r10,%rbx,8), %r10
    pop     %rbp
    pop     %rbx
    jmp     mullion_word_leave

    # `setjmp`: a distance instead of an address, which is nobody's business.
    .p2align 4
mullion_word_mark:
    mov     mullion_word_here@gottpoff(%rip), %r11
    lea     8(%rsp), %rax
    sub     %fs:{LIMIT}(%r11), %rax
    ret

    # `longjmp`: up to the return gate of the invocation that runs, and not down, nor to where it was called from: that
    # function is the one that is left. Between the two there is nothing but
    # return addresses of the domain's own calls, so it returns to one of them, whatever the module says.
    .p2align 4
mullion_word_unwind:
    pop     %r11
    mov     mullion_word_here@gottpoff(%rip), %r10
    add     %fs:{LIMIT}(%r10), %rax
    mov     %fs:{FRAME}(%r10), %rcx
    sub     $8, %rcx
    cmp     %rcx, %rax
    ja      1f
    cmp     %rsp, %rax
    jbe     1f
    test    $7, %al
    jnz     1f
    mov     %rax, %rsp
    jmp     *%r11
    # As the other traps have it: two words, and the return address above them.
1:  push    %r11
mullion_word_unwind_refused:
    sub     $16, %rsp
mullion_word_unwind_trap:
    ud2

mullion_word_refused_trap:
    ud2
mullion_word_ended_trap:
    ud2
mullion_word_pending_trap:
    ud2

    # For an unwinder: between here and the return gate of the invocation that runs there is nothing but return addresses
    # of the domain's own calls, which its module knows. Where the return gate is, that invocation ends: 0.
    .p2align 4
mullion_word_read:
    mov     mullion_word_here@gottpoff(%rip), %r11
    add     %fs:{LIMIT}(%r11), %rax
    mov     %fs:{FRAME}(%r11), %r10
    sub     $8, %r10
    cmp     %rsp, %rax
    jb      mullion_word_unwind_refused
    test    $7, %al
    jnz     mullion_word_unwind_refused
    cmp     %r10, %rax
    jae     1f
    mov     (%rax), %rax
    ret
1:  ja      mullion_word_unwind_refused
    xor     %eax, %eax
    ret

    # Behind a fault: %rsp is the host's stack, %r12 CALLER, %r13 the frame of the domain that called or 0.
    # The thread is the host's until here, with the frame taken down.
mullion_word_faulted:
    cld
    sub     $16, %rsp
    fnstcw  (%rsp)
    fninit
    fldcw   (%rsp)
    call    mullion_word_after_fault
    add     $16, %rsp
    xor     %edx, %edx
    pxor    %xmm1, %xmm1
    mov     %r12, %rsp
    test    %r13, %r13
    jz      1f
    mov     mullion_word_here@gottpoff(%rip), %rbx
    mov     (%r13), %rcx
    mov     {SEAT_INNER}(%rcx), %r12
    mov     {SEAT_COUNTER}(%rcx), %rcx
    mov     %r12, %fs:{DOMAIN}(%rbx)
    incq    (%rcx)
    testl   $1, {STATE}(%r12)
    jnz     mullion_word_ended_trap
1:  pop_kept
    ret

    # For the host's own code: enters with the registers of %rdx, and leaves the result there.
    # rdi: the domain, rsi: the body, rdx: the registers, rcx: the seat.
mullion_word_invoke:
    push    %r12
    mov     %rdx, %r12
    call    1f
    mov     %rax, 0(%r12)
    mov     %rdx, 8(%r12)
    movups  %xmm0, 64(%r12)
    movups  %xmm1, 80(%r12)
    pop     %r12
    ret
1:  push_kept
    mov     mullion_word_here@gottpoff(%rip), %rbx
    mov     %rcx, %rbp
    mov     %rdi, %r10
    mov     %rsi, %r11
    incq    {SEAT_DEPTH}(%rbp)
    mov     %rsp, %r13
    lea     -8(%rsp), %r14
    and     $-16, %r14
    mov     %rdx, %r15
    load_arguments %r15
    xor     %r12d, %r12d
    mov     %fs:{CONTROL}(%rbx), %rsp
    jmp     mullion_word_go
mullion_word_gates_end:

    # Calls a function of the host. rdi: it, rsi: the registers, rdx: stack arguments, rcx: how many.
mullion_word_call_host:
    push    %rbp
    mov     %rsp, %rbp
    push    %r12
    push    %r13
    mov     %rsi, %r12
    mov     %rdi, %r11
    lea     1(%rcx), %r13
    and     $-2, %r13
    shl     $3, %r13
    sub     %r13, %rsp
    xor     %r13d, %r13d
1:  cmp     %rcx, %r13
    jae     3f
    mov     (%rdx,%r13,8), %rax
    mov     %rax, (%rsp,%r13,8)
    inc     %r13
    jmp     1b
3:  load_arguments %r12
    call    *%r11
    mov     %rax, 0(%r12)
    mov     %rdx, 8(%r12)
    movups  %xmm0, 64(%r12)
    movups  %xmm1, 80(%r12)
    lea     -16(%rbp), %rsp
    pop     %r13
    pop     %r12
    pop     %rbp
    ret

    # Copies bytes, for the host, between its own memory and a module's. rdi: to, rsi: from, rdx: how many; rax: how many were
    # copied. A fault at one of the two places goes on behind them (`fault.rs`): what is not there is not copied.
mullion_word_fetch:
    xor     %eax, %eax
1:  lea     8(%rax), %rcx
    cmp     %rdx, %rcx
    ja      mullion_word_fetch_bytes
mullion_word_fetch_eight:
    mov     (%rsi,%rax), %r8
    mov     %r8, (%rdi,%rax)
    mov     %rcx, %rax
    jmp     1b
mullion_word_fetch_bytes:
    cmp     %rdx, %rax
    jae     mullion_word_fetch_end
mullion_word_fetch_byte:
    movzbl  (%rsi,%rax), %ecx
    mov     %cl, (%rdi,%rax)
    inc     %rax
    jmp     mullion_word_fetch_bytes
mullion_word_fetch_end:
    ret

    # How long a text is. rdi: where it begins; rax: bytes in front of its zero, or -1 if its memory ends before. Sixteen bytes that
    # are aligned lie in one page, so the read is of no page that the text is not in. A fault goes on at text_gone (`fault.rs`).
mullion_word_text:
    pxor    %xmm1, %xmm1
    mov     %rdi, %rax
    and     $-16, %rax
    movdqa  (%rax), %xmm0
    pcmpeqb %xmm1, %xmm0
    pmovmskb %xmm0, %edx
    mov     %edi, %ecx
    and     $15, %ecx
    shr     %cl, %edx
    # A shift by nothing leaves the flags as they were.
    test    %edx, %edx
    jz      1f
    bsf     %edx, %eax
    ret
1:  add     $16, %rax
    movdqa  (%rax), %xmm0
    pcmpeqb %xmm1, %xmm0
    pmovmskb %xmm0, %edx
    test    %edx, %edx
    jz      1b
    bsf     %edx, %edx
    sub     %rdi, %rax
    add     %rdx, %rax
    ret
mullion_word_text_gone:
    mov     $-1, %rax
    ret

mullion_word_find_here:
    mov     mullion_word_here@gottpoff(%rip), %rax
    add     %fs:0, %rax
    ret

    .section .tbss, "awT", @nobits
    .p2align 6
    .globl  mullion_word_here
    .hidden mullion_word_here
    .type   mullion_word_here, @object
    .size   mullion_word_here, 64
mullion_word_here:
    .zero   64
    .text
