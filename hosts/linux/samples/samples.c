/* Runs a program, and looks a thousand times a second of its processor time where it is: samples TO PROGRAM ARGUMENTS...
 *
 * It writes a line for each place: the file that is mapped there, how far behind the file's beginning in memory, how often. Its
 * children are not looked at, and neither is what the system does for it. */

#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 256

struct place {
    uint64_t start, end, first;
    char name[128];
};

struct count {
    uint64_t at, times;
    char name[128];
};

static struct place places[8192];
static struct count counts[65536];
static unsigned place_count, count_count;
static uint64_t lost;

static void look_at_maps(int process)
{
    char path[64], line[512];
    FILE *maps;

    snprintf(path, sizeof path, "/proc/%d/maps", process);
    maps = fopen(path, "r");
    if (!maps)
        return;
    place_count = 0;
    while (place_count < 8192 && fgets(line, sizeof line, maps)) {
        struct place *one = &places[place_count];
        char rights[8] = "", name[256] = "";
        uint64_t offset;

        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &one->start, &one->end, rights, &offset, name) < 4)
            continue;
        snprintf(one->name, sizeof one->name, "%.127s", *name ? name : "-");
        one->first = one->start;
        /* The pieces of one file follow each other. */
        for (unsigned at = place_count; *name && at-- > 0 && !strcmp(places[at].name, one->name);)
            one->first = places[at].first;
        place_count++;
    }
    fclose(maps);
}

static struct place *find(uint64_t address)
{
    for (unsigned at = 0; at < place_count; at++)
        if (places[at].start <= address && address < places[at].end)
            return &places[at];
    return NULL;
}

static void note(int process, uint64_t address)
{
    struct place *place = find(address);
    unsigned at;

    if (!place) {
        look_at_maps(process);
        place = find(address);
    }
    if (!place) {
        lost++;
        return;
    }
    address -= place->first;
    for (at = 0; at < count_count; at++)
        if (counts[at].at == address && !strcmp(counts[at].name, place->name))
            break;
    if (at == 65536)
        return;
    if (at == count_count) {
        count_count++;
        counts[at].at = address;
        strcpy(counts[at].name, place->name);
    }
    counts[at].times++;
}

/* What the system has written since the last time. */
static void drain(int process, struct perf_event_mmap_page *page)
{
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    uint8_t *data = (uint8_t *)page + page->data_offset;

    while (tail < head) {
        struct perf_event_header header;
        uint64_t address;

        /* Records are multiples of eight bytes, so none of these words is cut. */
        memcpy(&header, data + tail % page->data_size, sizeof header);
        memcpy(&address, data + (tail + sizeof header) % page->data_size, sizeof address);
        if (header.type == PERF_RECORD_SAMPLE)
            note(process, address);
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

int main(int count, char **arguments)
{
    struct perf_event_attr what = {
        .size = sizeof what, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, .sample_period = 1000000,
        .sample_type = PERF_SAMPLE_IP, .exclude_kernel = 1, .exclude_hv = 1, .disabled = 1, .enable_on_exec = 1,
    };
    struct perf_event_mmap_page *page = MAP_FAILED;
    int go[2], process, status = 0, event;
    char one = '!';
    FILE *to;

    if (count < 3 || pipe(go) != 0 || (process = fork()) < 0)
        return 2;
    if (process == 0) {
        close(go[1]);
        if (read(go[0], &one, 1) == 1)
            execv(arguments[2], arguments + 2);
        _exit(126);
    }
    close(go[0]);
    event = syscall(SYS_perf_event_open, &what, process, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (event >= 0)
        page = mmap(NULL, (PAGES + 1) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    if (write(go[1], &one, 1) != 1)
        return 1;
    while (waitpid(process, &status, WNOHANG) == 0) {
        struct pollfd polled = { .fd = event, .events = POLLIN };

        poll(&polled, 1, 50);
        if (page != MAP_FAILED)
            drain(process, page);
    }
    if (page != MAP_FAILED)
        drain(process, page);
    to = fopen(arguments[1], "w");
    if (!to)
        return 1;
    for (unsigned at = 0; at < count_count; at++)
        fprintf(to, "%s %lx %lu\n", counts[at].name, counts[at].at, counts[at].times);
    fprintf(to, "lost 0 %lu\n", lost);
    return fclose(to) != 0;
}
