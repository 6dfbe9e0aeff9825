#### protection read-write-call
	.text
	.p2align 4
	.type	f, @function
f:
	.p2align 4,,10
	.p2align 3
.L3:
	movl	(%rdi,%rax,4), %ecx
	addl	%ecx, (%rsi,%rax,4)
	addq	$1, %rax
	cmpq	%rdx, %rax
	jne	.L3
	testl	%ecx, %ecx
	je	.L5
.L4:
	addq	$1, %rax
	cmpq	%rdx, %rax
	jne	.L4
	.p2align 4,,10
	.p2align 3
.L5:
	call	g@PLT
	subq	$1, %rax
	jne	.L5
	ret
	.size	f, .-f
#### output
	.text
.Lmullion_start0:
	.p2align	4
	.type	f, @function
f:
	.p2align	4,,10
	.p2align	3
	.p2align	6,,18
.L3:
	movl	%gs:(%edi,%eax,4), %ecx
	addl	%ecx, %gs:(%esi,%eax,4)
	addq	$1, %rax
	cmpq	%rdx, %rax
	jne	.L3
	testl	%ecx, %ecx
	je	.L5
.L4:
	addq	$1, %rax
	cmpq	%rdx, %rax
	jne	.L4
	.p2align	4,,10
	.p2align	3
	.p2align	6,,10
.L5:
	call	g@PLT
	subq	$1, %rax
	jne	.L5
	ret
	.size	f, .-f
