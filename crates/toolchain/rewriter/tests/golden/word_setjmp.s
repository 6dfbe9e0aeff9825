#### protection read-write wall word
	.text
f:
	subq	$8, %rsp
	movq	%rbx, %rdi
	call	_setjmp@PLT
	movl	%eax, (%rbx)
	addq	$8, %rsp
	ret
#### output
	.text
.Lmullion_start0:
f:
	movq	%rbx, %rdi
	leaq	.Lmullion1(%rip), %rdx
	call	__mullion_call._setjmp
	nopl	0x4e6c754d(%rax)
.Lmullion1:
	leaq	0(%rbx), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion4
.Lmullion2:
	movl	%eax, 0(%rbx)
	ret
	.text
.Lmullion4:
	leaq	0(%rbx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion3
	leaq	3(%rbx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion2
.Lmullion3:
	ud1	%ecx, %eax
