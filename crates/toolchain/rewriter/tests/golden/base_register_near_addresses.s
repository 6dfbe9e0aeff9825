#### protection read-write-call base register
	.text
f:
	movl	(%rdi,%rsi,4), %eax
	addl	%eax, 8(%rdi,%rsi,4)
	addq	$2, %rsi
	movl	%eax, 100000(%rdi,%rsi,4)
	movl	%eax, 100008(%rdi,%rsi,4)
	addq	$8, %rdi
	movl	%eax, 100000(%rdi,%rsi,4)
	movl	%edi, %esi
	movl	%eax, 100000(%rdi,%rsi,4)
	movl	%eax, 40000(%rsp)
	movl	%eax, 8(%rsp,%rcx,8)
	movb	%ah, (%rax)
	movl	(%rax), %ecx
	subq	$40000, %rsp
	pushq	%rbx
	popq	%rbx
	addq	$40000, %rsp
	ret
#### output
	.text
.Lmullion_start0:
f:
	leal	(%rdi,%rsi,4), %r11d
	movl	(%r14,%r11), %eax
	addl	%eax, 8(%r14,%r11)
	addl	$2, %esi
	leal	100000(%rdi,%rsi,4), %r11d
	movl	%eax, (%r14,%r11)
	movl	%eax, 8(%r14,%r11)
	addl	$8, %edi
	movl	%eax, 8(%r14,%r11)
	movl	%edi, %esi
	leal	100000(%rdi,%rsi,4), %r11d
	movl	%eax, (%r14,%r11)
	leal	39992(%r15), %r11d
	movl	%eax, (%r14,%r11)
	leal	0(%r15,%rcx,8), %r11d
	movl	%eax, (%r14,%r11)
	leal	(%rax), %r11d
	xchgb	%al, %ah
	movb	%al, (%r14,%r11)
	xchgb	%al, %ah
	movl	%eax, %r11d
	movl	(%r14,%r11), %ecx
	leal	-40016(%r15), %r11d
	leaq	(%r14,%r11), %r15
	movq	%rbx, (%r15)
	leal	40016(%r15), %r11d
	leaq	(%r14,%r11), %r15
	leal	-40016(%r15), %r11d
	movq	(%r14,%r11), %rbx
	ret
