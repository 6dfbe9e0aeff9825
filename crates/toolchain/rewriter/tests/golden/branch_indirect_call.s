#### protection read-write-call
	.text
f:
	pushq	%rbx
	movq	%rdi, %rbx
	call	*%rax
	call	*%rbx
	call	*16(%rbx)
	call	*tab(,%rax,8)
	call	*g@GOTPCREL(%rip)
	popq	%rbx
	notrack jmp	*%rax
#### output
	.text
.Lmullion_start0:
f:
	leaq	-16(%r15), %r15
	movq	%rbx, (%r15)
	movl	%edi, %ebx
	movl	%eax, %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	call	*%r11
	movl	%ebx, %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	call	*%r11
	movl	%gs:16(%ebx), %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	call	*%r11
	leaq	tab(,%rax,8), %r11
	movl	%gs:(%r11d), %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	call	*%r11
	call	g@PLT
	leaq	16(%r15), %r15
	movq	-16(%r15), %rbx
	movl	%eax, %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion1
	addq	%r14, %r11
	jmp	*%r11
	.text
.Lmullion1:
	ud1	%eax, %eax
