/* A text pipeline in C: each line of standard input goes through an extension.
 * A line that makes it crash is reported, and the next one finds it fresh.
 *
 *     mullion cc --mullion-kind=extension -g examples/words-c/extension.c -o words.mx
 *     cc examples/words-c/host.c -o words $(pkg-config --cflags --libs mullion)
 *     ./words words.mx < text
 */
#include <mullion.h>
#include <stdio.h>
#include <stdlib.h>

static void die(void)
{
	fprintf(stderr, "%s\n", mullion_error_message());
	exit(1);
}

/* The extension calls this with each word. */
static mullion_status emit(mullion_domain domain, void *user, const mullion_arguments *arguments,
                           mullion_value *result)
{
	mullion_pointer at = { arguments->integers[0] };
	char word[64];
	mullion_status status = mullion_read_string(domain, at, word, sizeof word, NULL);
	(void)result;
	if (status == MULLION_OK) {
		printf(" %s", word);
		++*(unsigned long *)user;
	}
	return status;
}

/* What it writes to its standard error, in the host's own log. */
static void log_line(void *user, int level, const char *target, const char *line)
{
	(void)user;
	(void)level;
	(void)target;
	printf("[%s]", line);
}

int main(int count, char **words)
{
	mullion_image image;
	mullion_imports imports;
	mullion_domain domain;
	mullion_function function;
	mullion_limits limits = MULLION_LIMITS_DEFAULT;
	unsigned long emitted = 0;
	char text[1000];

	limits.nanoseconds = 1000000000;
	if (mullion_set_log(log_line, NULL, MULLION_LOG_WARN)
	    || mullion_image_open(count > 1 ? words[1] : "words.mx", &image)
	    || mullion_imports_new(&imports)
	    || mullion_imports_add(imports, "emit", emit, &emitted)
	    || mullion_domain_load(image, "words", imports, &limits, &domain)
	    || mullion_function_find(domain, "line", &function))
		die();

	while (fgets(text, sizeof text, stdin)) {
		mullion_pointer inside;
		mullion_value argument;
		mullion_fault fault = { sizeof fault, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL };
		mullion_status status;

		if (mullion_string_in(domain, text, &inside))
			die();
		argument = mullion_address(inside);
		status = mullion_call(function, &argument, 1, NULL);
		if (status == MULLION_FAULT && mullion_last_fault(&fault) == MULLION_OK) {
			printf(" (%s; starting again)\n", fault.symbol);
			if (mullion_domain_restart(domain))
				die();
			continue;
		}
		if (status || mullion_free(domain, inside))
			die();
		putchar('\n');
	}
	printf("%lu words\n", emitted);
	return mullion_domain_unload(domain) != MULLION_OK;
}
