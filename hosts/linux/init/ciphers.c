/* Ciphers by the kernel's sockets. */

#include "parts.h"
#include <linux/if_alg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 512 };

/* One way, with a socket that has a key. Not 0: it failed. */
static int turn(int socket, uint32_t way, uint8_t *from, uint8_t *to)
{
    union {
        struct cmsghdr first;
        char bytes[CMSG_SPACE(sizeof way)];
    } control = { .first = { CMSG_LEN(sizeof way), SOL_ALG, ALG_SET_OP } };
    struct iovec part = { from, BYTES };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };

    memcpy(CMSG_DATA(&control.first), &way, sizeof way);
    return sendmsg(socket, &message, 0) != BYTES || read(socket, to, BYTES) != BYTES;
}

/* There and back, so many times: each time the same comes, and then what was there. */
void cipher(const char *name, unsigned key, unsigned count)
{
    struct sockaddr_alg of = { .salg_family = AF_ALG, .salg_type = "skcipher" };
    uint8_t data[BYTES], hidden[BYTES], back[BYTES], first[BYTES];
    unsigned good = 0, failed = 0, wrong = 0;

    snprintf((char *)of.salg_name, sizeof of.salg_name, "%s", name);
    pattern(data, BYTES, 5);
    for (unsigned at = 0; at < count; at++) {
        int in = socket(AF_ALG, SOCK_SEQPACKET, 0), out = -1, fails;

        if (in >= 0 && bind(in, (struct sockaddr *)&of, sizeof of) == 0 &&
            setsockopt(in, SOL_ALG, ALG_SET_KEY, "a key of some bytes, of which the cipher takes its own", key) == 0)
            out = accept(in, NULL, 0);
        fails = out < 0 || turn(out, ALG_OP_ENCRYPT, data, hidden) || turn(out, ALG_OP_DECRYPT, hidden, back);
        if (!fails && !good)
            memcpy(first, hidden, BYTES);
        good += !fails;
        failed += fails;
        wrong += !fails && (memcmp(first, hidden, BYTES) != 0 || memcmp(back, data, BYTES) != 0);
        if (fails)
            usleep(2000);
        if (out >= 0)
            close(out);
        if (in >= 0)
            close(in);
    }
    printf("init: cipher %s: %u times, %u failed, %u wrong\n", name, good, failed, wrong);
}
