# setjmp and longjmp of modules of checked code, and what an unwinder needs, in the form that the verifier reads
# (docs/word-form.md, "Jumps out of functions"): it is not rewritten. mullion ld adds this to a module that calls one of them.
#
#   %rdi        the buffer: %rbx, %rbp, %r12, %r13, %r15, where to go on, where the control stack was; 56 bytes
#   %rdx        at setjmp, where to go on: behind the label that follows the call. The caller's code puts it there.
#
# There is no signal mask in a module, so the forms that save one are the same.
	.text
	.set	.Lmullion_label, 0x4e6c754d
# The points of 56 bytes at a register, or of 48 ("short"): the right, and where to go on.
	.macro	point register, at, right
	lea	\at(\register), %r11
	shr	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$\right, %gs:(%r14d,%r11d)
	.endm
	.macro	points right, back, register=%rdi, short=0
	.irp	at, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44
	point	\register, \at, \right
	je	8f
	.endr
	.if	\short
	point	\register, 47, \right
	.else
	.irp	at, 48, 52
	point	\register, \at, \right
	je	8f
	.endr
	point	\register, 55, \right
	.endif
	jne	\back
8:	ud1	%ecx, %eax
	.endm
# The check of as many bytes.
	.macro	check cold, register=%rdi, short=0
	lea	(\register), %r11
	shr	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	\cold
	cmpq	%r14, %gs:8(%r11,%r11)
	jne	\cold
	cmpq	%r14, %gs:16(%r11,%r11)
	jne	\cold
	.if	\short
	cmpw	%r14w, %gs:24(%r11,%r11)
	.else
	cmpl	%r14d, %gs:24(%r11,%r11)
	jne	\cold
	cmpw	%r14w, %gs:28(%r11,%r11)
	.endif
	jne	\cold
	.endm
# A jump to a label of the module's own.
	.macro	jump register, trap
	mov	\register, %r11
	shr	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$4, %gs:(%r14d,%r11d)
	je	\trap
	mov	$-.Lmullion_label, %r11d
	add	-4(\register), %r11d
	jne	\trap
	jmp	*\register
	.endm
	.macro	names list:vararg
	.irp	name, \list
	.weak	__mullion_call.\name
	.hidden	__mullion_call.\name
	.type	__mullion_call.\name, @function
__mullion_call.\name:
	.endr
	.endm

	.balign	16, 0xcc
	names	setjmp, _setjmp, sigsetjmp, __sigsetjmp
	call	*__mullion_slots+24(%rip)
# Behind the return to the caller, which takes a word more.
	add	$8, %rax
	check	2f
1:	mov	%rbx, (%rdi)
	mov	%rbp, 8(%rdi)
	mov	%r12, 16(%rdi)
	mov	%r13, 24(%rdi)
	mov	%r15, 32(%rdi)
	mov	%rdx, 40(%rdi)
	mov	%rax, 48(%rdi)
	xor	%eax, %eax
	ret
2:	points	2, 1b

	.balign	16, 0xcc
	names	longjmp, _longjmp, siglongjmp, __longjmp_chk
	check	2f
1:	mov	(%rdi), %rbx
	mov	8(%rdi), %rbp
	mov	16(%rdi), %r12
	mov	24(%rdi), %r13
	mov	32(%rdi), %r11
	mov	40(%rdi), %rdx
	mov	48(%rdi), %rax
	xor	%r15, %r11
	and	$0x7fffff, %r11d
	xor	%r11, %r15
	call	*__mullion_slots+32(%rip)
# 0 becomes 1.
	cmp	$1, %esi
	adc	$0, %esi
	mov	%esi, %eax
	jump	%rdx, 3f
2:	points	1, 1b
3:	ud1	%eax, %eax

# For exceptions (sysroot/cxx/src/exception.cc), as the gates of windows of these names (docs/window.md): the place on the
# control stack is counted down there.
	.balign	16, 0xcc
	names	__mullion_setjmp
	call	*__mullion_slots+24(%rip)
	neg	%rax
	check	2f
1:	mov	%rbx, (%rdi)
	mov	%rbp, 8(%rdi)
	mov	%r12, 16(%rdi)
	mov	%r13, 24(%rdi)
	mov	%r15, 32(%rdi)
	mov	%rax, 40(%rdi)
	mov	%rdx, 48(%rdi)
	xor	%eax, %eax
	ret
2:	points	2, 1b

	.balign	16, 0xcc
	names	__mullion_control_read
	call	*__mullion_slots+24(%rip)
	lea	(%rax,%rdi,8), %rax
	call	*__mullion_slots+40(%rip)
	ret

# %rdi: how many return addresses are dropped, this call's own being the first, %rsi: the landing pad, %rdx: its data
# stack, %rcx: %rbx, %rbp, %r12, %r13, %rax, %rdx; 48 bytes.
	.balign	16, 0xcc
	names	__mullion_control_unwind
	call	*__mullion_slots+24(%rip)
	lea	(%rax,%rdi,8), %rax
	check	2f, %rcx, 1
1:	mov	(%rcx), %rbx
	mov	8(%rcx), %rbp
	mov	16(%rcx), %r12
	mov	24(%rcx), %r13
	mov	32(%rcx), %r8
	mov	40(%rcx), %r9
	mov	%rdx, %r11
	xor	%r15, %r11
	and	$0x7fffff, %r11d
	xor	%r11, %r15
	call	*__mullion_slots+32(%rip)
	mov	%r8, %rax
	mov	%r9, %rdx
	jump	%rsi, 3f
2:	points	1, 1b, %rcx, 1
3:	ud1	%eax, %eax

# An exception that nobody catches: %rdi: its text on the data stack, %rsi: behind which call it was thrown.
	.balign	16, 0xcc
	names	__mullion_uncaught
	ud1	%ebx, %eax
	.section	.note.GNU-stack,"",@progbits
