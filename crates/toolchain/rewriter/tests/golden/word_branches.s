#### protection read-write wall word
	.text
	.type	static_called, @function
static_called:
	ret
	.size	static_called, .-static_called
	.type	static_taken, @function
static_taken:
	ret
	.size	static_taken, .-static_taken
	.weak	weakly
	.type	weakly, @function
weakly:
	ret
	.size	weakly, .-weakly
	.globl	other
	.set	other, weakly
	.globl	f
	.type	f, @function
f:
	subq	$8, %rsp
	call	static_called
	call	static_taken
	call	weakly
	call	other
	call	outside@PLT
	call	*outside@GOTPCREL(%rip)
	leaq	static_taken(%rip), %rax
	call	*%rax
	call	*8(%rdi)
	addq	$8, %rsp
	jmp	*%rdx
	.size	f, .-f
	.globl	tail
	.type	tail, @function
tail:
	jmp	outside
	.size	tail, .-tail
#### output
	.text
	.type	static_called, @function
.Lmullion_start0:
static_called:
	ret
	.size	static_called, .-static_called
	.type	static_taken, @function
	.balign	16, 0xcc
	.p2align	6,,13
static_taken:
	endbr64
	leaq	__mullion_call.static_taken(%rip), %r11
	jmp	*__mullion_slots+8(%rip)
	.skip	15, 0xcc
	.type	__mullion_call.static_taken, @function
__mullion_call.static_taken:
	ret
	.size	__mullion_call.static_taken, .-__mullion_call.static_taken
	.size	static_taken, .-static_taken
	.weak	weakly
	.type	weakly, @function
	.balign	16, 0xcc
	.p2align	6,,13
weakly:
	endbr64
	leaq	__mullion_call.weakly(%rip), %r11
	jmp	*__mullion_slots+8(%rip)
	.skip	15, 0xcc
	.weak	__mullion_call.weakly
	.hidden	__mullion_call.weakly
	.type	__mullion_call.weakly, @function
__mullion_call.weakly:
	ret
	.size	__mullion_call.weakly, .-__mullion_call.weakly
	.size	weakly, .-weakly
	.globl	other
	other = weakly
	.globl	__mullion_call.other
	.hidden	__mullion_call.other
	__mullion_call.other = __mullion_call.weakly
	.globl	f
	.type	f, @function
	.balign	16, 0xcc
	.p2align	6,,13
f:
	endbr64
	leaq	__mullion_call.f(%rip), %r11
	jmp	*__mullion_slots+8(%rip)
	.skip	15, 0xcc
	.globl	__mullion_call.f
	.hidden	__mullion_call.f
	.type	__mullion_call.f, @function
__mullion_call.f:
	call	static_called
	call	__mullion_call.static_taken
	call	__mullion_call.weakly
	call	__mullion_call.other
	call	__mullion_call.outside
	call	__mullion_call.outside
	leaq	static_taken(%rip), %rax
	movq	%rax, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	movzbl	%gs:(%r14d,%r11d), %r11d
	andl	$12, %r11d
	xorl	$12, %r11d
	jne	.Lmullion4
	movq	%rax, %r11
	andq	$-16, %r11
	addq	$32, %r11
	call	*%r11
.Lmullion2:
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion7
.Lmullion5:
	movq	8(%rdi), %r10
	movq	%r10, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	movzbl	%gs:(%r14d,%r11d), %r11d
	andl	$12, %r11d
	xorl	$12, %r11d
	jne	.Lmullion11
	movq	%r10, %r11
	andq	$-16, %r11
	addq	$32, %r11
	call	*%r11
.Lmullion9:
	movq	%rdx, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	movzbl	%gs:(%r14d,%r11d), %r11d
	andl	$12, %r11d
	xorl	$12, %r11d
	jne	.Lmullion15
	movq	%rdx, %r11
	andq	$-16, %r11
	addq	$32, %r11
	jmp	*%r11
.Lmullion4:
	movq	%rax, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$8, %gs:(%r14d,%r11d)
	je	.Lmullion3
	call	*%rax
	jmp	.Lmullion2
.Lmullion3:
	movq	%rax, %r11
	call	*__mullion_slots+16(%rip)
	jmp	.Lmullion2
.Lmullion7:
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion6
	leaq	12(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion6
	leaq	15(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion5
.Lmullion6:
	ud1	%ecx, %eax
.Lmullion11:
	movq	%r10, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$8, %gs:(%r14d,%r11d)
	je	.Lmullion10
	call	*%r10
	jmp	.Lmullion9
.Lmullion10:
	movq	%r10, %r11
	call	*__mullion_slots+16(%rip)
	jmp	.Lmullion9
.Lmullion15:
	movq	%rdx, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$8, %gs:(%r14d,%r11d)
	je	.Lmullion14
	jmp	*%rdx
.Lmullion14:
	movq	%rdx, %r11
	jmp	*__mullion_slots+16(%rip)
	.size	__mullion_call.f, .-__mullion_call.f
	.size	f, .-f
	.globl	tail
	.type	tail, @function
	.balign	16, 0xcc
	.p2align	6,,13
tail:
	endbr64
	leaq	__mullion_call.tail(%rip), %r11
	jmp	*__mullion_slots+8(%rip)
	.skip	15, 0xcc
	.globl	__mullion_call.tail
	.hidden	__mullion_call.tail
	.type	__mullion_call.tail, @function
__mullion_call.tail:
	jmp	__mullion_call.outside
	.size	__mullion_call.tail, .-__mullion_call.tail
	.size	tail, .-tail
