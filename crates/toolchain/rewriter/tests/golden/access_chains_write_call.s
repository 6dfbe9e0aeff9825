#### protection write-call
	.text
f:
	movl	(%rcx,%rdi,4), %edi
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	(%rcx,%rdi,4), %edi
	ret
