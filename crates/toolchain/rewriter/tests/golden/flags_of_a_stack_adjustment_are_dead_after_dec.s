#### protection read-write-call
	.text
f:
	subq	$24, %rsp
	movb	$1, 15(%rsp)
	decb	%al
	je	.L2
	call	abort
.L2:
	addq	$24, %rsp
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	-32(%r15), %r15
	movb	$1, 15(%r15)
	decb	%al
	je	.L2
	call	abort
.L2:
	leaq	32(%r15), %r15
	movl	-8(%r15), %r11d
	ret
