/* A process that knows the kernel's table and nothing else: no C library, no symbol of the host. */
#include "digest.h"
#include <mullion_kernel.h>

/* The line is the process's last word. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return __LINE__;                                                                                           \
    } while (0)
#define DONE(call) EXPECT((call) == MULLION_DONE)
#define TEXT(text) text, sizeof text - 1

/* The contract `ask`: its messages and states, in its order. */
enum { QUESTION, TEXT_MESSAGE, CLOSE, REPLY, ECHO_MESSAGE };
enum { ASK, ANSWER };

static const struct mullion_kernel *kernel;
static volatile uint64_t woken;

static void body(size_t waiter) {
    woken = 1;
    kernel->unpark(waiter);
}

/* Time, pages, threads. */
static uint32_t basics(void) {
    uint64_t begin = kernel->now();
    EXPECT(kernel->process() != 0);
    kernel->yield_now();
    kernel->park(begin + 1000000);
    EXPECT(kernel->now() >= begin + 1000000);
    char *pages = kernel->allocate_pages(100000);
    EXPECT(pages);
    pages[0] = pages[99999] = 7;
    struct mullion_statistics own;
    DONE(kernel->statistics(0, &own));
    EXPECT(own.process == kernel->process() && own.memory >= 100000 && own.memory_limit == 1 << 20 && own.threads == 1);
    kernel->release_pages(pages);
    DONE(kernel->statistics(0, &own));
    EXPECT(own.memory < 100000);
    DONE(kernel->create_thread(body, kernel->waiter()));
    while (!woken)
        kernel->park(MULLION_NEVER);
    return 0;
}

/* Both ends of a channel, as bytes. */
static uint32_t alone(uint32_t ask) {
    uint64_t client, server;
    uint32_t number, message = 99;
    size_t length, index = 9;
    struct mullion_channel about;
    DONE(kernel->create_channel(ask, &client, &server));
    DONE(kernel->channel(client, &about));
    EXPECT(about.contract == ask && about.side == 0 && about.state == ASK && about.sends == 1);
    number = 41;
    DONE(kernel->send(client, QUESTION, &number, sizeof number));
    uint64_t both[] = {client, server};
    DONE(kernel->wait_any(both, 2, MULLION_NEVER, &index));
    EXPECT(index == 1);
    number = 0;
    DONE(kernel->receive(server, 0, &message, &number, sizeof number, &length));
    EXPECT(message == QUESTION && number == 41 && length == 4);
    /* An ExVec<u8>: its count, and its values. */
    struct { uint64_t count; char text[5]; } echo = {5, "hello"};
    DONE(kernel->send(server, ECHO_MESSAGE, &echo, 13));
    struct mullion_statistics own;
    DONE(kernel->statistics(0, &own));
    EXPECT(own.exchange > 0);
    echo.text[0] = 'x';
    EXPECT(kernel->receive(client, 0, &message, &echo, 12, &length) == MULLION_TOO_LONG);
    DONE(kernel->receive(client, 0, &message, &echo, sizeof echo, &length));
    EXPECT(message == ECHO_MESSAGE && length == 13 && echo.count == 5 && echo.text[0] == 'h' && echo.text[4] == 'o');
    DONE(kernel->send(client, CLOSE, 0, 0));
    EXPECT(kernel->close(client) == MULLION_UNKNOWN);
    DONE(kernel->receive(server, MULLION_NEVER, &message, 0, 0, &length));
    EXPECT(message == CLOSE && length == 0);
    EXPECT(kernel->close(server) == MULLION_UNKNOWN);
    DONE(kernel->statistics(0, &own));
    EXPECT(own.exchange == 0 && own.sent == 3);
    return 0;
}

/* A child in Rust has the other end, with its types. */
static uint32_t with_a_child(uint32_t ask) {
    uint64_t client, server, child;
    uint32_t answerer, number = 5, message;
    size_t length;
    DONE(kernel->program(TEXT("answerer"), &answerer));
    DONE(kernel->create_channel(ask, &client, &server));
    struct mullion_wish wish = {.size = sizeof wish, .memory = 1 << 19, .children = 1};
    DONE(kernel->create_process(answerer, &wish, 100, server, &child));
    EXPECT(kernel->close(server) == MULLION_UNKNOWN);
    struct mullion_statistics its;
    DONE(kernel->statistics(child, &its));
    EXPECT(its.process == child && its.parent == kernel->process() && its.memory_limit == 1 << 19);
    DONE(kernel->send(client, QUESTION, &number, sizeof number));
    DONE(kernel->receive(client, MULLION_NEVER, &message, &number, sizeof number, &length));
    EXPECT(message == REPLY && number == 105);
    struct { uint64_t count; char text[3]; } text = {3, "abc"};
    DONE(kernel->send(client, TEXT_MESSAGE, &text, 11));
    DONE(kernel->receive(client, MULLION_NEVER, &message, &text, sizeof text, &length));
    EXPECT(message == ECHO_MESSAGE && text.count == 3 && text.text[0] == 'c' && text.text[2] == 'a');
    struct mullion_end end;
    EXPECT(kernel->wait(child, 0, &end) == MULLION_DEADLINE);
    DONE(kernel->send(client, CLOSE, 0, 0));
    DONE(kernel->wait(child, MULLION_NEVER, &end));
    EXPECT(end.cause == MULLION_RETURNED && end.length == 0);
    EXPECT(kernel->wait(child, MULLION_NEVER, &end) == MULLION_UNKNOWN);
    return 0;
}

/* A service in C, whose client is a process in Rust. */
static uint32_t as_a_service(uint32_t ask) {
    uint64_t child, server;
    uint32_t asker, number, message;
    size_t length;
    struct mullion_end end;
    DONE(kernel->bind(TEXT("/table/service"), ask));
    DONE(kernel->program(TEXT("asker"), &asker));
    struct mullion_wish wish = {.size = sizeof wish, .rights = 1};
    DONE(kernel->create_process(asker, &wish, 20, 0, &child));
    DONE(kernel->accept(TEXT("/table/service"), MULLION_NEVER, &server));
    DONE(kernel->receive(server, MULLION_NEVER, &message, &number, sizeof number, &length));
    EXPECT(message == QUESTION && number == 20);
    number += 1;
    DONE(kernel->send(server, REPLY, &number, sizeof number));
    DONE(kernel->wait(child, MULLION_NEVER, &end));
    EXPECT(end.cause == MULLION_EXITED && end.status == 21);
    EXPECT(kernel->receive(server, MULLION_NEVER, &message, &number, sizeof number, &length) == MULLION_CLOSED);
    DONE(kernel->close(server));
    DONE(kernel->unbind(TEXT("/table/service")));
    return 0;
}

/* A client in C of a service in Rust; and a child that has to be killed, whose peer is told. */
static uint32_t as_a_client(uint32_t ask) {
    uint64_t client, server, child;
    uint32_t endless, number = 7, message;
    size_t length;
    struct mullion_end end;
    DONE(kernel->create_channel(ask, &client, &server));
    EXPECT(kernel->look_up(TEXT("/table/nobody"), server) == MULLION_UNBOUND);
    DONE(kernel->look_up(TEXT("/table/rust"), server));
    DONE(kernel->send(client, QUESTION, &number, sizeof number));
    DONE(kernel->receive(client, MULLION_NEVER, &message, &number, sizeof number, &length));
    EXPECT(message == REPLY && number == 1007);
    DONE(kernel->close(client));
    DONE(kernel->program(TEXT("endless"), &endless));
    DONE(kernel->create_channel(ask, &client, &server));
    DONE(kernel->create_process(endless, 0, 0, server, &child));
    DONE(kernel->send(client, QUESTION, &number, sizeof number));
    DONE(kernel->kill(child));
    EXPECT(kernel->receive(client, MULLION_NEVER, &message, &number, sizeof number, &length) == MULLION_CLOSED);
    DONE(kernel->wait(child, MULLION_NEVER, &end));
    EXPECT(end.cause == MULLION_KILLED);
    return 0;
}

uint32_t client(const struct mullion_kernel *table) {
    uint32_t ask, line;
    kernel = table;
    EXPECT(mullion_kernel_fits(kernel));
    DONE(kernel->contract(ask_digest, &ask));
    if ((line = basics()) || (line = alone(ask)) || (line = with_a_child(ask)) || (line = as_a_service(ask)) ||
        (line = as_a_client(ask)))
        return line;
    return 0;
}
