/* What a program does with itself alone: signals that it sends to itself, pipes, devices that lead nowhere. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int depth;
static sigjmp_buf out;

/* What a call came to, and its error. */
static void say(const char *what, long result)
{
    printf("%s %ld %d\n", what, result, result < 0 ? errno : 0);
}

static void note(int signal)
{
    sigset_t now;
    sigprocmask(SIG_BLOCK, 0, &now);
    printf("handler %d, depth %d, blocked itself %d\n", signal, ++depth, sigismember(&now, signal));
    if (signal == SIGUSR1 && depth == 1)
        raise(SIGUSR2);
    if (signal == SIGUSR2)
        raise(SIGUSR2); /* waits until this one has ended */
    if (signal == SIGHUP)
        siglongjmp(out, 3);
    depth--;
}

static void told(int signal, siginfo_t *information, void *context)
{
    printf("told of %d: %d %d\n", signal, information->si_signo, context != 0);
}

static void once(int signal)
{
    printf("once %d\n", signal);
}

static void signals(void)
{
    struct sigaction action = { .sa_handler = note }, old;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, 0);
    action.sa_handler = once;
    sigaction(SIGUSR2, &action, &old);
    printf("before: %d\n", old.sa_handler == SIG_DFL);
    printf("raise %d\n", raise(SIGUSR1));
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = told;
    sigaction(SIGTERM, &action, 0);
    printf("kill %d\n", kill(getpid(), SIGTERM));
    action.sa_flags = SA_RESETHAND;
    action.sa_handler = once;
    sigaction(SIGINT, &action, 0);
    raise(SIGINT);
    sigaction(SIGINT, 0, &old);
    printf("reset: %d\n", old.sa_handler == SIG_DFL);
    sigset_t mask, before;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_BLOCK, &mask, &before);
    raise(SIGUSR2);
    raise(SIGUSR2);
    sigpending(&mask);
    printf("pending %d %d\n", sigismember(&mask, SIGUSR2), sigismember(&mask, SIGUSR1));
    sigprocmask(SIG_SETMASK, &before, 0);
    sigpending(&mask);
    printf("then %d\n", sigismember(&mask, SIGUSR2));
    signal(SIGHUP, note);
    for (int i = 0; i < 2; i++) {
        int value = sigsetjmp(out, 1);
        if (!value)
            raise(SIGHUP);
        printf("left by %d\n", value);
        depth = 0;
    }
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_BLOCK, &mask, 0);
    raise(SIGUSR2);
    int which = 0, wrong = sigwait(&mask, &which);
    printf("waited %d for %d\n", wrong, which);
    raise(SIGUSR2);
    sigemptyset(&mask);
    say("suspended", sigsuspend(&mask));
    say("none", raise(65));
    signal(SIGTERM, SIG_IGN);
    printf("ignored %d\n", raise(SIGTERM));
}

static void pipes(void)
{
    int ends[2], status;
    char text[32] = "";
    struct stat found;
    printf("pipe %d\n", pipe(ends));
    struct pollfd asked[] = { { ends[0], POLLIN, 0 }, { ends[1], POLLOUT, 0 }, { 77, POLLIN, 0 } };
    say("poll", poll(asked, 2, 0));
    printf("%d %d\n", asked[0].revents, asked[1].revents);
    printf("write %d\n", (int)write(ends[1], "some bytes", 10));
    say("poll", poll(asked, 3, 5));
    printf("%d %d %d\n", asked[0].revents, asked[1].revents, asked[2].revents);
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(ends[0], &readable);
    struct timeval none = { 0 };
    say("select", select(ends[1] + 1, &readable, 0, 0, &none));
    printf("%d\n", FD_ISSET(ends[0], &readable) != 0);
    say("read", read(ends[0], text, 4));
    puts(text);
    FILE *stream = fdopen(ends[0], "r");
    close(ends[1]);
    printf("rest %s\n", fgets(text, sizeof text, stream));
    printf("end %d\n", fgets(text, sizeof text, stream) == 0 && feof(stream));
    fclose(stream);
    pipe2(ends, O_NONBLOCK);
    say("empty", read(ends[0], text, 4));
    static char block[1 << 16];
    printf("full %d", (int)write(ends[1], block, sizeof block));
    say(" more", write(ends[1], block, 1));
    say("kind", fstat(ends[0], &found));
    printf("%d\n", S_ISFIFO(found.st_mode));
    say("seek", lseek(ends[0], 0, SEEK_SET));
    signal(SIGPIPE, once);
    close(ends[0]);
    say("broken", write(ends[1], "x", 1));
    signal(SIGPIPE, SIG_IGN);
    say("broken", write(ends[1], "x", 1));
    close(ends[1]);
    say("child", wait(&status));
}

/* Which numbers would close if another program were run. */
static void closing(void)
{
    int ends[2];
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC), copy = dup(file), other = fcntl(file, F_DUPFD_CLOEXEC, 30);
    printf("closing %d, copy %d, other %d %d\n", fcntl(file, F_GETFD), fcntl(copy, F_GETFD), other, fcntl(other, F_GETFD));
    say("set", fcntl(file, F_SETFD, 0));
    say("set", fcntl(copy, F_SETFD, FD_CLOEXEC));
    printf("now %d, copy %d\n", fcntl(file, F_GETFD), fcntl(copy, F_GETFD));
    printf("dup3 %d", fcntl(dup3(file, 40, O_CLOEXEC), F_GETFD));
    printf(", over it %d", fcntl(dup2(file, 40), F_GETFD));
    printf(", onto itself %d\n", fcntl(dup2(copy, copy), F_GETFD));
    say("dup3 with another flag", syscall(SYS_dup3, file, 41, O_APPEND));
    say("dup3 onto itself", dup3(file, file, 0));
    pipe2(ends, O_CLOEXEC);
    printf("ends %d %d\n", fcntl(ends[0], F_GETFD), fcntl(ends[1], F_GETFD));
    for (int number = 3; number < 50; number++)
        close(number);
    say("none", fcntl(40, F_GETFD));
    say("none", fcntl(40, F_SETFD, 1));
}

static void devices(void)
{
    char text[8] = "unread";
    struct stat found;
    FILE *null = fopen("/dev/null", "w");
    printf("null %d\n", null && fputs("nothing", null) >= 0 && !fclose(null));
    int device = open("/dev/null", O_RDWR);
    printf("end %d\n", (int)read(device, text, 4));
    say("stat", fstat(device, &found));
    printf("%d\n", S_ISCHR(found.st_mode) && found.st_rdev == 0x103);
    close(device);
    device = open("/dev/zero", O_RDONLY);
    say("zero", read(device, text, 8));
    printf("%d\n", text[0] == 0 && text[7] == 0);
    close(device);
    device = open("/dev/urandom", O_RDONLY);
    long many[32] = { 0 }, all = 0;
    printf("random %d", (int)read(device, many, sizeof many));
    for (int i = 0; i < 32; i++)
        all |= many[i];
    printf(" %d\n", all != 0);
    close(device);
    printf("access %d %d\n", access("/dev/null", R_OK | W_OK), stat("/dev/zero", &found));
    device = open("/dev/stdout", O_WRONLY);
    fflush(stdout);
    printf("stdout %d\n", device >= 0 && write(device, "by its name\n", 12) == 12);
    close(device);
}

static void limits(void)
{
    struct rlimit limit;
    say("files", getrlimit(RLIMIT_NOFILE, &limit));
    printf("%d\n", limit.rlim_cur >= 64);
    say("stack", getrlimit(RLIMIT_STACK, &limit));
    printf("%d\n", limit.rlim_cur >= 1 << 16);
    printf("same %d\n", getrlimit(RLIMIT_CPU, &limit) || setrlimit(RLIMIT_CPU, &limit));
    say("wrong", getrlimit(99, &limit));
}

static void at_abort(int signal)
{
    printf("aborts %d\n", signal == SIGABRT);
    fflush(stdout);
    _exit(17);
}

int main(void)
{
    signals();
    pipes();
    closing();
    devices();
    limits();
    signal(SIGABRT, at_abort);
    fflush(stdout);
    abort();
}
