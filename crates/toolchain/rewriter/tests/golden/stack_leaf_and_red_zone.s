#### protection read-write-call
	.text
f:
	movl	%edi, -4(%rsp)
	movl	8(%rsp), %eax
	addl	-4(%rsp), %eax
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	%edi, -12(%r15)
	movl	(%r15), %eax
	addl	-12(%r15), %eax
	ret
