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
