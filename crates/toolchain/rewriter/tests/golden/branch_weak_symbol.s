#### protection read-write-call
	.text
	.weak	absent
	.globl	f
	.type	f, @function
f:
	cmpq	$0, absent@GOTPCREL(%rip)
	je	.L1
	subq	$8, %rsp
	call	absent@PLT
	call	*absent@GOTPCREL(%rip)
	addq	$8, %rsp
	jmp	absent@PLT
.L1:
	ret
	.size	f, .-f
#### output
	.text
	.weak	absent
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	cmpq	$0, absent@GOTPCREL(%rip)
	je	.L1
	movl	absent@GOTPCREL(%rip), %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	call	*%r11
	movl	absent@GOTPCREL(%rip), %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	call	*%r11
	movl	absent@GOTPCREL(%rip), %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	jmp	*%r11
.L1:
	ret
.Lmullion1:
	ud1	%eax, %eax
	.size	f, .-f
