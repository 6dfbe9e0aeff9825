# setjmp and longjmp of modules of checked code, in the form that the verifier reads (docs/word-form.md, "Jumps out of
# functions"): it is not rewritten. mullion ld adds this to a module that calls one of them.
#
#   %rdi        the buffer: %rbx, %rbp, %r12, %r13, %r15, where to go on, where the control stack was; 56 bytes
#   %rdx        at setjmp, where to go on: behind the label that follows the call. The caller's code puts it there.
#
# There is no signal mask in a module, so the forms that save one are the same.
	.text
	.set	.Lmullion_label, 0x4e6c754d
# The points of 56 bytes at %rdi: the right, and where to go on.
	.macro	points right, back
	.irp	at, 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52
	lea	\at(%rdi), %r11
	shr	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$\right, %gs:(%r14d,%r11d)
	je	8f
	.endr
	lea	55(%rdi), %r11
	shr	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$\right, %gs:(%r14d,%r11d)
	jne	\back
8:	ud1	%ecx, %eax
	.endm
# The check of 56 bytes at %rdi.
	.macro	check cold
	lea	(%rdi), %r11
	shr	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	\cold
	cmpq	%r14, %gs:8(%r11,%r11)
	jne	\cold
	cmpq	%r14, %gs:16(%r11,%r11)
	jne	\cold
	cmpl	%r14d, %gs:24(%r11,%r11)
	jne	\cold
	cmpw	%r14w, %gs:28(%r11,%r11)
	jne	\cold
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
	mov	%rdx, %r11
	shr	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$4, %gs:(%r14d,%r11d)
	je	3f
	mov	$-.Lmullion_label, %r11d
	add	-4(%rdx), %r11d
	jne	3f
	jmp	*%rdx
2:	points	1, 1b
3:	ud1	%eax, %eax
	.section	.note.GNU-stack,"",@progbits
