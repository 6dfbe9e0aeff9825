/* What the kernel starts when a program image is executed directly: hands it
 * to `mullion run`. Built for the host, without a C library, from the initial
 * stack alone; MULLION is the absolute path of the mullion command.
 *
 * MULLION_RUN in the environment holds options for `mullion run`, separated by
 * spaces. */
#define AT_EXECFN 31
#define MOST_OPTIONS 64

static long system_call(long number, long a, long b, long c)
{
	long result;
	__asm__ __volatile__ ("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static unsigned long length(const char *text)
{
	unsigned long n = 0;
	while (text[n])
		n++;
	return n;
}

static void complain(const char *text)
{
	system_call(1, 2, (long)text, (long)length(text));
}

/* The value of MULLION_RUN, if `entry` is it. */
static char *options_in(char *entry)
{
	const char *name = "MULLION_RUN=";
	while (*name)
		if (*entry++ != *name++)
			return 0;
	return entry;
}

__attribute__((used)) static void start(long *block)
{
	long count = block[0];
	char **arguments = (char **)(block + 1), **environment = arguments + count + 1, **end = environment;
	char *options = 0;
	for (; *end; end++) {
		char *found = options_in(*end);
		if (found)
			options = found;
	}
	const char *program = arguments[0];
	for (unsigned long *entry = (unsigned long *)(end + 1); entry[0]; entry += 2)
		if (entry[0] == AT_EXECFN)
			program = (const char *)entry[1];

	/* mullion run OPTIONS --argv0 NAME -- PROGRAM ARGUMENTS */
	const char *line[count + MOST_OPTIONS + 7];
	long n = 0;
	line[n++] = "mullion";
	line[n++] = "run";
	for (long taken = 0; options && *options && taken < MOST_OPTIONS;) {
		while (*options == ' ')
			*options++ = 0;
		if (!*options)
			break;
		line[n++] = options;
		taken++;
		while (*options && *options != ' ')
			options++;
	}
	if (count) {
		line[n++] = "--argv0";
		line[n++] = arguments[0];
	}
	line[n++] = "--";
	line[n++] = program;
	for (long i = 1; i < count; i++)
		line[n++] = arguments[i];
	line[n] = 0;
	system_call(59, (long)MULLION, (long)line, (long)environment);
	complain("mullion: " MULLION " cannot be started; build the program again\n");
	system_call(60, 126, 0, 0);
}

__asm__ (".globl _start\n_start:\n\tmovq %rsp, %rdi\n\tandq $-16, %rsp\n\tcall start\n");
