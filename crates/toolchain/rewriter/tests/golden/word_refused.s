#### protection read-write wall word
	.text
f:
	call	vfork
	movabsq	0x1122334455667788, %rax
	movl	(%eax), %ecx
	fild	(%rax)
	movl	%gs:4, %eax
	ret
#### refused
input.s:3: a function that returns twice and is not setjmp has no translation behind the word wall: `call	vfork`
input.s:4: an address of 32 bits, or one that is a constant of 64, cannot be checked: `movabsq	0x1122334455667788, %rax`
input.s:5: an address of 32 bits, or one that is a constant of 64, cannot be checked: `movl	(%eax), %ecx`
input.s:6: how many bytes this accesses is not known; write the instruction with its suffix: `fild	(%rax)`
input.s:7: this use of a segment register has no translation; use a thread-local variable: `movl	%gs:4, %eax`
