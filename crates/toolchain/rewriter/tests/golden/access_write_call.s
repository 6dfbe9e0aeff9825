#### protection write-call
	.text
f:
	movl	(%rax), %ecx
	movl	%ecx, (%rdx)
	addl	(%rax), %ecx
	incl	(%rax)
	movl	8(%rsp), %ecx
	movl	(%rsp,%rcx), %ecx
	rep movsb
	repz cmpsb
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	(%rax), %ecx
	movl	%ecx, %gs:(%edx)
	addl	(%rax), %ecx
	incl	%gs:(%eax)
	movl	(%r15), %ecx
	movl	%gs:-8(%r15d,%ecx,1), %ecx
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	rep movsb
	rep cmpsb
	ret
