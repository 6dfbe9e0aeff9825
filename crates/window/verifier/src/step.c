/* Single-steps instructions on the processor, for processor_tests.rs: records from standard input,
 * what became of them to standard output. The instruction runs in a traced child, whose registers
 * and memory it may spoil as it likes.
 *
 *   TARGETS + 0x0000  not mapped     TARGETS + 0x4000  read and write
 *   TARGETS + 0x2000  read only      CODE: a page that can be executed, the next one not mapped
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE ((char *)0x20000000)
#define TARGETS ((char *)0x40000000)
#define PAGE 0x1000

struct record {
    uint64_t registers[16]; /* as instructions number them: rax rcx rdx rbx rsp rbp rsi rdi r8 ... */
    uint64_t flags;
    uint8_t length, bytes[15];
};
struct outcome {
    uint64_t registers[16];
    uint64_t flags, address;
    uint32_t signal;   /* 5: it was executed */
    int32_t advanced;  /* bytes */
    int32_t low, high; /* the bytes of the writable page that changed, or 0, 0 */
};

static void *at(char *address, size_t size, int protection)
{
    void *made = mmap(address, size, protection, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (made != address) {
        perror("mmap");
        exit(2);
    }
    return made;
}

static unsigned long long *field(struct user_regs_struct *of, int number)
{
    unsigned long long *fields[16] = { &of->rax, &of->rcx, &of->rdx, &of->rbx, &of->rsp, &of->rbp, &of->rsi, &of->rdi,
        &of->r8, &of->r9, &of->r10, &of->r11, &of->r12, &of->r13, &of->r14, &of->r15 };
    return fields[number];
}

static pid_t begin(struct user_regs_struct *registers, struct user_fpregs_struct *vectors)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
        perror("fork");
        exit(2);
    }
    ptrace(PTRACE_GETREGS, child, 0, registers);
    ptrace(PTRACE_GETFPREGS, child, 0, vectors);
    return child;
}

int main(void)
{
    char *code = at(CODE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    at(TARGETS + 0x2000, PAGE, PROT_READ);
    char *data = at(TARGETS + 0x4000, PAGE, PROT_READ | PROT_WRITE);
    struct user_regs_struct first;
    struct user_fpregs_struct vectors;
    pid_t child = begin(&first, &vectors);
    struct record record;
    while (fread(&record, sizeof record, 1, stdin) == 1) {
        struct outcome outcome = { .signal = 0 };
        struct user_regs_struct registers = first;
        char *start = code + PAGE - record.length;
        memset(code, 0xcc, PAGE);
        memcpy(start, record.bytes, record.length);
        memset(data, 0x5a, PAGE);
        for (int number = 0; number < 16; number++)
            *field(&registers, number) = record.registers[number];
        registers.rip = (uintptr_t)start;
        registers.eflags = record.flags;
        registers.gs_base = 0;
        registers.orig_rax = -1;
        ptrace(PTRACE_SETREGS, child, 0, &registers);
        ptrace(PTRACE_SETFPREGS, child, 0, &vectors);
        int status;
        siginfo_t info;
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) {
            /* The child is gone: the record that it died of is told by signal 0. */
            child = begin(&first, &vectors);
        } else {
            ptrace(PTRACE_GETREGS, child, 0, &registers);
            ptrace(PTRACE_GETSIGINFO, child, 0, &info);
            outcome.signal = WSTOPSIG(status);
            outcome.address = outcome.signal == SIGSEGV ? (uintptr_t)info.si_addr : 0;
            outcome.advanced = (int32_t)(registers.rip - (uintptr_t)start);
            outcome.flags = registers.eflags;
            for (int number = 0; number < 16; number++)
                outcome.registers[number] = *field(&registers, number);
            for (int byte = 0; byte < PAGE; byte++)
                if (data[byte] != 0x5a) {
                    outcome.low = outcome.low ? outcome.low : byte + 1;
                    outcome.high = byte + 1;
                }
        }
        fwrite(&outcome, sizeof outcome, 1, stdout);
    }
    kill(child, SIGKILL);
    return 0;
}
