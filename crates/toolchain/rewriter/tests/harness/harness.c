/* Runs an image of rewritten code without the runtime, for tests of the
 * rewriter alone: a window with the image's segments in it, a data stack, and a
 * call of the entry point with the registers as docs/window.md says. The host's
 * own stack serves as the control stack. Walls are not the point here: nothing
 * is verified, nobody is kept out.
 *
 *   harness IMAGE [N]   calls uint64_t entry(N), prints the result in hexadecimal; N is 0 if it is not given
 *
 * Exit status: 0, or what the image gave to exit(); 1 if the image cannot be loaded; 128 + signal if it faults. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define WINDOW (1ull << 32)
#define STACK_FIRST 0xff000000ull
#define STACK_REGION (8ull << 20)

uint64_t enter(void *entry, void *base, void *stack, uint64_t argument);
__asm__(".text\n"
        ".globl enter\n"
        "enter:\n"
        "  pushq %rbx\n  pushq %rbp\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  subq $8, %rsp\n"
        "  movq %rsi, %r14\n"
        "  movq %rdx, %r15\n"
        "  movq %rdi, %rax\n"
        "  movq %rcx, %rdi\n"
        "  movq $0x1111, %rbx\n  movq $0x2222, %rbp\n  movq $0x3333, %r12\n  movq $0x4444, %r13\n"
        "  movq %rdx, (%rsp)\n"
        "  call *%rax\n"
        /* The callee must give back what it found. */
        "  cmpq (%rsp), %r15\n  jne 1f\n"
        "  cmpq $0x1111, %rbx\n  jne 1f\n  cmpq $0x2222, %rbp\n  jne 1f\n"
        "  cmpq $0x3333, %r12\n  jne 1f\n  cmpq $0x4444, %r13\n  jne 1f\n"
        "  addq $8, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbp\n  popq %rbx\n"
        "  ret\n"
        "1: ud2\n");

static char *base;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void on_signal(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    if (signal == SIGTRAP && c->uc_mcontext.gregs[REG_RAX] == 0x65786974)
        _exit(c->uc_mcontext.gregs[REG_RDI]); /* exit() of support.c */
    fprintf(stderr, "harness: signal %d at offset %llx, address %llx\n", signal,
            (unsigned long long)(c->uc_mcontext.gregs[REG_RIP] - (uint64_t)base),
            (unsigned long long)((uint64_t)info->si_addr - (uint64_t)base));
    _exit(128 + signal);
}

static void *map(char *at, size_t length, int protection) {
    void *p = mmap(at, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        die("mmap");
    return p;
}

static void load(const char *file, Elf64_Ehdr *header, char *thread_pointer) {
    Elf64_Phdr *segment = (Elf64_Phdr *)(file + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    for (int i = 0; i < header->e_phnum; i++, segment++) {
        if (segment->p_type == PT_LOAD && segment->p_memsz) {
            char *start = base + (segment->p_vaddr & -4096ull);
            size_t length = (base + segment->p_vaddr + segment->p_memsz - start + 4095) & -4096ull;
            map(start, length, PROT_READ | PROT_WRITE | ((segment->p_flags & PF_X) ? PROT_EXEC : 0));
            memcpy(base + segment->p_vaddr, file + segment->p_offset, segment->p_filesz);
        }
        if (segment->p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(base + segment->p_vaddr);
    }
    const Elf64_Rela *relocations = NULL;
    size_t count = 0;
    for (; dynamic && dynamic->d_tag; dynamic++) {
        if (dynamic->d_tag == DT_RELA)
            relocations = (const Elf64_Rela *)(base + dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_RELASZ)
            count = dynamic->d_un.d_val / sizeof *relocations;
    }
    for (; count; count--, relocations++) {
        if (ELF64_R_TYPE(relocations->r_info) != R_X86_64_RELATIVE)
            die("relocation");
        *(uint64_t *)(base + relocations->r_offset) = (uint64_t)base + relocations->r_addend;
    }
    segment = (Elf64_Phdr *)(file + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++, segment++)
        if (segment->p_type == PT_TLS) {
            size_t size = (segment->p_memsz + segment->p_align - 1) & -segment->p_align;
            memcpy(thread_pointer - size, base + segment->p_vaddr, segment->p_filesz);
        }
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3)
        return 1;
    int fd = open(argv[1], O_RDONLY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status))
        die(argv[1]);
    char *file = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED)
        die(argv[1]);
    char *reserved = mmap(NULL, 3 * WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        die("window");
    /* Neither the first nor the last GiB of what is reserved: guards on both sides. */
    base = (char *)(((uint64_t)reserved + WINDOW) & -WINDOW);

    char *stack = base + STACK_FIRST;
    char *top = stack + STACK_REGION - 16384;
    map(stack + 65536, STACK_REGION - 65536, PROT_READ | PROT_WRITE);
    char *thread_pointer = stack + STACK_REGION - 64;
    *(char **)thread_pointer = thread_pointer;
    *(char **)(stack + STACK_REGION - 8) = thread_pointer;
    Elf64_Ehdr *header = (Elf64_Ehdr *)file;
    load(file, header, thread_pointer);

    static char alternate[65536];
    stack_t signals = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&signals, NULL);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (const int *s = (const int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, 0}; *s; s++)
        sigaction(*s, &action, NULL);

    syscall(SYS_arch_prctl, ARCH_SET_GS, base);
    uint64_t result = enter(base + header->e_entry, base, top, argc == 3 ? strtoull(argv[2], NULL, 0) : 0);
    printf("%llx\n", (unsigned long long)result);
    return 0;
}
