/* The environment of the tests: a packet, and a few functions. */
typedef unsigned char byte;
typedef unsigned int address_t;
struct packet { unsigned length; unsigned source; address_t target; byte mac[6]; byte head[28]; unsigned port; };
struct secret { int key; };
union word { unsigned whole; byte parts[4]; };
enum verdict { PASS, DROP = 4, };
enum { LIMIT = 28 };
static int private_count;
static int private_function(int x) { return x + private_count; }
int public_add(int a, int b) { return private_function(a) + b; }
void public_bump(void) { private_count++; }
void public_fill(struct packet *p) { for (unsigned i = 0; i < 28; i++) p->head[i] = (byte)i; p->length = 28; p->source = 7; p->target = 9; p->port = 53; }
void public_any(void *p) { (void)p; }
int public_sum(const struct packet *p) { return (int)(p->source + p->target); }
int public_print(const char *format, ...) { return format[0]; }
double public_half(int x) { return x / 2.0; }
int public_apply(int (*f)(int), int x) { return f(x); }
static void take_back(void) { private_count = 0; }
static void begin(void) { private_count = 0; }
static byte public_buffer[16];
address_t *public_address(void) { static address_t a = 5; return &a; }
int handle(const struct packet *p);
int main(void);
