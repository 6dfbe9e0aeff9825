#### protection read-write-call
	.text
f:
	lock; incl x(%rip)
	rep; movsb
	lock
	incl x(%rip)
	ret
#### output
	.text
.Lmullion_start0:
f:
	lock incl	x(%rip)
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	movl	%esi, %esi
	leaq	(%r14,%rsi), %rsi
	rep movsb
	lock incl	x(%rip)
	ret
