/* What the first program's parts have of each other. */

#include <stddef.h>
#include <stdint.h>

/* init.c */
void pattern(uint8_t *page, size_t bytes, uint32_t seed);

/* calls.c */
void calls(const char *place, uint32_t seed, const char *numbers, int tells);

/* ciphers.c */
void cipher(const char *name, unsigned key, unsigned count);

/* pairs.c: the ends' addresses, and what the other one is called. */
#define HERE 0x0a080001
#define THERE 0x0a080002
#define OTHER "other"
int make(const char *name, int process);
int take_away(const char *name);
int comes_up(const char *name, uint32_t own);
int waits(int socket, short what, unsigned device, unsigned most);
void meets(const char *name, unsigned *wrong);
void pairs(const char *name, unsigned echoes, unsigned transfers, unsigned taken);
void polls(const char *name);

/* loads.c */
void serve(const char *name, const char *line);
void get(const char *path, unsigned count);
void bulk(unsigned megabytes);
void unserve(void);
