#### protection read-write-call
# 1 "x.c"
	.file	"x.c"
	.section	.text.f,"ax",@progbits
#APP
# 3 "x.c" 1
	nop; nop # comment ; ret
	movl /* in the middle */ $';', %eax
# 0 "" 2
#NO_APP
f: g: ret
	.pushsection .data
	.ascii	"; # /* \" */", "\0"
1:	.quad	1b
	.popsection
1:	decl	%eax
	jne	1b
	jmp	1f
1:	movl	$x+1f-1b, %ecx
1:	ret
	.previous
	.section	.note.GNU-stack,"",@progbits
#### output
# 1 "x.c"
	.file	"x.c"
	.section	.text.f,"ax",@progbits
#APP
# 3 "x.c" 1
	nop
	nop
	movl                     $';', %eax
# 0 "" 2
#NO_APP
.Lmullion_start1:
f:
g:
	ret
	.pushsection	.data
	.ascii	"; # /* \" */", "\0"
1:
	.quad	1b
	.popsection
1:
	decl	%eax
	jne	1b
	jmp	1f
	nopl	0x4e6c754d(%rax)
1:
	movl	$x+1f-1b, %ecx
	nopl	0x4e6c754d(%rax)
1:
	ret
	.previous
	.section	.note.GNU-stack,"",@progbits
