/* See error.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*error_print_progname)(void);
unsigned int error_message_count;
int error_one_per_line;

static void say(int status, int number, const char *file, unsigned int line, const char *format, va_list arguments)
{
	fflush(stdout);
	if (error_print_progname)
		error_print_progname();
	else
		fprintf(stderr, "%s:%s", program_invocation_name, file ? "" : " ");
	if (file)
		fprintf(stderr, "%s:%u: ", file, line);
	vfprintf(stderr, format, arguments);
	error_message_count++;
	if (number)
		fprintf(stderr, ": %s", strerror(number));
	putc('\n', stderr);
	fflush(stderr);
	if (status)
		exit(status);
}

void error(int status, int number, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say(status, number, 0, 0, format, arguments);
	va_end(arguments);
}

void error_at_line(int status, int number, const char *file, unsigned int line, const char *format, ...)
{
	static const char *last_file;
	static unsigned int last_line;
	if (error_one_per_line && file) {
		if (last_line == line && (last_file == file || (last_file && !strcmp(last_file, file))))
			return;
		last_file = file;
		last_line = line;
	}
	va_list arguments;
	va_start(arguments, format);
	say(status, number, file, line, format, arguments);
	va_end(arguments);
}
