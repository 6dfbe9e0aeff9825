/* Pairs of network devices: one end here, the other in a name space of networks of its own. Messages make them and take them away. */

#define _GNU_SOURCE
#include "parts.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 7
/* Ten seconds. */
#define LONG 200
#define MEGABYTE (1 << 20)
/* A message with attributes, as the kernel reads them. */
struct message {
    struct nlmsghdr head;
    struct ifinfomsg of;
    char rest[512];
};

static struct rtattr *add(struct message *message, int type, const void *bytes, size_t count)
{
    struct rtattr *one = (struct rtattr *)((char *)message + NLMSG_ALIGN(message->head.nlmsg_len));

    one->rta_type = type;
    one->rta_len = RTA_LENGTH(count);
    if (count)
        memcpy(RTA_DATA(one), bytes, count);
    message->head.nlmsg_len = NLMSG_ALIGN(message->head.nlmsg_len) + RTA_ALIGN(one->rta_len);
    return one;
}

static void close_at(struct message *message, struct rtattr *one)
{
    one->rta_len = (char *)message + message->head.nlmsg_len - (char *)one;
}

/* 0, or what the kernel answers. */
static int ask(struct message *message)
{
    struct { struct nlmsghdr head; struct nlmsgerr error; char rest[1024]; } answer;
    int channel = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), failed = -EIO;

    if (channel >= 0 && send(channel, message, message->head.nlmsg_len, 0) == (ssize_t)message->head.nlmsg_len &&
        recv(channel, &answer, sizeof answer, 0) > 0 && answer.head.nlmsg_type == NLMSG_ERROR)
        failed = answer.error.error;
    if (channel >= 0)
        close(channel);
    errno = -failed;
    return failed;
}

/* A pair: NAME here, and the other end in the name space of a process. */
int make(const char *name, int process)
{
    struct message message = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_NEWLINK,
                                         .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK } };
    struct ifinfomsg there = { 0 };
    struct rtattr *info, *data, *peer;
    static int made;

    /* Numbers that differ: between devices of one number, the kernel waits a second before it tells that both are up. */
    message.of.ifi_index = 100 + ++made * 2;
    there.ifi_index = message.of.ifi_index + 1;

    add(&message, IFLA_IFNAME, name, strlen(name) + 1);
    info = add(&message, IFLA_LINKINFO, NULL, 0);
    add(&message, IFLA_INFO_KIND, "veth", 4);
    data = add(&message, IFLA_INFO_DATA, NULL, 0);
    peer = add(&message, VETH_INFO_PEER, &there, sizeof there);
    add(&message, IFLA_IFNAME, OTHER, sizeof OTHER);
    add(&message, IFLA_NET_NS_PID, &process, sizeof process);
    close_at(&message, peer);
    close_at(&message, data);
    close_at(&message, info);
    return ask(&message);
}

int take_away(const char *name)
{
    struct message message = { .head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_DELLINK,
                                         .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK } };

    add(&message, IFLA_IFNAME, name, strlen(name) + 1);
    return ask(&message);
}

/* An address, and the device is up. */
int comes_up(const char *name, uint32_t own)
{
    struct ifreq of = { 0 };
    struct sockaddr_in *address = (struct sockaddr_in *)&of.ifr_addr;
    int socket_ = socket(AF_INET, SOCK_DGRAM, 0), done;

    snprintf(of.ifr_name, sizeof of.ifr_name, "%s", name);
    /* One that is up has all of it already. */
    if (ioctl(socket_, SIOCGIFFLAGS, &of) == 0 && of.ifr_flags & IFF_UP) {
        close(socket_);
        return 0;
    }
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(own);
    done = ioctl(socket_, SIOCSIFADDR, &of) == 0;
    address->sin_addr.s_addr = htonl(0xffffff00);
    done = done && ioctl(socket_, SIOCSIFNETMASK, &of) == 0 && ioctl(socket_, SIOCGIFFLAGS, &of) == 0;
    of.ifr_flags |= IFF_UP;
    done = done && ioctl(socket_, SIOCSIFFLAGS, &of) == 0;
    close(socket_);
    return done ? 0 : -1;
}

/* Packets are to be put together when they are received: the driver polls for them then. */
void polls(const char *name)
{
    struct ethtool_value on = { .cmd = ETHTOOL_SGRO, .data = 1 };
    struct ifreq of = { .ifr_data = (char *)&on };
    int any = socket(AF_INET, SOCK_DGRAM, 0), failed;

    snprintf(of.ifr_name, sizeof of.ifr_name, "%s", name);
    failed = make(name, getpid()) != 0 || ioctl(any, SIOCETHTOOL, &of) != 0;
    printf("init: poll %s: %s\n", name, failed ? strerror(errno) : "done");
    close(any);
    take_away(name);
}

static uint64_t digest(uint64_t before, const uint8_t *bytes, size_t count)
{
    for (size_t at = 0; at < count; at++)
        before = (before ^ bytes[at]) * 0x100000001b3ull;
    return before;
}

#define FIRST 0xcbf29ce484222325ull

/* Waits until a socket can be used, as long as the device is there, at most so many times 50 milliseconds. */
int waits(int socket, short what, unsigned device, unsigned most)
{
    char name[IF_NAMESIZE];

    for (unsigned times = 0; times < most; times++) {
        struct pollfd polled = { .fd = socket, .events = what };

        if (poll(&polled, 1, 50) != 0)
            return 1;
        if (!if_indextoname(device, name))
            return 0;
    }
    return 0;
}

/* The other end. It sets its device up whenever there is a new one. Who connects is answered with the digest of what he has sent. */
static void answer_all(int ready)
{
    static uint8_t bytes[65536];
    struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    int listens, yes = 1;
    char one = '!';

    if (unshare(CLONE_NEWNET) != 0)
        _exit(1);
    listens = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listens, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listens, (struct sockaddr *)&own, sizeof own) != 0 || listen(listens, 8) != 0)
        _exit(1);
    if (write(ready, &one, 1) != 1)
        _exit(1);
    for (;;) {
        struct pollfd polled = { .fd = listens, .events = POLLIN };
        uint64_t of = FIRST;
        unsigned device;
        ssize_t some = -1;
        int talks;

        comes_up(OTHER, THERE);
        if (poll(&polled, 1, 5) <= 0)
            continue;
        talks = accept(listens, NULL, NULL);
        if (talks < 0)
            continue;
        device = if_nametoindex(OTHER);
        while (waits(talks, POLLIN, device, LONG) && (some = read(talks, bytes, sizeof bytes)) > 0)
            of = digest(of, bytes, some);
        if (some == 0 && write(talks, &of, sizeof of) != sizeof of)
            some = -1;
        close(talks);
    }
}

/* Whether an echo comes back, and is what was sent. One of them begins with the mark. */
static int answers(const char *name, uint16_t number, int is_marked, unsigned most, unsigned *wrong)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(THERE) };
    struct { struct icmphdr head; uint8_t bytes[256]; } sent = { 0 };
    struct { uint8_t head[20]; struct icmphdr icmp; uint8_t bytes[256]; } got;
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), has = 0;
    unsigned device = if_nametoindex(name);
    uint32_t sum = 0;

    sent.head.type = ICMP_ECHO;
    sent.head.un.echo.sequence = htons(number);
    pattern(sent.bytes, sizeof sent.bytes, number);
    if (is_marked)
        sent.bytes[0] = '!';
    for (size_t at = 0; at < sizeof sent / 2; at++)
        sum += ((uint16_t *)&sent)[at];
    sum = (sum & 0xffff) + (sum >> 16);
    sent.head.checksum = ~(sum + (sum >> 16));
    if (sendto(raw, &sent, sizeof sent, 0, (struct sockaddr *)&to, sizeof to) == sizeof sent)
        while (!has && waits(raw, POLLIN, device, most) && recv(raw, &got, sizeof got, 0) == sizeof got)
            has = got.icmp.type == ICMP_ECHOREPLY && got.icmp.un.echo.sequence == htons(number);
    *wrong += has && memcmp(got.bytes, sent.bytes, sizeof sent.bytes) != 0;
    close(raw);
    return has;
}

static int send_all(int out, const uint8_t *bytes, size_t count, unsigned device)
{
    while (count) {
        ssize_t some = waits(out, POLLOUT, device, LONG) ? send(out, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;

        if (some <= 0)
            return 0;
        bytes += some;
        count -= some;
    }
    return 1;
}

/* A megabyte to the other end, whose digest comes back. In the middle of it the device may be taken away. */
static int transfer(const char *name, unsigned number, int is_taken, unsigned *wrong)
{
    static uint8_t bytes[16384];
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(THERE), .sin_port = htons(PORT) };
    int out = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), good;
    unsigned device = if_nametoindex(name);
    uint64_t of = FIRST, back = 0;

    good = connect(out, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS;
    for (size_t at = 0; good && at < MEGABYTE; at += sizeof bytes) {
        pattern(bytes, sizeof bytes, number + at);
        of = digest(of, bytes, sizeof bytes);
        good = send_all(out, bytes, sizeof bytes, device);
        if (is_taken && at == MEGABYTE / 2)
            take_away(name);
    }
    good = good && shutdown(out, SHUT_WR) == 0 && waits(out, POLLIN, device, LONG) && read(out, &back, sizeof back) == sizeof back;
    *wrong += good && back != of;
    close(out);
    return good;
}

/* The other end sets its device up meanwhile: first echoes may be lost. */
void meets(const char *name, unsigned *wrong)
{
    for (unsigned times = 0; times < LONG && if_nametoindex(name); times++)
        if (answers(name, 9999, 0, 1, wrong))
            break;
}

/* Echoes and transfers over a pair that is made first, and made again whenever something fails; not more than three times in a row.
 * `taken` times it goes while a transfer is under way. */
void pairs(const char *name, unsigned echoes, unsigned transfers, unsigned taken)
{
    unsigned answered = 0, sent = 0, failed = 0, again = 0, wrong = 0, last = 0, in_a_row = 0;
    int ready[2], process;
    char one;

    if (pipe(ready) != 0 || (process = fork()) < 0)
        return;
    if (process == 0)
        answer_all(ready[1]);
    close(ready[1]);
    if (read(ready[0], &one, 1) != 1 || make(name, process) != 0 || comes_up(name, HERE) != 0) {
        printf("init: pair %s: %s\n", name, strerror(errno));
        goto out;
    }
    meets(name, &wrong);
    for (unsigned at = 0; at < echoes + transfers && in_a_row < 3; at++) {
        int is_taken = at >= echoes && at - echoes < taken;

        last = at < echoes ? answers(name, at, at == echoes / 2, LONG, &wrong) : transfer(name, at, is_taken, &wrong);
        *(at < echoes ? &answered : &sent) += last;
        failed += !last;
        in_a_row = last ? 0 : in_a_row + 1;
        if (last)
            continue;
        /* It may be there still, or not there yet. */
        for (unsigned times = 0; times < 100; times++) {
            take_away(name);
            if (make(name, process) == 0 && comes_up(name, HERE) == 0)
                break;
            usleep(20000);
        }
        again++;
        meets(name, &wrong);
    }
    printf("init: pair %s: %u answered, %u megabytes sent, %u failed, %u times made again, %u wrong, the last %s\n", name,
           answered, sent, failed, again, wrong, last ? "done" : "failed");
out:
    take_away(name);
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    close(ready[0]);
}
