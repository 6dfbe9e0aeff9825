#### protection read-write-call
	.text
f:
	lock addl	$1, (%rax)
	lock; cmpxchgl	%ecx, (%rdx)
	lock cmpxchg16b	(%rdi)
	xchgl	%eax, (%rdi)
	rep bsfl	%eax, %ecx
	rep; nop
	endbr64
	notrack jmp	*%rax
g:
	rep ret
#### output
	.text
.Lmullion_start0:
f:
	lock addl	$1, %gs:(%eax)
	lock cmpxchgl	%ecx, %gs:(%edx)
	movl	%edi, %r11d
	lock cmpxchg16b	(%r14,%r11)
	xchgl	%eax, (%r14,%r11)
	rep bsfl	%eax, %ecx
	pause
	movl	%eax, %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	jmp	*%r11
g:
	ret
	.text
.Lmullion1:
	ud1	%eax, %eax
