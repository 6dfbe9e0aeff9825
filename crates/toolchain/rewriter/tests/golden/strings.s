#### protection read-write-call
	.text
f:
	rep stosq
	cld
	rep; movsb
	repnz scasb
	lodsb
	movsd	(%rax), %xmm0
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	rep stosq
	cld
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	movl	%esi, %esi
	leaq	(%r14,%rsi), %rsi
	rep movsb
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	repne scasb
	movl	%esi, %esi
	leaq	(%r14,%rsi), %rsi
	lodsb
	movsd	%gs:(%eax), %xmm0
	ret
