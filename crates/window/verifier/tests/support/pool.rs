//! Random programs from instructions that matter to the rules.

use std::path::Path;

/// Instructions, good and bad, one item a line; `;` joins what belongs together.
const ITEMS: &str = "
movl %eax, %r11d
movl %edi, %r11d
movl %r11d, %eax
movl $-LABEL, %r10d
movl $-LABEL, %r11d
movl $-LABEL, %r15d
addl -4(%r14,%r11), %r10d
addl -4(%r14,%rax), %r10d
addl -4(%r14,%r11), %r11d
addl -4(%r14,%r11,2), %r10d
addl -5(%r14,%r11), %r10d
addl %gs:-4(%eax), %r11d
addl %gs:-4(%r15d), %r11d
addl %gs:-4(%eax,%ecx), %r11d
addq %r14, %r11
addq %r14, %rax
addq %r14, %r10
addq %r14, %r14
leaq (%r14,%r11), %r11
leaq (%r14,%rax), %rdi
leaq (%r14,%rax), %rsi
leaq 1(%r14,%rax), %rdi
leaq (%r14,%rax,2), %rdi
call *%r11
jmp *%r11
jmp *%rax
call *%rax
jmp *%gs:(%eax)
ud1 %eax, %eax
ud2
int3
ret
label
nop
nopl 8(%rax,%rax)
nopw %cs:0x0(%rax,%rax,1)
movl %r11d, %r10d; movl %eax, %r11d; movl $-LABEL, %r10d; addl -4(%r14,%r11), %r10d
addl -4(%r14,%r11), %r10d; jne .+2; addq %r14, %r11; call *%r11
movl $-LABEL, %r11d; addl %gs:-4(%eax), %r11d; jne .+2; movl %eax, %r11d; addq %r14, %r11; jmp *%r11
movq (%r14,%r11), %rcx
movq %rcx, (%r14,%r11)
movq %rcx, 0x7000(%r14,%r11)
movq %rcx, 0x7001(%r14,%r11)
movq %rcx, -0x7000(%r14,%rax)
movq (%r11), %rcx
movq %rcx, (%r11)
movq %rcx, 0x7001(%r11)
movb %cl, 8(%rdi)
movb %ah, 8(%rdi)
movb %spl, %al
movl %ecx, 8(%r15)
movl %ecx, 8(%r15,%rax)
movl 8(%r15), %ecx
movl 0x7001(%r15), %ecx
movl %ecx, %gs:(%rax)
movl %ecx, %gs:(%eax)
movl %ecx, (%eax)
movl %ecx, %fs:(%rax)
movl %ecx, %gs:4(%r8d,%r9d,8)
movl %ecx, 100(%rip)
movl %ecx, -0x30000(%rip)
movl %ecx, %gs:100(%rip)
prefetcht0 (%r15)
prefetcht0 (%rdx)
vmaskmovps (%r15), %xmm1, %xmm2
vpmaskmovd %ymm3, %ymm2, 8(%r15)
subq $8, %r15
addq $8, %r15
addq $0x4000, %r15
subq $0x4000, %r15
subq $0x7001, %r15
leaq -16(%r15), %r15
leaq (%r14,%rax), %r15
leaq (%r14,%r15), %r15
movl %eax, %r15d
andl $-32, %r15d
addq %r14, %r15
movq %rax, %r15
incq %r15
movw %ax, %r15w
movl %eax, %r14d
movq %rsp, %rax
addq $8, %rsp
movl (%rsp), %eax
leaq 8(%rsp), %rax
pushq %rax
popq %rbx
movzbl %cl, %eax
movsbl (%r15), %eax
cmovel %ecx, %r11d
cmoveq %rcx, %r11
bsfl %ecx, %r11d
tzcntl %ecx, %r11d
popcntl %ecx, %r11d
shll %cl, %r11d
shll $3, %r11d
shll $32, %r11d
shll %r11d
xchgl %eax, %r11d
xchgl %eax, %eax
xchgl %ecx, %edx
xaddl %eax, (%r15)
lock xaddl %eax, (%r15)
lock addl $1, %gs:(%ecx)
lock cmpxchgl %ecx, (%r14,%r11)
lock cmpxchg16b (%r15)
mull %ecx
mulxl %ecx, %r11d, %eax
cltd
cpuid
btl %eax, (%r15)
btl %eax, %ecx
btsl %eax, %r11d
btl $3, (%r15)
rep movsb
movsq
stosb
lodsl
repe cmpsb
scasb
maskmovdqu %xmm1, %xmm2
movd %xmm1, %r11d
movq %xmm1, %r11
pextrw $1, %xmm1, %r11d
pmovmskb %xmm1, %eax
vpextrb $1, %xmm1, %r11d
movdqu %xmm1, (%r14,%rax)
vmovdqu %ymm1, %gs:(%edi)
andnl %eax, %ecx, %r11d
shlxl %eax, %ecx, %r11d
rorxl $3, %ecx, %r14d
fldt (%r15)
fstpt (%r14,%r11)
fnstsw %ax
fnsave (%r15)
vpgatherdd %ymm1, (%r14,%ymm2), %ymm3
syscall
wrgsbase %rax
rdtsc
enter $8, $0
leave
xlatb
movl $LABEL, %eax
.byte 0xe8; .long 0x10200 - 0x20007
";

/// The items' bytes.
pub(crate) fn items() -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let lines: Vec<&str> = ITEMS.lines().filter(|line| !line.is_empty()).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let end = (number + 1) * 64;
        text += &format!(
            ".org 16 + 32 + {}\n8: {line}\n9: .org 16 + 32 + {}\n .byte 9b - 8b\n",
            number * 64,
            end - 1
        );
    }
    let file = super::assemble(Path::new(directory.path()), &text);
    let image = mullion_verifier::survey(file, 0)
        .image
        .expect("a readable image");
    let code = image.contents(&image.segments()[0])[0x30..].to_vec();
    code.chunks(64)
        .take(lines.len())
        .map(|item| item[..usize::from(item[63])].to_vec())
        .collect()
}

/// A small generator of random numbers (xorshift), for tests that must run alike everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A random program: items, and branches among them, now and then a flipped byte.
pub(crate) fn program(items: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let (mut code, mut starts) = (Vec::new(), vec![0]);
    for _ in 0..1 + random.below(24) {
        if random.below(6) == 0 {
            let near = random.below(2) == 0;
            let length: i64 = if near { 2 } else { 6 };
            let to = if random.below(3) > 0 {
                starts[random.below(starts.len())]
            } else {
                code.len() + random.below(40)
            };
            let distance = to as i64 - code.len() as i64 - length;
            if near && i8::try_from(distance).is_ok() {
                code.extend([
                    if random.below(2) == 0 { 0x75 } else { 0xeb },
                    distance as u8,
                ]);
            } else {
                code.extend([0x0f, 0x85]);
                code.extend((to as i32 - code.len() as i32 - 4).to_le_bytes());
            }
        } else {
            code.extend(&items[random.below(items.len())]);
        }
        starts.push(code.len());
    }
    if random.below(4) == 0 {
        let at = random.below(code.len());
        code[at] = random.next() as u8;
    }
    code
}
