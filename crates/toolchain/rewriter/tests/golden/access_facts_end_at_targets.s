#### protection read-write-call
	.text
f:
	movl	%edi, %edi
	movl	(%rdi), %eax
	jne	.L2
	movl	4(%rdi), %ecx
.L2:
	movl	8(%rdi), %edx
	movl	%esi, %esi
	call	g
	movl	(%rsi), %eax
	xchgl	%ebx, %ecx
	movl	(%rbx), %eax
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	%edi, %edi
	movl	(%r14,%rdi), %eax
	jne	.L2
	movl	4(%r14,%rdi), %ecx
.L2:
	movl	%edi, %r11d
	movl	8(%r14,%r11), %edx
	movl	%esi, %esi
	call	g
	movl	%esi, %r11d
	movl	(%r14,%r11), %eax
	xchgl	%ebx, %ecx
	movl	%ebx, %r11d
	movl	(%r14,%r11), %eax
	ret
