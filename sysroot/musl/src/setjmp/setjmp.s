# setjmp and its kin are the gate __mullion_setjmp, which finds the caller's
# point of return on the control stack: the jump must not push another one.
# A domain has no signal mask, so the forms that save one are the same.
	.text
	.globl	setjmp
	.globl	_setjmp
	.globl	__setjmp
	.globl	sigsetjmp
	.globl	__sigsetjmp
	.type	setjmp, @function
	.type	_setjmp, @function
	.type	__setjmp, @function
	.type	sigsetjmp, @function
	.type	__sigsetjmp, @function
setjmp:
_setjmp:
__setjmp:
sigsetjmp:
__sigsetjmp:
	jmp	__mullion_setjmp
	.size	setjmp, .-setjmp
	.section	.note.GNU-stack,"",@progbits
