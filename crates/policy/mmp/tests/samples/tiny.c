/* The program of the recorded traces beside this file. A program calls a module for a sum of a buffer's bytes;
 * the module stores into one word that it was not given. Addresses are set by the linker's options:
 *
 *   gcc -O1 -nostdlib -static -no-pie -fcf-protection=none -fno-stack-protector -fno-asynchronous-unwind-tables \
 *       -Wl,-Ttext=0x401000 -Wl,--section-start=.module=0x402000 -Wl,--section-start=.data=0x403000 \
 *       -o tiny tiny.c
 *   valgrind --tool=lackey --trace-mem=yes --log-file=tiny.lackey ./tiny
 *   qemu-x86_64 -plugin libexeclog.so -d plugin -D tiny.execlog ./tiny
 */
unsigned char buffer[16] __attribute__((aligned(16))) = {1, 2, 3, 4, 5, 6, 7, 8};
unsigned wild = 1;

__attribute__((noinline, section(".module,\"ax\",@progbits#"))) unsigned sum(const unsigned char *bytes, unsigned count)
{
	unsigned all = 0;
	for (unsigned i = 0; i < count; i++)
		all += bytes[i];
	*(volatile unsigned *)&wild = all;
	return all;
}

__attribute__((noreturn)) void _start(void)
{
	unsigned all = sum(buffer, 4);
	all += sum(buffer, 8);
	__asm__ volatile("syscall" : : "a"(60L), "D"((long)all & 0) : "rcx", "r11", "memory");
	__builtin_unreachable();
}
