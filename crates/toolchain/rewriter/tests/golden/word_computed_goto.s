#### protection write wall word
	.text
	.globl	f
	.type	f, @function
f:
	leaq	table(%rip), %rsi
	jmp	*(%rsi,%rdi,8)
.L2:
	movl	$1, %eax
	ret
.L3:
	movl	$2, %eax
	ret
	.size	f, .-f
	.section	.data.rel.ro,"aw"
table:
	.quad	.L2
	.quad	.L3
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
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
	leaq	table(%rip), %rsi
	movq	0(%rsi,%rdi,8), %r10
	movq	%r10, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$8, %gs:(%r14d,%r11d)
	je	.Lmullion2
	jmp	*%r10
.Lmullion2:
	movq	%r10, %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$4, %gs:(%r14d,%r11d)
	je	.Lmullion1
	movl	$0xb1938ab3, %r11d
	addl	-4(%r10), %r11d
	jne	.Lmullion3
	jmp	*%r10
	nopl	0x4e6c754d(%rax)
.L2:
	movl	$1, %eax
	ret
	nopl	0x4e6c754d(%rax)
.L3:
	movl	$2, %eax
	ret
.Lmullion3:
	ud1	%eax, %eax
.Lmullion1:
	movq	%r10, %r11
	jmp	*__mullion_slots+16(%rip)
	.size	__mullion_call.f, .-__mullion_call.f
	.size	f, .-f
	.section	.data.rel.ro,"aw"
table:
	.quad	.L2
	.quad	.L3
