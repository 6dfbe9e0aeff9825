#### protection read-write-call
	.text
f:
	movl	(%rcx,%rdi,4), %edi
	movzwl	-32768(%rdx,%rbp,2), %ebp
	movzwl	28672(%rdx,%rbp,2), %ebp
	movq	8(,%rbx,8), %rbx
	movq	(%rax,%rbx), %rax
	addl	(%rax,%rbx,4), %ebx
	cmovneq	(%rax,%rbx,4), %rbx
	movzbl	table(%rax), %eax
	movb	(%rcx,%rdx), %dh
	movl	(%rcx,%rdi,4), %esi
	cmpl	(%rcx,%rdi,4), %edi
	addl	%edi, (%rcx,%rdi,4)
	movss	(%rcx,%rdi,4), %xmm0
	ret
#### output
	.text
.Lmullion_start0:
f:
	leal	(%rcx,%rdi,4), %r11d
	movl	(%r14,%r11), %edi
	movzwl	%gs:-32768(%edx,%ebp,2), %ebp
	leal	(%rdx,%rbp,2), %r11d
	movzwl	28672(%r14,%r11), %ebp
	leal	(,%rbx,8), %r11d
	movl	8(%r14,%r11), %ebx
	leal	(%rax,%rbx,1), %r11d
	movl	(%r14,%r11), %eax
	leal	(%rax,%rbx,4), %r11d
	addl	(%r14,%r11), %ebx
	leal	(%rax,%rbx,4), %r11d
	cmovneq	(%r14,%r11), %rbx
	leaq	table(%rax), %r11
	movzbl	%gs:(%r11d), %eax
	movb	%gs:(%ecx,%edx,1), %dh
	movl	%gs:(%ecx,%edi,4), %esi
	cmpl	%gs:(%ecx,%edi,4), %edi
	addl	%edi, %gs:(%ecx,%edi,4)
	movss	%gs:(%ecx,%edi,4), %xmm0
	ret
