#### protection trap
	.text
f:
	cmpl	%esi, %edi
	movl	(%rax), %ecx
	jl	.L2
	movl	%ecx, (%rdx)
	movl	%ecx, -4(%rsp)
.L2:
	rep stosb
	ret
#### output
	.text
.Lmullion_start0:
f:
	cmpl	%esi, %edi
	movq	%rax, -264(%r15)
	lahf
	seto	%al
	movw	%ax, -256(%r15)
	movq	-264(%r15), %rax
	movl	%eax, %r11d
	addq	%r14, %r11
	cmpq	%rax, %r11
	jne	.Lmullion1
	movq	%rax, -264(%r15)
	movw	-256(%r15), %ax
	addb	$127, %al
	sahf
	movq	-264(%r15), %rax
	movl	(%r11), %ecx
	jl	.L2
	movl	%edx, %r11d
	addq	%r14, %r11
	cmpq	%rdx, %r11
	jne	.Lmullion2
	movl	%ecx, (%r11)
	movl	%ecx, -12(%r15)
.L2:
	testq	%rcx, %rcx
	je	.Lmullion3
	leaq	(%rdi), %r11
	subq	%r14, %r11
	shrq	$32, %r11
	je	.Lmullion3
	ud1	%ecx, %eax
.Lmullion3:
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	rep stosb
	ret
	.text
.Lmullion1:
	ud1	%ecx, %eax
.Lmullion2:
	ud1	%ecx, %eax
