#### protection read-write-call
	.text
a:
	subq	$8, %rsp
	jc	.L1
	nop
.L1:
	ret
b:
	testl	%edi, %edi
	je	.L2
	pushq	%rax
.L2:
	ret
c:
	pushq	%rax
	jmp	d
e:
	movq	8(%rdi), %rax
	movq	(%rdi), %rbp
	movq	16(%rdi), %rsp
	jmp	*%rax
h:
	pushw	%ax
	movl	0x4e6c754d(%rax), %ecx
	imull	$0x4e6c754d, %eax, %ecx
	addb	%ah, 8(%rsp,%rax)
	movl	%gs:4, %eax
	ret
#### refused
input.s:3: the flags of a stack adjustment are used behind it; adjust the stack with lea: `subq	$8, %rsp`
input.s:20: a non-local goto by the compiler's own means (__builtin_longjmp) cannot unwind the control stack; use setjmp and longjmp: `movq	16(%rdi), %rsp`
input.s:23: only the whole 64-bit stack pointer can be moved; use rsp: `pushw	%ax`
input.s:24: this constant holds the bytes of the label for indirect branches; compute it instead: `movl	0x4e6c754d(%rax), %ecx`
input.s:25: this constant holds the bytes of the label for indirect branches; compute it instead: `imull	$0x4e6c754d, %eax, %ecx`
input.s:26: the high byte of a register cannot be combined with this address; move it to a register of its own: `addb	%ah, 8(%rsp,%rax)`
input.s:27: this use of a segment register has no translation; use a thread-local variable: `movl	%gs:4, %eax`
