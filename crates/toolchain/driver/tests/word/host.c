/* A host for tests of modules of checked code, in place of the run time: one domain, one thread,
 * a shadow made by hand. It isolates nothing; it shows whether correct modules do what they did
 * before, and whether a refused access traps.
 *
 *   host [--strict] MODULE.so ARGUMENTS...
 *
 * Without --strict, the domain may read and write every word, by its map. With it, only what is
 * granted to it: the module's data, its stack, the arguments, and what it allocates. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
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

#define OWN 0xc000ull
#define REGION (8ull << 20)
#define MARGIN 0x8000ull
enum { NUMBER_TEXT = 1, NUMBER_GATE };
enum { READ = 1, WRITE = 2, EXECUTE = 4, ENTER = 8 };

static uint8_t *shadow, *base;
static uint64_t module_end;

uint64_t own_number = OWN * 0x0001000100010001ull;
uint64_t stack_top;
uint8_t inside;
void enter(void), leave(void);

__asm__(".text\n"
        ".globl enter\nenter:\n"
        "   cmpb $0, inside(%rip)\n   jne 1f\n"
        "   push %rbx\n   push %rbp\n   push %r12\n   push %r13\n   push %r14\n   push %r15\n"
        "   movb $1, inside(%rip)\n   mov own_number(%rip), %r14\n   mov stack_top(%rip), %r15\n"
        "   sub $128, %r15\n"
        "   .set i, 0\n   .rept 16\n   mov 56+i(%rsp), %r10\n   mov %r10, i(%r15)\n   .set i, i+8\n   .endr\n"
        "   call *%r11\n"
        "   movb $0, inside(%rip)\n"
        "   pop %r15\n   pop %r14\n   pop %r13\n   pop %r12\n   pop %rbp\n   pop %rbx\n   ret\n"
        "1: jmp *%r11\n"
        ".globl leave\nleave:\n"
        "   push %rbp\n   mov %rsp, %rbp\n   push stack_top(%rip)\n   push %rbx\n"
        "   and $-16, %rsp\n   sub $256, %rsp\n"
        "   .set i, 0\n   .rept 32\n   mov i(%r15), %r10\n   mov %r10, i(%rsp)\n   .set i, i+8\n   .endr\n"
        "   lea -512(%r15), %r10\n   and $-16, %r10\n   mov %r10, stack_top(%rip)\n"
        "   movb $0, inside(%rip)\n"
        "   call *%r11\n"
        "   movb $1, inside(%rip)\n"
        "   mov -8(%rbp), %r10\n   mov %r10, stack_top(%rip)\n"
        "   leave\n   ret\n");

static void number(const void *from, uint64_t bytes, uint16_t value) {
    uint64_t first = (uint64_t)from >> 2, end = ((uint64_t)from + bytes + 3) >> 2;
    uint16_t *words = (uint16_t *)shadow;
    // A line has the number of all of its words, or none.
    for (uint64_t line = first / 16; line < (end + 15) / 16; line++)
        words[-1 - (int64_t)line] = line * 16 >= first && line * 16 + 16 <= end ? value : 0;
    for (; first < end; first++)
        words[first] = value;
}

static void refused(int signal, siginfo_t *info, void *context) {
    uint8_t *at = (uint8_t *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    const char *what = signal == SIGILL && at[0] == 0x0f && at[1] == 0xb9 ? at[2] == 0xc1 ? "refused" : "label" : "fault";
    char line[160];
    int length = snprintf(line, sizeof line, "host: %s at %#lx (signal %d, address %p)\n", what, (long)(at - base), signal,
                          info->si_addr);
    if (write(2, line, (size_t)length) < 0)
        _exit(98);
    _exit(signal == SIGILL && at[1] == 0xb9 ? 99 : 97);
}

static void *own_malloc(size_t size) {
    void *block = malloc(size);
    if (block)
        number(block, size, OWN);
    return block;
}
static void *own_calloc(size_t count, size_t size) {
    void *block = calloc(count, size);
    if (block)
        number(block, count * size, OWN);
    return block;
}
static void *own_realloc(void *old, size_t size) {
    void *block = realloc(old, size);
    if (block)
        number(block, size, OWN);
    return block;
}
static void no_such_function(void) {
    fprintf(stderr, "host: a missing function was called\n");
    exit(96);
}

static void *find(const char *name) {
    if (!strcmp(name, "malloc"))
        return own_malloc;
    if (!strcmp(name, "calloc"))
        return own_calloc;
    if (!strcmp(name, "realloc"))
        return own_realloc;
    return dlsym(RTLD_DEFAULT, name);
}

static uint8_t *thunks, *thunk;
static uint64_t thunk_to(uint64_t target) {
    uint8_t *start = thunk;
    uint64_t out = (uint64_t)leave;
    memcpy(thunk, "\x49\xbb", 2), memcpy(thunk + 2, &target, 8);
    memcpy(thunk + 10, "\x49\xba", 2), memcpy(thunk + 12, &out, 8);
    memcpy(thunk + 20, "\x41\xff\xe2", 3);
    thunk += 32;
    return (uint64_t)start;
}

static void die(const char *what) {
    fprintf(stderr, "host: %s\n", what);
    exit(95);
}

int main(int count, char **arguments, char **environment) {
    int strict = count > 1 && !strcmp(arguments[1], "--strict");
    arguments += 1 + strict, count -= 1 + strict;
    if (count < 1)
        die("which module?");
    shadow = mmap(0, 68ull << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shadow == MAP_FAILED)
        die("no room for the shadow");
    shadow += 4ull << 40; // Behind the numbers of lines.
    uint8_t *map = shadow + OWN * 65537;
    map[0] = strict ? 0 : READ | WRITE;
    map[OWN] = READ | WRITE;
    map[NUMBER_TEXT] = READ | EXECUTE, map[NUMBER_GATE] = READ | EXECUTE | ENTER;

    int file = open(arguments[0], O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status))
        die("no such module");
    uint8_t *image = mmap(0, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    Elf64_Ehdr *header = (Elf64_Ehdr *)image;
    Elf64_Phdr *segments = (Elf64_Phdr *)(image + header->e_phoff), *end = segments + header->e_phnum;
    for (Elf64_Phdr *s = segments; s < end; s++)
        if (s->p_type == PT_LOAD && s->p_vaddr + s->p_memsz > module_end)
            module_end = s->p_vaddr + s->p_memsz;
    module_end = (module_end + 4095) & ~4095ull;
    base = mmap(0, module_end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Elf64_Dyn *dynamic = 0;
    uint32_t *note = 0;
    Elf64_Phdr *threads = 0;
    for (Elf64_Phdr *s = segments; s < end; s++) {
        if (s->p_type == PT_LOAD)
            memcpy(base + s->p_vaddr, image + s->p_offset, s->p_filesz);
        if (s->p_type == PT_DYNAMIC)
            dynamic = (Elf64_Dyn *)(base + s->p_vaddr);
        if (s->p_type == PT_NOTE)
            note = (uint32_t *)(base + s->p_vaddr) + 5;
        if (s->p_type == PT_TLS)
            threads = s;
    }
    if (!dynamic || !note)
        die("no module of checked code");
    uint64_t tag[64] = {0};
    for (Elf64_Dyn *d = dynamic; d->d_tag; d++)
        if (d->d_tag < 64)
            tag[d->d_tag] = d->d_un.d_val;
    if (tag[DT_JMPREL] || tag[DT_INIT] || tag[DT_FINI] || tag[DT_TEXTREL])
        die("what no module has");
    Elf64_Sym *symbols = (Elf64_Sym *)(base + tag[DT_SYMTAB]);
    const char *names = (const char *)(base + tag[DT_STRTAB]);
    for (Elf64_Rela *r = (Elf64_Rela *)(base + tag[DT_RELA]); (uint8_t *)r < base + tag[DT_RELA] + tag[DT_RELASZ]; r++) {
        Elf64_Sym *symbol = symbols + ELF64_R_SYM(r->r_info);
        uint64_t value = 0, *place = (uint64_t *)(base + r->r_offset);
        if (ELF64_R_SYM(r->r_info))
            value = symbol->st_shndx ? (uint64_t)base + symbol->st_value : (uint64_t)find(names + symbol->st_name);
        switch (ELF64_R_TYPE(r->r_info)) {
        case R_X86_64_RELATIVE: *place = (uint64_t)base + (uint64_t)r->r_addend; break;
        case R_X86_64_GLOB_DAT:
            *place = value;
            /* A variable of the host that the module names. */
            if (!symbol->st_shndx)
                number((void *)value, 8, OWN);
            break;
        case R_X86_64_64: *place = value + (uint64_t)r->r_addend; break;
        default: die("an unknown relocation");
        }
    }
    thunk = thunks = mmap(0, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *slots = (uint64_t *)(base + note[2]);
    slots[1] = (uint64_t)enter, slots[2] = (uint64_t)leave;
    for (uint32_t i = 0; 16 + i < (note[3] - note[2]) / 8; i++) {
        void *target = find((char *)base + note[4] + 64 * i);
        slots[16 + i] = thunk_to((uint64_t)(target ? target : (void *)no_such_function));
    }
    /* Constants have the own number, too: their pages are closed to writes. */
    for (Elf64_Phdr *s = segments; s < end; s++) {
        if (s->p_type != PT_LOAD)
            continue;
        uint8_t *from = base + s->p_vaddr;
        uint64_t bytes = (s->p_memsz + 4095) & ~4095ull;
        number(from, bytes, s->p_flags & PF_X ? NUMBER_TEXT : OWN);
        for (uint8_t *at = from; s->p_flags & PF_X && at < from + s->p_filesz; at += 16)
            if (!memcmp(at, "\xf3\x0f\x1e\xfa\x4c\x8d\x1d", 7))
                number(at, 4, NUMBER_GATE);
        if (!(s->p_flags & PF_W))
            mprotect(from, bytes, s->p_flags & PF_X ? PROT_READ | PROT_EXEC : PROT_READ);
    }
    for (Elf64_Phdr *s = segments; s < end; s++)
        if (s->p_type == PT_GNU_RELRO)
            mprotect(base + s->p_vaddr, s->p_memsz, PROT_READ);

    uint64_t reserved = (uint64_t)mmap(0, 4 * REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint8_t *stack = (uint8_t *)((reserved + 2 * REGION - 1) & ~(REGION - 1));
    mprotect(stack + MARGIN, REGION - 2 * MARGIN, PROT_READ | PROT_WRITE);
    number(stack + MARGIN, REGION - 2 * MARGIN, OWN);
    stack_top = (uint64_t)stack + REGION - MARGIN - 1024;
    uint64_t block = threads ? (threads->p_memsz + threads->p_align - 1) & ~(threads->p_align - 1) : 0;
    uint8_t *pointer = (uint8_t *)aligned_alloc(4096, (block + 8191) & ~4095ull) + ((block + 4095) & ~4095ull);
    if (threads) {
        memset(pointer - block, 0, block);
        memcpy(pointer - block, image + threads->p_offset, threads->p_filesz);
    }
    *(uint8_t **)pointer = pointer;
    number(pointer - block, block + 8, OWN);
    *(uint8_t **)(stack + REGION - MARGIN - 8) = pointer;

    number(arguments, sizeof *arguments * (size_t)(count + 1), OWN);
    for (int i = 0; i < count; i++)
        number(arguments[i], strlen(arguments[i]) + 1, OWN);
    number(&errno, sizeof errno, OWN);
    static uint8_t alternate[65536];
    stack_t alternative = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&alternative, 0);
    struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGILL, &action, 0), sigaction(SIGSEGV, &action, 0), sigaction(SIGBUS, &action, 0);
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, shadow))
        die("no base of %gs");

    for (uint64_t i = 0; i < tag[DT_INIT_ARRAYSZ] / 8; i++)
        ((void (*)(int, char **, char **))((uint64_t *)(base + tag[DT_INIT_ARRAY]))[i])(count, arguments, environment);
    Elf64_Sym *last = (Elf64_Sym *)(base + tag[DT_STRTAB]);
    for (Elf64_Sym *symbol = symbols; symbol < last; symbol++)
        if (symbol->st_shndx && !strcmp(names + symbol->st_name, "main")) {
            int status = ((int (*)(int, char **, char **))(base + symbol->st_value))(count, arguments, environment);
            for (uint64_t i = tag[DT_FINI_ARRAYSZ] / 8; i-- > 0;)
                ((void (*)(void))((uint64_t *)(base + tag[DT_FINI_ARRAY]))[i])();
            exit(status);
        }
    die("no main");
}
