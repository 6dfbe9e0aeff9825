#### protection write wall word
	.text
	.globl f
	.type f, @function
f:
	movnti %eax, (%rdi)
	movntiq %rax, 8(%rdi)
	movntdq %xmm0, 16(%rdi)
	vmovntps %ymm0, 32(%rdi)
	ret
	.size f, .-f
#### output
