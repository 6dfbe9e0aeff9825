# int __set_thread_area(void *thread): the thread pointer lives in the last
# 8 bytes of the 8 MiB-aligned region that holds the data stack.
	.text
	.globl	__set_thread_area
	.hidden	__set_thread_area
	.type	__set_thread_area, @function
__set_thread_area:
	movq	%rsp, %rax
	orq	$0x7fffff, %rax
	movq	%rdi, -7(%rax)
	xorl	%eax, %eax
	ret
	.size	__set_thread_area, .-__set_thread_area
	.section	.note.GNU-stack,"",@progbits
