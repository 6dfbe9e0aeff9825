#### protection write-call
	.text
g:
	ret
f:
	movq	%rdi, %rax
	call	g
	movq	(%rax), %rax
	ret
h:
	movq	%rdi, %rax
	addq	%rsi, %rax
	movl	%eax, %edi
	call	elsewhere
	ret
#### output
	.text
.Lmullion_start0:
g:
	ret
f:
	movq	%rdi, %rax
	call	g
	movq	(%rax), %rax
	ret
h:
	movl	%edi, %eax
	addl	%esi, %eax
	movl	%eax, %edi
	call	elsewhere
	ret
