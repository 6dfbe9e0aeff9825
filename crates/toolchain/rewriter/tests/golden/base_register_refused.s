#### protection read-write-call base register
	.text
f:
	pushq	8(%rdi)
	subq	$40000, %rsp
	call	g
	addq	$40008, %rsp
	ret
#### refused
input.s:3: this needs a second scratch register without %gs; leave out the base, or rewrite it: `pushq	8(%rdi)`
