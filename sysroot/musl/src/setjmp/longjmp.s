# longjmp is the gate __mullion_longjmp, which checks where it goes.
	.text
	.globl	longjmp
	.globl	_longjmp
	.type	longjmp, @function
	.type	_longjmp, @function
longjmp:
_longjmp:
	jmp	__mullion_longjmp
	.size	longjmp, .-longjmp
	.section	.note.GNU-stack,"",@progbits
