#### protection read-write-call base register
	.text
f:
	movl	(%rax), %ecx
	movl	8(%rbx), %ecx
	addl	%ecx, 12(%rbx)
	movl	(%rdi,%rsi,4), %edx
	movl	40000(%rax), %edx
	movl	%edx, %esi
	movl	4(%rsi), %eax
	movq	(%rax), %rax
	movl	x(%rip), %ecx
	movl	(,%rdx,8), %ecx
	movl	0x30000, %ecx
	movq	$1, 0x7fff00000010
	leaq	4(%rax,%rbx), %rcx
	nopw	0(%rax,%rax,1)
	prefetcht0	(%rax)
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	%eax, %r11d
	movl	(%r14,%r11), %ecx
	movl	%ebx, %r11d
	movl	8(%r14,%r11), %ecx
	addl	%ecx, 12(%r14,%r11)
	leal	(%rdi,%rsi,4), %r11d
	movl	(%r14,%r11), %edx
	leal	40000(%rax), %r11d
	movl	(%r14,%r11), %edx
	movl	%edx, %esi
	movl	4(%r14,%rsi), %eax
	movq	(%r14,%rax), %rax
	movl	x(%rip), %ecx
	leal	(,%rdx,8), %r11d
	movl	(%r14,%r11), %ecx
	movl	$0x30000, %r11d
	movl	(%r14,%r11), %ecx
	movl	$0x10, %r11d
	movq	$1, (%r14,%r11)
	leal	4(%rax,%rbx,1), %ecx
	nopw	0(%rax,%rax,1)
	movl	%eax, %r11d
	prefetcht0	(%r14,%r11)
	ret
